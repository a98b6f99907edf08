"""Reading a terminal's output by cursor, from its raw log, in pieces.

Other tasks run between pieces: the raw log may be written and rotated meanwhile, and an offset
still means the same byte. Output that is no longer kept is skipped and counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol

import trio

from aegis.errors import InvalidRequest
from aegis.journal.disk import Disk
from aegis.journal.raw_log import LIMIT_BYTES, RawLog
from aegis.protocol.command import MAX_REPLY_BYTES
from aegis.protocol.output import OutputChunk
from aegis.terminals.history import History
from aegis.terminals.messages import FetchOutput
from aegis.terminals.parse.plain import LOOKAHEAD_BYTES, PlainText, take_plain, take_raw
from aegis.terminals.settings import TerminalFiles

PIECE_BYTES = 16 * 1024
"""Bytes cleaned at once: one millisecond, a few where every byte is an escape."""

SHORT_LOOKAHEAD_BYTES = 512
"""Enough to decide about everything but strings."""

FULL_BYTES = MAX_REPLY_BYTES - 6 * PIECE_BYTES
"""Size, as JSON, from which a reply gets no further piece, so that it fits the limit."""


class OutputLog(Protocol):
    """The reading side of a raw log."""

    @property
    def position(self) -> int:
        """The offset of the next byte."""

    def stretch(self, start: int, max_bytes: int) -> tuple[int, bytes]:
        """Return the first kept bytes from ``start`` on, and the offset of the first."""


def check_cursor(log: OutputLog, name: str, cursor: int) -> None:
    """Raise ``InvalidRequest`` if ``cursor`` is beyond the end of the output."""
    if cursor > log.position:
        raise InvalidRequest(
            f"cursor {cursor} is beyond the output of terminal {name!r}, which ends at "
            f"{log.position}: pass a cursor that a reply gave you"
        )


def check_cursor_of(command: str, cursor: int, start: int, end: int | None) -> None:
    """Raise ``InvalidRequest`` if ``cursor`` is outside ``start`` to ``end``; None: no end yet.

    ``command`` is the command's description in the error sentence.
    """
    if cursor < start or (end is not None and cursor > end):
        where = f"begins at {start}" if end is None else f"goes from {start} to {end}"
        raise InvalidRequest(
            f"cursor {cursor} is outside the output of {command}, which {where}: pass a cursor "
            "that a reply gave you, or none"
        )


def no_end() -> int | None:
    """Return None: the output to read has no end."""
    return None


async def read_output(
    log: OutputLog,
    request: FetchOutput,
    is_running: Callable[[], bool],
    end: Callable[[], int | None] = no_end,
) -> OutputChunk:
    """Return the existing output for ``request``, without waiting. Raises ``StorageError``.

    ``end`` returns the cursor where the output ends; it is called before each piece. A sequence cut
    off there is complete. ``next_cursor`` equals ``cursor`` while the text of the next bytes is
    not certain.
    """
    wanted = log.position if request.cursor is None else request.cursor
    reading = _OutputText(log, request, wanted, end)
    while reading.read_piece():
        await trio.lowlevel.checkpoint()
    return OutputChunk(
        text=reading.text,
        cursor=reading.start,
        next_cursor=reading.end,
        dropped=reading.start - wanted,
        running=is_running(),
    )


class _OutputText:
    """The text of the bytes from ``start`` to ``end``, for one call."""

    def __init__(
        self, log: OutputLog, request: FetchOutput, wanted: int, bound: Callable[[], int | None]
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
        """Add the next piece; return whether more may follow in this call."""
        size = min(PIECE_BYTES, self._request.max_bytes - (self.end - self.start))
        begin, taken = self._take(size)
        if begin > self.end:
            if self.end > self.start:
                return False  # bytes are missing here: the next call reports them
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

    def _take(self, size: int) -> tuple[int, PlainText]:
        if not self._request.plain:
            return self._take_with(size, 0)
        begin, taken = self._take_with(size, SHORT_LOOKAHEAD_BYTES)
        if taken.size:
            return begin, taken
        return self._take_with(size, LOOKAHEAD_BYTES)

    def _take_with(self, size: int, lookahead: int) -> tuple[int, PlainText]:
        bound = self._bound()
        begin, data = self._log.stretch(self.end, size + lookahead)
        if bound is not None:
            begin = min(begin, max(bound, self.end))
            data = data[: max(0, bound - begin)]
        end = begin + len(data)
        # Fewer bytes than asked for: the bytes behind them are not kept.
        whole = end == bound or (len(data) < size + lookahead and end < self._log.position)
        if self._request.plain:
            return begin, take_plain(data, size, whole=whole, max_chars=self._chars_left)
        return begin, take_raw(data, size, whole=whole)


def open_raw_log(
    disk: Disk, files: TerminalFiles, limit_bytes: int = LIMIT_BYTES, *, is_new: bool = False
) -> RawLog:
    """Open the raw log of a terminal; ``is_new``: it has printed nothing yet.

    ``limit_bytes`` is the size limit of each of its two files; a reader may leave it out. Raises
    ``StorageError``.
    """
    # A cursor that was published never means other bytes: the log continues behind the last one in
    # the ledger, even where its own file lost bytes.
    published = 0 if is_new else History(files.ledger, disk=disk).last_cursor()
    return RawLog.open(
        files.directory, disk=disk, limit_bytes=limit_bytes, at_least=published, is_new=is_new
    )
