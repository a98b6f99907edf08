"""Rotation of a ledger: a new file begins with a head line, and the file before it is kept.

``NAME`` is the current file and ``NAME.1`` the one before it. A head line has the number of the
newest line before it in the field ``after``; the other lines have their number in ``seq``.

The head is written to ``NAME.next`` and synced. Then ``NAME`` is renamed to ``NAME.1``, the
directory is synced, and ``NAME.next`` is renamed to ``NAME``. After a kill or a power loss between
these steps ``NAME`` is missing; ``settle_rotation`` then renames one of the two other files. All
three files have the code of ``NAME`` (``sealing``).
"""

from __future__ import annotations

import contextlib
import os
from functools import partial
from pathlib import Path

from aegis.errors import StorageError
from aegis.journal import faults
from aegis.journal.appender import Appender
from aegis.journal.disk import (
    Disk,
    discard_file,
    is_there,
    storage_errors,
    sync_directory,
    write_all,
)
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import decode_line, seal_line
from aegis.journal.opening import OpenedLedger
from aegis.journal.reader import LedgerReader

AFTER = "after"
"""The field of a head line with the number of the newest line before it."""


def previous_of(path: Path) -> Path:
    """Return the path of the file before the current one."""
    return path.with_name(f"{path.name}.1")


def next_of(path: Path) -> Path:
    """Return the path of the file that is not the current one yet."""
    return path.with_name(f"{path.name}.next")


async def rotate_ledger(path: Path, head: bytes, flusher: Flusher) -> Appender:
    """Begin a new file with the line ``head``; return its appender, which is not started.

    Every line of the current file must be synced. Raises ``StorageError``: then the current file is
    the same as before, and its appender may continue.
    """
    line = seal_line(head, flusher.disk.seal(path))
    with storage_errors("rotate", path):
        fd = await flusher.call(partial(_begin, flusher.disk, path, line))
    opened = OpenedLedger(
        fd=fd, length=len(line), last=decode_line(line), damaged=(), damaged_count=0, torn=None
    )
    return Appender(path, opened, flusher)


def settle_rotation(disk: Disk, path: Path) -> None:
    """Complete or undo a rotation that was cut. Blocks for a sync. Raises ``StorageError``."""
    with storage_errors("open", path):
        _settle(disk, path)


def _begin(disk: Disk, path: Path, line: bytes) -> int:
    _settle(disk, path)  # an earlier rotation may have failed half-way
    fresh = next_of(path)
    faults.ROTATE_BEFORE.hit(path.name)
    with contextlib.ExitStack() as undo:
        fd = disk.open(fresh, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC)
        undo.callback(discard_file, disk, fd, fresh)
        write_all(disk, fd, line)
        disk.fsync(fd)
        faults.RENAME_BEFORE.hit(path.name)
        disk.rename(path, previous_of(path))
        undo.callback(_restore, disk, path)
        # Before the second rename: its effect must not be durable without that of the first one.
        sync_directory(disk, path.parent)
        faults.RENAME_AFTER.hit(path.name)
        disk.rename(fresh, path)
        undo.pop_all()
    # Not required: if a power loss undoes the rename, the next start repeats it.
    with contextlib.suppress(OSError):
        sync_directory(disk, path.parent)
        faults.ROTATE_AFTER.hit(path.name)
    return fd


def _restore(disk: Disk, path: Path) -> None:
    with contextlib.suppress(OSError):
        disk.rename(previous_of(path), path)


def _settle(disk: Disk, path: Path) -> None:
    if is_there(disk, path) or not is_there(disk, previous_of(path)):
        return
    # The old file may have got further lines, if the rotation failed and could not be undone.
    is_begun = _after(disk, path) >= _newest(disk, path)
    disk.rename(next_of(path) if is_begun else previous_of(path), path)
    sync_directory(disk, path.parent)


def _after(disk: Disk, path: Path) -> int:
    """Return the number in the head line of the next file; -1 if the file has none."""
    try:
        found = LedgerReader(next_of(path), disk=disk, sealed_as=path).onward(0, max_bytes=1)
    except StorageError:
        return -1
    after = found.records[0].get(AFTER) if found.records else None
    return after if type(after) is int else -1


def _newest(disk: Disk, path: Path) -> int:
    """Return the newest number in the file before; 0 if it has none."""
    found = LedgerReader(previous_of(path), disk=disk, sealed_as=path).last_n(1)
    last = found.records[-1] if found.records else {}
    newest = last.get("seq", last.get(AFTER))
    return newest if type(newest) is int else 0
