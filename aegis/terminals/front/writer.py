"""``LedgerWriter``: the only writer of a terminal's ledger. A confirmed record is synced.

Records arrive in the order of their ``seq``. A record that is in the ledger already is confirmed
and not written again. A record that arrives before its predecessor is dropped: its sender repeats
it. So after a crash the front repeats every record that was not confirmed.

A ledger that has become large is closed, and a new one begun, before the next record
(``aegis.journal.segments``). Older segments are compressed meanwhile.
"""

from __future__ import annotations

import contextlib
from functools import partial

import structlog

from actors import Actor
from aegis.errors import StorageError
from aegis.journal.appender import Appender, Position
from aegis.journal.disk import shown, storage_errors
from aegis.journal.flusher import Flusher
from aegis.journal.old_files import ARCHIVE_BYTES, delete_oldest
from aegis.journal.segment_names import segments_of
from aegis.journal.segments import SEGMENT_BYTES, close_segment, newest_number, pack_segments
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.front_port import Front
from aegis.terminals.messages import (
    AppendFailed,
    AppendRecord,
    RecordAppended,
    ReportSynced,
    SyncedLedger,
)
from aegis.terminals.record import record_line
from aegis.terminals.settings import TerminalFiles

log = structlog.get_logger("aegis.terminals")


class LedgerWriter(Actor[AppendRecord | ReportSynced]):
    """Appends records, and notifies the front when each is durable."""

    def __init__(
        self,
        *,
        files: TerminalFiles,
        flusher: Flusher,
        archive_bytes: int = ARCHIVE_BYTES,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._files = files
        self._archive_bytes = archive_bytes
        self._segment_bytes = segment_bytes
        self._flusher = flusher
        self._appender: Appender | None = None
        self._last_seq = -1
        self._confirmed_seq = -1
        self._waiting: list[tuple[int, Position]] = []
        self._split_at = segment_bytes
        self._packing = False

    async def setup(self) -> None:
        """Open the ledger; truncate a torn tail."""
        self._front = self.context.sibling("terminal", Front)
        is_new = self._files.is_new and self.context.incarnation == 1
        self._last_seq = self._confirmed_seq = await self._open(is_new=is_new)

    async def teardown(self) -> None:
        """Close the ledger."""
        if self._appender is not None:
            self._appender.close()

    async def receive(self, message: AppendRecord | ReportSynced) -> None:
        """Write a record; its confirmation follows the next sync."""
        if isinstance(message, ReportSynced):
            if message.settled and self._waiting and self._appender is not None:
                with contextlib.suppress(StorageError):
                    await self._appender.wait_synced(self._waiting[-1][1])
            self.reply(message, SyncedLedger(newest=self._confirmed_seq))
            return
        if self._is_new(message):
            try:
                appender = await self._ready()
            except StorageError as error:
                self._front.hand_over(AppendFailed(seq=message.record.seq, why=str(error)))
            else:
                self._append(appender, message.record)

    def receive_now(self, message: AppendRecord | ReportSynced) -> bool:
        """Write a record in the step of the front, if the ledger needs no work before it."""
        appender = self._appender
        if appender is None or appender.failed or appender.length >= self._split_at:
            return False
        if isinstance(message, ReportSynced):
            return False
        if self._is_new(message):
            self._append(appender, message.record)
        return True

    def _is_new(self, message: AppendRecord) -> bool:
        """Whether the record is to be written; confirm it if it is in the ledger already."""
        seq = message.record.seq
        if seq <= self._confirmed_seq:
            self._front.hand_over(RecordAppended(seq=seq))
        return message.after <= self._last_seq < seq

    async def _open(self, *, is_new: bool = False) -> int:
        """Open the ledger; return the number of its last record. Raises ``StorageError``."""
        appender = await Appender.open(self._files.ledger, self._flusher, is_new=is_new)
        appender.on_outcome = partial(self._settle, appender)
        appender.start(self.context.start_soon)
        self._appender = appender
        seq = None if appender.opened.last is None else appender.opened.last.get("seq")
        if isinstance(seq, int):
            return seq
        if is_new:
            return -1
        # It has no line yet, or damaged ones alone: the segments have the last number.
        disk, ledger = self._flusher.disk, self._files.ledger
        with storage_errors("read", ledger):
            has_segments = bool(segments_of(disk, ledger))
        if not has_segments:
            return -1
        return await self._flusher.look(partial(newest_number, disk, ledger))

    def _append(self, appender: Appender, record: CommandRecord) -> None:
        try:
            position = appender.append(record_line(record))
        except StorageError as error:
            self._front.hand_over(AppendFailed(seq=record.seq, why=str(error)))
            return
        self._last_seq = record.seq
        self._waiting.append((record.seq, position))
        appender.request_sync()

    async def _ready(self) -> Appender:
        """Return the appender, which is open. Raises ``StorageError``."""
        if self._appender is None:
            await self._open()
        assert self._appender is not None
        if self._appender.failed:
            await self._appender.recover()
        if self._appender.length >= self._split_at:
            await self._split(self._appender)
        return self._appender

    async def _split(self, appender: Appender) -> None:
        """Make the file a segment, and begin a new one. Raises ``StorageError``."""
        if self._waiting:
            await appender.wait_synced(self._waiting[-1][1])
        appender.close()
        # Every line is confirmed. If the disk refuses from here on, the ledger is opened again, as
        # by a restart of this actor.
        self._appender = None
        disk, ledger = self._flusher.disk, self._files.ledger
        try:
            await self._flusher.call(partial(close_segment, disk, ledger, self._confirmed_seq))
        except StorageError as error:
            log.warning("ledger not split", file=shown(ledger), why=str(error))
            self._split_at = appender.length + self._segment_bytes
        else:
            self._split_at = self._segment_bytes
        await self._open()
        if not self._packing:
            self._packing = True
            self.context.start_soon(self._pack)

    async def _pack(self) -> None:
        """Compress older segments, and delete the oldest of all terminals if there are too many.

        If the disk refuses, the next split tries again.
        """
        disk, ledger = self._flusher.disk, self._files.ledger
        state = self._files.directory.parent.parent
        try:
            await self._flusher.call(partial(pack_segments, disk, ledger))
            await self._flusher.call(partial(delete_oldest, disk, state, self._archive_bytes))
        except StorageError as error:
            log.warning("old records not reduced", file=shown(ledger), why=str(error))
        finally:
            self._packing = False

    def _settle(self, appender: Appender) -> None:
        """Notify the front of each record, after a sync or a refusal of the disk."""
        try:
            while self._waiting and appender.is_synced(self._waiting[0][1]):
                seq, _ = self._waiting.pop(0)
                self._confirmed_seq = seq
                self._front.hand_over(RecordAppended(seq=seq))
        except StorageError as error:
            self._refuse_waiting(error)

    def _refuse_waiting(self, error: StorageError) -> None:
        # Only the records up to the last confirmed one are in the ledger now.
        self._last_seq = self._confirmed_seq
        while self._waiting:
            seq, _ = self._waiting.pop(0)
            self._front.hand_over(AppendFailed(seq=seq, why=str(error)))
