"""The table of providers: what each agent program needs to be started and understood. Pure.

``docs/reference/providers.md`` is made from it (``tests/aegis/agents/drivers/providers_page.py``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Literal

import attrs

from aegis.agents.drivers.commands import Mentions
from aegis.processes.environment import KEY_VARIABLES

Family = Literal["claude", "acp"]

ConversationKind = Literal["", "claude", "codex", "opencode", "kimi"]
"""The program whose files have the conversations; empty: they are not read."""

CUT_CALLS_S = 60.0
"""The time after which opencode and kimi give up a call of an MCP tool, measured."""


@attrs.frozen(kw_only=True)
class Provider:
    """One agent program, and the facts that were measured with the versions in ``tried``.

    ``start`` is the program and its first arguments; the driver of the ``family`` adds others.
    ``oldest`` is the oldest version that was
    tried. ``asking_modes`` are the ids of the modes in which it asks before it acts; the first one
    that it offers is set. ``environment`` is set in every process of it, and a profile may not
    change it; ``preset`` is set unless the profile sets the same variable. ``with_project`` is set
    if the profile has the agent use the settings that its directory brings, ``without_project`` if
    not. ``call_limit_s`` is the
    time after which it gives up a call of an MCP tool; None: it does not.

    ``password_variables`` get a new random password in each process: without it, other users of the
    machine could use the server that the agent opens on loopback. ``refused_variables`` may not be
    set by a profile.

    ``session_options`` are the ids of its answers that allow for the session, the narrowest first;
    its others have an effect that outlives the session. ``waits_for_mcp``: it starts MCP servers
    beside its first turn. ``authenticate`` maps variables with a key to ACP's method to log in with
    it. ``takes_claude_options``: its sessions take options of Claude Code in ``_meta``.
    ``trusts_its_directory``: it trusts the directory of a session, by its name. ``reads_files``: it
    may read files through its client.
    ``own_title``, ``plan_option``, ``edits_by_mode`` and ``mode_mark``: see ``AcpOptions``.
    ``mentions``: what it expands in a text, without asking.
    ``project_texts`` are the files of a directory with instructions that it does not read without
    the settings of the directory. ``plan_mode``: the id of its mode for plans; ``""``: it cannot be
    started for a plan, for the reason ``no_plan``, which continues a sentence about it.

    ``conversations`` is the kind of the files in which it keeps its conversations, ``forks``:
    it can continue a copy of one.

    ``login`` says how to log in, and ``login_command`` is its program for a terminal.
    ``asks_for_our_tools``: a call of our MCP tools is a permission request first; None: that is not
    known, so a call is taken only after such a request was answered. A key in one of
    ``key_variables`` or a file of ``key_files``, relative to the home directory, is a sign that it
    is logged in; the variables in ``home_variables`` replace the directory of a file.
    """

    name: str
    title: str
    family: Family
    start: tuple[str, ...]
    tried: tuple[str, ...] = ()
    oldest: str = ""
    asking_modes: tuple[str, ...] = ()
    environment: Mapping[str, str] = attrs.field(factory=dict)
    preset: Mapping[str, str] = attrs.field(factory=dict)
    with_project: Mapping[str, str] = attrs.field(factory=dict)
    without_project: Mapping[str, str] = attrs.field(factory=dict)
    password_variables: tuple[str, ...] = ()
    refused_variables: tuple[str, ...] = ()
    reports_cost: bool = False
    asks_for_our_tools: bool | None = True
    call_limit_s: float | None = None
    session_options: tuple[str, ...] = ()
    waits_for_mcp: bool = False
    own_title: str = ""
    plan_mode: str = ""
    no_plan: str = "no mode for plans of it was tried"
    plan_option: str = ""
    edits_by_mode: bool = False
    mode_mark: str = ""
    authenticate: Mapping[str, str] = attrs.field(factory=dict)
    takes_claude_options: bool = False
    trusts_its_directory: bool = False
    reads_files: bool = True
    mentions: Mentions = ""
    project_texts: tuple[str, ...] = ()
    conversations: ConversationKind = ""
    forks: bool = False
    install: str = ""
    login: str = ""
    login_command: tuple[str, ...] = ()
    key_variables: tuple[str, ...] = ()
    key_files: tuple[str, ...] = ()
    home_variables: Mapping[str, str] = attrs.field(factory=dict)
    traps: tuple[str, ...] = ()


def _asking_rules() -> dict[str, object]:
    """Return the rules with which opencode asks before it does anything but read, and plan.

    The last rule that fits wins, and a key keeps its place in the user's own configuration. So the
    tools are named one by one beside the ``*``.
    """
    asks = ("*", "bash", "edit", "webfetch", "websearch", "external_directory", "task", "skill")
    allowed = dict.fromkeys(("list", "glob", "grep", "todowrite"), "allow")
    reads = {"*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow"}
    # Calls of our own tools are checked where they arrive.
    own = {"aegis_*": "allow"}
    return {**dict.fromkeys(asks, "ask"), **allowed, "read": reads, **own}


def _asking_environment() -> dict[str, str]:
    """Return the environment in which opencode asks.

    The rules are given for each of its modes too, since those of a mode win.
    """
    rules = _asking_rules()
    modes = {mode: {"permission": rules} for mode in ("build", "plan")}
    configuration = {"permission": rules, "agent": modes}
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(configuration, separators=(",", ":")),
        # Read last, so that one in the daemon's environment would win.
        "OPENCODE_PERMISSION": json.dumps(rules, separators=(",", ":")),
    }


_ANTHROPIC_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_CLAUDE_REFUSED = (
    "CLAUDECODE",
    # With these it repeats an interrupted turn by itself.
    "CLAUDE_CODE_RESUME_INTERRUPTED_TURN",
    "CLAUDE_CODE_RESUME_REASON",
)
_CLAUDE_FILES = (".claude/.credentials.json",)
_CLAUDE_HOME = {"CLAUDE_CONFIG_DIR": ".claude"}

PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="claude",
        title="Claude Code",
        family="claude",
        mentions="files",
        start=("claude",),
        tried=("2.1.330",),
        oldest="2.1.330",
        asking_modes=("default",),
        plan_mode="plan",
        # Without the first, it does not report its states.
        environment={"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1"},
        preset={"ENABLE_TOOL_SEARCH": "false"},
        refused_variables=_CLAUDE_REFUSED,
        reports_cost=True,
        conversations="claude",
        forks=True,
        install="npm install -g @anthropic-ai/claude-code",
        login="claude auth login, or ANTHROPIC_API_KEY in the daemon's environment",
        login_command=("claude", "auth", "login"),
        key_variables=_ANTHROPIC_KEYS,
        key_files=_CLAUDE_FILES,
        home_variables=_CLAUDE_HOME,
        traps=(
            "It hides MCP tools behind a search unless ENABLE_TOOL_SEARCH is false.",
            "It ends with code 1 after a clean end too, if its last turn failed.",
            "It repeats a request that was answered with 401 for more than a minute.",
            "A version without --await-initialize gets our server in a private file; one that does "
            "not report which message a turn answers, such as 2.0.50, is refused.",
            "Of a checkout it reads CLAUDE.md and .claude/rules, but no settings, commands and "
            ".mcp.json, unless the profile has project_settings: without a terminal it trusts "
            "every directory.",
            "Its cost is lost with a process that is killed, so it is summed here.",
        ),
    ),
    Provider(
        name="claude-agent-acp",
        title="Claude Code by its ACP adapter",
        family="acp",
        mentions="files",
        start=("claude-agent-acp",),
        refused_variables=_CLAUDE_REFUSED,
        tried=("0.101.0",),
        oldest="0.101.0",
        asking_modes=("default",),
        plan_mode="plan",
        plan_option="exit-plan-default",
        preset={
            "ENABLE_TOOL_SEARCH": "false",
            # Otherwise each turn is followed by a request for what the user might type next.
            "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION": "false",
        },
        reports_cost=True,
        takes_claude_options=True,
        conversations="claude",
        forks=True,
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        login="claude auth login, or ANTHROPIC_API_KEY in the daemon's environment",
        login_command=("claude", "auth", "login"),
        key_variables=_ANTHROPIC_KEYS,
        key_files=_CLAUDE_FILES,
        home_variables=_CLAUDE_HOME,
        traps=(
            "It starts in the mode auto, in which a model approves and no person is asked.",
            "It needs Node 22: with an older one, npm installs an older version.",
            "kill -9 leaves its claude process alive.",
            "It hides MCP tools behind a search unless ENABLE_TOOL_SEARCH is false.",
            "It puts the URLs of MCP servers into the arguments of its claude process, so it gets "
            "the path of a private file instead.",
            "Of a checkout it reads CLAUDE.md and .claude/rules, but no settings, commands and "
            ".mcp.json, unless the profile has project_settings.",
        ),
    ),
    Provider(
        name="codex",
        title="Codex by its ACP adapter",
        family="acp",
        mentions="skills",
        start=("codex-acp",),
        tried=("2.6.0",),
        oldest="2.6.0",
        asking_modes=("read-only",),
        no_plan="its plan is text of a turn, which it asks nobody to approve",
        session_options=("allow_session",),
        waits_for_mcp=True,
        trusts_its_directory=True,
        authenticate={"OPENAI_API_KEY": "api-key", "CODEX_API_KEY": "api-key"},
        conversations="codex",
        forks=True,
        install="npm install -g @agentclientprotocol/codex-acp",
        login="codex login, or OPENAI_API_KEY in the daemon's environment",
        login_command=("codex", "login"),
        key_variables=("OPENAI_API_KEY", "CODEX_API_KEY"),
        key_files=(".codex/auth.json",),
        home_variables={"CODEX_HOME": ".codex"},
        traps=(
            "It starts in the mode agent, in which a model approves and no person is asked.",
            "In the mode workspace-write it edits files of the workspace unasked.",
            "It has no tools of ours in a first turn right after the start: that turn waits.",
            "A refusal ends the turn.",
            "It does not read .codex/ of a checkout, unless the profile has project_settings or "
            "you have trusted the directory in codex itself.",
            "A turn that failed with an error of the model's API ends with end_turn: the reported "
            "thread status systemError makes it an error here.",
            "It reports no cost, so a profile of it cannot have a budget.",
        ),
    ),
    Provider(
        name="gemini",
        title="Gemini CLI",
        family="acp",
        start=("gemini", "--acp"),
        tried=("0.61.0",),
        oldest="0.61.0",
        asking_modes=("default",),
        session_options=("proceed_always_tool", "proceed_always"),
        edits_by_mode=True,
        mode_mark="[MODE_UPDATE] ",
        no_plan="it has its plan approved by the path of a file, without the text",
        with_project={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
        project_texts=("GEMINI.md",),
        # It does not recognise the error for a missing file, and then creates none.
        reads_files=False,
        own_title=r"(aegis_\w+) \(aegis MCP Server\)",
        authenticate={"GEMINI_API_KEY": "gemini-api-key"},
        install="npm install -g @google/gemini-cli",
        login="gemini, or GEMINI_API_KEY in the daemon's environment",
        login_command=("gemini",),
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        key_files=(".gemini/oauth_creds.json",),
        traps=(
            "It cannot load a conversation after kill -9: the next process begins a new one.",
            "It starts no MCP server in a directory that it does not trust, which the session "
            "says: trust the directory in gemini itself, or set project_settings in the profile.",
            "In a directory that it trusts, it uses .gemini/ and .env of the checkout too.",
            "It reads files itself, and writes them through its client.",
            "A second prompt cancels the first, so one is sent at a time.",
            "It ends a cancelled turn only when its open permission was answered.",
            "It does not end at the end of its input.",
            "It reports no cost, so a profile of it cannot have a budget.",
        ),
    ),
    Provider(
        name="opencode",
        title="opencode",
        family="acp",
        asks_for_our_tools=False,
        start=("opencode", "acp"),
        tried=("1.18.33",),
        oldest="1.18.33",
        asking_modes=("build",),
        plan_mode="plan",
        session_options=("always",),
        environment=_asking_environment(),
        # A checkout's own configuration may allow tools, bring agents and run plugins.
        without_project={"OPENCODE_DISABLE_PROJECT_CONFIG": "1"},
        project_texts=("AGENTS.md",),
        password_variables=("OPENCODE_SERVER_PASSWORD",),
        reports_cost=True,
        call_limit_s=CUT_CALLS_S,
        conversations="opencode",
        forks=True,
        install="npm install -g opencode-ai",
        login="opencode auth login, or the key of its model in the daemon's environment",
        login_command=("opencode", "auth", "login"),
        # Its models are of any provider.
        key_variables=tuple(sorted(KEY_VARIABLES)),
        key_files=(".local/share/opencode/auth.json",),
        home_variables={"XDG_DATA_HOME": ".local/share"},
        traps=(
            "It asks only if its configuration says so: it is started with one that does.",
            "It does not read opencode.json and .opencode/ of a checkout, unless the profile has "
            "project_settings; AGENTS.md comes with its first message.",
            "It opens an HTTP server on loopback, which gets a password of its own.",
            "It gives up a call of a tool after 60 s.",
            "It writes failed requests to stderr, with the MCP servers' URLs: they are scrubbed.",
            "A refusal ends the turn without a text.",
        ),
    ),
    Provider(
        name="kimi",
        title="Kimi CLI",
        family="acp",
        start=("kimi", "acp"),
        tried=("1.44.0",),
        oldest="1.44.0",
        asking_modes=("default",),
        no_plan="it leaves its mode for plans without asking anybody",
        session_options=("approve_for_session",),
        # It begins each title with the name of the tool.
        own_title=r"(aegis_\w+)(?:: .*)?",
        call_limit_s=CUT_CALLS_S,
        conversations="kimi",
        install="uv tool install --python 3.13 kimi-cli==1.44.0",
        login="kimi login",
        login_command=("kimi", "login"),
        key_variables=("KIMI_API_KEY", "MOONSHOT_API_KEY"),
        key_files=(".kimi/credentials/kimi-code.json",),
        home_variables={"KIMI_SHARE_DIR": ".kimi"},
        traps=(
            "It gives up a call of a tool after 60 s.",
            "A cancelled prompt and the next one reach its model as one message.",
            "A refusal ends the turn without a text.",
            "It opens a new MCP session for each call.",
            "It reads AGENTS.md and the skills of a checkout, which are texts.",
            "It reads and writes files through its client.",
            "Version 1.52 did not start.",
            "A turn that failed with an error of the model's API ends with end_turn and no text.",
            "It overwrites its environment with a title: no variable identifies its process.",
            "It reports no cost, so a profile of it cannot have a budget.",
        ),
    ),
    Provider(
        name="acp",
        title="Any other agent that speaks ACP",
        family="acp",
        mentions="files",
        asks_for_our_tools=None,
        start=(),
        traps=(
            "Its profile names the command, and the mode in which it asks.",
            "A tool of ours that runs programs or writes is refused unless the agent has asked for "
            "the permission of that call before, by session/request_permission.",
        ),
    ),
)

BY_NAME: Mapping[str, Provider] = {provider.name: provider for provider in PROVIDERS}

NAMES = tuple(BY_NAME)

_BEFORE_PROGRAM = frozenset({"command", "env", "exec", "nice", "nohup"})


def provider_of_command(cmd: str) -> Provider | None:
    """Return the provider whose program a command of a shell starts; None if it is none of them."""
    words = (each for each in cmd.split() if "=" not in each and each not in _BEFORE_PROGRAM)
    program = PurePath(next(words, "")).name
    return next(
        (each for each in PROVIDERS if program in (*each.start[:1], *each.login_command[:1])), None
    )


BUILT_IN = tuple(provider.name for provider in PROVIDERS if provider.start)
"""The providers that need no configuration: their names are profiles."""

BYPASS_WORDS = frozenset(
    {
        *("--dangerously-skip-permissions", "--allow-dangerously-skip-permissions"),
        *("--permission-mode", "--yolo", "--approval-mode", "--afk", "--auto-approve"),
        *("--dangerously-bypass-approvals-and-sandbox", "--ask-for-approval"),
    }
)
"""Arguments by which agents ask nobody, or choose the mode that a session sets itself."""

SHORT_BYPASS_WORDS = frozenset({"-y", "--yes"})
"""The same for gemini and kimi alone: npx has these arguments too, with another meaning."""


def bypass_in(command: Sequence[str]) -> str | None:
    """Return the argument of a command by which the agent asks nobody; None if there is none."""
    is_direct = bool(command) and command[0].rpartition("/")[2] in ("gemini", "kimi")
    words = BYPASS_WORDS | SHORT_BYPASS_WORDS if is_direct else BYPASS_WORDS
    return next((each for each in command if each.partition("=")[0] in words), None)
