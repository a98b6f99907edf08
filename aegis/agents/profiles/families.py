"""How the agent of a profile is started, and the machine of its protocol. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from aegis.agents.drivers.harness import Beginning
from aegis.agents.drivers.plan import DriverPlan, MakeHarness, SecretFile
from aegis.agents.drivers.tui import ConversationFiles
from aegis.agents.profiles.profile import Profile
from aegis.errors import InvalidRequest
from aegis.path_text import is_utf8

if TYPE_CHECKING:
    from aegis.agents.drivers.claude.conversations import ClaudeFiles


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
    from aegis.agents.drivers.claude.launch import AWAIT, config_text, launch
    from aegis.agents.drivers.claude.machine import Claude

    how = partial(
        launch,
        beginning,
        command=profile.command,
        budget_usd=profile.budget_usd,
        project_settings=profile.project_settings,
    )
    newer, file = how(), directory / "mcp.json"
    older = how(config_file=str(file))
    return AgentStart(
        argv=newer.argv,
        make_harness=Claude,
        added=newer.added,
        older=AgentStart(
            argv=older.argv,
            make_harness=partial(Claude, server_in_file=True),
            added=older.added,
            secret_file=SecretFile(path=file, text=config_text(beginning)),
        ),
        refusal=f"unknown option '{AWAIT}'",
    )


def _acp(
    profile: Profile, beginning: Beginning, variables: Mapping[str, str], directory: Path
) -> AgentStart:
    from aegis.agents.drivers.acp.machine import Acp
    from aegis.agents.drivers.claude.launch import READ_MEMORY, config_text
    from aegis.agents.profiles.acp_options import acp_options_of

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


def tui_of(
    profile: Profile, beginning: Beginning, variables: Mapping[str, str], directory: Path
) -> TuiStart:
    """Return how to start the agent's own program on the conversation of ``beginning``.

    ``variables`` and ``directory`` are those of ``start_of``. Raises ``InvalidRequest`` where the
    driver and that program cannot continue each other's conversations.
    """
    if not is_utf8(str(directory)):  # it is part of a command, and of JSON
        raise InvalidRequest("agent takeover: the path of the daemon's root is not UTF-8")
    if profile.provider.family == "claude":
        return _claude_tui(profile, beginning, directory)
    raise InvalidRequest(
        f"agent takeover: a conversation of {profile.provider.name} cannot continue in its own "
        "terminal interface and then here again; that of claude can"
    )


def _claude_tui(profile: Profile, beginning: Beginning, directory: Path) -> TuiStart:
    from aegis.agents.drivers.claude.conversations import STARTS, ClaudeFiles, hook_settings
    from aegis.agents.drivers.claude.launch import READ_MEMORY, config_text, tui

    config, settings = directory / "takeover.mcp.json", directory / "takeover.settings.json"
    return TuiStart(
        argv=tui(
            beginning,
            command=profile.command,
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
        files=partial(ClaudeFiles, directory=directory),
    )


def files_of(profile: Profile, environment: Mapping[str, str]) -> ClaudeFiles:
    """Return the conversations of a profile's agent, for its environment.

    Raises ``InvalidRequest`` where its files are not known.
    """
    if profile.provider.family != "claude":
        raise InvalidRequest(
            f"agent conversations: the files of {profile.provider.name} are not read; those of "
            "claude are"
        )
    from aegis.agents.drivers.claude.conversations import ClaudeFiles

    return ClaudeFiles(environment, Path())
