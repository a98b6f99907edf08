"""The record of a command whose shell is gone; its output is rebuilt from the raw log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import trio

from aegis.clock import utc_now
from aegis.journal.disk import Disk
from aegis.journal.raw_log import RawLog
from aegis.processes.capture import CapturedOutput, OutputCapture
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.messages import NO_OUTPUT
from aegis.terminals.record import InFlight, behind, final_record, outcome_of

PIECE_BYTES = 64 * 1024


async def recovered_records(
    disk: Disk, directory: Path, commands: Sequence[InFlight], raw_end: int | None
) -> list[CommandRecord]:
    """The final records of commands, oldest first, that had none when their shell was lost.

    They were killed with it, unless their end was noted already. ``directory`` has the raw log;
    what is in it from ``raw_end`` on is not theirs, and the output of each ends where the next one
    began. Of a command that was only submitted nothing is known to be output. Raises
    ``StorageError``.
    """
    records: list[CommandRecord] = []
    for command in commands:
        stop = min(_begun_after(command, commands), default=raw_end)
        reached = max((each.raw_end or 0 for each in records), default=0)
        unread = behind(command, reached) if command.outcome is None else command
        records.append(await _recovered_record(disk, directory, unread, stop))
    return records


def _begun_after(command: InFlight, commands: Iterable[InFlight]) -> Iterator[int]:
    """Where others began after ``command``. On one shell a higher number may have begun first."""
    for other in commands:
        if other.began_at is None or command.began_at is None:
            continue
        if other.shell == command.shell:
            is_later = other.began_at > command.began_at
        else:
            is_later = other.seq > command.seq
        if is_later:
            yield other.began_at


async def _recovered_record(
    disk: Disk, directory: Path, command: InFlight, raw_end: int | None
) -> CommandRecord:
    known, output, end = command.outcome, NO_OUTPUT, command.raw_start
    if command.began_at is not None:
        stop = raw_end if known is None else known.raw_end
        output, end = await recover_output(disk, directory, command.began_at, stop)
    outcome = known or outcome_of(
        command,
        end="killed_by_restart",
        exit_code=None,
        finished_at=utc_now(),
        moment_s=None,
        raw_end=end,
    )
    return final_record(command, output, outcome)


async def recover_output(
    disk: Disk, directory: Path, start: int, end: int | None
) -> tuple[CapturedOutput, int]:
    """What was printed from cursor ``start`` to ``end`` (None: to the last byte), and that end."""
    return await trio.to_thread.run_sync(_recover, disk, directory, start, end)


def _recover(
    disk: Disk, directory: Path, start: int, end: int | None
) -> tuple[CapturedOutput, int]:
    raw_log = RawLog.open(directory, disk=disk)
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
