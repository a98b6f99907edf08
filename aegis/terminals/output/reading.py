"""Reading a stretch of a terminal's output by cursor, from its raw log, in pieces.

Between pieces others run: the raw log may be written to and rotated meanwhile, and an offset still
means the same byte. What is no longer kept is passed over and counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

import trio

from aegis.errors import InvalidRequest
from aegis.protocol.command import MAX_REPLY_BYTES
from aegis.protocol.output import OutputChunk
from aegis.terminals.messages import FetchOutput
from aegis.terminals.parse.plain import LOOKAHEAD_BYTES, Taken, take_plain, take_raw

PIECE_BYTES = 16 * 1024
"""Bytes that are cleaned at once: a millisecond, and a few where every byte is an escape."""

SHORT_LOOKAHEAD_BYTES = 512
"""Enough to decide about everything but strings."""

FULL_BYTES = MAX_REPLY_BYTES - 6 * PIECE_BYTES
"""A reply of so many bytes, as JSON, gets no further piece: it stays within the limit."""


class KeptOutput(Protocol):
    """A raw log, as far as it is needed here."""

    @property
    def position(self) -> int:
        """The offset of the byte to come."""

    def stretch(self, start: int, max_bytes: int) -> tuple[int, bytes]:
        """The first kept bytes at ``start`` or behind it, and where they begin."""


def check_cursor(log: KeptOutput, name: str, cursor: int) -> None:
    """Raise ``InvalidRequest`` if nothing was printed at ``cursor``, nor will be next."""
    if cursor > log.position:
        raise InvalidRequest(
            f"cursor {cursor} lies beyond the output of terminal {name!r}, which ends at "
            f"{log.position}: pass a cursor that a reply gave you"
        )


def check_cursor_of(command: str, cursor: int, start: int, end: int | None) -> None:
    """Raise ``InvalidRequest`` if ``cursor`` lies outside the output of ``command`` (a sentence's).

    Its output goes from ``start`` to ``end``; None: it goes on.
    """
    if cursor < start or (end is not None and cursor > end):
        where = f"begins at {start}" if end is None else f"goes from {start} to {end}"
        raise InvalidRequest(
            f"cursor {cursor} lies outside the output of {command}, which {where}: pass a cursor "
            "that a reply gave you, or none"
        )


def no_end() -> int | None:
    """The end of a stretch that goes on for as long as there is output."""
    return None


async def read_output(
    log: KeptOutput,
    request: FetchOutput,
    is_running: Callable[[], bool],
    end: Callable[[], int | None] = no_end,
) -> OutputChunk:
    """What ``request`` asks for, as far as it is there; it waits for nothing.

    No byte is read from the cursor on that ``end`` gives, which is asked before each piece; what is
    cut off there goes on nowhere. ``next_cursor`` is where it began while there is nothing yet
    whose text is certain. Raises ``StorageError``.
    """
    wanted = log.position if request.cursor is None else request.cursor
    reading = _Reading(log, request, wanted, end)
    while reading.read_piece():
        await trio.lowlevel.checkpoint()
    return OutputChunk(
        text=reading.text,
        cursor=reading.start,
        next_cursor=reading.end,
        dropped=reading.start - wanted,
        running=is_running(),
    )


class _Reading:
    """What one call gets: the text of the bytes from ``start`` to ``end``."""

    def __init__(
        self, log: KeptOutput, request: FetchOutput, wanted: int, bound: Callable[[], int | None]
    ) -> None:
        self._log = log
        self._request = request
        self._bound = bound
        self._texts: list[str] = []
        self._chars_left = request.max_chars
        self._reply_bytes = 0
        self.start = self.end = wanted

    @property
    def text(self) -> str:
        return "".join(self._texts)

    def read_piece(self) -> bool:
        """Add what comes next; whether there may be more for this call."""
        size = min(PIECE_BYTES, self._request.max_bytes - (self.end - self.start))
        begin, taken = self._take(size)
        if begin > self.end:
            if self.end > self.start:
                return False  # bytes are missing here: the next call tells of them
            self.start = begin
        self.end = begin + taken.size
        self._texts.append(taken.text)
        self._reply_bytes += len(json.dumps(taken.text, ensure_ascii=False).encode())
        if self._chars_left is not None:
            self._chars_left -= len(taken.text)
        return taken.size > 0 and not self._is_full()

    def _is_full(self) -> bool:
        return (
            self.end - self.start >= self._request.max_bytes
            or self._reply_bytes >= FULL_BYTES
            or (self._chars_left is not None and self._chars_left <= 0)
        )

    def _take(self, size: int) -> tuple[int, Taken]:
        if not self._request.plain:
            return self._take_with(size, 0)
        begin, taken = self._take_with(size, SHORT_LOOKAHEAD_BYTES)
        if taken.size:
            return begin, taken
        return self._take_with(size, LOOKAHEAD_BYTES)

    def _take_with(self, size: int, lookahead: int) -> tuple[int, Taken]:
        bound = self._bound()
        begin, data = self._log.stretch(self.end, size + lookahead)
        if bound is not None:
            begin = min(begin, max(bound, self.end))
            data = data[: max(0, bound - begin)]
        end = begin + len(data)
        # Fewer bytes than there should be: what follows the last of them is not kept.
        whole = end == bound or (len(data) < size + lookahead and end < self._log.position)
        if self._request.plain:
            return begin, take_plain(data, size, whole=whole, max_chars=self._chars_left)
        return begin, take_raw(data, size, whole=whole)
