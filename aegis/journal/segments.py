"""The records of a terminal in several files: one that grows, and closed ones, the segments.

    ledger.2026-11-27T123000.00000000-00004095.jsonl.gz    closed, compressed
    ledger.2026-11-28T080112.00004096-00008191.jsonl       the newest closed one
    ledger.jsonl                                           grows

Each line has its number in ``seq``, and numbers rise. The name of a segment has the time at which
it was closed and its lowest and highest number: the names are the index. Within a file a number is
found by bisection, so a read takes time in proportion to its result, and a ledger of an earlier
version, one large file, is read in the same way. All files have the code of ``ledger.jsonl``.

``close_segment`` renames the growing file, of which every line is synced; the next opening makes a
new one. ``pack_segments`` writes the compressed file whole and synced before it removes the other.
A kill in between leaves both, which have the same lines. So no line is ever in no file.

A reader may run in any thread, also while files are renamed, compressed or deleted.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import time
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import attrs
import structlog
import trio

from aegis.errors import StorageError
from aegis.journal import faults
from aegis.journal.disk import (
    Disk,
    OsDisk,
    read_exactly,
    read_file,
    replace_file,
    shown,
    storage_errors,
    sync_directory,
)
from aegis.journal.ledger import (
    BLOCK_BYTES,
    MAX_LINE_BYTES,
    Damaged,
    Line,
    Piece,
    ReadAt,
    judge,
    pieces_backward,
    pieces_forward,
)
from aegis.journal.opening import MAX_REPORTED
from aegis.journal.reader import MAX_READ_BYTES, ON_LOOP_BYTES, KeptLines, Reading, nothing_at
from aegis.journal.segment_names import Segment, segments_of
from aegis.limits import in_thread
from aegis.state.sealing import Seal

log = structlog.get_logger("aegis.journal")

NUMBER = "seq"
"""The field of a line with its number."""

SEGMENT_BYTES = 2 * 1024 * 1024
"""The size from which on the growing file is closed before the next line."""

MAX_PACKED_BYTES = 4 * MAX_LINE_BYTES
"""A larger segment, which an earlier version wrote, is not compressed: reading it needs memory."""

GZIP = 31
"""The window size by which zlib reads the format of gzip."""

SCAN_BYTES = 16 * 1024
"""The size of a part of a file in which a number is searched line by line."""

PROBE_BYTES = 4 * 1024
"""The block that a step of a bisection reads."""

BREATH_LINES = 16
BREATH_S = 0.0001
"""A thread that decodes lines pauses after so many, about a fifth of a millisecond, for so long.

