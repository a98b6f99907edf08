"""Reading messages from the disk: the archive of all inboxes, and the ledger of one. Blocking."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from aegis.inboxes.rows import KIND, archived_row
from aegis.journal.archive import DEFAULT_KEEP, Archive, Keep, NewestLines
from aegis.journal.disk import Disk, storage_error
from aegis.protocol.inboxes import Message

STEP_LINES = 256
"""The lines of the archive that are read in one step, for which others may wait."""


def message_archive(directory: Path, disk: Disk, keep: Keep = DEFAULT_KEEP) -> Archive:
    """Return the archive of all inboxes, which they share, among all archives."""
    return Archive(directory, KIND, disk, keep.archive_bytes)


@attrs.define
class ArchivedMessages:
    """The messages of ``handle`` before a number, from the newest ``lines`` on.

    They are added to those that were ``found``, by their numbers. ``size`` is the length of the
    texts.
    """

    lines: NewestLines
    handle: str
    before: int
    found: dict[int, Message]
    size: int = 0

    def __attrs_post_init__(self) -> None:
        self.size = sum(len(each.text) for each in self.found.values())

    def misses(self, count: int) -> bool:
        """Return whether one of the newest ``count`` messages may not be found yet."""
        newest = max([self.before - 1, *self.found])
        return any(each not in self.found for each in range(newest, max(newest - count, 0), -1))

    def step(self) -> bool:
        """Read some more lines; return whether there may be others. Raises ``StorageError``."""
        lines = self.lines.some(STEP_LINES)
        for line in lines or ():
            handle, message = archived_row(line)
            number = line["set"].get("number")
            is_before = type(number) is int and number < self.before
            if handle == self.handle and message is not None and is_before:
                self.found.setdefault(number, message)
                self.size += len(message.text)
        return lines is not None


@contextmanager
def opened(disk: Disk, path: Path) -> Iterator[int]:
    """Open the ledger for reading; convert errors of the disk to ``StorageError``."""
    try:
        fd = disk.open(path, os.O_RDONLY)
        try:
            yield fd
        finally:
            disk.close(fd)
    except OSError as error:
        raise storage_error("read", path, error) from error
