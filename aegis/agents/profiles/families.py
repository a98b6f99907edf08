"""How the agent of a profile is started, and the machine of its protocol. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from aegis.agents.drivers.harness import Beginning
from aegis.agents.drivers.plan import DriverPlan, MakeHarness
from aegis.agents.drivers.secret_file import SecretFile
from aegis.agents.profiles.profile import Profile


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
