"""The shortest part of a sequence that still fails: delta debugging. Pure.

The algorithm is ``ddmin`` of Zeller and Hildebrandt, *Simplifying and Isolating Failure-Inducing
Input* (IEEE Transactions on Software Engineering 28, 2002): halves first, then what is left without
each half, then finer parts, until no single item can be left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen
class Shrunk(Generic[T]):
    """The remaining items, in their old order, after so many ``tries``.

    ``is_minimal``: without any single one of the items it passes. Else the limit of tries was
    reached.
    """

    items: tuple[T, ...]
    tries: int
    is_minimal: bool


class _OutOfTriesError(Exception):
    """The limit of tries was reached."""


class _Search(Generic[T]):
    """The smallest failing part so far; ``kept`` holds places in ``items``."""

    def __init__(
        self, items: Sequence[T], fails: Callable[[tuple[T, ...]], bool], tries: int
    ) -> None:
        self._items = tuple(items)
        self._fails = fails
        self._tries_left = tries
        self._passed: set[tuple[int, ...]] = set()
        self.kept = tuple(range(len(self._items)))
        self.tries = 0

    @property
    def items(self) -> tuple[T, ...]:
        return self._part(self.kept)

    def _part(self, places: tuple[int, ...]) -> tuple[T, ...]:
        return tuple(self._items[place] for place in places)

    def takes(self, places: tuple[int, ...]) -> bool:
        """Return whether this part fails too, and keep it then. No part is tried twice."""
        if places in self._passed:
            return False
        if self.tries == self._tries_left:
            raise _OutOfTriesError
        self.tries += 1
        if self._fails(self._part(places)):
            self.kept = places
            return True
        self._passed.add(places)
        return False

    def run(self) -> None:
        """Search until the part is minimal."""
        if self.takes(()):
            return
        parts = 2
        while len(self.kept) > 1:
            parts = min(parts, len(self.kept))
            if any(self.takes(part) for part in _split(self.kept, parts)):
                parts = 2
            elif parts > 2 and any(self.takes(rest) for rest in _rests(self.kept, parts)):
                parts -= 1
            elif parts < len(self.kept):
                parts *= 2
            else:
                return


def _split(places: tuple[int, ...], parts: int) -> Iterator[tuple[int, ...]]:
    """Return ``places`` in so many parts of about one length."""
    for number in range(parts):
        begin, end = (len(places) * edge // parts for edge in (number, number + 1))
        yield places[begin:end]


def _rests(places: tuple[int, ...], parts: int) -> Iterator[tuple[int, ...]]:
    """Return ``places`` without each part; of two parts these are the parts themselves."""
    for part in _split(places, parts):
        yield tuple(place for place in places if not part[0] <= place <= part[-1])


def ddmin(items: Sequence[T], fails: Callable[[tuple[T, ...]], bool], *, tries: int) -> Shrunk[T]:
    """Return a part of ``items`` that still fails, as short as possible with so many ``tries``.

    ``items`` as a whole is assumed to fail, and is not tried. ``fails`` is called with parts in
    their old order, once for each part, and must be deterministic.
    """
    search = _Search(items, fails, tries)
    try:
        search.run()
    except _OutOfTriesError:
        return Shrunk(search.items, search.tries, is_minimal=False)
    return Shrunk(search.items, search.tries, is_minimal=True)
