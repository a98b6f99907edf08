"""The record of a command whose shell is gone; its output is rebuilt from the raw log."""

from __future__ import annotations

from pathlib import Path

import trio

from aegis.clock import utc_now
from aegis.journal.raw_log import RawLog
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.capture import CapturedOutput, OutputCapture
from aegis.terminals.messages import NO_OUTPUT
from aegis.terminals.record import InFlight, final_record

PIECE_BYTES = 64 * 1024


async def killed_record(directory: Path, command: InFlight, raw_end: int | None) -> CommandRecord:
    """The final record of a command that was running when its shell was lost.

    ``directory`` has the raw log; what is in it from ``raw_end`` on is not the command's. Nothing
    is known to be the output of a command that was only submitted. Raises ``StorageError``.
    """
    output, end = NO_OUTPUT, command.raw_start
    if command.begun:
        output, end = await recover_output(directory, command.raw_start, raw_end)
    return final_record(
        command,
        output,
        end="killed_by_restart",
        exit_code=None,
        finished_at=utc_now(),
        moment_s=None,
        raw_end=end,
    )


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
