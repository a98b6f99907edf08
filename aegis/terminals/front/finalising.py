"""The final records of a terminal whose front has ended and whose processes are gone."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import trio

from actors import Ref
from aegis.errors import StorageError
from aegis.journal.appender import Appender
from aegis.journal.flusher import Flusher
from aegis.journal.opening import sync_ledger
from aegis.protocol.inboxes import Deliver
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.aside import open_note
from aegis.terminals.front.flight import Flight
from aegis.terminals.front.recovery import recovered_records
from aegis.terminals.history import History
from aegis.terminals.record import record_line
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.wakes.wakes import Wakes


async def finalise(files: TerminalFiles, flusher: Flusher) -> CommandRecord | None:
    """Give each command that the note tells of its final record; gives the ledger's newest record.

    A command that has one gets no second, so this may be cut short and done again; the front does
    the same when it starts. Raises ``StorageError``.
    """
    disk = flusher.disk
    if not disk.is_directory(files.directory):
        return None
    await sync_ledger(flusher, files.ledger)  # a front that crashed may not have come to it
    note = await flusher.call(partial(open_note, files.note, flusher))
    try:
        last, given = History(files.ledger, disk=disk).last()
        lost = [command for command, _ in Flight.open(note, last, given).lost_with(())]
        if lost:
            records = await recovered_records(disk, files.directory, lost, None)
            await _append(files, flusher, records)
            note.write({**(note.load() or {}), "commands": []})
            last = records[-1]
        return last
    finally:
        note.close()


async def tell_subscribers(
    settings: TerminalSettings, files: TerminalFiles, flusher: Flusher, inboxes: Ref[Deliver]
) -> list[str]:
    """Wake whoever is owed a record of a terminal without actors; gives all who subscribe.

    Inboxes that fail, or are slow, get theirs when it is spawned again. Raises ``StorageError``.
    """
    history = History(files.ledger, disk=flusher.disk)
    wakes = Wakes(settings, files, history, flusher, inboxes)
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
    """Put the records at the end of the ledger; synced when this returns."""
    appender, refusal = await Appender.open(files.ledger, flusher), None
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        try:
            for record in records:
                position = appender.append(record_line(record))
            await appender.wait_synced(position)
        except StorageError as error:  # as it is, and not in a group
            refusal = error
        finally:
            appender.close()
    if refusal is not None:
        raise refusal
