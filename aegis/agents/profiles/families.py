"""How the agent of a profile is started, and the machine of its protocol. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from aegis.agents.drivers.conversations.found import ConversationFiles
from aegis.agents.drivers.harness import Beginning
from aegis.agents.drivers.plan import DriverPlan, MakeHarness, SecretFile
from aegis.agents.drivers.providers import PROVIDERS
from aegis.agents.profiles.profile import Profile, variables_of
from aegis.errors import InvalidRequest
from aegis.path_text import is_utf8
from aegis.program import own_program

if TYPE_CHECKING:
    from aegis.agents.drivers.acp.options import AcpOptions


@attrs.frozen(kw_only=True)
class AgentStart:
    """The start of an agent, and the one of its ``older`` versions (see ``DriverPlan``)."""

    argv: tuple[str, ...]
    make_harness: MakeHarness
    added: Mapping[str, str] = attrs.field(factory=dict)
    secret_file: SecretFile | None = None
    older: AgentStart | None = None
    refusal: str = ""

    def plan(self, variables: Mapping[str, str], **fields: Any) -> DriverPlan:
        """Return the plan with other ``fields``; ``variables`` are set in the process too."""
        return DriverPlan(
            argv=self.argv,
            make_harness=self.make_harness,
            environment={**self.added, **variables},
            secret_file=self.secret_file,
            older=None if self.older is None else self.older.plan(variables, **fields),
            refusal=self.refusal,
            **fields,
        )


def start_of(
    profile: Profile, beginning: Beginning, variables: Mapping[str, str], directory: Path
) -> AgentStart:
    """Return how to start the agent of a profile.

    ``variables`` is the environment of the daemon, ``directory`` the session's own.
    """
    if profile.provider.family == "claude":
        return _claude(profile, beginning, directory)
    return _acp(profile, beginning, variables, directory)


# The machines are imported late: most daemons drive one family, and many none.


def _claude(profile: Profile, beginning: Beginning, directory: Path) -> AgentStart:
    from aegis.agents.drivers.claude.launch import AWAIT, added_variables, config_text, launch
    from aegis.agents.drivers.claude.machine import Claude

    argv = partial(
        launch,
        beginning,
        command=profile.command,
        budget_usd=profile.budget_usd,
        project_settings=profile.project_settings,
    )
    added, file = added_variables(beginning), directory / "mcp.json"
    return AgentStart(
        argv=argv(),
        make_harness=Claude,
        added=added,
        older=AgentStart(
            argv=argv(config_file=str(file)),
            make_harness=partial(Claude, server_in_file=True),
            added=added,
            secret_file=SecretFile(path=file, text=config_text(beginning)),
        ),
        refusal=f"unknown option '{AWAIT}'",
    )


def _acp(
    profile: Profile, beginning: Beginning, variables: Mapping[str, str], directory: Path
) -> AgentStart:
    from aegis.agents.drivers.acp.machine import Acp
    from aegis.agents.drivers.claude.launch import READ_MEMORY, config_text

    file = directory / "mcp.json"
    read = [beginning.cwd] if beginning.reads_project else []
    options = acp_options_of(profile, variables, str(file), read)
    secret = SecretFile(path=file, text=config_text(beginning), is_kept=True)
    return AgentStart(
        argv=profile.command,
        make_harness=partial(Acp, options=options),
        added=READ_MEMORY if read else {},
        secret_file=secret if options.server_in_file else None,
    )


def acp_options_of(
    profile: Profile,
    variables: Mapping[str, str],
    config_file: str,
    directories: Sequence[str] = (),
) -> AcpOptions:
    """Return the facts that an ACP agent does not report.

    ``variables`` is the environment of the daemon. ``config_file`` is the path of a file with our
    MCP server, for an agent that takes it so; such an agent reads the instructions of
    ``directories``.
    """
    from aegis.agents.drivers.acp.options import AcpOptions

    provider = profile.provider
    known = {**variables, **variables_of(profile, variables)}
    methods = [method for name, method in provider.authenticate.items() if known.get(name)]
    takes_file = provider.takes_claude_options
    return AcpOptions(
        asking_modes=profile.asking_modes,
        auth=methods[0] if methods else "",
        uses_only_login=not provider.login_command,
        meta=_claude_options(profile, config_file, directories) if takes_file else {},
        server_in_file=takes_file,
        cwd_end="" if profile.project_settings or not provider.trusts_its_directory else UNTRUSTED,
        **{name: getattr(provider, name) for name in _OF_PROVIDER},
    )


_OF_PROVIDER = (
    *("session_options", "reports_cost", "waits_for_mcp", "reads_files", "own_title", "mentions"),
    *("plan_mode", "plan_option", "edits_by_mode", "mode_mark"),
)
"""The facts of a provider that the machine of ACP needs."""


UNTRUSTED = "/."
"""The end of a working directory that codex-acp must not trust.

