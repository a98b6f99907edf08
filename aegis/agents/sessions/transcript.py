"""``TranscriptWriter``: the ledger of one session, with its entries' numbers and their outcomes.

A line is an entry of the session's machine with ``seq``, which rises by one; a number is not used
again after the disk has lost its entry. An entry that cannot be stored as it is (too long, no JSON)
is stored without its content, so that no event is missing.

The newest entries are kept: once the current file has half of ``limit_bytes``, a new one begins
(``aegis.journal.rotation``). Its head has the fold of all entries before it, so the machine of the
session is restored from the current file alone. A reader gets both files as one sequence; those
functions block, are for a thread, and raise ``StorageError``. Both files must keep their names
while one runs.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import structlog
import trio

from actors.errors import CodecError
from aegis.agents.sessions.past import SessionPast, carried, restored
from aegis.errors import StorageError
from aegis.hidden_urls import hide_session_urls
from aegis.journal.appender import Appender, Position
from aegis.journal.disk import Disk, shown
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.journal.reader import MAX_READ_BYTES, LedgerReader, Reading
from aegis.journal.rotation import AFTER, previous_of, rotate_ledger, settle_rotation
from aegis.protocol import agents as api
from aegis.protocol.feeds import SessionPlace

log = structlog.get_logger("aegis.agents")

TRANSCRIPT = "transcript.jsonl"
"""The name of the file, in the directory of its session."""

_URL_BYTES = b"/mcp/s/"

MAX_ENTRY_BYTES = 1024 * 1024
"""The longest stored entry."""

MAX_FIELD_CHARS = 2_000
"""The part of each text that is kept of a longer entry."""

Outcome = Callable[[int, StorageError | None], None]
"""Called with an entry's number, and with the error if the disk refused it."""

LIMIT_BYTES = 64 * 1024 * 1024
"""The size of the entries that are kept, unless the configuration says otherwise."""

RETRY_SHARE = 8
"""A rotation that the disk refused is tried again after this part of the limit is written."""

MAX_UNFOLDED = 1_000
"""Entries that wait to be folded, at most."""

OnLine = Callable[[int, Mapping[str, Any], int, int], None]
"""Called with the seq of a written line, its entry, its size, and the offset of its end."""


T = TypeVar("T")


