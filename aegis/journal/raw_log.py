"""The raw bytes of a terminal, by their offset since its first spawn; two files, the newest kept.

``raw.log`` grows to ``limit_bytes``, then becomes ``raw.log.1`` and a new one begins. Both hold the
PTY's bytes and nothing else, so ``cat`` shows them. Where each begins stands in ``raw.base``, one
ledger line: ``{"current":B,"previous":P,"next":N,"crc":…}``.

A rotation states its intent (``next``, the base of the file to come), renames, makes the new file,
then states the result (``next`` null). No byte is written between. So after a kill at any point
the intent tells what was meant, and it is carried on: a ``raw.log`` that is not empty still has
to be renamed, one that is empty or missing was. Carrying on twice is harmless.

Everything happens on the loop, in microseconds; nothing is synced. What a file lost shows as a gap:
``read`` counts the bytes that are no longer there. After a kill an offset never means other bytes.
After a loss of power it may: zeros may stand in the place of bytes that were not written back, and
where ``raw.base`` is empty, where the files begin is guessed by what others say.
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
    storage_error,
    write_some,
)
from aegis.journal.ledger import DamagedLine, decode_line, encode_line

LIMIT_BYTES = 10_000_000
"""The largest size of each of the two files."""

BUFFER_BYTES = 64 * 1024
"""How many bytes wait for a flush at most."""


@attrs.frozen
class _Bases:
    """What ``raw.base`` says: where the current and the previous file begin, and the next one."""

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
    ) -> RawLog:
        """Open or begin the log of a terminal. Raises ``StorageError``.

        ``at_least`` is an offset already given to somebody (a record's ``raw_end``): should a power
        loss have shortened the file, the log goes on there, and never behind.
        """
        log = cls(directory, OsDisk() if disk is None else disk, limit_bytes)
        try:
            make_directory(log._disk, directory, durable=False)
            log._open_current(at_least)
        except OSError as error:
            raise storage_error("open", log.path, error) from error
        log._buffer_start = max(log._file_end, at_least)
        return log

    # Made when needed: there are a thousand of these, and a path takes as much as all the rest.

    @property
    def path(self) -> Path:
        """The file that grows."""
        return self._directory / "raw.log"

    @property
    def previous_path(self) -> Path:
        """The file that it was before the last rotation."""
        return self._directory / "raw.log.1"

    @property
    def _bases_path(self) -> Path:
        return self._directory / "raw.base"

    @property
    def position(self) -> int:
        """The offset of the next byte: how many were written since the terminal's first spawn."""
        return self._buffer_start + len(self._buffer)

    @property
    def oldest(self) -> int:
        """The offset of the oldest byte that may still be read."""
        return self._bases.current if self._bases.previous is None else self._bases.previous

    def write(self, data: bytes) -> None:
        """Take bytes of the PTY; they are in the file once ``flush`` returned.

        Writes through when ``BUFFER_BYTES`` are waiting. Raises nothing while the disk refuses: the
        terminal goes on, and bytes over the buffer are given up, a gap. ``flush`` tells.
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
        """Hand everything to the kernel: it then survives a killed process.

        Raises ``StorageError`` if the disk refuses; what did not fit stays for the next flush.
        """
        try:
            while self._buffer:
                self._write_some()
        except OSError as error:
            raise storage_error("write", self.path, error) from error

    def rest(self) -> None:
        """Let go of the file until it is needed again: who is idle keeps no descriptor."""
        if not self._buffer:
            self._close_current()

    def read(self, start: int, end: int) -> tuple[bytes, int]:
        """The bytes of ``[start, end)`` that are still kept, and how many of them are not.

        Bounds outside of what was ever written are brought inside. Raises ``StorageError``.
        """
        assert not self._closed
        start, end = max(start, 0), min(end, self.position)
        try:
            kept = self._kept(start, end)
        except OSError as error:
            raise storage_error("read", self.path, error) from error
        return kept, max(end - start, 0) - len(kept)

    def stretch(self, start: int, max_bytes: int) -> tuple[int, bytes]:
        """The first kept bytes at ``start`` or behind it, and the offset at which they begin.

        At most ``max_bytes``, and none beyond a gap; nothing is kept there: ``position`` and no
        byte. Raises ``StorageError``.
        """
        assert not self._closed
        begin, kept = max(start, 0), b""
        try:
            self._current()
            for base, end in self._extents():
                at = begin + len(kept)
                if kept and (base != at or len(kept) >= max_bytes):
                    break
                begin, at = (begin, at) if kept else (max(at, base), max(at, base))
                kept += self._kept(at, min(end, begin + max_bytes))
        except OSError as error:
            raise storage_error("read", self.path, error) from error
        return (begin, kept) if kept else (self.position, b"")

    def close(self) -> None:
        """Flush and close. Raises ``StorageError`` if the flush fails; closed it is anyway."""
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
        """Where the bytes of both files and of the buffer begin and end, in their order."""
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
        # From here on any failure is like a kill: the next write opens what it finds.
        self._close_current()
        return self._open_current(base)

    def _open_current(self, at_least: int) -> int:
        self._load(at_least)
        if self._bases.next is not None and self._size_of(self.path):
            # Removed first: a file system may write all of a file out that takes another's place.
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
        """Without ``raw.base``: nothing was ever written, or the files end where others say."""
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
    """The offsets ``[start, end)`` as a slice of what begins at ``base``."""
    return slice(max(start - base, 0), max(end - base, 0))


def _read_part(disk: Disk, fd: int, part: slice, size: int) -> bytes:
    start, stop = min(part.start, size), min(part.stop, size)
    return read_exactly(disk, fd, stop - start, start) if start < stop else b""
