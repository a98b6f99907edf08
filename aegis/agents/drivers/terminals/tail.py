"""``Tail``: the last part of a text of any length. Pure."""

from __future__ import annotations

_SLACK = 65_536


class Tail:
    """Keeps the last ``limit`` bytes of a text in UTF-8; stores at most twice that and 64 KiB."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self.total = 0
        """The bytes that were written."""

    def write(self, text: str) -> None:
        """Append ``text``."""
        data = text.encode()
        self.total += len(data)
        self._data += data
        if len(self._data) > 2 * self._limit + _SLACK:
            del self._data[: len(self._data) - self._limit]

    def shown(self, pending: str = "") -> tuple[str, bool]:
        """Return the kept text with ``pending`` at its end, and whether its beginning was dropped.

        It begins with a whole character, so it can be some bytes shorter than the limit.
        """
        ending = pending.encode()
        total = self.total + len(ending)
        if total <= self._limit:
            return (bytes(self._data) + ending).decode(), False
        kept = (bytes(self._data[-self._limit :]) + ending)[-self._limit :] if self._limit else b""
        return _from_whole_character(kept).decode(), True

    def since(self, cursor: int, most: int) -> tuple[int, str]:
        """Return the text from ``cursor`` on, at most ``most`` bytes, and the offset of its begin.

        Offsets count the bytes that were written. The begin is later than ``cursor`` if the text
        there is no longer kept, and never after the end.
        """
        kept = bytes(self._data[-self._limit :]) if self._limit else b""
        kept_from = self.total - len(kept)
        begin = min(max(cursor, kept_from), self.total)
        left = kept[begin - kept_from :]
        whole = _from_whole_character(left)
        begin += len(left) - len(whole)
        return begin, whole[:most].decode(errors="ignore")  # ignores half of a character


def _from_whole_character(data: bytes) -> bytes:
    begin = 0
    while begin < len(data) and data[begin] & 0xC0 == 0x80:
        begin += 1
    return data[begin:]
