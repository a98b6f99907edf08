"""``Archive``: ended rows of one kind that are not in a ledger any more, on disk only. Blocking.

    archive/tasks/2026-11-27T123000-0001.jsonl.gz    rows, the oldest first
    archive/tasks/index-0001-20261127.jsonl          what is known of rows for at least 400 days

A file of rows has the lines that would add them to a table, compressed; each is written whole and
synced, a small one again with the next rows. Rows of several owners are in the order in which they
were added, so the header of gzip has a time (MTIME) before which all of the file had ended, in
seconds since 1970; 0 if it is not known. The index has short entries by name, such as the id of a
row or the key of a request: a name stays known when the file of its row was deleted, because all
files together are larger than ``archive_bytes`` (``old_files``). An index file is sorted by the
digests of the names, so that a look reads a few blocks; a new entry replaces the file. In memory is
a filter of the names, made by the first look, so that most unknown names need no other.

An owner adds rows before it drops them from their table. A kill between the two leaves a row in
both: its table has the newer version.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import attrs
import structlog

from aegis.clock import moment_text
from aegis.errors import StorageError
from aegis.journal.disk import (
    Disk,
    file_size,
    make_directory,
    read_exactly,
    read_file,
    replace_file,
    shown,
    storage_error,
    storage_errors,
    stored_names,
    sync_directory,
)
from aegis.journal.ledger import DamagedLine, decode_line, encode_line, seal_new_line
from aegis.journal.name_filter import NameFilter
from aegis.journal.old_files import ARCHIVE_BYTES, ROWS, delete_oldest

log = structlog.get_logger("aegis.journal")

INDEX = "index-"

DAY_S = 86_400
KNOWN_DAYS = 400
"""Days for which the index has an entry at least."""

INDEX_BYTES = 2 * 1024 * 1024
"""The size from which on an index file gets no more entries."""

LOOK_BYTES = 16 * 1024
"""The part of an index file that is read whole."""

MAX_ENTRY_BYTES = 4 * 1024
SHORTEST_ENTRY_BYTES = 80

DATE_CHARS = len("2026-11-27")

HEADER_BYTES, MAX_TIME = 10, (1 << 32) - 1
"""The size of the header of gzip, and a time that it has no room for."""

SMALL_BYTES = 16 * 1024
"""The size up to which a file gets the next rows too, so that there are few files."""


@attrs.frozen(kw_only=True)
class Keep:
    """The ended rows of a kind that are kept: the ``newest``, and all for ``days``.

    They are ``most`` at most. All files of the archive and old segments of terminals together have
    at most ``archive_bytes``.
    """

    newest: int = 1_000
    days: float = 30.0
    most: int = 20_000
    archive_bytes: int = ARCHIVE_BYTES

    @property
    def batch(self) -> int:
        """The number of rows that are moved together, so that there are few files."""
        return max(1, self.newest // 10)

    def is_old(self, ended: float, now: float) -> bool:
        """Return whether a row is kept only if it is one of the ``newest``."""
        return ended < now - self.days * DAY_S

    def count(self, ended: Sequence[float], now: float) -> int:
        """Return how many of the oldest rows are to be moved; ``ended`` are all, oldest first."""
        if len(ended) > self.most:
            return len(ended) - max(0, self.most - self.batch)
        old = next((n for n, each in enumerate(ended) if not self.is_old(each, now)), len(ended))
        count = min(old, len(ended) - self.newest)
        return count if count >= self.batch else 0


DEFAULT_KEEP = Keep()

Entries = Mapping[str, Mapping[str, Any]]


class Archive:
    """The archive of one kind of rows in ``directory``, which has one directory for each kind.

    Its methods may be called in several threads.
    """

    def __init__(self, directory: Path, kind: str, disk: Disk, max_bytes: int) -> None:
        self._root, self._max_bytes = directory, max_bytes
        self.directory = directory / kind
        self._disk = disk
        # Lines are moved from one file to another, so all have the code of one name.
        self._seal = disk.seal(self.directory / "rows.jsonl")
        self._names_known: NameFilter | None = None  # a look makes it
        self._has_directory = self._is_clean = False
        self._lock = threading.Lock()

    def add(self, rows: Sequence[Mapping[str, Any]], entries: Entries, ended: float = 0.0) -> None:
        """Store the lines of rows, and the entries of the index; returns once all is durable.

        Each entry gets the name of the file with the rows as ``in``. The last of the rows ``ended``
        in this second since 1970; 0 if that is not known. Raises ``StorageError``.
        """
        disk, directory = self._disk, self.directory
        try:
            with self._lock:
                self._make_directory()
                name, before, *times = self._file_to_extend()
                times.append(int(ended) + 1 if 0 < ended < MAX_TIME else 0)
                time_after = max(times) if all(times) else 0
                lines = before + b"".join(self._line(each) for each in rows)
                replace_file(disk, directory / name, [gzip.compress(lines, 6, mtime=time_after)])
                self._add_entries({key: {"in": name, **each} for key, each in entries.items()})
                delete_oldest(disk, self._root.parent, self._max_bytes, spared=directory / name)
        except OSError as error:
            raise storage_error("write", directory, error) from error

    def _make_directory(self) -> None:
        if not self._has_directory:
            make_directory(self._disk, self.directory)
            # One that was made before the disk refused its sync, or before a kill, may be lost
            # with its files.
            for each in (self._root, self._root.parent):
                sync_directory(self._disk, each)
            self._has_directory = True

    def delete_unfinished(self) -> None:
        """Delete files of which a kill has left a part, as far as the disk permits. Once."""
        if self._is_clean:
            return  # others may be written now
        self._is_clean = True
        with contextlib.suppress(StorageError, OSError):
            for name in self._names():
                if name.endswith(".new"):
                    self._disk.unlink(self.directory / name)

    def lacks(self, name: str) -> bool:
        """Return whether it is known to have no entry of a name. Does not block."""
        known = self._names_known
        return known is not None and not known.has(_digest(name))

    def entry(self, name: str) -> dict[str, Any] | None:
        """Return the entry of a name; None if there is none. Raises ``StorageError``."""
        key = _digest(name)
        for _ in range(2):
            try:
                self._know_names()
                if self.lacks(name):
                    return None
                found = (self._find(each, key) for each in self._index_files())
                return next((each for each in found if each is not None), None)
            except FileNotFoundError:
                continue  # it was replaced meanwhile
            except OSError as error:
                raise storage_error("read", self.directory, error) from error
        return None

    def row(self, file: str, row_id: str) -> dict[str, Any] | None:
        """Return the fields of a row in a file; None if the file was deleted, or is damaged.

        Raises ``StorageError``.
        """
        lines = self.rows(file)
        return next((each["set"] for each in lines if each["id"] == row_id), None)

    def rows_of(self, file: str, row_id: str) -> list[dict[str, Any]]:
        """Return the lines of a row and of its parts, whose ids are below its own, in a file.

        Raises ``StorageError``.
        """
        found: dict[str, dict[str, Any]] = {}
        for line in self.rows(file):
            if line["id"] == row_id or line["id"].startswith(f"{row_id}/"):
                found.setdefault(line["id"], line)  # an addition that failed is in it twice
        return [*found.values()]

    def files(self) -> list[str]:
        """Return the names of the files with rows, the newest first. Raises ``StorageError``."""
        return [each for each in reversed(self._names()) if each.endswith(ROWS)]

    def ended_before(self, file: str) -> str | None:
        """Return a moment before which all rows of a file had ended; None if it was deleted.

        Raises ``StorageError``.
        """
        with storage_errors("read", self.directory / file):
            header = read_file(self._disk, self.directory / file, max_bytes=HEADER_BYTES)
        if header is None:
            return None
        known = _time_in(header)
        return moment_text(known) if known else end_of_day(file)

    def rows(self, file: str) -> Iterator[dict[str, Any]]:
        """Yield the lines of the rows in a file, the newest first. Raises ``StorageError``."""
        try:
            data = read_file(self._disk, self.directory / file, max_bytes=sys.maxsize)
            lines = [] if data is None else gzip.decompress(data).splitlines(keepends=True)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            log.warning("archive damaged", file=shown(self.directory / file), why=str(error))
            return
        except OSError as error:
            raise storage_error("read", self.directory / file, error) from error
        for line in reversed(lines):
            try:
                found = decode_line(line, self._seal)
            except DamagedLine as error:
                log.warning("archive damaged", file=shown(self.directory / file), why=str(error))
                continue
            if isinstance(found.get("id"), str) and isinstance(found.get("set"), dict):
                yield found

    def _names(self) -> list[str]:
        return stored_names(self._disk, self.directory)

    def _file_to_extend(self) -> tuple[str, bytes, int] | tuple[str, bytes]:
        """Return the name, lines and time of a small file of today, or the name of a new one."""
        disk, newest = self._disk, next(iter(self.files()), "")
        # The rows of a file are taken to have ended before the end of its day.
        if newest.startswith(time.strftime("%Y-%m-%dT", time.gmtime(time.time()))):
            path = self.directory / newest
            small = min(SMALL_BYTES, self._max_bytes // 16)
            with contextlib.suppress(EOFError, gzip.BadGzipFile, zlib.error):
                if file_size(disk, path) <= small:
                    data = read_file(disk, path, max_bytes=sys.maxsize) or b""
                    return newest, gzip.decompress(data), _time_in(data)
        return self._new_name(), b""

    def _new_name(self) -> str:
        stamp = time.strftime("%Y-%m-%dT%H%M%S", time.gmtime(time.time()))
        newest = next(iter(self.files()), "")
        # Names rise, also when the clock was set back.
        stamp = max(stamp, newest[: len(stamp)])
        number = int(newest[len(stamp) + 1 :][:4]) + 1 if newest.startswith(stamp) else 1
        return f"{stamp}-{number:04}{ROWS}"

    def _line(self, fields: Mapping[str, Any]) -> bytes:
        return seal_new_line(encode_line(fields), self._seal)

    # The index.

    def _index_files(self) -> list[str]:
        """Return the names of the index files, the newest first."""
        names = (each for each in self._names() if each.startswith(INDEX))
        return sorted((each for each in names if each.endswith(".jsonl")), reverse=True)

    def _know_names(self) -> None:
        """Read the names in the index, unless they are known. Raises ``OSError``."""
        if self._names_known is None:
            with self._lock:  # a name that is added meanwhile would be missing
                self._names_known = self._names_known or self._names_in_index()

    def _names_in_index(self) -> NameFilter:
        files = [self.directory / each for each in self._index_files()]
        size = sum(file_size(self._disk, each) for each in files)
        known = NameFilter(size // (SHORTEST_ENTRY_BYTES // 2))  # room for as many more
        for each in files:
            lines = (read_file(self._disk, each, max_bytes=sys.maxsize) or b"").splitlines()
            known.add([_key_in(line).decode() for line in lines if _KEY_START.match(line)])
        return known

    def _add_entries(self, entries: Entries) -> None:
        if self._names_known is not None:
            # Before they are written: a write that fails may have changed the file.
            self._names_known.add([*map(_digest, entries)])
            if self._names_known.is_full:
                self._names_known = None
        added = sorted(self._line({"k": _digest(k), "v": dict(v)}) for k, v in entries.items())
        assert all(len(each) < MAX_ENTRY_BYTES for each in added), "entries are short"
        newest = next(iter(self._index_files()), f"{INDEX}0000-")
        number, before = int(newest[len(INDEX) :][:4]), b""
        if number:
            path = self.directory / newest
            before = read_file(self._disk, path, max_bytes=sys.maxsize) or b""
        if not number or len(before) >= INDEX_BYTES:
            number, before, newest = number + 1, b"", ""
        lines = {_key_in(each): each for each in before.splitlines(keepends=True)}
        lines |= {_key_in(each): each for each in added}
        name = f"{INDEX}{number:04}-{time.strftime('%Y%m%d', time.gmtime(time.time()))}.jsonl"
        content = b"".join(lines[each] for each in sorted(lines))
        replace_file(self._disk, self.directory / name, [content])
        if newest not in ("", name, f"{INDEX}0000-"):
            self._disk.unlink(self.directory / newest)
        self._expire()

    def _expire(self) -> None:
        oldest = time.strftime("%Y%m%d", time.gmtime(time.time() - KNOWN_DAYS * DAY_S))
        for name in self._index_files()[1:]:
            if name[len(INDEX) + 5 :][:8] < oldest:
                self._disk.unlink(self.directory / name)

    def _find(self, name: str, key: str) -> dict[str, Any] | None:
        fd = self._disk.open(self.directory / name, os.O_RDONLY)
        try:
            line = _line_of(self._disk, fd, key)
        finally:
            self._disk.close(fd)
        if line is None:
            return None
        try:
            return dict(decode_line(line, self._seal)["v"])
        except (DamagedLine, KeyError, TypeError) as error:
            log.warning("archive damaged", file=shown(self.directory / name), why=str(error))
            return None


class NewestLines:
    """The lines of an archive, the newest first, in small parts.

    ``newest`` is the file to begin with, if it is not the newest one.
    """

    def __init__(self, archive: Archive, newest: str | None = None) -> None:
        self._archive, self._newest = archive, newest
        self._files: deque[str] | None = None
        self._lines: Iterator[dict[str, Any]] = iter(())

    def some(self, count: int) -> list[dict[str, Any]] | None:
        """Return the next lines, none at the end of a file; None after the last. Blocking.

        Raises ``StorageError``.
        """
        if self._files is None:
            files = self._archive.files()
            self._files = deque(each for each in files if not self._newest or each <= self._newest)
        lines = [*islice(self._lines, count)]
        if not lines:
            if not self._files:
                return None
            self._lines = self._archive.rows(self._files.popleft())
        return lines


def end_of_day(file: str) -> str:
    """Return the end of the day in the name of a file: all of its rows had ended before."""
    return f"{file[:DATE_CHARS]}T24"


def _time_in(data: bytes) -> int:
    """Return the time in the header of a file; 0 if it has none."""
    return int.from_bytes(data[4:8], "little") if data.startswith(b"\x1f\x8b") else 0


def _digest(name: str) -> str:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


_KEY = slice(len(b'{"k":"'), len(b'{"k":"') + 32)
_KEY_START = re.compile(rb'\{"k":"[0-9a-f]{32}"')


def _key_in(line: bytes) -> bytes:
    return line[_KEY]


def _line_of(disk: Disk, fd: int, key: str) -> bytes | None:
    """Return the line of a key in a file whose lines are sorted by theirs."""
    wanted, low, high = key.encode(), 0, disk.size(fd)
    while high - low > LOOK_BYTES:
        middle = (low + high) // 2
        block = read_exactly(disk, fd, min(2 * MAX_ENTRY_BYTES, high - middle), middle)
        at = block.find(b"\n") + 1
        if not at:
            return None  # damaged: no line is as long
        if block[at:][_KEY] <= wanted:
            low = middle + at
        else:
            high = middle + at
    lines = read_exactly(disk, fd, high - low, low).splitlines(keepends=True)
    return next((each for each in lines if _key_in(each) == wanted), None)