class TranscriptWriter:
    """The only writer of a session's ledger. The owner closes it."""

    def __init__(
        self, appender: Appender, flusher: Flusher, folded: Folded, limit_bytes: int
    ) -> None:
        self._appender = appender
        self._flusher = flusher
        self.past = folded.past
        """The fold of the entries that were there when it was opened."""
        self._fold: SessionPast | None = restored(
            carried(folded.past)
        )  # None: to be read from the file
        self._unfolded: list[Mapping[str, Any]] = []
        self._seq, self._after = folded.seq, folded.after
        self._end = appender.synced
        self._file, self._earlier = uuid.uuid4().hex, uuid.uuid4().hex
        self._limit = limit_bytes
        self._full_at = folded.head_bytes + limit_bytes // 2
        self._last: Position | None = None
        self._rotations = 0
        self._is_settled: trio.Event | None = None  # of a rotation in progress
        self._awaited: list[tuple[int, int, Position]] = []  # number and seq of synced entries
        self._on_outcome: Outcome | None = None
        self._start_soon: Callable[..., object] | None = None
        self.on_line: OnLine | None = None

    @classmethod
    async def open(
        cls, path: Path, flusher: Flusher, limit_bytes: int = LIMIT_BYTES
    ) -> TranscriptWriter:
        """Open or create the ledger and read it. Raises ``StorageError``."""
        await flusher.call(partial(settle_rotation, flusher.disk, path))
        appender = await Appender.open(path, flusher)
        try:
            folded = await flusher.look(partial(fold, flusher.disk, path, appender.synced))
        except BaseException:
            appender.close()
            raise
        if folded.damaged:
            log.warning("damaged lines skipped", file=shown(path), lines=folded.damaged)
        return cls(appender, flusher, folded, limit_bytes)

    def start(self, start_soon: Callable[..., object], on_outcome: Outcome) -> None:
        """Start syncs with ``start_soon``, and report the outcome of synced entries."""
        self._on_outcome, self._start_soon = on_outcome, start_soon
        self._appender.start(start_soon)
        self._appender.on_outcome = self._settle

    async def append(self, number: int, entry: Mapping[str, Any], *, sync: bool) -> None:
        """Write an entry; with ``sync``, its outcome is reported under ``number``.

        Without ``sync`` an entry that the disk refuses is lost, and logged.
        """
        try:
            if self._appender.failed:
                await self._appender.recover()
            if self._end >= self._full_at:
                await self._rotate()
            line, stored = _line(self._seq + 1, entry)
            position = self._appender.append(line)
        except StorageError as error:
            log.warning("entry not stored", file=shown(self._appender.path), why=str(error))
            if sync:
                self._report(number, error)
            return
        self._seq, self._end, self._last = self._seq + 1, position.end, position
        self._unfolded.append(stored)
        if len(self._unfolded) >= MAX_UNFOLDED:
            self.fold()
        if sync:
            self._awaited.append((number, self._seq, position))
            self._appender.request_sync()
        if self.on_line is not None:
            self.on_line(self._seq, stored, len(line), position.end)

    def fold(self) -> None:
        """Take the newest entries into the fold, which the next file begins with."""
        entries, self._unfolded = self._unfolded, []
        if self._fold is not None:
            for entry in entries:
                self._fold.take(entry)

    @property
    def path(self) -> Path:
        """The ledger's file."""
        return self._appender.path

    @property
    def file(self) -> str:
        """The name under which offsets are valid, as ``Shown.file``."""
        return self._file

    @property
    def newest(self) -> int:
        """The seq of the newest entry."""
        return self._seq

    @property
    def is_awaited(self) -> bool:
        """Whether an entry whose outcome is reported is not durable yet."""
        return bool(self._awaited)

    @property
    def shown(self) -> ShownPart:
        """The entries that clients may see: an entry that must be durable only once it is."""
        seq, end = self._seq, self._end
        if self._awaited:
            _, first, position = self._awaited[0]
            seq, end = first - 1, position.start
        return ShownPart(
            seq=seq,
            end=end,
            synced=self._appender.synced,
            file=self._file,
            after=self._after,
            earlier=self._earlier,
        )

    async def look(self, read: Callable[[Disk, Path, ShownPart], T]) -> T:
        """Return the result of ``read``, which runs in a thread. Raises ``StorageError``.

        It is repeated if the files were rotated meanwhile.
        """
        while True:
            if self._is_settled is not None:
                await self._is_settled.wait()
            rotations, disk = self._rotations, self._flusher.disk
            try:
                found = await self._flusher.look(partial(read, disk, self.path, self.shown))
            except StorageError:
                if rotations == self._rotations:
                    raise
            else:
                if rotations == self._rotations:
                    return found

    async def sync(self) -> None:
        """Return once all entries so far are durable. Raises ``StorageError``."""
        if self._last is not None:
            await self._appender.wait_synced(self._last)

    def close(self) -> None:
        """Close the file; the outcome of entries that are not durable is not reported."""
        self._on_outcome = None
        self._appender.close()

    def _settle(self) -> None:
        if self._appender.failed:  # the lines that were not durable are gone
            self._end, self._file = self._appender.synced, uuid.uuid4().hex
            self._fold = self._last = None
            self._unfolded.clear()
        awaited, self._awaited = self._awaited, []
        for number, seq, position in awaited:
            try:
                is_synced = self._appender.is_synced(position)
            except StorageError as error:
                self._report(number, error)
            else:
                if is_synced:
                    self._report(number, None)
                else:
                    self._awaited.append((number, seq, position))

    async def _rotate(self) -> None:
        """Begin a new file. If the disk refuses, the current one continues, and grows."""
        try:
            if self._last is not None:
                await self._appender.wait_synced(self._last)
            await self._begin_file(await self._head())
        except (StorageError, ValueError) as error:
            self._full_at = self._end + self._limit // RETRY_SHARE
            log.warning(
                "transcript not rotated: its file grows until a later rotation succeeds",
                file=shown(self.path),
                why=str(error),
            )

    async def _head(self) -> bytes:
        """Return the head of a new file. Raises ``StorageError``; ``ValueError`` if too long."""
        self.fold()
        if self._fold is None:
            read = partial(fold, self._flusher.disk, self.path, self._appender.synced)
            self._fold = (await self._flusher.look(read)).past
        return encode_line({"kind": "head", AFTER: self._seq, "past": carried(self._fold)})

    async def _begin_file(self, head: bytes) -> None:
        self._rotations += 1
        self._is_settled = trio.Event()
        try:
            appender = await rotate_ledger(self.path, head, self._flusher)
            self._use(appender)
        finally:
            self._is_settled.set()
            self._is_settled = None

    def _use(self, appender: Appender) -> None:
        """Continue in a new file. The entries before the current one are gone."""
        log.info("transcript rotated", file=shown(self.path), dropped_through=self._after)
        assert self._start_soon is not None, "a transcript rotates once it was started"
        before, self._appender = self._appender, appender
        before.on_outcome = None
        before.close()
        appender.start(self._start_soon)
        appender.on_outcome = self._settle
        self._after, self._last = self._seq, None
        self._earlier, self._file = self._file, uuid.uuid4().hex
        self._end = appender.synced
        self._full_at = self._end + self._limit // 2

    def _report(self, number: int, error: StorageError | None) -> None:
        if self._on_outcome is not None:
            self._on_outcome(number, error)


