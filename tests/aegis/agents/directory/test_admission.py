"""The rules of a spawn: limits, and rights of the spawner."""

from __future__ import annotations

import pytest

from aegis.agents.directory.roster import Member, Roster
from aegis.agents.directory.spawning import check_spawn
from aegis.agents.profiles.limits import Counters
from aegis.agents.profiles.profile import Profile, profile_of
from aegis.configuration.agents import AgentSection
from aegis.configuration.limits import LimitsSection
from aegis.errors import AegisError, Forbidden, Unavailable


def member(id_: str, parent: str | None = None) -> Member:
    return Member(
        id=id_,
        handle=f"agent-{id_}",
        profile="p",
        provider="claude",
        place="/",
        spawned_by="human",
        parent=parent,
        at="2026-05-22T14:00:00.000Z",
    )


def roster(*members: Member) -> Roster:
    known = Roster()
    for each in members:
        known.put(each)
    return known


def profile(name: str, **fields: object) -> Profile:
    return profile_of(name, AgentSection(provider="claude", **fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "own", "error"),
    [
        ("read", {"permission": "write"}, None),
        ("write", {"permission": "write"}, None),
        ("full", {"permission": "write"}, Forbidden),
        ("full", {"permission": "write", "may_spawn": ("wanted",)}, None),
    ],
)
def test_a_session_spawns_no_higher_profile_unless_it_is_listed(
    wanted: str, own: dict[str, object], error: type[AegisError] | None
) -> None:
    by = member("a"), profile("own", **own)
    known, counters = roster(by[0]), Counters(LimitsSection())
    spawned = profile("wanted", permission=wanted)
    if error is None:
        check_spawn(spawned, by, known, counters, len(known.open), 0.0)
    else:
        with pytest.raises(error, match="is higher than"):
            check_spawn(spawned, by, known, counters, len(known.open), 0.0)


def test_a_person_spawns_any_profile_up_to_the_number_of_sessions() -> None:
    counters = Counters(LimitsSection(sessions=2))
    known = roster(member("a"), member("b"))
    check_spawn(profile("p", permission="full"), None, known, counters, 1, 0.0)
    with pytest.raises(Unavailable, match="2 sessions are open"):
        check_spawn(profile("p"), None, known, counters, 2, 0.0)


def test_a_tree_of_sessions_is_as_deep_as_the_limit() -> None:
    first, second = member("a"), member("b", "a")
    counters = Counters(LimitsSection(spawn_depth=1))
    known = roster(first, second)
    check_spawn(profile("p"), (first, profile("p")), known, counters, len(known.open), 0.0)
    with pytest.raises(Unavailable, match="spawn_depth is 1"):
        check_spawn(profile("p"), (second, profile("p")), known, counters, len(known.open), 0.0)
