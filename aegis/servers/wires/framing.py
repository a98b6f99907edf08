"""Lines out of a stream of bytes: one message each, ended by a newline. Pure."""

from __future__ import annotations


class LineTooLong(ValueError):
    """No newline came within the limit; what follows cannot be told apart any more."""


class LineBuffer:
    """Collects bytes and gives back whole lines, without their newline, ``limit`` bytes at most."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> None:
        """Add what was received."""
        self._data += data

    def next_line(self) -> bytes | None:
        """The next whole line; None: feed more. Raises ``LineTooLong`` beyond the limit."""
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
