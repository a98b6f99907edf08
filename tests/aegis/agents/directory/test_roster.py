"""The roster: the sessions that it keeps, and the handles that it never gives again."""

from __future__ import annotations

import pytest

from aegis.agents.directory import roster as module
from aegis.agents.directory.roster import Member, Roster, opened_line, renamed_line
from aegis.errors import NotFound


def member(number: int, parent: int | None = None) -> Member:
    return Member(
        id=f"id-{number}",
        handle=f"build-{number}",
        profile="p",
        provider="claude",
        cwd="/",
        spawned_by="human",
        parent=None if parent is None else f"id-{parent}",
        at="2026-05-22T14:00:00.000Z",
    )


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep three closed sessions."""
    monkeypatch.setattr(module, "MAX_CLOSED", 3)


def opened(roster: Roster, number: int, parent: int | None = None) -> None:
    roster.apply(opened_line(member(number, parent)))


def closed(roster: Roster, number: int) -> None:
    roster.apply({"kind": "closed", "id": f"id-{number}"})


def ids(roster: Roster) -> list[int]:
    return [int(each.removeprefix("id-")) for each in roster.by_id]


def test_the_newest_closed_sessions_are_kept_and_all_open_ones() -> None:
    roster = Roster()
    opened(roster, 0)
    for number in range(1, 100):
        opened(roster, number)
        closed(roster, number)
    assert ids(roster) == [0, 97, 98, 99]
    assert [each.handle for each in roster.open] == ["build-0"]
    assert roster.names.address_of("BUILD-5") == "BUILD-5"


def test_a_dropped_session_is_named_as_one_and_its_handles_stay_taken() -> None:
    roster = Roster()
    opened(roster, 1)
    roster.apply(renamed_line(member(1), "release"))
    for number in range(1, 6):
        opened(roster, number + 10)
        closed(roster, number if number == 1 else number + 10)
    for handle in ("build-1", "RELEASE"):
        assert handle in roster.taken
        assert roster.was_dropped(handle)
        with pytest.raises(NotFound, match="is not kept any more; its transcript is still"):
            roster.get(handle)
    assert not roster.was_dropped("build-15")
    assert not roster.was_dropped("build-99")


def test_the_spawners_of_an_open_session_are_kept() -> None:
    roster = Roster()
    opened(roster, 1)
    opened(roster, 2, 1)
    opened(roster, 3, 2)
    for number in (1, 2, *range(4, 20)):
        if number > 3:
            opened(roster, number)
        closed(roster, number)
    assert [each.id for each in roster.ancestors("id-3")] == ["id-2", "id-1"]
    assert ids(roster) == [1, 2, 3, 17, 18, 19]
    closed(roster, 3)
    assert ids(roster) == [3, 18, 19]


def test_a_session_that_is_opened_again_is_not_dropped() -> None:
    roster = Roster()
    opened(roster, 1)
    closed(roster, 1)
    roster.apply({"kind": "reopened", "id": "id-1"})
    for number in range(2, 10):
        opened(roster, number)
        closed(roster, number)
    assert [each.handle for each in roster.open] == ["build-1"]
    closed(roster, 1)
    assert ids(roster) == [1, 8, 9]


def test_lines_of_dropped_sessions_are_passed_over() -> None:
    roster = Roster()
    for number in range(10):
        opened(roster, number)
        closed(roster, number)
    for line in (
        {"kind": "reopened", "id": "id-0"},
        {"kind": "purged", "id": "id-0"},
        renamed_line(member(0), "x"),
        {"kind": "set", "id": "id-0", "model": "m"},
    ):
        roster.apply(line)
    assert ids(roster) == [7, 8, 9]
