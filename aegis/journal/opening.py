"""Opening a ledger: a torn tail is moved to a file of its own, so no byte is lost.

A torn tail is copied to ``<ledger>.torn-<offset>-<crc>`` and synced before it is truncated. The
name contains the offset and the checksum of the tail, so an opening that is killed at any point and
repeated makes the same file, and another tail never replaces it. Damaged lines are not moved.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from pathlib import Path
from typing import Any

import attrs

from aegis.journal.disk import (
    APPEND,
    Disk,
    make_directory,
    read_blocks,
    read_exactly,
    replace_file,
    storage_errors,
    sync_directory,
)
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import Damaged, Line, judge, pieces_backward

MAY_BE_NEW = 3
"""The number of directories that may have new names: of the ledger, its terminal, terminals."""

MAX_REPORTED = 100
"""The number of damaged lines that a report lists one by one."""


@attrs.frozen(kw_only=True)
class OpenedLedger:
    """A ledger ready for appends at ``length``; everything before that is synced.

    The caller closes ``fd``. ``last`` has the fields of the last valid line. ``damaged`` lists the
    damaged lines after it, oldest first, at most ``MAX_REPORTED`` of ``damaged_count``: each may
    have contained one record, so their numbers are not free. ``torn`` is the file with the torn
    tail, if there was one.
    """

    fd: int
    length: int = 0
    last: dict[str, Any] | None = None
    damaged: tuple[Damaged, ...] = ()
    damaged_count: int = 0
    torn: Path | None = None


def open_ledger(disk: Disk, path: Path, *, is_new: bool = False) -> OpenedLedger:
    """Open the ledger; create it and its directories if they are missing.

    Blocks for some syncs, so call it in a thread, unless it ``is_new``: then its name is durable
    already, and it is empty. Raises ``StorageError``.
    """
    with storage_errors("open", path):
        if not is_new:
            make_directory(disk, path.parent)
        with contextlib.ExitStack() as undo:
            fd = disk.open(path, APPEND)
            undo.callback(disk.close, fd)
            if is_new and disk.size(fd) == 0:
                opened = OpenedLedger(fd=fd)
            else:
                opened = _made_whole(disk, path, fd)
            undo.pop_all()
            return opened


async def sync_ledger(flusher: Flusher, path: Path) -> None:
    """Return once the whole ledger survives a power loss; a missing ledger counts as empty.

    Required before a ledger that no appender has open is shown: its last lines may never have been
    acknowledged. Raises ``StorageError``.
    """
    with storage_errors("read", path):
        try:
            fd = flusher.disk.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return
    with storage_errors("sync", path):
        try:
            await flusher.fsync(fd)
        finally:
            flusher.disk.close(fd)


def _made_whole(disk: Disk, path: Path, fd: int) -> OpenedLedger:
    size = disk.size(fd)
    if size == 0:
        # Not only when this call made them: an earlier one may have been killed, or refused,
        # between
        # making a directory and syncing its parent. That cannot be detected afterwards.
        for directory in list(path.parents)[:MAY_BE_NEW]:
            sync_directory(disk, directory)
    length = end_of_last_line(disk, fd, size)
    torn = _keep_aside(disk, path, fd, length, size) if length < size else None
    if torn is not None:
        disk.ftruncate(fd, length)
    # Whole lines that were never acknowledged are shown from now on, so they are synced now.
    disk.fsync(fd)
    last, damaged, count = _last_good(disk, path, fd, length)
    return OpenedLedger(
        fd=fd, length=length, last=last, damaged=damaged, damaged_count=count, torn=torn
    )


def end_of_last_line(disk: Disk, fd: int, size: int) -> int:
    """Return the offset just after the last newline within the first ``size`` bytes."""
    pieces = pieces_backward(lambda offset, n: read_exactly(disk, fd, n, offset), size)
    last = next(pieces, None)
    if last is None:
        return 0
    return last.end if last.whole else last.start


def _keep_aside(disk: Disk, path: Path, fd: int, start: int, end: int) -> Path:
    crc = 0
    for block in read_blocks(disk, fd, start, end):
        crc = zlib.crc32(block, crc)
    aside = path.with_name(f"{path.name}.torn-{start}-{crc:08x}")
    replace_file(disk, aside, read_blocks(disk, fd, start, end))
    return aside


def _last_good(
    disk: Disk, path: Path, fd: int, length: int
) -> tuple[dict[str, Any] | None, tuple[Damaged, ...], int]:
    damaged: list[Damaged] = []
    count, seal = 0, disk.seal(path)
    for piece in pieces_backward(lambda offset, n: read_exactly(disk, fd, n, offset), length):
        judged = judge(piece, seal)
        if isinstance(judged, Line):
            return judged.fields, tuple(reversed(damaged)), count
        count += 1
        if count <= MAX_REPORTED:
            damaged.append(judged)
    return None, tuple(reversed(damaged)), count