Otherwise it has the interpreter for 5 ms at a time, and the event loop waits.
"""

MAX_TRIES = 100
"""Limit of tries to list the files of a ledger while other threads change them."""


def newest_number(disk: Disk, ledger: Path) -> int:
    """Return the number of the newest line in any file; -1 without any. Blocks.

    Raises ``StorageError``. A name is not trusted here: only lines are signed.
    """
    found = SegmentReader(ledger, disk=disk).last_now(1).records
    number = found[-1].get(NUMBER) if found else None
    return number if type(number) is int else -1


def close_segment(disk: Disk, ledger: Path, last: int) -> None:
    """Make the growing file, whose last line has the number ``last``, a segment. Blocks.

    Every line must be synced. Afterwards the ledger has no growing file. Raises ``StorageError``;
    then the file has either name.
    """
    with storage_errors("rename", ledger):
        first = max((each.last for each in segments_of(disk, ledger)), default=-1) + 1
    if first > last:
        raise StorageError(f"another file beside {shown(ledger)} has the numbers up to {first - 1}")
    stamp = time.strftime("%Y-%m-%dT%H%M%S", time.gmtime(time.time()))
    name = f"{ledger.stem}.{stamp}.{first:08}-{last:08}.jsonl"
    faults.SPLIT_BEFORE.hit(ledger.name)
    with storage_errors("rename", ledger):
        disk.rename(ledger, ledger.with_name(name))
        sync_directory(disk, ledger.parent)
        faults.SPLIT_AFTER.hit(ledger.name)


def pack_segments(disk: Disk, ledger: Path) -> None:
    """Compress all segments but the newest. Blocks. Raises ``StorageError``."""
    with storage_errors("compress", ledger):
        for segment in segments_of(disk, ledger)[:-1]:
            _pack(disk, segment, ledger.name)


def _pack(disk: Disk, segment: Segment, subject: str) -> None:
    data = read_file(disk, segment.path, max_bytes=MAX_PACKED_BYTES + 1)
    if data is None or len(data) > MAX_PACKED_BYTES:
        return
    faults.PACK_BEFORE.hit(subject)
    # A file of the compressed name may be left by a kill. It is written again: whether its name is
    # durable cannot be detected.
    replace_file(disk, segment.packed, [gzip.compress(data, 6, mtime=0)])
    faults.PACK_AFTER.hit(subject)
    disk.unlink(segment.path)


class UnpackedSegments:
    """The content of the few compressed segments that were read last. For one thread at a time."""

    def __init__(self, most: int = 4) -> None:
        self._most = most
        self._content: dict[Path, bytes] = {}

    def get(self, path: Path) -> bytes | None:
        return self._content.get(path)

    def put(self, path: Path, data: bytes) -> None:
        self._content[path] = data
        if len(self._content) > self._most:
            del self._content[next(iter(self._content))]


class SegmentReader:
    """The reader of a ledger and its segments. It opens files for each read.

    It keeps nothing in memory but what it puts into ``unpacked``.
    """

    def __init__(
        self,
        ledger: Path,
        *,
        disk: Disk | None = None,
        unpacked: UnpackedSegments | None = None,
    ) -> None:
        self.path = ledger
        self._disk: Disk = OsDisk() if disk is None else disk
        self._unpacked = unpacked

    def last_now(
        self,
        n: int,
        *,
        before: int | None = None,
        newest: int | None = None,
        max_bytes: int = MAX_READ_BYTES,
    ) -> Reading:
        """Return the newest ``n`` lines (1 or more); if they are too long, the newest that fit.

        Only lines with numbers lower than ``before``, and not higher than ``newest``, count.
        Blocks. Raises ``StorageError``.
        """
        return self._last(n, before, newest, max_bytes, None)

    async def last(
        self,
        n: int,
        *,
        before: int | None = None,
        newest: int | None = None,
        max_bytes: int = MAX_READ_BYTES,
    ) -> Reading:
        """Call ``last_now``, on the loop if it is quick, otherwise in a thread."""
        return await _quick_or_in_thread(
            lambda budget: self._last(n, before, newest, max_bytes, budget, pauses=True)
        )

    async def since(
        self, number: int, *, newest: int | None = None, max_bytes: int = MAX_READ_BYTES
    ) -> Reading:
        """Return lines with higher numbers; if they are too long, the oldest that fit.

        Lines with numbers higher than ``newest`` do not count. On the loop if it is quick,
        otherwise in a thread. Raises ``StorageError``.
        """
        return await _quick_or_in_thread(
            lambda budget: self._since(number, newest, max_bytes, budget)
        )

    def _last(
        self,
        n: int,
        before: int | None,
        newest: int | None,
        max_bytes: int,
        budget: int | None,
        *,
        pauses: bool = False,
    ) -> Reading:
        if n < 1:
            raise ValueError(f"n must be 1 or more, not {n}")
        kept = KeptLines(max_bytes)
        if before is not None:
            newest = before - 1 if newest is None else min(newest, before - 1)
        with self._reading(budget, pauses) as files, closing(_backward(files, before)) as judged:
            for item in judged:
                if isinstance(item, Damaged):
                    kept.report(item)
                elif _is_beyond(item, newest):
                    continue
                elif not kept.add_if_it_fits(item) or len(kept.lines) == n:
                    break
        return attrs.evolve(kept.reading(), oldest=files.oldest)

    def _since(
        self, number: int, newest: int | None, max_bytes: int, budget: int | None
    ) -> Reading:
        lines: list[Line] = []
        damaged: list[Damaged] = []
        size, more = 0, False
        with (
            self._reading(budget, pauses=True) as files,
            closing(_forward(files, number)) as judged,
        ):
            for item in judged:
                if isinstance(item, Damaged):
                    damaged.append(item)
                    continue
                if not _is_beyond(item, number) or _is_beyond(item, newest):
                    continue
                size += item.end - item.start
                more = bool(lines) and size > max_bytes
                if more:
                    break
                lines.append(item)
        return Reading(
            records=[each.fields for each in lines],
            more=more,
            damaged=tuple(damaged[:MAX_REPORTED]),
            damaged_count=len(damaged),
            oldest=files.oldest,
        )

    @contextlib.contextmanager
    def _reading(self, budget: int | None, pauses: bool) -> Iterator[_Files]:
        with storage_errors("read", self.path):
            files = _Files.found(self._disk, self.path, budget, self._unpacked)
            files.pauses = pauses and budget is None
            try:
                yield files
            finally:
                if files.fd is not None:
                    self._disk.close(files.fd)


@attrs.define(eq=False)
class _Files:
    """The files of a ledger as they were at one moment; ``fd`` is the file that grows, if any.

    ``budget`` is the number of bytes that may still be read; None: any number. ``pauses``: in a
    thread, beside the event loop.
    """

    disk: Disk
    ledger: Path
    segments: list[Segment]
    fd: int | None
    budget: int | None
    unpacked: UnpackedSegments | None
    pauses: bool = False

    @classmethod
    def found(
        cls, disk: Disk, ledger: Path, budget: int | None, unpacked: UnpackedSegments | None
    ) -> _Files:
        """Find the files, and open the one that grows. Raises ``OSError``."""
        for _ in range(MAX_TRIES):
            segments = segments_of(disk, ledger)
            try:
                fd: int | None = disk.open(ledger, os.O_RDONLY)
            except FileNotFoundError:
                fd = None
            with contextlib.ExitStack() as unless_used:
                if fd is not None:
                    unless_used.callback(disk.close, fd)
                # It was not renamed between the two calls if no segment was added until now.
                if segments_of(disk, ledger)[-1:] == segments[-1:]:
                    unless_used.pop_all()
                    return cls(disk, ledger, segments, fd, budget, unpacked)
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    @property
    def oldest(self) -> int:
        """The lowest number that the oldest file may have."""
        return self.segments[0].first if self.segments else 0

    def above(self, number: int) -> list[Segment | None]:
        """Return the files with higher numbers, the oldest first; None is the one that grows."""
        return [*(each for each in self.segments if each.last > number), None]

    def below(self, number: int | None) -> list[Segment | None]:
        """Return the files with lower numbers, the newest first; None is the one that grows."""
        # A file that begins with this number may have damaged lines before it.
        older = [each for each in self.segments if number is None or each.first <= number]
        return [None, *reversed(older)]

    @contextlib.contextmanager
    def opened(self, segment: Segment | None) -> Iterator[tuple[ReadAt, int, list[Damaged]]]:
        """Open a file; yield its reader, its size, and its damage as a whole.

        Raises ``OSError``, and ``OverBudget`` for a compressed one on the loop. A segment that was
        deleted meanwhile is empty.
        """
        if segment is None:
            if self.fd is None:
                yield nothing_at, 0, []
            else:
                yield partial(self._read_at, self.fd), self.disk.size(self.fd), []
            return
        try:
            fd = self.disk.open(segment.path, os.O_RDONLY)
        except FileNotFoundError:
            data, damaged = self._unpacked(segment)
            yield lambda offset, size: data[offset : offset + size], len(data), damaged
            return
        try:
            yield partial(self._read_at, fd), self.disk.size(fd), []
        finally:
            self.disk.close(fd)

    def _read_at(self, fd: int, offset: int, size: int) -> bytes:
        if self.budget is not None:
            self.budget -= size
            if self.budget < 0:
                raise OverBudget
        return read_exactly(self.disk, fd, size, offset)

    def _unpacked(self, segment: Segment) -> tuple[bytes, list[Damaged]]:
        if self.budget is not None:
            raise OverBudget
        known = None if self.unpacked is None else self.unpacked.get(segment.packed)
        if known is not None:
            return known, []
        packed = read_file(self.disk, segment.packed, max_bytes=MAX_PACKED_BYTES)
        if packed is None:
            return b"", []
        data, why = unpacked(packed)
        if why:
            log.warning("segment damaged", file=shown(segment.packed), why=why)
            return data, [Damaged(len(data), len(data), f"{segment.packed.name}: {why}")]
        if self.unpacked is not None:
            self.unpacked.put(segment.packed, data)
        return data, []

    def judged(self, pieces: Iterator[Piece]) -> Iterator[Line | Damaged]:
        """Decode the pieces that are whole; in a thread with pauses."""
        seal = self.disk.seal(self.ledger)
        for count, piece in enumerate(pieces, 1):
            if piece.whole:
                yield judge(piece, seal)
            if self.pauses:
                breathe(count)


def breathe(count: int) -> None:
    """Pause after some of the lines that a thread decodes, of which this is the number."""
    if count % BREATH_LINES == 0:
        time.sleep(BREATH_S)


def unpacked(packed: bytes) -> tuple[bytes, str]:
    """Return the content of a compressed file up to its first damage, and the damage in words."""
    unpacking, data, why = zlib.decompressobj(wbits=GZIP), bytearray(), ""
    try:
        for at in range(0, len(packed), BLOCK_BYTES):
            data += unpacking.decompress(packed[at : at + BLOCK_BYTES])
            if len(data) > MAX_PACKED_BYTES:  # it is not one of ours
                return b"", "it is too large"
    except zlib.error as error:
        why = str(error)
    if not unpacking.eof:
        why = why or "it is not complete"
        del data[data.rfind(b"\n") + 1 :]
    return bytes(data), why


def _backward(files: _Files, before: int | None) -> Generator[Line | Damaged, None, None]:
    """Yield the lines below a number, the newest first."""
    seal = files.disk.seal(files.ledger)
    for part in files.below(before):
        with files.opened(part) as (read_at, end, damaged):
            yield from damaged
            if before is not None and (part is None or part.last >= before):
                size = end
                low, end = place_of(read_at, size, before - 1, seal)
                if low == 0 and end < size and place_of(read_at, size, before, seal)[0] == 0:
                    continue  # all are higher: damaged lines before them are of another page
            yield from files.judged(pieces_backward(read_at, end))


def _forward(files: _Files, number: int) -> Generator[Line | Damaged, None, None]:
    """Yield the lines above a number, the oldest first."""
    seal = files.disk.seal(files.ledger)
    for index, part in enumerate(files.above(number)):
        with files.opened(part) as (read_at, end, damaged):
            start = place_of(read_at, end, number, seal)[0] if index == 0 else 0
            yield from files.judged(pieces_forward(read_at, start, end))
            yield from damaged


def place_of(read_at: ReadAt, end: int, number: int, seal: Seal | None) -> tuple[int, int]:
    """Return where the lines up to a number end, and where those with higher ones begin.

    They are in a file of ``end`` bytes whose numbers rise. Between the two offsets are damaged
    lines alone.
    """
    low, high, to = 0, end, end
    while to - low > SCAN_BYTES:
        middle = (low + to) // 2
        line = _first_line(read_at, middle, to, end, seal)
        if line is None:
            to = middle
        elif line.fields[NUMBER] <= number:
            low = line.end
        else:
            high, to = line.start, middle
    for piece in pieces_forward(read_at, low, high):
        judged = judge(piece, seal) if piece.whole else None
        found = _number_of(judged) if isinstance(judged, Line) else None
        if found is not None and found > number:
            return low, piece.start
        if found is not None:
            low = piece.end
    return low, high


def _first_line(read_at: ReadAt, start: int, to: int, end: int, seal: Seal | None) -> Line | None:
    """Return the first line with a number that begins after ``start`` and before ``to``."""
    pieces = pieces_forward(read_at, start, end, block_bytes=PROBE_BYTES)
    next(pieces)  # it may have begun before
    for piece in pieces:
        if piece.start >= to:
            return None
        judged = judge(piece, seal) if piece.whole else None
        if isinstance(judged, Line) and _number_of(judged) is not None:
            return judged
    return None


class OverBudget(Exception):
    """The error for a read on the loop that would exceed its budget."""


def _number_of(line: Line) -> int | None:
    number = line.fields.get(NUMBER)
    return number if type(number) is int else None


def _is_beyond(line: Line, newest: int | None) -> bool:
    number = _number_of(line)
    return newest is not None and number is not None and number > newest


async def _quick_or_in_thread(read: Callable[[int | None], Reading]) -> Reading:
    try:
        reading = read(ON_LOOP_BYTES)
    except OverBudget:
        # Read again from the start: the descriptors then belong to the thread alone, so a
        # cancellation may leave the thread behind without harm.
        return await in_thread(read, None, abandon_on_cancel=True)
    await trio.lowlevel.checkpoint()
    return reading
