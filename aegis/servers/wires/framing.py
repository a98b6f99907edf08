"""Splitting a stream of bytes into lines: one message each, ended by a newline. Pure."""

from __future__ import annotations


class LineTooLong(ValueError):
    """The error for a line over the limit; later lines cannot be separated from it."""


class LineBuffer:
    """A buffer that collects bytes and returns whole lines of at most ``limit`` bytes.

    The lines are returned without their newline.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._data += data

    def next_line(self) -> bytes | None:
        """Return the next line; None if incomplete. Raises ``LineTooLong`` beyond the limit."""
        end = self._data.find(b"\n", self._searched)
        if (len(self._data) if end < 0 else end) > self._limit:
            raise LineTooLong
        if end < 0:
            self._searched = len(self._data)
            return None
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        self._searched = 0
        return line
