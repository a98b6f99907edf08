"""``TakenHandles``: handles that are never given again, in little memory. Pure.

The workers of a queue have numbered handles, such as ``build-17``. Of these only the ranges are
kept: as many as ever take up the memory of one, while there is no gap between them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from aegis.protocol.naming import name_key

_NUMBERED = re.compile(r"(.+)-([1-9][0-9]{0,14}|0)")
"""A stem and a number. One with a leading zero is another handle than one without."""


class TakenHandles:
    """Handles, ignoring case."""

    def __init__(self, handles: Iterable[str] = ()) -> None:
        self._names: set[str] = set()
        self._ranges: dict[str, _Ranges] = {}
        for handle in handles:
            self.add(handle)

    def add(self, handle: str) -> None:
        """Add a handle; one that is there already changes nothing."""
        key = name_key(handle)
        numbered = _NUMBERED.fullmatch(key)
        if numbered is None:
            self._names.add(key)
        else:
            self._ranges.setdefault(numbered[1], _Ranges()).add(int(numbered[2]))

    def __contains__(self, handle: object) -> bool:
        key = name_key(str(handle))
        numbered = _NUMBERED.fullmatch(key)
        if numbered is None:
            return key in self._names
        ranges = self._ranges.get(numbered[1])
        return ranges is not None and int(numbered[2]) in ranges


class _Ranges:
    """Whole numbers, as ranges from ``_first`` to ``_last`` that do not touch, in order."""

    __slots__ = ("_first", "_last")

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._first, number) - 1
        return at >= 0 and number <= self._last[at]

    def add(self, number: int) -> None:
        if number in self:
            return
        at = bisect_right(self._first, number)
        follows = at > 0 and self._last[at - 1] == number - 1
        leads = at < len(self._first) and self._first[at] == number + 1
        if follows and leads:
            self._last[at - 1] = self._last.pop(at)
            del self._first[at]
        elif follows:
            self._last[at - 1] = number
        elif leads:
            self._first[at] = number
        else:
            self._first.insert(at, number)
            self._last.insert(at, number)
