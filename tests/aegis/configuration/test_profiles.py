"""Profiles of agents in the file: their values, every error with its line, and the trust."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.configuration.agents import AgentSection
from aegis.configuration.file import programs_of
from aegis.configuration.problems import BadConfiguration
from aegis.configuration.reading import parse
from aegis.configuration.sections import Configuration, effective_values


def errors(text: str) -> list[str]:
    with pytest.raises(BadConfiguration) as caught:
        parse(text.encode())
    return [line.removeprefix(".aegis.yaml ") for line in caught.value.lines()]


def profile(*lines: str) -> str:
    """A file with the profile ``a``, whose keys begin in line 3, and a profile ``b``."""
    return "\n".join(["agents:", "  a:", *(f"    {line}" for line in lines), "  b: {}", ""])


@pytest.mark.parametrize(
    ("lines", "section"),
    [
        ([], AgentSection()),
        (["provider: gemini", "model: gemini-3.8-flash"], {"model": "gemini-3.8-flash"}),
        (["permission: read"], AgentSection(permission="read")),
        (["effort: high"], AgentSection(effort="high")),
        (["command: /opt/claude"], AgentSection(command=("/opt/claude",))),
        (["command: [node, --stack-size=1, '']"], None),
        (["command:", "- node", "- 'a b'"], AgentSection(command=("node", "a b"))),
        (["command: [x, 5]"], AgentSection(command=("x", "5"))),
        (["env: {A: '', B_1: $A, TOKEN: $T}"], {"env": {"A": "", "B_1": "$A", "TOKEN": "$T"}}),
        (["prompt: |", "  Be brief.", "  Be kind."], {"prompt": "Be brief.\nBe kind.\n"}),
        (["budget_usd: 2.5", "max_runtime_s: 60"], {"budget_usd": 2.5, "max_runtime_s": 60.0}),
        (["may_spawn: b"], AgentSection(may_spawn=("b",))),
        (["accepts_from: [b, 'agent:pm']"], AgentSection(accepts_from=("b", "agent:pm"))),
        (["tools: [term_run, core]"], AgentSection(tools=("term_run", "core"))),
        (["answers_requests: true"], AgentSection(answers_requests=True)),
        (["call_limit_s: 60"], AgentSection(call_limit_s=60.0)),
    ],
)
def test_a_profile_has_the_values_of_the_file(
    lines: list[str], section: AgentSection | dict[str, object] | None
) -> None:
    if section is None:
        assert errors(profile(*lines)) == [
            "line 3: agents.a.command, item 3, must be a word of a command, not the quoted ''"
        ]
        return
    agents = parse(profile(*lines).encode()).configuration.agents
    assert agents["b"] == AgentSection()
    if isinstance(section, AgentSection):
        assert agents["a"] == section
    else:
        assert section.items() <= {name: getattr(agents["a"], name) for name in section}.items()


CHOICES = "claude, claude-agent-acp, codex, gemini, opencode, kimi or acp"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("provider: codx", f"provider must be {CHOICES}, not 'codx'; did you mean 'codex'?"),
        ("provider: 5", f"provider must be {CHOICES}, not 5"),
        ("provider: [claude]", f"provider must be {CHOICES}, not a list"),
        ("provider: acp", "provider is 'acp', so agents.a.command must name the program"),
        ("permission: no", "permission must be read, plan, ask, write or full, not 'no'"),
        ("permission: bypass", "permission must be read, plan, ask, write or full, not 'bypass'"),
        ("answers_requests: yes", "answers_requests must be true or false, not 'yes'"),
        ("answers_requests: 'true'", "answers_requests must be true or false, not the quoted "
         "'true'"),
        ("model: ''", "model must be the name of a model, not the quoted ''"),
        ("command: {a: b}", "command must be a list of at most 64, each a word of a command, not a "
         "mapping"),
        ("command: [a, [b]]", "command, item 2, must be a word of a command, not a list"),
        ('command: ["a\\nb"]', "command, item 1, must be a word of a command, not the quoted "
         r"'a\nb'"),
        (f"command: [{'x, ' * 65}]", "command must be a list of at most 64, each a word of a "
         "command, not a list"),
        ("env: [A]", "env must be a mapping of at most 64 names (the name of a variable) to texts, "
         "not a list"),
        ("env: {1A: x}", "env has '1A', which is not the name of a variable"),
        ("env: {A: {}}", "env.A must be a text, not a mapping"),
        ("env: {A: }", "env.A has no value: give a text, or leave the key out"),
        ("env: {API_KEY: hunter2}", "env.API_KEY looks like a secret, which does not belong in this"
         " file: set it in the daemon's environment, and write its name here, such as $API_KEY"),
        ("budget_usd: 0", "budget_usd must be a number from 0.01 to 1000000, not 0"),
        ("may_spawn: c", "may_spawn has 'c', which is no profile; the profiles are a, b, claude, "
         "claude-agent-acp, codex, gemini, opencode, kimi"),
        ("accepts_from: [bb]", "accepts_from has 'bb', which is no profile; did you mean 'b'?"),
        ("accepts_from: ['queue:b']", "accepts_from, item 1, must be a profile or 'agent:' and a "
         "handle, not the quoted 'queue:b'"),
        ("asking_mode: auto", "asking_mode is for the provider 'acp' only: leave it out"),
        ("tools: CORE", "tools must be the name of a tool or of a set of tools, not 'CORE'"),
        ("tools: [core, spwan]", "tools: 'spwan' is no tool and no set of tools; did you mean "
         "'spawn'?"),
        ("tools: [core, aegis_inbox_wait]", "tools has 'aegis_inbox_wait': messages arrive as "
         "turns, so leave it out"),
        ('prompt: "\\e[2J"', "prompt must be a text of at most 32768 characters, not the quoted "
         r"'\x1b[2J'"),
        (f"prompt: {'x' * 32769}", "prompt must be at most 32768 characters long, not 32769"),
        ("call_limit_s: 1", "call_limit_s must be a number from 2 to 86400, not 1"),
    ],
)  # fmt: skip
def test_a_bad_value_is_reported_with_its_line_and_key(line: str, sentence: str) -> None:
    assert errors(profile(line)) == [f"line 3: agents.a.{sentence}"]


@pytest.mark.parametrize(
    "name",
    ["OPENCODE_CONFIG_CONTENT", "OPENCODE_DISABLE_PROJECT_CONFIG", "OPENCODE_SERVER_PASSWORD"],
)
def test_a_variable_by_which_an_agent_asks_cannot_be_changed(name: str) -> None:
    assert errors(profile("provider: opencode", f"env: {{{name}: '{{}}'}}")) == [
        f"line 4: agents.a.env.{name} cannot be set: opencode gets a value of ours"
    ]


@pytest.mark.parametrize(
    "name", ["AEGIS_ROOT", "PWD", "CLAUDECODE", "CLAUDE_CODE_RESUME_INTERRUPTED_TURN"]
)
def test_a_variable_of_ours_or_one_that_repeats_turns_cannot_be_set(name: str) -> None:
    assert errors(profile(f"env: {{{name}: '1'}}")) == [
        f"line 3: agents.a.env.{name} cannot be set: leave it out"
    ]


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("[claude, --dangerously-skip-permissions]", "--dangerously-skip-permissions"),
        ("[claude, --permission-mode=bypassPermissions]", "--permission-mode=bypassPermissions"),
        ("[gemini, --acp, --approval-mode, yolo]", "--approval-mode"),
        ("[/opt/bin/gemini, --acp, -y]", "-y"),
        ("[npx, -y, '@google/gemini-cli', --yolo]", "--yolo"),
        ("[npx, -y, '@google/gemini-cli', --acp]", None),
        ("[/opt/claude, --model=x]", None),
    ],
)
def test_a_command_by_which_the_agent_asks_nobody_is_refused(
    command: str, word: str | None
) -> None:
    text = profile(f"command: {command}", "permission: full")
    if word is None:
        assert parse(text.encode()).configuration.agents["a"].command
    else:
        assert errors(text) == [
            f"line 3: agents.a.command has {word!r}, with which the agent asks nobody: leave it "
            "out, and set agents.a.permission"
        ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("agents: [a]", "line 1: agents must be a mapping of names, not a list"),
        (
            "agents:\n  a b: {}",
            "line 2: agents has the name 'a b': use 1 to 64 letters, digits, '.', '_' or '-', "
            "beginning with a letter or a digit",
        ),
        (
            "agents:\n  a: {}\n  A: {}",
            "line 3: agents has 'a' and 'A': names are compared ignoring case",
        ),
        ("agents:\n  a: {}\n  a: {}", "line 3: agents.a is repeated; it is already on line 2: keep "
         "one of them"),
        ("default_agent: a", "line 1: default_agent is 'a', which is no profile; the profiles "
         "are claude, claude-agent-acp, codex, gemini, opencode, kimi"),
        ("agents: {build: {}}\ndefault_agent: built", "line 2: default_agent is 'built', which is "
         "no profile; did you mean 'build'?"),
        ("limits: {sessions: 0}", "line 1: limits.sessions must be a whole number from 1 to 1000, "
         "not 0"),
        ("limits: {session: 1}", "line 1: there is no key 'limits.session'; did you mean "
         "'limits.sessions'?"),
        ("agents:\n  a: {budget: 3}", "line 2: there is no key 'agents.a.budget'; did you mean "
         "'agents.a.budget_usd'?"),
    ],
)  # fmt: skip
def test_a_bad_mapping_is_reported_with_its_line(text: str, sentence: str) -> None:
    assert errors(text) == [sentence]


def test_the_name_of_a_provider_is_a_profile_too() -> None:
    parsed = parse(b"agents: {a: {may_spawn: [gemini]}}\ndefault_agent: claude\n")
    assert parsed.configuration.default_agent == "claude"
    assert errors("default_agent: acp")[0].startswith("line 1: default_agent is 'acp', which is no")


def test_the_keys_that_the_file_gives_are_known_by_their_full_names() -> None:
    parsed = parse(b"limits: {sessions: 2}\nagents: {b: {permission: full}, a: {tools: all}}\n")
    assert parsed.given == ("agents.b.permission", "agents.a.tools", "limits.sessions")
    values = effective_values(parsed.configuration)
    assert values["agents.b.permission"] == "full"
    assert values["agents.a.tools"] == ("all",)
    assert values["limits.sessions"] == 2


@pytest.mark.parametrize(
    ("lines", "sentences"),
    [
        ([], ()),
        (["permission: read", "model: x", "prompt: Hello", "budget_usd: 3"], ()),
        (["permission: write"], ("permission is 'write'",)),
        (["command: [./evil, --now]"], ("command is './evil --now'",)),
        (["env: {PATH: /evil, B: x}"], ("env is 'PATH B'",)),
        (["may_spawn: [b]", "accepts_from: [b]"], ("may_spawn is 'b'", "accepts_from is 'b'")),
        (["answers_requests: true"], ("answers_requests is true",)),
        (["project_settings: true"], ("project_settings is true",)),
        (
            ["provider: acp", "command: x", "asking_mode: yolo"],
            ("command is 'x'", "asking_mode is 'yolo'"),
        ),
    ],
)
def test_a_profile_with_programs_or_rights_must_be_trusted(
    lines: list[str], sentences: tuple[str, ...]
) -> None:
    found = programs_of(parse(profile(*lines).encode()).configuration)
    assert found == tuple(f"agents.a.{each}" for each in sentences)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(["a", "env"]), inner, max_size=4)
    ),
    max_leaves=12,
)
KEYS = st.sampled_from(["provider", "command", "env", "prompt", "tools", "may_spawn", "permission"])


@given(st.dictionaries(st.text(max_size=5), st.dictionaries(KEYS, JSON) | JSON, max_size=3), JSON)
def test_any_document_is_read_or_refused_in_sentences(agents: object, default: object) -> None:
    document = json.dumps({"agents": agents, "default_agent": default})
    try:
        parsed = parse(document.encode())
    except BadConfiguration as error:
        lines = error.lines()
    else:
        assert isinstance(parsed.configuration, Configuration)
        lines = list(programs_of(parsed.configuration))
    assert all(line.isprintable() for line in lines)
