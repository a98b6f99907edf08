"""``LedgerWriter``: the only writer of a terminal's ledger. A confirmed record is synced.

Records arrive in the order of their ``seq``. A record that is in the ledger already is confirmed
and not written again. A record that arrives before its predecessor is dropped: its sender repeats
it. So after a crash the front repeats every record that was not confirmed.
"""

from __future__ import annotations

from actors import Actor
from aegis.errors import StorageError
from aegis.journal.appender import Appender, Position
from aegis.journal.flusher import Flusher
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


class LedgerWriter(Actor[AppendRecord | ReportSynced]):
    """Appends records, and notifies the front when each is durable."""

    def __init__(self, *, files: TerminalFiles, flusher: Flusher) -> None:
        self._files = files
        self._flusher = flusher
        self._last_seq = -1
        self._confirmed_seq = -1
        self._waiting: list[tuple[int, Position]] = []

    async def setup(self) -> None:
        """Open the ledger; truncate a torn tail."""
        self._front = self.context.sibling("terminal", Front)
        self._appender = await Appender.open(self._files.ledger, self._flusher)
        last = self._appender.opened.last
        seq = None if last is None else last.get("seq")
        self._last_seq = self._confirmed_seq = seq if isinstance(seq, int) else -1
        self._appender.on_outcome = self._settle
        self._appender.start(self.context.start_soon)

    async def teardown(self) -> None:
        """Close the ledger."""
        if hasattr(self, "_appender"):
            self._appender.close()

    async def receive(self, message: AppendRecord | ReportSynced) -> None:
        """Write a record; its confirmation follows the next sync."""
        if isinstance(message, ReportSynced):
            self.reply(message, SyncedLedger(end=self._appender.synced))
            return
        record = message.record
        if record.seq <= self._confirmed_seq:
            self._front.tell(RecordAppended(seq=record.seq, end=self._appender.synced))
        elif message.after <= self._last_seq < record.seq:
            await self._append(record)

    async def _append(self, record: CommandRecord) -> None:
        try:
            if self._appender.failed:
                await self._appender.recover()
            position = self._appender.append(record_line(record))
        except StorageError as error:
            self._front.tell(AppendFailed(seq=record.seq, why=str(error)))
            return
        self._last_seq = record.seq
        self._waiting.append((record.seq, position))
        self._appender.request_sync()

    def _settle(self) -> None:
        """Notify the front of each record, after a sync or a refusal of the disk."""
        try:
            while self._waiting and self._appender.is_synced(self._waiting[0][1]):
                seq, position = self._waiting.pop(0)
                self._confirmed_seq = seq
                self._front.tell(RecordAppended(seq=seq, end=position.end))
        except StorageError as error:
            self._refuse_waiting(error)

    def _refuse_waiting(self, error: StorageError) -> None:
        # Only the records up to the last confirmed one are in the ledger now.
        self._last_seq = self._confirmed_seq
        while self._waiting:
            seq, _ = self._waiting.pop(0)
            self._front.tell(AppendFailed(seq=seq, why=str(error)))
