"""What is wrong with a configuration: a few sentences, each with its place. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

MAX_PROBLEMS = 5
"""So many are told one by one; of the rest only how many there are."""


@attrs.frozen
class Place:
    """Where something stands in the file; the first line and the first column are 1."""

    line: int
    column: int


@attrs.frozen
class Problem:
    """One thing that is wrong. ``sentence`` names the key, if there is one, and what is expected.

    ``place`` is None for what is wrong with the file as a whole, ``key`` empty where none is known.
    """

    sentence: str
    place: Place | None = None
    key: str = ""


class BadConfiguration(Exception):
    """The configuration cannot be used: ``problems``, in the order of the file.

    At most ``MAX_PROBLEMS`` of them are kept; ``more`` is how many others there were. ``path`` is
    how the file is called in sentences.
    """

    def __init__(
        self, problems: Iterable[Problem], path: str = ".aegis.yaml", more: int = 0
    ) -> None:
        every = tuple(problems)
        self.problems = every[:MAX_PROBLEMS]
        self.more = more + len(every) - len(self.problems)
        self.path = path
        super().__init__("; ".join(self.lines()))

    def lines(self) -> list[str]:
        """One line for each problem, and one for those that are not told."""
        told = [f"{self.path}{_where(each.place)}: {each.sentence}" for each in self.problems]
        return [*told, f"{self.path}: and {self.more} more like these"] if self.more else told


def _where(place: Place | None) -> str:
    return "" if place is None else f" line {place.line}"
