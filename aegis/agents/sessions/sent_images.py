"""The files of the images in a person's messages to a session, beside its transcript. Blocking.

    durable as ``sent/new/NAME`` → the message is durable → renamed to ``sent/NAME``

A kill in between leaves a file in ``sent/new``, which counts if an unread message names it. The
names are made from the contents, so an image is kept once. All of it goes with the directory of the
session.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path

from aegis.agents.drivers.images import SENT, SENT_NEW
from aegis.journal.disk import (
    Disk,
    file_size,
    make_directory,
    replace_file,
    stored_names,
    sync_directory,
)

MAX_SENT_BYTES = 256 * 1024 * 1024
"""The size of the images of a session; beyond it the oldest are deleted that no message awaits."""


class SentImages:
    """The images of messages to the session whose files are in ``session``, a directory.

    The functions raise ``OSError``.
    """

    def __init__(self, disk: Disk, session: Path) -> None:
        self._disk = disk
        self._directory = session / SENT

    def path(self, name: str) -> Path:
        """Return the path by which an image is shown."""
        return self._directory / name

    def keep(self, images: Sequence[tuple[str, bytes]]) -> None:
        """Store images, by their names, durably."""
        known = self._names()
        for name, data in images:
            if name not in known:
                make_directory(self._disk, self._directory / SENT_NEW)
                replace_file(self._disk, self._directory / SENT_NEW / name, [data])

    def confirm(self, names: Collection[str]) -> None:
        """Note that a message with these images is durable."""
        for name in self._unconfirmed():
            if name in names:
                self._disk.rename(self._directory / SENT_NEW / name, self._directory / name)
        sync_directory(self._disk, self._directory)

    def has_unconfirmed(self) -> bool:
        """Return whether a kill may have come between an image and its message."""
        return bool(self._unconfirmed())

    def sweep(self, awaited: Collection[str]) -> None:
        """Delete images that were never sent; ``awaited`` are those of unread messages."""
        for name in self._unconfirmed():
            if name not in awaited:
                self._disk.unlink(self._directory / SENT_NEW / name)
        self.confirm(awaited)

    def is_full(self) -> bool:
        """Return whether the images are over their limit."""
        return sum(map(self._size, self._names())) > MAX_SENT_BYTES

    def drop_oldest(self, awaited: Collection[str]) -> None:
        """Delete the oldest images over the limit, but those of unread messages."""
        found = [each for each in self._names() if each not in awaited]
        found.sort(key=lambda name: (self._directory / name).stat().st_mtime_ns)
        over = sum(map(self._size, self._names())) - MAX_SENT_BYTES
        for name in found:
            if over <= 0:
                return
            over -= self._size(name)
            self._disk.unlink(self._directory / name)

    def _names(self) -> list[str]:
        return [each for each in self._listed(self._directory) if each != SENT_NEW]

    def _unconfirmed(self) -> list[str]:
        return self._listed(self._directory / SENT_NEW)

    def _listed(self, directory: Path) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return stored_names(self._disk, directory)
        return []

    def _size(self, name: str) -> int:
        return file_size(self._disk, self._directory / name)
