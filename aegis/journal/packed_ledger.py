"""``PackedLedger``: a ledger that is complete, as compressed parts in the archive. Blocking.

    archive/transcripts/2026-11-27T123000-<name>-<first>-<last>.jsonl.gz
    archive/transcripts/2026-11-27T123000-<name>-fold.jsonl.gz

Each part has the lines with the numbers from ``first`` to ``last``, of 2 MiB at most or one line,
so that a reader unpacks no more. The last file has one line, ``fold``: what was derived from all of
them. As all lines of the archive, they have the code of ``rows.jsonl``. Each file is synced. The
owner stores all parts before it deletes the ledger, and deletes those that a kill has left before
it stores others; while the ledger is there, it counts.

The parts are files of the archive: the oldest ones are deleted if all together are too large
(``old_files``).
"""

from __future__ import annotations

import gzip
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import structlog

from aegis.journal.disk import (
    Disk,
    make_directory,
    read_exactly,
    read_file,
    replace_file,
    shown,
    storage_error,
    stored_names,
    sync_directory,
)
from aegis.journal.ledger import DamagedLine, decode_line, encode_line, seal_line
from aegis.journal.old_files import ROWS
from aegis.journal.reader import LedgerReader
from aegis.journal.segments import breathe, unpacked

log = structlog.get_logger("aegis.journal")

TRANSCRIPTS = "transcripts"
"""The name of the directory of transcripts in that of all archives."""

PART_BYTES = 2 * 1024 * 1024
PIECE_BYTES = 64 * 1024
"""The size of a part, and of what is read of a ledger in one step."""

_NAME = re.compile(r"(\d{4}-\d\d-\d\dT\d{6})-([0-9a-f]{32})-(?:(\d{8,16})-(\d{8,16})|fold)")


@attrs.frozen(order=True)
class LedgerPart:
    """A part of the ledger ``ledger``: the lines ``first`` to ``last``; none in its fold."""

    written_at: str
    first: int
    last: int
    ledger: str
    path: Path
    is_fold: bool


def packed_parts(disk: Disk, directory: Path) -> list[LedgerPart]:
    """Return all parts in a directory, in order. Raises ``StorageError``."""
    found = []
    for name in stored_names(disk, directory):
        match = _NAME.fullmatch(name.removesuffix(ROWS)) if name.endswith(ROWS) else None
        if match is not None:
            first, last = int(match[3] or 0), int(match[4] or 0)
            path, is_fold = directory / name, match[3] is None
            found.append(LedgerPart(match[1], first, last, match[2], path, is_fold))
    return sorted(found)


