"""The rules of a spawn and a launch: the rights of the spawner, and the limits. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from aegis.agents.directory.message_rights import root_of
from aegis.agents.directory.roster import Member, Roster
from aegis.agents.profiles.limits import Counters
from aegis.agents.profiles.profile import Profile
from aegis.agents.profiles.rights import PERMISSIONS, refuse_budget, refuse_profile
from aegis.errors import AlreadyExists, Forbidden, Unavailable
from aegis.protocol.naming import name_key


def check_spawn(
    profile: Profile,
    by: tuple[Member, Profile] | None,
    roster: Roster,
    counters: Counters,
    sessions: int,
    now: float,
    configured: Profile | None = None,
) -> None:
    """Raise ``Forbidden`` or ``Unavailable`` if a session of the profile may not be spawned.

    ``sessions`` is the number of those that are open and have not exited. ``by`` is the spawning
    session with its profile; None: a person or another client. ``configured`` is the profile as it
    is configured, where the spawner has chosen other settings.
    """
    configured = configured or profile
    if by is None:
        refusal = counters.refuse_session(sessions)
    else:
        spawner, own = by
        if spawner.is_closed:
            raise Forbidden(f"aegis_spawn: session {spawner.handle!r} is closed")
        # What a profile lists there is spawned as it is configured.
        is_raised = PERMISSIONS.index(profile.permission) > PERMISSIONS.index(configured.permission)
        may_spawn = () if is_raised else own.may_spawn
        forbidden = refuse_profile(
            own.name, own.permission, may_spawn, profile.name, profile.permission
        ) or refuse_budget(profile.name, profile.budget_usd, configured.budget_usd)
        if forbidden is not None:
            raise Forbidden(f"aegis_spawn: {forbidden}")
        depth = 1 + sum(1 for _ in roster.ancestors(spawner.id))
        refusal = counters.refuse_spawn(root_of(roster, spawner), depth, sessions, now)
    if refusal is not None:
        raise Unavailable(f"aegis_spawn: {refusal}")


def check_launch(workspace: str | None, roster: Roster, counters: Counters, sessions: int) -> None:
    """Raise ``AlreadyExists`` or ``Unavailable`` if no terminal agent may be launched.

    A workspace has one. ``sessions`` is the number of those that are open and have not exited.
    """
    agent = None if workspace is None else roster.workspace_agents.get(name_key(workspace))
    if agent is not None:
        raise AlreadyExists(
            f"workspace {workspace!r} has the agent {agent!r} already: restart it with agent "
            "restart, or end it first with agent stop"
        )
    check_room("agent launch", counters, sessions)


def check_room(verb: str, counters: Counters, sessions: int) -> None:
    """Raise ``Unavailable`` if no further session may have a process beside ``sessions``."""
    refusal = counters.refuse_session(sessions)
    if refusal is not None:
        raise Unavailable(f"{verb}: {refusal}")


def check_terminal(handle: str | None, terminals: Iterable[str]) -> None:
    """Raise ``AlreadyExists`` if the agent ``handle`` would find its terminal in use."""
    if handle is not None and name_key(handle) in {name_key(each) for each in terminals}:
        raise AlreadyExists(
            f"agent launch: there is a terminal {handle!r}, the name that the agent's terminal "
            "would have; choose another handle"
        )