codex-acp marks the directory of each session as trusted, by the name that it was given; codex looks
for the resolved name, so it finds only a directory that its user trusts.
"""


def _claude_options(
    profile: Profile, config_file: str, directories: Sequence[str]
) -> dict[str, Any]:
    """Return the ``_meta`` of claude-agent-acp: options for the Claude Code below it.

    An MCP server in the call itself would be an argument of that process, secret and all.
    """
    options: dict[str, Any] = {
        "extraArgs": {"mcp-config": config_file},
        "promptSuggestions": False,
        "allowDangerouslySkipPermissions": False,
    }
    if not profile.project_settings:
        options["settingSources"] = ["user"]
    if directories:
        options["additionalDirectories"] = list(directories)
    return {"claudeCode": {"options": options}}


@attrs.frozen(kw_only=True)
class TuiStart:
    """The start of an agent's own program for a person, with the variables ``added``.

    ``secrets`` and ``kept`` are as in ``TuiPlan``. ``files`` returns its conversations for an
    environment.
    """

    argv: tuple[str, ...]
    added: Mapping[str, str] = attrs.field(factory=dict)
    secrets: tuple[SecretFile, ...] = ()
    kept: tuple[SecretFile, ...] = ()
    files: Callable[[Mapping[str, str]], ConversationFiles]


def tui_of(profile: Profile, beginning: Beginning, directory: Path) -> TuiStart:
    """Return how to start the agent's own program on the conversation of ``beginning``.

    ``directory`` is the session's own. Raises ``InvalidRequest`` where the
    driver and that program cannot continue each other's conversations.
    """
    if not is_utf8(str(directory)):  # it is part of a command, and of JSON
        raise InvalidRequest("the path of the daemon's root is not UTF-8")
    match profile.provider.conversations:
        case "claude":
            return _claude_tui(profile, beginning, directory)
        case "codex":
            return _codex_tui(profile, beginning, directory)
        case "opencode":
            return _opencode_tui(profile, beginning, directory)
        case "kimi":
            return _kimi_tui(profile, beginning, directory)
        case _:
            able = ", ".join(each.name for each in PROVIDERS if each.conversations)
            raise InvalidRequest(
                f"a conversation of {profile.provider.name} cannot continue in its own terminal "
                f"interface and then here again; those of {able} can"
            )


def tui_program(profile: Profile) -> tuple[str, ...]:
    """Return the program with an agent's own interface: for an adapter of it, another one."""
    provider, command = profile.provider, profile.command
    if provider.family == "claude":
        return command
    if provider.start[-1:] == ("acp",) == command[-1:]:
        return command[:-1]
    return provider.login_command[:1]


def _claude_tui(profile: Profile, beginning: Beginning, directory: Path) -> TuiStart:
    from aegis.agents.drivers.claude.launch import READ_MEMORY, config_text, tui
    from aegis.agents.drivers.conversations.claude import STARTS, hook_settings

    config, settings = directory / CONFIG, directory / "takeover.settings.json"
    return TuiStart(
        argv=tui(
            beginning,
            command=tui_program(profile),
            config_file=str(config),
            settings_file=str(settings),
            project_settings=profile.project_settings,
        ),
        added=READ_MEMORY if beginning.reads_project else {},
        secrets=(SecretFile(path=config, text=config_text(beginning)),),
        kept=(
            SecretFile(path=settings, text=hook_settings(directory)),
            SecretFile(path=directory / STARTS, text=""),
        ),
        files=partial(files_of, profile, directory=directory),
    )


