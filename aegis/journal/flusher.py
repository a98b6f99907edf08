"""Syncs off the loop: at most so many threads for the whole process, and none that can do harm.

A thread that hangs in a sync cannot be ended, so whoever waits for it must be free to go. It
therefore syncs a descriptor of its own: the number it holds can never come to mean another file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio

from aegis.journal.disk import Disk, OsDisk, sync_directory

T = TypeVar("T")

MAX_THREADS = 8
"""A stalled file holds one thread. More threads than this gain nothing on one disk."""


class Flusher:
    """The pool of threads that all ledgers and notes of a process share.

    Make one for the process and hand it to each. ``disk`` is the disk that all of them use.
    """

    def __init__(self, disk: Disk | None = None, *, threads: int = MAX_THREADS) -> None:
        self.disk: Disk = OsDisk() if disk is None else disk
        self._limiter = trio.CapacityLimiter(threads)

    async def fdatasync(self, fd: int) -> None:
        """Sync data and length; may be cancelled at once. Raises ``OSError``."""
        await self._sync(self.disk.fdatasync, fd)

    async def fsync(self, fd: int) -> None:
        """Sync all there is of the file; may be cancelled at once. Raises ``OSError``."""
        await self._sync(self.disk.fsync, fd)

    async def sync_directory(self, directory: Path) -> None:
        """Sync the directory's entries; may be cancelled at once. Raises ``OSError``."""
        await trio.to_thread.run_sync(
            sync_directory, self.disk, directory, limiter=self._limiter, abandon_on_cancel=True
        )

    async def call(self, blocking: Callable[[], T]) -> T:
        """Run a blocking piece of work to its end: it is *not* left behind by a cancellation.

        For work that changes files: a forgotten thread could change them under its successor.
        """
        return await trio.to_thread.run_sync(blocking, limiter=self._limiter)

    async def look(self, blocking: Callable[[], T]) -> T:
        """Run a blocking piece of work that only reads; may be cancelled at once.

        Not in the pool: what is read does not wait for files that stall in a sync.
        """
        return await trio.to_thread.run_sync(blocking, abandon_on_cancel=True)

    async def _sync(self, sync: Callable[[int], None], fd: int) -> None:
        own = _OwnDescriptor(self.disk, fd)
        try:
            await trio.to_thread.run_sync(
                own.use, sync, limiter=self._limiter, abandon_on_cancel=True
            )
        finally:
            own.close_unless_used()


class _OwnDescriptor:
    """A duplicate that is closed once: by the thread that took it, or by the task if none did."""

    __slots__ = ("_disk", "_fd")

    def __init__(self, disk: Disk, fd: int) -> None:
        self._disk = disk
        self._fd = [disk.dup(fd)]

    def use(self, sync: Callable[[int], None]) -> None:
        # ``pop`` is atomic. An empty list means that the task was cancelled before this thread
        # began: nobody waits for the sync any more.
        try:
            fd = self._fd.pop()
        except IndexError:
            return
        try:
            sync(fd)
        finally:
            self._disk.close(fd)

    def close_unless_used(self) -> None:
        with contextlib.suppress(IndexError):
            self._disk.close(self._fd.pop())
