"""Reading the records of a terminal, open or closed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import attrs
import structlog
import trio

from actors import Reply
from actors.errors import CodecError
from aegis.errors import AegisError, NotFound
from aegis.journal.disk import Disk, shown
from aegis.journal.ledger import Damaged
from aegis.journal.reader import Reading
from aegis.journal.segments import SegmentReader
from aegis.names import shorten
from aegis.protocol.command import MAX_REPLY_BYTES
from aegis.protocol.terminals import CommandHeader, CommandRecord, ReadRecords, RecordList
from aegis.terminals.record import record_in

DEFAULT_LAST_N = 5

MAX_REPORTED = 1_000
"""Damaged lines of a ledger that one reader logs; after as many it logs no more."""

STEP_RECORDS = 32
"""Records that are built at once: about half a millisecond, for which others wait."""

SHOWN = 3
"""The most damaged lines that one log line names."""

log = structlog.get_logger("aegis.terminals")


@attrs.frozen(kw_only=True)
class Stretch:
    """Consecutive records, oldest first; ``more``: there are further ones after ``reached``.

    That is the number of the last line, which may be unreadable. ``oldest`` is the number of the
    oldest line that is kept.
    """

    records: list[CommandRecord]
    reached: int
    more: bool
    oldest: int


class History:
    """The ledger of one terminal, for reading; ``newest`` is the number of the last durable record.

    Later ones are not shown; None: none is being written. ``running`` returns the newest command
    without a record.
    """

    def __init__(self, ledger: Path, *, disk: Disk | None = None) -> None:
        self._ledger = ledger
        self._reader = SegmentReader(ledger, disk=disk)
        self._reported: dict[str, None] = {}  # an empty set takes 0.2 KiB
        self._gaps: dict[int, None] = {}
        self.newest: int | None = None
        self.running: Callable[[], CommandHeader | None] = lambda: None

    def last(self) -> tuple[CommandRecord | None, int]:
        """Return the newest record, and the highest number that may be in use; -1 if none is."""
        # Each damaged line after the newest good one may have had a number of its own. A line of
        # another format is no record, but its number is in use.
        reading = self._reader.last_now(1, newest=self.newest)
        records = self._records(reading)
        numbers = [number for each in reading.records if type(number := each.get("seq")) is int]
        return records[-1] if records else None, max(numbers, default=-1) + reading.damaged_count

    def last_cursor(self) -> int:
        """Return the highest cursor in any record; 0 without records."""
        last, _ = self.last()
        return 0 if last is None else max(last.raw_start, last.raw_end or 0)

    async def read(self, request: ReadRecords) -> RecordList:
        """Return the requested records, up to ``MAX_REPLY_BYTES``. Raises ``StorageError``."""
        damaged, since, number = 0, request.since_seq, request.last_n or DEFAULT_LAST_N
        while True:
            reading = await self._reading(request, number)
            records = await self._records_in_steps(reading)
            damaged += reading.damaged_count + len(reading.records) - len(records)
            further = None if records else _beyond(reading, request)
            if further is None:
                break
            request = further  # nobody could: a page is asked for by a record of the last one
        if not request.output:
            records = [attrs.evolve(record, stdout="", stderr="") for record in records]
        if since is None:
            reaches_back = len(reading.records) < number and not reading.more
        else:
            reaches_back = reading.oldest > since + 1
        return RecordList(
            result=records,
            more=reading.more,
            damaged=damaged,
            oldest_kept=reading.oldest if reaches_back else 0,
        )

    async def _reading(self, request: ReadRecords, number: int) -> Reading:
        if request.since_seq is not None:
            return await self._reader.since(
                request.since_seq, newest=self.newest, max_bytes=MAX_REPLY_BYTES
            )
        return await self._reader.last(
            number, before=request.before_seq, newest=self.newest, max_bytes=MAX_REPLY_BYTES
        )

    async def stretch(self, since_seq: int, max_bytes: int) -> Stretch:
        """Return the oldest records after ``since_seq``. Raises ``StorageError``."""
        reading = await self._reader.since(since_seq, newest=self.newest, max_bytes=max_bytes)
        reached = reading.records[-1]["seq"] if reading.records else since_seq
        return Stretch(
            records=self._records(reading),
            reached=reached,
            more=reading.more,
            oldest=reading.oldest,
        )

    async def one(self, seq: int, terminal: str) -> CommandRecord:
        """Return the record ``seq``. Raises ``NotFound`` if it does not exist, ``StorageError``."""
        stretch = await self.stretch(seq - 1, 1)
        for record in stretch.records:
            if record.seq == seq:
                return record
        raise NotFound(
            f"terminal {terminal!r} has no record with seq {seq}; list them with aegis_term_read"
        )

    async def answer(self, request: ReadRecords, reply: Reply[RecordList]) -> None:
        """Answer ``request``; a helper task of an actor."""
        try:
            reply.send(attrs.evolve(await self.read(request), running=self.running()))
        except AegisError as error:
            reply.fail(error)

    async def _records_in_steps(self, reading: Reading) -> list[CommandRecord]:
        """Return the records in the lines; other tasks run in between."""
        found: list[CommandRecord] = []
        foreign: dict[str, str] = {}
        for start in range(0, len(reading.records), STEP_RECORDS):
            found += _structured(reading.records[start : start + STEP_RECORDS], foreign)
            await trio.lowlevel.checkpoint()
        self._report_all(reading, found, foreign)
        return found

    def _records(self, reading: Reading) -> list[CommandRecord]:
        foreign: dict[str, str] = {}
        found = _structured(reading.records, foreign)
        self._report_all(reading, found, foreign)
        return found

    def _report_all(
        self, reading: Reading, records: Sequence[CommandRecord], foreign: Mapping[str, str]
    ) -> None:
        damaged = [_described(each) for each in reading.damaged]
        self._report(dict(zip(damaged, damaged, strict=True)))
        self._report(foreign)
        if not foreign and not reading.damaged_count:
            self._report_gaps(records)

    def _report_gaps(self, records: Sequence[CommandRecord]) -> None:
        """Log missing numbers, each gap once."""
        for before, after in pairwise(records):
            if after.seq == before.seq + 1 or len(self._gaps) >= MAX_REPORTED:
                continue
            if after.seq not in self._gaps:
                self._gaps[after.seq] = None
                log.warning(
                    "records missing", file=shown(self._ledger), after=before.seq, before=after.seq
                )

    def _report(self, skipped: Mapping[str, str]) -> None:
        """Log the skipped lines, each once; they stay in the ledger."""
        new = [key for key in skipped if key not in self._reported]
        if new and len(self._reported) < MAX_REPORTED:
            self._reported.update(dict.fromkeys(new))
            where = [skipped[key] for key in new[:SHOWN]]
            log.warning(
                "damaged lines skipped", file=shown(self._ledger), lines=len(new), where=where
            )


def _beyond(reading: Reading, request: ReadRecords) -> ReadRecords | None:
    """Return the request for what follows these lines; None if nothing does."""
    numbers = [number for each in reading.records if type(number := each.get("seq")) is int]
    if not numbers:
        return None
    if request.since_seq is None:
        return attrs.evolve(request, before_seq=min(numbers))
    return attrs.evolve(request, since_seq=max(numbers)) if reading.more else None


def _structured(lines: Sequence[Mapping[str, Any]], foreign: dict[str, str]) -> list[CommandRecord]:
    """Return the records in lines; add the lines that are none to ``foreign``, with the reason."""
    found = []
    for fields in lines:
        try:
            found.append(record_in(fields))
        except CodecError as error:  # an intact line of another format, of a newer version
            name = f"seq {shorten(repr(fields.get('seq')))}"
            foreign[name] = f"{name}: {error}"
    return found


def _described(damaged: Damaged) -> str:
    return f"bytes {damaged.start} to {damaged.end}: {damaged.reason}"