def _line(seq: int, entry: Mapping[str, Any]) -> tuple[bytes, Mapping[str, Any]]:
    """Return the line of an entry, and the entry as it is stored."""
    try:
        line = encode_line({"seq": seq, **entry})
        if _URL_BYTES in line:
            entry = _scrubbed(entry)
            line = encode_line({"seq": seq, **entry})
    except (ValueError, TypeError, RecursionError):
        entry = _scrubbed(_without_content(seq, entry))
        return encode_line(entry), entry
    if len(line) <= MAX_ENTRY_BYTES:
        return line, entry
    entry = {"seq": seq, **_shortened(entry), "truncated": len(line)}
    line = encode_line(entry)
    if len(line) <= MAX_ENTRY_BYTES:
        return line, entry
    entry = _without_content(seq, entry)
    return encode_line(entry), entry


def _scrubbed(value: Any) -> Any:
    """Return a JSON value without the secrets of session URLs."""
    if isinstance(value, str):
        return hide_session_urls(value)
    if isinstance(value, Mapping):
        return {_scrubbed(key): _scrubbed(each) for key, each in value.items()}
    return [_scrubbed(each) for each in value] if isinstance(value, list) else value


def _shortened(value: Any) -> Any:
    if isinstance(value, str):
        return value[:MAX_FIELD_CHARS]
    if isinstance(value, Mapping):
        return {key[:MAX_FIELD_CHARS]: _shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each) for each in value[:MAX_FIELD_CHARS]]
    return value


