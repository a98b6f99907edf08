"""The rules of a spawn: the rights of the spawner, and the limits. Pure."""

from __future__ import annotations

from aegis.agents.directory.message_rights import root_of
from aegis.agents.directory.roster import MAX_SESSIONS, Member, Roster
from aegis.agents.profiles.limits import Counters
from aegis.agents.profiles.profile import Profile
from aegis.agents.profiles.rights import refuse_profile
from aegis.errors import Forbidden, Unavailable


def check_spawn(
    profile: Profile,
    by: tuple[Member, Profile] | None,
    roster: Roster,
    counters: Counters,
    now: float,
) -> None:
    """Raise ``Forbidden`` or ``Unavailable`` if a session of the profile may not be spawned.

    ``by`` is the spawning session with its profile; None: a person or another client.
    """
    if len(roster.by_id) >= MAX_SESSIONS:
        raise Unavailable(f"{MAX_SESSIONS} sessions were spawned in this root, the limit")
    sessions = len(roster.open)
    if by is None:
        refusal = counters.refuse_session(sessions)
    else:
        spawner, own = by
        if spawner.is_closed:
            raise Forbidden(f"aegis_spawn: session {spawner.handle!r} is closed")
        forbidden = refuse_profile(
            own.name, own.permission, own.may_spawn, profile.name, profile.permission
        )
        if forbidden is not None:
            raise Forbidden(f"aegis_spawn: {forbidden}")
        depth = 1 + sum(1 for _ in roster.ancestors(spawner.id))
        refusal = counters.refuse_spawn(root_of(roster, spawner), depth, sessions, now)
    if refusal is not None:
        raise Unavailable(f"aegis_spawn: {refusal}")
