"""What was tried on which mutant, a line of JSON each, and what that comes to. Pure.

A mutant is tried with one part after the other until a ring notices it. So a file of such lines
says what is still to be tried, and a run that was cut off goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

import attrs

UNBROKEN = "the unbroken tree"

HANG = "hang"
"""What is said of a part that did not end in its time."""


@attrs.frozen(kw_only=True)
class Try:
    """One part on one mutant. ``noticed_by`` is the rule or the test, None if all went well.

    ``reached``, of the unbroken tree: the lines that it runs, by file; None if nobody knows.
    """

    what: str
    part: str
    noticed_by: str | None
    seconds: float
    reached: Mapping[str, Sequence[int]] | None = None

    def reaches(self, file: str, lines: Iterable[int]) -> bool:
        """Whether it ran one of these lines, as far as is known."""
        return self.reached is None or not set(lines).isdisjoint(self.reached.get(file, ()))

    def to_line(self) -> str:
        """As a line of the file."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def from_line(cls, line: str) -> Try:
        """What ``to_line`` gave."""
        return cls(**json.loads(line))

    def __str__(self) -> str:
        noticed = self.noticed_by or "-"
        return f"{self.seconds:6.0f} s  {self.part:<28} {noticed:<70} {self.what}"


@attrs.frozen
class Verdict:
    """``by`` is the part that noticed it, and ``how`` its rule or test; both None: it survived.

    A ring goes before an ordinary test, whichever was tried first.
    """

    what: str
    by: str | None
    how: str | None

    @property
    def is_caught_by_ring(self) -> bool:
        """Whether one of the rings noticed it."""
        return self.by is not None and self.by.startswith("ring")


def verdicts(mutants: Iterable[str], tries: Iterable[Try]) -> dict[str, Verdict]:
    """What became of each of these mutants so far."""
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
    """How many were noticed by which part, ordinary tests in one line, and how many survived."""
    counted: dict[str, int] = {}
    for verdict in found.values():
        by = verdict.by or "survived"
        name = "only by an ordinary test" if by.startswith("ordinary") else by
        counted[name] = counted.get(name, 0) + 1
    return dict(sorted(counted.items()))


def rows(found: Mapping[str, Verdict]) -> list[str]:
    """A line for each mutant, as Markdown."""
    return [
        f"| {each.what} | {each.by or 'survived'} | {f'`{each.how}`' if each.how else ''} |"
        for each in found.values()
    ]
