"""``WindowSizes``: the sizes of a terminal's window, by the offsets of its output. Pure."""

from __future__ import annotations

from bisect import bisect_right

from aegis.protocol.feeds import SizeAt

MAX_SIZES = 256
"""Sizes that are kept; of older output the oldest kept size is reported."""


class WindowSizes:
    """The sizes since the offset ``cursor``, where the window has ``cols`` and ``rows``."""

    def __init__(self, cursor: int, cols: int, rows: int) -> None:
        self._sizes = [SizeAt(cursor=cursor, cols=cols, rows=rows)]

    def resized(self, cursor: int, cols: int, rows: int) -> None:
        """Note the size from ``cursor`` on, the end of the output."""
        newest = self._sizes[-1]
        if (newest.cols, newest.rows) == (cols, rows):
            return
        if newest.cursor == cursor:
            self._sizes.pop()
        self._sizes.append(SizeAt(cursor=cursor, cols=cols, rows=rows))
        del self._sizes[:-MAX_SIZES]

    def within(self, begin: int, end: int) -> tuple[SizeAt, ...]:
        """Return the size at ``begin`` and the later ones up to ``end``, each with its offset."""
        first = bisect_right(self._sizes, begin, key=lambda size: size.cursor)
        at_begin = self._sizes[max(first - 1, 0)]
        later = [size for size in self._sizes[first:] if size.cursor <= end]
        if first == 0 and later:  # output before the first known size
            later = later[1:]
        return (SizeAt(cursor=begin, cols=at_begin.cols, rows=at_begin.rows), *later)
