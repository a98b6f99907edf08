"""The figures of one seed, and the sum of many. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs

from tests.chaos.checking.checker import Violation

ONE_TRACE = "one trace"
"""The rule that a seed has one trace (G12), for seeds that are played twice."""

BROKE_OFF = "broke off"
"""The rule that a history finishes."""


@attrs.frozen(kw_only=True)
class Played:
    """The result of one seed. ``twice``: it was played again, to compare the traces."""

    seed: int
    operations: int = 0
    records: int = 0
    wakes: int = 0
    lives: int = 0
    hits: Mapping[str, int] = attrs.field(factory=dict)
    violations: tuple[Violation, ...] = ()
    twice: bool = False

    def to_line(self) -> str:
        """Return one line of JSON."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_line(cls, line: str | bytes) -> Played:
        """Raises ``ValueError`` for anything but a line of ``to_line``."""
        fields: dict[str, Any] = json.loads(line)
        found = tuple(Violation(**each) for each in fields.pop("violations"))
        return cls(**fields, violations=found)


def broken_off(seed: int, why: str) -> Played:
    """Return the result of a history that did not finish."""
    return Played(seed=seed, violations=(Violation(BROKE_OFF, why),))


class Totals:
    """The sums over the played seeds."""

    def __init__(self) -> None:
        self.seeds = 0
        self.twice = 0
        self.operations = 0
        self.records = 0
        self.wakes = 0
        self.lives = 0
        self.fewest_operations: int | None = None
        self.without_fault = 0
        self.hits: Counter[str] = Counter()
        self.broken: Counter[str] = Counter()
        self.failed: Played | None = None

    def add(self, played: Played) -> None:
        """Add a seed; the first that broke a promise is kept."""
        self.seeds += 1
        self.twice += played.twice
        self.operations += played.operations
        self.records += played.records
        self.wakes += played.wakes
        self.lives += played.lives
        self.without_fault += not sum(played.hits.values())
        self.hits.update(played.hits)
        self.broken.update(each.rule for each in played.violations)
        fewest = played.operations if self.fewest_operations is None else self.fewest_operations
        self.fewest_operations = min(played.operations, fewest)
        if played.violations and self.failed is None:
            self.failed = played

    @property
    def faults(self) -> int:
        """The number of faults that struck, of all kinds."""
        return sum(self.hits.values())

    @property
    def violations(self) -> int:
        """The number of violations."""
        return sum(self.broken.values())