def _codex_tui(profile: Profile, beginning: Beginning, directory: Path) -> TuiStart:
    # It takes the URL of a server only as an argument, or from its user's own configuration: the
    # bridge to this daemon needs no secret. Codex starts it with few variables.
    server: dict[str, str | list[str]] = {
        "command": own_program(),
        "args": ["mcp", "--root", beginning.root, "--handle", beginning.handle],
        "env_vars": ["XDG_STATE_HOME"],
    }
    originator = f"aegis-{directory.name}"
    asking = ("approval_policy=on-request", "approvals_reviewer=user")
    return TuiStart(
        argv=(
            *tui_program(profile),
            # With its daemon, that would keep the conversation when the program has ended.
            *("resume", "--no-daemon", "--sandbox=read-only"),
            *(f"--config={each}" for each in (*asking, f"mcp_servers.aegis={_toml(server)}")),
            *([f"--model={beginning.model}"] if beginning.model else []),
            str(beginning.conversation),
        ),
        added={ORIGINATOR: originator},
        files=partial(files_of, profile, originator=originator),
    )


ORIGINATOR = "CODEX_INTERNAL_ORIGINATOR_OVERRIDE"
"""The variable with the name that Codex writes into each conversation that it begins."""

CONFIG = "takeover.mcp.json"
"""The name of the file in a session's directory with our MCP server."""


def _toml(table: Mapping[str, str | list[str]]) -> str:
    # A JSON string is one of TOML too, and so is an array of them.
    return f"{{{', '.join(f'{name} = {json.dumps(table[name])}' for name in table)}}}"


def _opencode_tui(profile: Profile, beginning: Beginning, directory: Path) -> TuiStart:
    file = directory / CONFIG
    asking = json.loads(profile.provider.environment[OPENCODE_CONFIG])
    server = {"type": "remote", "url": f"{{file:{file}}}"}
    return TuiStart(
        argv=(
            *tui_program(profile),
            *([f"--model={beginning.model}"] if beginning.model else []),
            f"--session={beginning.conversation}",
        ),
        added={OPENCODE_CONFIG: json.dumps({**asking, "mcp": {"aegis": server}})},
        secrets=(SecretFile(path=file, text=beginning.mcp_url),),
        files=partial(files_of, profile, cwd=beginning.cwd),
    )


OPENCODE_CONFIG = "OPENCODE_CONFIG_CONTENT"
"""The variable with opencode's configuration."""


def _kimi_tui(profile: Profile, beginning: Beginning, directory: Path) -> TuiStart:
    file = directory / CONFIG
    servers = {"mcpServers": {"aegis": {"url": beginning.mcp_url, "transport": "http"}}}
    return TuiStart(
        argv=(
            *tui_program(profile),
            f"--mcp-config-file={file}",
            *([f"--model={beginning.model}"] if beginning.model else []),
            f"--session={beginning.conversation}",
        ),
        secrets=(SecretFile(path=file, text=json.dumps(servers)),),
        files=partial(files_of, profile, cwd=beginning.cwd),
    )


def files_of(
    profile: Profile, environment: Mapping[str, str], **takeover: Any
) -> ConversationFiles:
    """Return the conversations of a profile's agent, for its environment.

    ``takeover`` has what the files of one need to be read. Raises ``InvalidRequest`` where the
    agent's files are not known.
    """
    match profile.provider.conversations:
        case "claude":
            from aegis.agents.drivers.conversations.claude import ClaudeFiles

            return ClaudeFiles(environment, **takeover)
        case "codex":
            from aegis.agents.drivers.conversations.codex import CodexFiles

            return CodexFiles(environment, **takeover)
        case "opencode":
            from aegis.agents.drivers.conversations.opencode import OpencodeFiles

            return OpencodeFiles(environment, **takeover)
        case "kimi":
            from aegis.agents.drivers.conversations.kimi import KimiFiles

            return KimiFiles(environment, **takeover)
        case _:
            read = {each.conversations for each in PROVIDERS if each.conversations}
            raise InvalidRequest(
                f"agent conversations: the files of {profile.provider.name} are not read; those of "
                f"{', '.join(sorted(read))} are"
            )