def _without_content(seq: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry with its simple fields only, and the type of its event."""
    event = entry.get("event")
    kept = {
        key: value[:MAX_FIELD_CHARS] if isinstance(value, str) else value
        for key, value in entry.items()
        if isinstance(value, str | int)
    }
    kind = {"type": str(event.get("type"))[:64]} if isinstance(event, Mapping) else {}
    return {"seq": seq, **kept, **({"event": kind} if kind else {}), "truncated": 0}


PART_BYTES = 1024 * 1024
"""The size of the lines that are folded at a time."""

HEAD_BYTES = 4096
"""The size of a read that looks for the first line; a longer line is read whole."""


@attrs.frozen(kw_only=True)
class ShownPart:
    """The part of a transcript that clients may see: up to the entry ``seq``.

    It ends at the offset ``end`` of the current file, and the durable part of it at ``synced``. The
    file has the entries after ``after``. An offset in it is valid as long as its name ``file`` is
    the same; ``earlier`` is the name of the file before it.
    """

    seq: int
    end: int
    synced: int
    file: str
    after: int = 0
    earlier: str = ""


@attrs.frozen(kw_only=True)
class EntryPage:
    """Entries, oldest first, and the place after them. ``more``: others follow at once."""

    records: list[dict[str, Any]]
    place: SessionPlace
    more: bool


@attrs.frozen(kw_only=True)
class Folded:
    """The fold of a transcript up to its entry ``seq``; ``damaged`` lines were skipped.

    The current file has the entries after ``after``; its head takes about ``head_bytes``.
    """

    past: SessionPast
    seq: int
    after: int
    damaged: int
    head_bytes: int


def fold(disk: Disk, path: Path, end: int) -> Folded:
    """Return the fold of the first ``end`` bytes of the current file.

    Its head has the fold of the entries before. If that line is damaged, they are read again.
    """
    past, seq, damaged = SessionPast(), 0, 0
    head, after, head_bytes = _head(disk, path)
    files: list[tuple[LedgerReader, int | None]] = [(_current(disk, path), end)]
    if head is None:
        files.insert(0, (_earlier(disk, path), None))
    for reader, stop in files:
        for part in _parts(reader, stop):
            damaged += part.damaged_count
            for line in part.records:
                seq = max(seq, _number(line))
                past = taken(past, line)
    return Folded(
        past=past, seq=max(seq, after), after=after, damaged=damaged, head_bytes=head_bytes
    )


def shown_of_closed(disk: Disk, path: Path) -> ShownPart:
    """Return the whole transcript of a session that has no actor."""
    newest = _current(disk, path).last_n(1)
    _, after, _ = _head(disk, path)
    return ShownPart(
        seq=max([after, *map(_number, newest.records)]),
        end=newest.end,
        synced=newest.end,
        file=f"closed after {after}",
        after=after,
        earlier=f"closed before {after}",
    )


def newest_entries(disk: Disk, path: Path, count: int, shown: ShownPart) -> EntryPage:
    """Return the newest ``count`` entries; if they are too long, the newest that fit."""
    most = MAX_READ_BYTES // 2 if shown.after else MAX_READ_BYTES
    found = _current(disk, path).last_n(count, end=shown.end, max_bytes=most)
    records, more = _after(found, 0), found.more
    if shown.after and len(records) < count and not more:
        before = _earlier(disk, path).last_n(count - len(records), max_bytes=most)
        records, more = [*_after(before, 0), *records], before.more
    return EntryPage(records=records, place=SessionPlace(seq=shown.seq), more=more)


def entries_since(disk: Disk, path: Path, since: int, shown: ShownPart) -> EntryPage:
    """Return the entries after ``since``; if they are too long, the oldest that fit."""
    most = MAX_READ_BYTES // 2 if since < shown.after else MAX_READ_BYTES
    found = next_entries(disk, path, SessionPlace(seq=since), shown, most)
    if found.place.file == shown.earlier and found.more:
        rest = next_entries(disk, path, found.place, shown, most)
        found = attrs.evolve(rest, records=[*found.records, *rest.records])
    return found


def next_entries(
    disk: Disk, path: Path, place: SessionPlace, shown: ShownPart, max_bytes: int
) -> EntryPage:
    """Return the next entries after ``place``, of at most ``max_bytes`` but always one."""
    if place.seq < shown.after:
        reader, start = _earlier(disk, path), _offset(place, shown.earlier)
        found = (
            reader.since("seq", place.seq, max_bytes=max_bytes)
            if start is None
            else reader.onward(start, max_bytes=max_bytes)
        )
        if found.more or _after(found, place.seq):
            return _entries(found, place, shown.earlier, more=True)
    reader, start = _current(disk, path), _offset(place, shown.file)
    if start is None and place.seq <= shown.after:
        start = 0
    found = (
        reader.since("seq", place.seq, end=shown.end, max_bytes=max_bytes)
        if start is None
        else reader.onward(start, end=shown.end, max_bytes=max_bytes)
    )
    if found.more or _after(found, place.seq):
        return _entries(found, place, shown.file, more=found.more)
    end = SessionPlace(seq=shown.seq, offset=shown.end, file=shown.file)
    return EntryPage(records=[], place=end, more=False)  # the rest cannot be read


def _entries(found: Reading, place: SessionPlace, file: str, *, more: bool) -> EntryPage:
    records = _after(found, place.seq)
    seq = records[-1]["seq"] if records else place.seq
    end = SessionPlace(seq=seq, offset=found.end, file=file)
    return EntryPage(records=records, place=end, more=more)


def _offset(place: SessionPlace, file: str) -> int | None:
    return place.offset if place.file == file else None


def _after(found: Reading, seq: int) -> list[dict[str, Any]]:
    """Return the entries after ``seq``; a head line is no entry."""
    return [each for each in found.records if _number(each) > seq]


def _number(line: dict[str, Any]) -> int:
    number = line.get("seq")
    return number if type(number) is int else 0


def _current(disk: Disk, path: Path) -> LedgerReader:
    return LedgerReader(path, disk=disk)


def _earlier(disk: Disk, path: Path) -> LedgerReader:
    return LedgerReader(previous_of(path), disk=disk, sealed_as=path)


def _head(disk: Disk, path: Path) -> tuple[SessionPast | None, int, int]:
    """Return the fold in the head of the current file, the entry before it, and its size.

    Without a head, the fold is None.
    """
    first = _current(disk, path).onward(0, max_bytes=HEAD_BYTES).records[:1]
    past = carried_in(first[0]) if first else None
    if past is not None:
        return past, int(first[0][AFTER]), len(encode_line(first[0]))
    newest = _earlier(disk, path).last_n(1).records
    return None, max([0, *map(_number, newest)]), 0


def taken(past: SessionPast, line: dict[str, Any]) -> SessionPast:
    """Return the fold after one more line; that of a head, if the line is one."""
    carried = carried_in(line)
    if carried is not None:
        return carried
    past.take(line)
    return past


def carried_in(line: dict[str, Any]) -> SessionPast | None:
    """Return the fold in a head line; None if the line is an entry, or has another form."""
    if type(line.get(AFTER)) is not int or "seq" in line:
        return None
    try:
        return restored(line["past"])
    except (KeyError, TypeError, ValueError, CodecError):
        return None


def _parts(reader: LedgerReader, end: int | None) -> Iterator[Reading]:
    start, more = 0, True
    while more:
        part = reader.onward(start, end=end, max_bytes=PART_BYTES)
        yield part
        more, start = part.more and part.end > start, part.end


NEWEST = 50
"""Entries that are read if the command does not say which."""


async def read_durable(transcript: TranscriptWriter, message: api.ReadSession) -> api.Transcript:
    """Return the durable entries that a command reads. Raises ``StorageError``."""
    # Events are not synced by themselves: during a turn the newest would be missing. If the disk
    # refuses, those before them are still there.
    with contextlib.suppress(StorageError):
        await transcript.sync()

    def read(disk: Disk, path: Path, shown: ShownPart) -> api.Transcript:
        return _read(disk, path, message, attrs.evolve(shown, end=shown.synced))

    return await transcript.look(read)


async def read_closed(path: Path, flusher: Flusher, message: api.ReadSession) -> api.Transcript:
    """Return the entries of a session that has no actor. Raises ``StorageError``."""

    def read() -> api.Transcript:
        return _read(flusher.disk, path, message, shown_of_closed(flusher.disk, path))

    return await flusher.look(read)


def _read(disk: Disk, path: Path, message: api.ReadSession, shown: ShownPart) -> api.Transcript:
    if message.since is None:
        return reply_of(newest_entries(disk, path, message.last_n or NEWEST, shown), message)
    return reply_of(entries_since(disk, path, message.since, shown), message)


def reply_of(found: EntryPage, message: api.ReadSession) -> api.Transcript:
    """Return the reply to a command: with ``since``, the oldest ``last_n`` of the found entries."""
    records, more, since = found.records, found.more, message.since
    if since is None:
        return api.transcript_of(records, more=more)
    missed = records[0]["seq"] - since - 1 if records else 0
    kept = records[: message.last_n]
    return api.transcript_of(kept, more=more or len(kept) < len(records), missed=missed)
