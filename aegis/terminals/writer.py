"""``LedgerWriter``: the one who writes a terminal's ledger. What it confirms is synced.

Records come in the order of their ``seq``, without gaps. One that is in the ledger already is
confirmed and not written again, one that comes too early is left for its sender to send again: so
after a crash the front may simply repeat whatever was not confirmed.
"""

from __future__ import annotations

import attrs
import trio

from actors import Actor
from aegis.errors import StorageError
from aegis.journal.appender import Appender, Position
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.protocol.terminals import CommandRecord
from aegis.terminals.front import Front
from aegis.terminals.messages import AppendFailed, AppendRecord, RecordAppended
from aegis.terminals.settings import TerminalFiles


class LedgerWriter(Actor[AppendRecord]):
    """Appends records and tells the front when each is durable."""

    def __init__(self, *, files: TerminalFiles, flusher: Flusher) -> None:
        self._files = files
        self._flusher = flusher
        self._last_seq = -1
        self._confirmed_seq = -1
        self._waiting: list[tuple[int, Position]] = []
        self._news = trio.Event()

    async def setup(self) -> None:
        """Open the ledger, cutting off a torn tail."""
        self._front = self.context.sibling("terminal", Front)
        self._appender = await Appender.open(self._files.ledger, self._flusher)
        last = self._appender.opened.last
        seq = None if last is None else last.get("seq")
        known = (seq if isinstance(seq, int) else -1) + self._appender.opened.damaged_count
        self._last_seq = self._confirmed_seq = known
        await self.context.start(self._appender.run)
        self.context.start_soon(self._confirm_for_ever)

    async def receive(self, message: AppendRecord) -> None:
        """Write a record; its confirmation follows the next sync."""
        record = message.record
        if record.seq <= self._confirmed_seq:
            self._front.tell(RecordAppended(seq=record.seq, end=self._appender.synced))
        elif record.seq == self._last_seq + 1:
            await self._append(record)

    async def _append(self, record: CommandRecord) -> None:
        try:
            if self._appender.failed:
                await self._appender.recover()
            position = self._appender.append(encode_line(attrs.asdict(record)))
        except StorageError as error:
            self._fail([record.seq], error)
            return
        self._last_seq = record.seq
        self._waiting.append((record.seq, position))
        self._news.set()

    async def _confirm_for_ever(self) -> None:
        while True:
            await self._news.wait()
            self._news = trio.Event()
            batch, self._waiting = self._waiting, []
            if batch:
                await self._confirm(batch)

    async def _confirm(self, batch: list[tuple[int, Position]]) -> None:
        try:
            await self._appender.wait_synced(batch[-1][1])
        except StorageError as error:
            self._fail([seq for seq, _ in [*batch, *self._waiting]], error)
            self._waiting = []
            return
        for seq, position in batch:
            self._confirmed_seq = seq
            self._front.tell(RecordAppended(seq=seq, end=position.end))

    def _fail(self, seqs: list[int], error: StorageError) -> None:
        """Nothing beyond the last confirmed record is in the ledger any more."""
        self._last_seq = self._confirmed_seq
        for seq in seqs:
            self._front.tell(AppendFailed(seq=seq, why=str(error)))
