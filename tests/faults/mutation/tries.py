"""The tries on each mutant, a line of JSON each, and the verdicts. Pure.

A mutant is tried with one part after the other until a ring notices it. So a file of such lines
shows the remaining tries, and an interrupted run continues from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import attrs

UNBROKEN = "the unbroken tree"

HANG = "hang"
"""The result of a part that exceeded its time."""


@attrs.frozen(kw_only=True)
class Try:
    """One part on one mutant. ``noticed_by`` is the rule or the test, None if all went well.

    ``reached``, of the unbroken tree: the lines that it runs, by file; None if not measured.
    """

    what: str
    part: str
    noticed_by: str | None
    seconds: float
    reached: Mapping[str, Sequence[int]] | None = None

    def reaches(self, file: str, lines: Iterable[int]) -> bool:
        """Return whether it ran one of these lines; true if that was not measured."""
        return self.reached is None or not set(lines).isdisjoint(self.reached.get(file, ()))

    def to_line(self) -> str:
        """Return a line of the file."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Try:
        """Return the try of a line of ``to_line``."""
        return cls(**json.loads(line))

    def __str__(self) -> str:
        noticed = self.noticed_by or "-"
        return f"{self.seconds:6.0f} s  {self.part:<28} {noticed:<70} {self.what}"


@attrs.frozen
class Verdict:
    """The verdict: ``by`` is the part that noticed the mutant, ``how`` its rule or test, or None.

    A ring precedes an ordinary test, in any order of tries.
    """

    what: str
    by: str | None
    how: str | None

    @property
    def is_caught_by_ring(self) -> bool:
        """Return whether one of the rings noticed it."""
        return self.by is not None and self.by.startswith("ring")


def verdicts(mutants: Iterable[str], tries: Iterable[Try]) -> dict[str, Verdict]:
    """Return the verdict on each of these mutants so far."""
    found = {what: Verdict(what, None, None) for what in mutants}
    for each in tries:
        before = found.get(each.what)
        if before is None or each.noticed_by is None:
            continue
        now = Verdict(each.what, each.part, each.noticed_by)
        if before.by is None or now.is_caught_by_ring:
            found[each.what] = now
    return found


def totals(found: Mapping[str, Verdict]) -> dict[str, int]:
    """Return the number noticed by each part, ordinary tests in one line, and of survivors."""
    counted: dict[str, int] = {}
    for verdict in found.values():
        by = verdict.by or "survived"
        name = "only by an ordinary test" if by.startswith("ordinary") else by
        counted[name] = counted.get(name, 0) + 1
    return dict(sorted(counted.items()))


def rows(found: Mapping[str, Verdict]) -> list[str]:
    """Return a line for each mutant, as Markdown."""
    return [
        f"| {each.what} | {each.by or 'survived'} | {f'`{each.how}`' if each.how else ''} |"
        for each in found.values()
    ]
