"""Reading a ledger from its end, while an appender may have it open.

A reader returns whole lines only: bytes after the last newline are an append in progress. Given an
``end`` (``Appender.synced``) it returns only acknowledged lines. Damaged lines are skipped and
reported. Time and memory depend on the size of the result, not on the ledger's length: a read keeps
at most ``max_bytes`` of lines.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from aegis.journal.disk import Disk, OsDisk, read_exactly, storage_errors
from aegis.journal.ledger import (
    BLOCK_BYTES,
    MAX_LINE_BYTES,
    Damaged,
    Line,
    ReadAt,
    Scan,
    judge,
    pieces_backward,
    pieces_forward,
    scan,
)
from aegis.journal.opening import MAX_REPORTED
from aegis.state.sealing import Seal

MAX_READ_BYTES = 16 * 1024 * 1024
"""The default limit, in bytes of lines, of one read."""

ON_LOOP_BYTES = 3 * BLOCK_BYTES
"""The budget, in bytes, of a read on the event loop (at most three milliseconds)."""


@attrs.frozen(kw_only=True)
class Reading:
    """The result of a read: the fields of valid lines, oldest first.

    ``more``: matching lines were left out because of ``max_bytes``. ``damaged`` lists damaged lines
    that the read met, oldest first, at most ``MAX_REPORTED`` of ``damaged_count``. ``end`` is the
    offset just after the last line that a forward read scanned, or that a backward read kept (0 if
    none was). ``lines`` has the lines with their places. ``oldest``: lines with lower numbers may
    have been in segments that were deleted.
    """

    records: list[dict[str, Any]]
    more: bool
    damaged: tuple[Damaged, ...]
    damaged_count: int
    end: int = attrs.field(default=0, eq=False)
    lines: tuple[Line, ...] = attrs.field(default=(), eq=False, repr=False)
    oldest: int = attrs.field(default=0, eq=False)


class LedgerReader:
    """A reader of one ledger. It opens the file for each read and caches nothing. Thread-safe."""

    def __init__(
        self, path: Path, *, disk: Disk | None = None, sealed_as: Path | None = None
    ) -> None:
        """``sealed_as`` is the path that the codes of the lines are made for; None: ``path``."""
        self.path = path
        self._disk: Disk = OsDisk() if disk is None else disk
        self._sealed_as = path if sealed_as is None else sealed_as

    def last_n(
        self,
        n: int,
        *,
        end: int | None = None,
        max_bytes: int = MAX_READ_BYTES,
    ) -> Reading:
        """Return the newest ``n`` lines (1 or more); if they are too long, the newest that fit.

        A ledger that does not exist yet is empty. Raises ``StorageError``.
        """
        if n < 1:
            raise ValueError(f"n must be 1 or more, not {n}")
        kept = KeptLines(max_bytes)
        with closing(self._backward(end)) as judged:
            for item in judged:
                if isinstance(item, Damaged):
                    kept.report(item)
                elif not kept.add_if_it_fits(item) or len(kept.lines) == n:
                    break
        return kept.reading()

    def since(
        self, field: str, value: int, *, end: int | None = None, max_bytes: int = MAX_READ_BYTES
    ) -> Reading:
        """Return lines whose ``field`` exceeds ``value``; if too long, the oldest that fit.

        ``field`` is an integer that increases from line to line; a line without it is skipped. The
        oldest lines are kept so that a caller can continue from the last line that it got. Raises
        ``StorageError``.
        """
        kept = KeptLines(max_bytes)
        with closing(self._backward(end)) as judged:
            for item in judged:
                if isinstance(item, Damaged):
                    kept.report(item)
                elif type(number := item.fields.get(field)) is int:
                    if number <= value:
                        break
                    kept.add_over_newer(item)
        return kept.reading()

    def onward(
        self, start: int, *, end: int | None = None, max_bytes: int = MAX_READ_BYTES
    ) -> Reading:
        """Return the lines from offset ``start`` on, where a line begins; if too long, the oldest.

        To read a long ledger in parts without reading a byte twice, pass the ``end`` of the
        previous reading as ``start``. Raises ``StorageError``.
        """
        with self._opened(end) as (read_at, stop):
            found = _scan_onward(read_at, start, stop, max_bytes, self._disk.seal(self._sealed_as))
        return Reading(
            records=[line.fields for line in found.lines],
            more=found.whole + found.torn < stop,
            damaged=found.damaged[-MAX_REPORTED:],
            damaged_count=len(found.damaged),
            end=found.whole,
            lines=found.lines,
        )

    def forward(
        self, start: int, *, end: int | None = None
    ) -> Generator[Line | Damaged, None, None]:
        """Yield the lines from ``start`` on, where one begins. Raises ``StorageError``."""
        seal = self._disk.seal(self._sealed_as)
        with self._opened(end) as (read_at, stop):
            for piece in pieces_forward(read_at, start, stop):
                if piece.whole:
                    yield judge(piece, seal)

    def _backward(self, end: int | None) -> Generator[Line | Damaged, None, None]:
        seal = self._disk.seal(self._sealed_as)
        with self._opened(end) as (read_at, stop):
            for piece in pieces_backward(read_at, stop):
                if piece.whole:
                    yield judge(piece, seal)

    @contextmanager
    def _opened(self, end: int | None) -> Iterator[tuple[ReadAt, int]]:
        """Open the file; yield it and where to stop. A ledger that does not exist yet is empty."""
        with storage_errors("read", self.path):
            try:
                fd = self._disk.open(self.path, os.O_RDONLY)
            except FileNotFoundError:
                yield nothing_at, 0
                return
            try:
                size = self._disk.size(fd)
                yield partial(_read_at, self._disk, fd), size if end is None else min(end, size)
            finally:
                self._disk.close(fd)


def _read_at(disk: Disk, fd: int, offset: int, size: int) -> bytes:
    return read_exactly(disk, fd, size, offset)


def nothing_at(offset: int, size: int) -> bytes:
    """Read from a file that does not exist: it has no byte."""
    raise EOFError(f"{size} bytes at {offset} of a file that does not exist")


def _scan_onward(read_at: ReadAt, start: int, stop: int, max_bytes: int, seal: Seal | None) -> Scan:
    """Return the whole lines of at most ``max_bytes`` from ``start`` on, but at least one."""
    limit = max_bytes
    while True:
        size = max(0, min(limit, stop - start))
        found = scan(read_at(start, size) if size else b"", base=start, seal=seal)
        if found.whole > start or start + size >= stop:
            return found
        if size >= MAX_LINE_BYTES:  # no line is as long as this: continue after it
            return attrs.evolve(found, whole=start + size, torn=0)
        limit = min(4 * limit, MAX_LINE_BYTES)


class KeptLines:
    """Lines collected from the newest backwards, at most ``max_bytes`` (but always one line)."""

    def __init__(self, max_bytes: int) -> None:
        self.lines: deque[Line] = deque()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._more = False
        self._damaged: list[Damaged] = []
        self._damaged_count = 0

    def add_if_it_fits(self, line: Line) -> bool:
        self._more = bool(self.lines) and self._bytes + line.end - line.start > self._max_bytes
        if not self._more:
            self._add(line)
        return not self._more

    def add_over_newer(self, line: Line) -> None:
        self._add(line)
        while self._bytes > self._max_bytes and len(self.lines) > 1:
            newest = self.lines.pop()
            self._bytes -= newest.end - newest.start
            self._more = True

    def report(self, damaged: Damaged) -> None:
        self._damaged_count += 1
        if self._damaged_count <= MAX_REPORTED:
            self._damaged.append(damaged)

    def reading(self) -> Reading:
        return Reading(
            records=[line.fields for line in self.lines],
            more=self._more,
            damaged=tuple(reversed(self._damaged)),
            damaged_count=self._damaged_count,
            end=self.lines[-1].end if self.lines else 0,
            lines=tuple(self.lines),
        )

    def _add(self, line: Line) -> None:
        self.lines.appendleft(line)
        self._bytes += line.end - line.start
