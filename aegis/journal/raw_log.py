"""The raw bytes of a terminal, by their offset since its first spawn, in two files.

``raw.log`` grows to ``limit_bytes``, is then renamed to ``raw.log.1``, and a new one begins. Both
contain the PTY's bytes and nothing else, so ``cat`` shows them. The offset at which each begins is
in ``raw.base``, one ledger line: ``{"current":B,"previous":P,"next":N,"crc":…}``.

A rotation records its intent (``next``, the base of the file to come), renames, makes the new file,
then records the result (``next`` null). No byte is written between. So after a kill at any point
the rotation can be completed from the intent: a ``raw.log`` that is not empty must still be
renamed, one that is empty or missing was renamed before. Completing it twice is harmless.

Everything runs on the loop, in microseconds; nothing is synced. Lost bytes are reported as a gap:
``read`` counts the bytes that are no longer in the files. After a kill an offset never means other
bytes. After a power loss it may: zeros may replace bytes that were not written back, and if
``raw.base`` is empty, the bases are estimated from the file sizes and the ledger.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import attrs

from aegis.errors import StorageError
from aegis.journal.disk import (
    APPEND,
    Disk,
    OsDisk,
    make_directory,
    read_exactly,
    read_file,
    replace_file,
    storage_errors,
    write_some,
)
from aegis.journal.ledger import DamagedLine, decode_line, encode_line

LIMIT_BYTES = 10_000_000
"""The largest size of each of the two files."""

BUFFER_BYTES = 64 * 1024
"""The largest number of bytes that wait for a flush."""


@attrs.frozen
class _Bases:
    """The content of ``raw.base``: the offsets of the current, the previous and the next file."""

    current: int
    previous: int | None = None
    next: int | None = None


class RawLog:
    """The writer and reader of one terminal's raw bytes. All calls come from one thread."""

    def __init__(self, directory: Path, disk: Disk, limit_bytes: int) -> None:
        assert limit_bytes > 0
        self._directory = directory
        self._disk = disk
        self._limit = limit_bytes
        self._bases = _Bases(0)
        self._fd: int | None = None
        self._size = 0
        self._buffer = bytearray()
        self._buffer_start = 0
        self._closed = False

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        disk: Disk | None = None,
        limit_bytes: int = LIMIT_BYTES,
        at_least: int = 0,
        is_new: bool = False,
    ) -> RawLog:
        """Open or begin the log of a terminal; ``is_new``: it has no file yet.

        ``at_least`` is an offset that a client may already have (a record's ``raw_end``): if a
        power loss has shortened the file, the log continues there, and never before it. Raises
        ``StorageError``.
        """
        log = cls(directory, OsDisk() if disk is None else disk, limit_bytes)
        with storage_errors("open", log.path):
            if is_new:
                log._store(_Bases(0))
                log._fd = log._disk.open(log.path, APPEND)
            else:
                make_directory(log._disk, directory, durable=False)
                log._open_current(at_least)
        log._buffer_start = max(log._file_end, at_least)
        return log

    # Created when needed: there are a thousand of these, and paths take as much memory as all else.

    @property
    def path(self) -> Path:
        """The path of the file that grows."""
        return self._directory / "raw.log"

    @property
    def previous_path(self) -> Path:
        """The path of the file before the last rotation."""
        return self._directory / "raw.log.1"

    @property
    def _bases_path(self) -> Path:
        return self._directory / "raw.base"

    @property
    def position(self) -> int:
        """The offset of the next byte: the number written since the terminal's first spawn."""
        return self._buffer_start + len(self._buffer)

    @property
    def oldest(self) -> int:
        """The offset of the oldest byte that may still be read."""
        return self._bases.current if self._bases.previous is None else self._bases.previous

    def write(self, data: bytes) -> None:
        """Add bytes of the PTY; they are in the file once ``flush`` has returned.

        Writes through when ``BUFFER_BYTES`` are waiting. Does not raise while the disk refuses: the
        terminal continues, and bytes beyond the buffer are dropped, which leaves a gap. ``flush``
        raises the error.
        """
        assert not self._closed
        self._buffer += data
        if len(self._buffer) >= BUFFER_BYTES:
            with contextlib.suppress(StorageError):
                self.flush()
            if len(self._buffer) >= BUFFER_BYTES:
                self._buffer_start += len(self._buffer)
                self._buffer.clear()

    def flush(self) -> None:
        """Write the buffer to the file: its bytes then survive a killed process.

        Raises ``StorageError`` if the disk refuses; unwritten bytes stay for the next flush.
        """
        if not self._buffer:
            return
        with storage_errors("write", self.path):
            while self._buffer:
                self._write_some()

    def rest(self) -> None:
        """Close the file until it is needed again: an idle terminal keeps no descriptor."""
        if not self._buffer:
            self._close_current()

    def read(self, start: int, end: int) -> tuple[bytes, int]:
        """Return the bytes of ``[start, end)`` that are still kept, and the number of missing ones.

        Bounds outside the written range are moved into it. Raises ``StorageError``.
        """
        assert not self._closed
        start, end = max(start, 0), min(end, self.position)
        with storage_errors("read", self.path):
            kept = self._kept(start, end)
        return kept, max(end - start, 0) - len(kept)

    def stretch(self, start: int, max_bytes: int) -> tuple[int, bytes]:
        """Return the first kept bytes at or after ``start``, and the offset at which they begin.

        At most ``max_bytes``, and none beyond a gap; if no bytes are kept there, ``position`` and
        no bytes. Raises ``StorageError``.
        """
        assert not self._closed
        if start >= self._buffer_start:
            # A reader that has all earlier output needs no file, and no disk that works.
            first = start - self._buffer_start
            kept = bytes(self._buffer[first : first + max_bytes])
            return (start, kept) if kept else (self.position, b"")
        begin, kept = max(start, 0), b""
        with storage_errors("read", self.path):
            self._current()
            for base, end in self._extents():
                at = begin + len(kept)
                if kept and (base != at or len(kept) >= max_bytes):
                    break
                begin, at = (begin, at) if kept else (max(at, base), max(at, base))
                kept += self._kept(at, min(end, begin + max_bytes))
        return (begin, kept) if kept else (self.position, b"")

    def close(self) -> None:
        """Flush and close. Raises ``StorageError`` if the flush fails; the log is closed anyway."""
        if self._closed:
            return
        self._closed = True
        try:
            self.flush()
        finally:
            self._close_current()

    def _kept(self, start: int, end: int) -> bytes:
        fd = self._current()
        return b"".join(
            (
                self._read_previous(start, end),
                _read_part(self._disk, fd, _within(start, end, self._bases.current), self._size),
                bytes(self._buffer[_within(start, end, self._buffer_start)]),
            )
        )

    def _extents(self) -> list[tuple[int, int]]:
        """Return the first and last offsets of both files and of the buffer, in order."""
        extents = [(self._bases.current, self._file_end), (self._buffer_start, self.position)]
        previous = self._bases.previous
        if previous is not None:
            end = min(previous + self._size_of(self.previous_path), self._bases.current)
            extents.insert(0, (previous, end))
        return extents

    @property
    def _file_end(self) -> int:
        return self._bases.current + self._size

    def _current(self) -> int:
        return self._open_current(self._buffer_start) if self._fd is None else self._fd

    def _write_some(self) -> None:
        fd = self._current()
        part = min(len(self._buffer), self._limit, BUFFER_BYTES)
        if self._file_end != self._buffer_start or self._size + part > self._limit:
            fd = self._rotate(self._buffer_start)
        with memoryview(self._buffer) as whole, whole[:part] as slice_:
            written = write_some(self._disk, fd, slice_)
        self._size += written
        self._buffer_start += written
        del self._buffer[:written]

    def _rotate(self, base: int) -> int:
        if self._size == 0:
            self._store(attrs.evolve(self._bases, current=base))
            assert self._fd is not None
            return self._fd
        self._store(attrs.evolve(self._bases, next=base))
        # After this, a failure has the effect of a kill: the next write opens the existing files.
        self._close_current()
        return self._open_current(base)

    def _open_current(self, at_least: int) -> int:
        self._load(at_least)
        if self._bases.next is not None and self._size_of(self.path):
            # Removed first: a file system may write back a whole file that replaces another one.
            with contextlib.suppress(FileNotFoundError):
                self._disk.unlink(self.previous_path)
            self._disk.rename(self.path, self.previous_path)
        with contextlib.ExitStack() as undo:
            fd = self._disk.open(self.path, APPEND)
            undo.callback(self._disk.close, fd)
            size = self._disk.size(fd)
            if self._bases.next is not None:
                self._store(_Bases(self._bases.next, previous=self._bases.current))
            undo.pop_all()
        self._fd, self._size = fd, size
        return fd

    def _guess(self, at_least: int) -> _Bases:
        """Return the bases if ``raw.base`` is lost: the files end at ``at_least`` or later."""
        size, previous = self._size_of(self.path), self._size_of(self.previous_path)
        base = max(at_least - size, previous)
        return _Bases(base, previous=base - previous if previous else None)

    def _load(self, at_least: int) -> None:
        line = read_file(self._disk, self._bases_path, max_bytes=4096)
        bases = None if line is None else _decoded(line)
        if bases is None:
            self._store(self._guess(at_least))
        else:
            self._bases = bases

    def _store(self, bases: _Bases) -> None:
        line = encode_line(attrs.asdict(bases))
        replace_file(self._disk, self._bases_path, [line], durable=False)
        self._bases = bases

    def _size_of(self, path: Path) -> int:
        try:
            fd = self._disk.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return 0
        try:
            return self._disk.size(fd)
        finally:
            self._disk.close(fd)

    def _read_previous(self, start: int, end: int) -> bytes:
        base = self._bases.previous
        if base is None or start >= self._bases.current:
            return b""
        try:
            fd = self._disk.open(self.previous_path, os.O_RDONLY)
        except FileNotFoundError:
            return b""
        try:
            size = min(self._disk.size(fd), self._bases.current - base)
            return _read_part(self._disk, fd, _within(start, end, base), size)
        finally:
            self._disk.close(fd)

    def _close_current(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            self._disk.close(fd)


def _decoded(line: bytes) -> _Bases | None:
    try:
        fields = decode_line(line)
    except DamagedLine:
        return None
    current = fields.get("current")
    if type(current) is not int:
        return None
    return _Bases(current, fields.get("previous"), fields.get("next"))


def _within(start: int, end: int, base: int) -> slice:
    """Return the offsets ``[start, end)`` as a slice of data that begins at ``base``."""
    return slice(max(start - base, 0), max(end - base, 0))


def _read_part(disk: Disk, fd: int, part: slice, size: int) -> bytes:
    start, stop = min(part.start, size), min(part.stop, size)
    return read_exactly(disk, fd, stop - start, start) if start < stop else b""
