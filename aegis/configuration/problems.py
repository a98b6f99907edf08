"""The errors of a configuration: sentences with their places. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

MAX_PROBLEMS = 5
"""Most errors that are listed; the others are only counted."""


@attrs.frozen
class SourcePosition:
    """A place in the file; lines and columns are from 1."""

    line: int
    column: int


@attrs.frozen
class Problem:
    """One error. ``sentence`` names the key, if any, and the expected value.

    ``place`` is None for an error of the whole file; ``key`` is empty if unknown.
    """

    sentence: str
    place: SourcePosition | None = None
    key: str = ""


class BadConfiguration(Exception):
    """The configuration cannot be used: ``problems``, in the order of the file.

    At most ``MAX_PROBLEMS`` are kept; ``more`` is the number of others. ``path`` is the name of the
    file in sentences.
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
        """Return one line per problem, and one with the number of others."""
        lines = [f"{self.path}{_where(each.place)}: {each.sentence}" for each in self.problems]
        return [*lines, f"{self.path}: and {self.more} more like these"] if self.more else lines


def _where(place: SourcePosition | None) -> str:
    return "" if place is None else f" line {place.line}"
