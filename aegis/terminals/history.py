"""Reading the records of a terminal, open or closed."""

from __future__ import annotations

from pathlib import Path

from actors import Reply
from actors.codec import structure
from actors.errors import CodecError
from aegis.errors import AegisError
from aegis.journal.reader import LedgerReader, Reading
from aegis.protocol.terminals import CommandRecord, ReadRecords, RecordList

DEFAULT_LAST_N = 5
MAX_REPLY_BYTES = 1024 * 1024


class History:
    """The ledger of one terminal, for reading. ``end``: where what is acknowledged ends."""

    def __init__(self, ledger: Path) -> None:
        self._reader = LedgerReader(ledger)
        self.end: int | None = None

    def last(self) -> tuple[CommandRecord | None, int]:
        """The newest record, and the highest number that was given; -1 if none was.

        Each damaged line behind the newest good one may have held a number of its own.
        """
        reading = self._reader.last_n(1, end=self.end)
        records = _records(reading)
        last = records[-1] if records else None
        return last, (-1 if last is None else last.seq) + reading.damaged_count

    def last_cursor(self) -> int:
        """The highest cursor that a record has told anybody; 0 if there is none."""
        last, _ = self.last()
        return 0 if last is None else max(last.raw_start, last.raw_end or 0)

    async def read(self, request: ReadRecords) -> RecordList:
        """What ``request`` asks for; at most 1 MiB. Raises ``StorageError``."""
        if request.since_seq is not None:
            reading = await self._reader.since_async(
                "seq", request.since_seq, end=self.end, max_bytes=MAX_REPLY_BYTES
            )
        else:
            reading = await self._reader.last_n_async(
                request.last_n or DEFAULT_LAST_N, end=self.end, max_bytes=MAX_REPLY_BYTES
            )
        return RecordList(result=_records(reading), more=reading.more)

    async def answer(self, request: ReadRecords, reply: Reply[RecordList]) -> None:
        """``read`` as the answer to somebody; a helper task of an actor."""
        try:
            reply.send(await self.read(request))
        except AegisError as error:
            reply.fail(error)


def _records(reading: Reading) -> list[CommandRecord]:
    found = []
    for fields in reading.records:
        try:
            found.append(structure(CommandRecord, fields))
        except CodecError:  # a sound line of another shape: some later version's
            continue
    return found
