"""Tests of the sums of deaths."""

from __future__ import annotations

import random

from tests.chaos.real.deaths import Numbers, deaths
from tests.chaos.real.table import KILLED, added, by_kind, table

ROW = {"killed before fsync": 1, "killed mark.end.after": 2, "records checked": 5, "violations": 0}


def test_rows_are_added_and_the_kills_come_first() -> None:
    lines = [line.rsplit(maxsplit=1) for line in table([ROW, ROW]).splitlines()]
    assert lines == [
        ["killed before fsync", "2"],
        ["killed mark.end.after", "4"],
        ["kills", "6"],
        ["records checked", "10"],
        ["violations", "0"],
    ]


def test_every_death_is_of_one_kind() -> None:
    planned = deaths(Numbers(at_points=1, at_random=40, at_calls=1), random.Random(1))
    sums = by_kind(added({f"{KILLED}{death.place}": 1} for death in planned))
    assert sums["daemons killed"] == len(planned)
    kinds = {name: n for name, n in sums.items() if name.startswith("  ") and "places" not in name}
    assert sum(kinds.values()) == len(planned)
    assert kinds == {
        "  at fault points": 43,
        "  at random": 40,
        "  instead of a call of the disk": 10,
        "  right after a call of the disk": 10,
        "  while calls of the disk failed": 12,
    }
    assert sums["  at so many different places"] == 43 + 3 + 20 + 12