class PackedLedger:
    """The parts in ``directory`` of the ledger ``name``, whose file was ``path``."""

    def __init__(self, disk: Disk, directory: Path, name: str, path: Path) -> None:
        self._disk, self._directory, self._name = disk, directory, name
        self._path = path
        self._seal = disk.seal(directory / "rows.jsonl")

    # Reading.

    def parts(self) -> list[LedgerPart]:
        """Return the parts with lines, the oldest first. Raises ``StorageError``."""
        found = [each for each in self._all() if not each.is_fold]
        # A thread of a crashed owner may have left one of those before.
        return [each for each in found if each.written_at == found[-1].written_at]

    def _all(self) -> list[LedgerPart]:
        found = packed_parts(self._disk, self._directory)
        return [each for each in found if each.ledger == self._name]

    def fold(self) -> dict[str, Any] | None:
        """Return what was derived from all lines; None if it was deleted, or is damaged."""
        for each in reversed(self._all()):
            if each.is_fold:
                return next((fields for fields, _ in self.lines(each)), None)
        return None

    def lines(
        self, part: LedgerPart, *, backward: bool = False
    ) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield the lines of a part with their sizes, in order; none if it was deleted.

        For a thread, which pauses. Raises ``StorageError``.
        """
        lines = self._data(part).splitlines(keepends=True)
        for count, line in enumerate(reversed(lines) if backward else lines, 1):
            try:
                yield decode_line(line, self._seal), len(line)
            except DamagedLine as error:
                log.warning("archive damaged", file=shown(part.path), why=str(error))
            breathe(count)

    def restored(self, part: LedgerPart) -> bytes:
        """Return the valid lines of a part as they were in the ledger. Raises ``StorageError``."""
        seal = self._disk.seal(self._path)
        lines = (encode_line(fields) for fields, _ in self.lines(part))
        return b"".join(seal_line(each, seal) for each in lines)

    def _data(self, part: LedgerPart) -> bytes:
        try:
            packed = read_file(self._disk, part.path, max_bytes=sys.maxsize)
        except OSError as error:
            raise storage_error("read", part.path, error) from error
        data, why = (b"", "") if packed is None else unpacked(packed)
        if why:
            log.warning("archive damaged", file=shown(part.path), why=why)
        return data

    # Storing.

    def store(
        self,
        files: Sequence[Path],
        take: Callable[[dict[str, Any]], None],
        fold: Callable[[], Mapping[str, Any]],
    ) -> Iterator[LedgerPart]:
        """Store the valid lines of files, whose numbers rise, and their fold; yield each part.

        ``take`` gets each line, and ``fold`` returns the fold after the last. Each step writes one
        file, durably. For a thread, which pauses. Raises ``StorageError``.
        """
        stamp = time.strftime("%Y-%m-%dT%H%M%S", time.gmtime(time.time()))
        try:
            make_directory(self._disk, self._directory)
            self.delete()
            # It may have been made before a kill, or before the disk refused its sync.
            sync_directory(self._disk, self._directory.parent)
            sync_directory(self._disk, self._directory.parent.parent)
            for path in files:
                for data, first, last in self._parts_of(path, files[-1], take):
                    yield self._write(stamp, f"{first:08}-{last:08}", data, first, last)
            yield self._write(stamp, "fold", encode_line(fold(), self._seal), 0, 0)
        except OSError as error:
            raise storage_error("write", self._directory, error) from error

    def _parts_of(
        self, path: Path, sealed_as: Path, take: Callable[[dict[str, Any]], None]
    ) -> Iterator[tuple[bytes, int, int]]:
        """Yield the lines of a file in parts that have a number, with their first and last ones."""
        reader = LedgerReader(path, disk=self._disk, sealed_as=sealed_as)
        start, size, more = 0, 0, True
        lines: list[bytes] = []
        numbers: list[int] = []
        while more:
            piece = reader.onward(start, max_bytes=PIECE_BYTES)
            more, end = piece.more and piece.end > start, piece.end
            data = self._bytes(path, start, end) if end > start else b""
            for count, line in enumerate(piece.lines, 1):  # none gets a code that is damaged
                lines.append(seal_line(data[line.start - start : line.end - start], self._seal))
                take(line.fields)
                if type(line.fields.get("seq")) is int:
                    numbers.append(line.fields["seq"])
                breathe(count)
            size, start = size + end - start, end
            if numbers and (size >= PART_BYTES or not more):
                yield b"".join(lines), numbers[0], numbers[-1]
                size, lines, numbers = 0, [], []

    def _bytes(self, path: Path, start: int, end: int) -> bytes:
        fd = self._disk.open(path, 0)
        try:
            return read_exactly(self._disk, fd, end - start, start)
        finally:
            self._disk.close(fd)

    def _write(self, stamp: str, numbers: str, data: bytes, first: int, last: int) -> LedgerPart:
        path = self._directory / f"{stamp}-{self._name}-{numbers}{ROWS}"
        replace_file(self._disk, path, [gzip.compress(data, 6, mtime=0)])
        return LedgerPart(stamp, first, last, self._name, path, numbers == "fold")

    def delete(self) -> None:
        """Delete all parts, and what a kill has left of one.

        Raises ``OSError``, ``StorageError``.
        """
        names = stored_names(self._disk, self._directory)
        own = [each for each in names if f"-{self._name}-" in each]
        for name in own:
            self._disk.unlink(self._directory / name)
        if own:
            sync_directory(self._disk, self._directory)
