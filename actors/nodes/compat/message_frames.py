"""The frames of tractor's wire: a length of four bytes, low byte first, and as many bytes. Pure.

tractor reads as much as a length promises, up to 4 GiB. Here a length above the limit is refused as
soon as its four bytes are there.
"""

from __future__ import annotations

from actors.errors import NodeError

MESSAGE_LIMIT = 1_114_112
"""The largest message between two nodes in bytes: 1 MiB of payload and what wraps it."""

_LENGTH = 4


class MessageReader:
    """Puts messages together from bytes as they come, and keeps at most one that is not whole."""

    def __init__(self, limit: int = MESSAGE_LIMIT) -> None:
        self._limit = limit
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that ``data`` completes, in order.

        Raises ``NodeError`` at a length above the limit; the reader is of no use afterwards.
        """
        self._held += data
        whole: list[bytes] = []
        at = 0
        while (end := self._end_of_message(at)) is not None:
            whole.append(bytes(self._held[at + _LENGTH : end]))
            at = end
        del self._held[:at]
        return whole

    def _end_of_message(self, at: int) -> int | None:
        if len(self._held) < at + _LENGTH:
            return None
        length = int.from_bytes(self._held[at : at + _LENGTH], "little")
        if length > self._limit:
            raise NodeError(
                f"A message of {length} bytes was announced; at most {self._limit} are taken."
            )
        end = at + _LENGTH + length
        return end if len(self._held) >= end else None


def framed(message: bytes, limit: int = MESSAGE_LIMIT) -> bytes:
    """Return ``message`` with its length before it; ``NodeError`` if it is above the limit."""
    if len(message) > limit:
        raise NodeError(f"A message of {len(message)} bytes was not sent; at most {limit} are.")
    return len(message).to_bytes(_LENGTH, "little") + message
