"""Splitting a stream of bytes into lines: one message each, ended by a newline. Pure."""

from __future__ import annotations


class LineTooLong(ValueError):
    """The error for a line over the limit. It is skipped: the next line can be read."""


class LineWithoutEnd(ValueError):
    """The error for a line that is too long to be skipped: no later line can be read."""


class LineBuffer:
    """A buffer that collects bytes and returns whole lines of at most ``limit`` bytes.

    The lines are returned without their newline. Of a longer line at most ``skipped`` bytes beyond
    the limit are dropped.
    """

    def __init__(self, limit: int, skipped: int = 0) -> None:
        self._limit = limit
        self._most_skipped = skipped
        self._data = bytearray()
        self._searched = 0
        self._skipped: int | None = None

    def feed(self, data: bytes) -> None:
        """Add received bytes. Raises ``LineWithoutEnd``."""
        self._data += data
        if self._skipped is not None:
            self._skip(self._skipped)
        if self._skipped is not None and self._skipped > self._most_skipped:
            raise LineWithoutEnd

    def next_line(self) -> bytes | None:
        """Return the next line; None if incomplete. Raises ``LineTooLong`` beyond the limit."""
        if self._skipped is not None:
            return None
        end = self._data.find(b"\n", self._searched)
        if (len(self._data) if end < 0 else end) > self._limit:
            self._skip(-self._limit)
            raise LineTooLong
        if end < 0:
            self._searched = len(self._data)
            return None
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        self._searched = 0
        return line

    def _skip(self, before: int) -> None:
        """Drop the rest of a line, of which ``before`` bytes beyond the limit were dropped."""
        end = self._data.find(b"\n")
        count = before + (len(self._data) if end < 0 else end)
        del self._data[: None if end < 0 else end + 1]
        self._searched = 0
        self._skipped = count if end < 0 else None
