"""The final records of a terminal whose front has ended and whose processes are gone."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import attrs
import trio

from aegis.clock import utc_now
from aegis.journal.appender import Appender
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.journal.note import Note
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.flight import Flight
from aegis.terminals.history import History
from aegis.terminals.record import InFlight, final_record
from aegis.terminals.recovery import recover_output
from aegis.terminals.settings import TerminalFiles


async def finalise(files: TerminalFiles, flusher: Flusher) -> CommandRecord | None:
    """Give each command that the note tells of its final record; gives the ledger's newest record.

    A command that has one gets no second, so this may be cut short and done again; the front does
    the same when it starts. Raises ``StorageError``.
    """
    if not files.directory.is_dir():
        return None
    opened = await flusher.call(partial(Note.open, files.note, flusher))
    try:
        last, given = History(files.ledger).last()
        _, found = Flight.open(opened, given)
        if found:
            records = [await _record(files, found, index) for index in range(len(found))]
            await _append(files, flusher, records)
            opened.write({**(opened.load() or {}), "commands": []})
            last = records[-1]
        return last
    finally:
        opened.close()


async def _record(files: TerminalFiles, found: list[InFlight], index: int) -> CommandRecord:
    command = found[index]
    next_start = found[index + 1].raw_start if index + 1 < len(found) else None
    output, end = await recover_output(files.directory, command.raw_start, next_start)
    return final_record(
        command,
        output,
        end="killed_by_restart",
        exit_code=None,
        finished_at=utc_now(),
        moment_s=None,
        raw_end=end,
    )


async def _append(files: TerminalFiles, flusher: Flusher, records: Iterable[CommandRecord]) -> None:
    """Put the records at the end of the ledger; synced when this returns."""
    appender = await Appender.open(files.ledger, flusher)
    async with trio.open_nursery() as nursery:
        await nursery.start(appender.run)
        try:
            for record in records:
                position = appender.append(encode_line(attrs.asdict(record, recurse=False)))
            await appender.wait_synced(position)
        finally:
            nursery.cancel_scope.cancel()
