"""The figures of a run of kills. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.chaos.checking.checker import Violation
from tests.chaos.checking.evidence import Evidence
from tests.chaos.checking.wake_rules import wake_ids
from tests.chaos.real.deaths import Death

KILLED = "killed "
"""The prefix of a place in the figures."""

PROPERTY = "crash"
"""The property name with which a test reports its figures."""

Figures = Mapping[str, int]


def figures(evidence: Evidence, deaths: Iterable[Death], found: Sequence[Violation]) -> Figures:
    """Return the kills at each place, and the counts of the checks."""
    records = [record for _, record in evidence.records()]
    return {
        **Counter(f"{KILLED}{death.place}" for death in deaths),
        "commands begun": len(evidence.begun),
        "records checked": len(records),
        "of these killed by restart": sum(record["killed_by_restart"] for record in records),
        "records that clients got": len(evidence.seen),
        "wakes checked": sum(len(wake_ids(evidence, handle)) for handle in evidence.answers),
        "handoffs checked": sum(each.id is not None for each in evidence.handoffs),
        "violations": len(found),
    }


def added(rows: Iterable[Figures]) -> Figures:
    """Return the sums of all rows."""
    sums: Counter[str] = Counter()
    for row in rows:
        sums.update(row)
    return sums


def by_kind(sums: Figures) -> Figures:
    """Return the sums with one entry for each kind of death, and the number of different places."""
    deaths = {name.removeprefix(KILLED): n for name, n in sums.items() if name.startswith(KILLED)}
    kinds = Counter({"daemons killed": sum(deaths.values()), "  at so many different places": 0})
    for place, number in deaths.items():
        kinds[f"  {_kind(place)}"] += number
    kinds["  at so many different places"] = len(deaths)
    return dict(kinds) | {name: n for name, n in sums.items() if not name.startswith(KILLED)}


def _kind(place: str) -> str:
    beginnings = {
        "at random": "at random",
        "before ": "instead of a call of the disk",
        "after ": "right after a call of the disk",
        "under load, ": "while calls of the disk failed",
    }
    kinds = (kind for beginning, kind in beginnings.items() if place.startswith(beginning))
    return next(kinds, "at fault points")


def table(rows: Iterable[Figures]) -> str:
    """Return the sums, one line each: the places of kills, then the checks."""
    sums = added(rows)
    kills = sorted(name for name in sums if name.startswith(KILLED))
    lines = {name: sums[name] for name in kills}
    lines["kills"] = sum(lines.values())
    lines |= {name: number for name, number in sums.items() if name not in lines}
    return "\n".join(f"{name:<48} {number:>8}" for name, number in lines.items())
