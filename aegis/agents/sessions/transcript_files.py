"""Reading a transcript: the current file and the one before it, as one sequence of entries.

The functions block and are for a thread; they raise ``StorageError``. Both files must keep their
names while one runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from actors.errors import CodecError
from aegis.agents.sessions.carried import restored
from aegis.agents.sessions.past import SessionPast
from aegis.journal.disk import Disk
from aegis.journal.ledger import encode_line
from aegis.journal.reader import MAX_READ_BYTES, LedgerReader, Reading
from aegis.journal.rotation import AFTER, previous_of
from aegis.protocol.feeds import SessionPlace

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
