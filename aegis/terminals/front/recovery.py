"""Final records of commands whose shell was lost, also where the front is gone too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import trio

from actors import Ref
from aegis.clock import utc_now
from aegis.errors import StorageError
from aegis.journal.appender import Appender
from aegis.journal.disk import Disk
from aegis.journal.flusher import Flusher
from aegis.journal.opening import sync_ledger
from aegis.journal.raw_log import RawLog
from aegis.limits import in_thread
from aegis.processes.capture import CapturedOutput, OutputCapture
from aegis.protocol.inboxes import Deliver
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.front.current_command import CurrentCommand
from aegis.terminals.history import History
from aegis.terminals.messages import NO_OUTPUT
from aegis.terminals.quarantine import open_note
from aegis.terminals.record import UnrecordedCommand, behind, final_record, outcome_of, record_line
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.wakes.wakes import WakeSubscribers

PIECE_BYTES = 64 * 1024


# A front whose shell is gone.


async def recovered_records(
    disk: Disk, directory: Path, commands: Sequence[UnrecordedCommand], raw_end: int | None
) -> list[CommandRecord]:
    """Return the final records of commands, oldest first, that had none when the shell was lost.

    They were killed with the shell, unless their end is in the note. The output is rebuilt from the
    raw log in ``directory``, up to ``raw_end``; the output of each command ends where the next one
    began. A command that was only submitted has no output. Raises ``StorageError``.
    """
    records: list[CommandRecord] = []
    for command in commands:
        stop = min(_begun_after(command, commands), default=raw_end)
        reached = max((each.raw_end or 0 for each in records), default=0)
        if command.outcome is not None:
            # Noted by an earlier recovery, with the cursor that it found.
            reached = command.outcome.raw_end
        placed = behind(command, reached)
        records.append(await _recovered_record(disk, directory, placed, stop))
    return records


def _begun_after(
    command: UnrecordedCommand, commands: Iterable[UnrecordedCommand]
) -> Iterator[int]:
    """Yield the cursors at which the commands after ``command`` began."""
    for other in commands:
        if other.began_at is None or command.began_at is None:
            continue
        if other.shell == command.shell:
            # On one shell a higher number may have begun first: a displaced submission.
            is_later = other.began_at > command.began_at
        else:
            is_later = other.seq > command.seq
        if is_later:
            yield other.began_at


async def _recovered_record(
    disk: Disk, directory: Path, command: UnrecordedCommand, raw_end: int | None
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
    """Return the output from cursor ``start`` to ``end`` (None: the last byte), and its end."""
    return await in_thread(_recover, disk, directory, start, end)


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


# A terminal whose front has ended and whose processes are gone.


async def finalise(files: TerminalFiles, flusher: Flusher) -> CommandRecord | None:
    """Write the missing final record of each noted command; return the ledger's newest record.

    Idempotent: a command that has a record gets no second one, so this may be interrupted and
    repeated. A front does the same when it starts. Raises ``StorageError``.
    """
    disk = flusher.disk
    if not disk.is_directory(files.directory):
        return None
    await sync_ledger(flusher, files.ledger)  # the front may have crashed before its sync
    note = await flusher.call(partial(open_note, files.note, flusher))
    try:
        last, given = History(files.ledger, disk=disk).last()
        lost = [command for command, _ in CurrentCommand.open(note, last, given).lost_with(())]
        if lost:
            records = await recovered_records(disk, files.directory, lost, None)
            await _append(files, flusher, records)
            note.write({**(note.load() or {}), "commands": []})
            last = records[-1]
        return last
    finally:
        note.close()


async def wake_subscribers(
    settings: TerminalSettings, files: TerminalFiles, flusher: Flusher, inboxes: Ref[Deliver]
) -> list[str]:
    """Send the wakes that a terminal without actors still owes; return all its subscribers.

    Wakes of inboxes that fail or are slow are sent when the terminal is spawned again. Raises
    ``StorageError``.
    """
    history = History(files.ledger, disk=flusher.disk)
    wakes = WakeSubscribers(settings, files, history, flusher, inboxes)
    try:
        _, given = history.last()
        await wakes.open(given)
        async with trio.open_nursery() as nursery:
            wakes.start(nursery.start_soon)
            await wakes.settle(daemon_stops=False)
            nursery.cancel_scope.cancel()
        return wakes.subscribers
    finally:
        await wakes.close()


async def _append(files: TerminalFiles, flusher: Flusher, records: Iterable[CommandRecord]) -> None:
    """Append the records to the ledger; return once they are synced."""
    appender, refusal = await Appender.open(files.ledger, flusher), None
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        try:
            for record in records:
                position = appender.append(record_line(record))
            await appender.wait_synced(position)
        except StorageError as error:  # raised below: the nursery would wrap it in a group
            refusal = error
        finally:
            appender.close()
    if refusal is not None:
        raise refusal
