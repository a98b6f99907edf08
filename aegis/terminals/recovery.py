"""The output of a command whose shell is gone, rebuilt from the raw log."""

from __future__ import annotations

from pathlib import Path

import trio

from aegis.journal.raw_log import RawLog
from aegis.terminals.capture import CapturedOutput, OutputCapture

PIECE_BYTES = 64 * 1024


async def recover_output(
    directory: Path, start: int, end: int | None
) -> tuple[CapturedOutput, int]:
    """What was printed from cursor ``start`` to ``end`` (None: to the last byte), and that end."""
    return await trio.to_thread.run_sync(_recover, directory, start, end)


def _recover(directory: Path, start: int, end: int | None) -> tuple[CapturedOutput, int]:
    raw_log = RawLog.open(directory)
    try:
        stop = raw_log.position if end is None else end
        capture = OutputCapture()
        for piece in range(start, stop, PIECE_BYTES):
            data, _ = raw_log.read(piece, min(piece + PIECE_BYTES, stop))
            capture.feed(data)
        output = capture.result()
    finally:
        raw_log.close()
    return output, max(start, stop)
