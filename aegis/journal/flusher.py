"""Syncs off the loop: at most so many threads for the whole process, and none that can do harm.

Whoever waits for a sync is free to go at any time (``SyncThreads``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import trio

from aegis.journal.disk import Disk, OsDisk, sync_directory
from aegis.journal.sync_threads import SyncThreads

T = TypeVar("T")

MAX_THREADS = 8
"""That sync, and as many for other work. A stalled file holds one; more gain nothing on a disk."""


class Flusher:
    """The pool of threads that all ledgers and notes of a process share.

    Make one for the process and hand it to each. ``disk`` is the disk that all of them use.
    """

    def __init__(self, disk: Disk | None = None, *, threads: int = MAX_THREADS) -> None:
        self.disk: Disk = OsDisk() if disk is None else disk
        self._syncs = SyncThreads(self.disk, threads)
        self._limiter = trio.CapacityLimiter(threads)

    async def fdatasync(self, fd: int) -> None:
        """Sync data and length; may be cancelled at once. Raises ``OSError``."""
        await self._syncs.run(self.disk.fdatasync, fd)

    async def fsync(self, fd: int) -> None:
        """Sync all there is of the file; may be cancelled at once. Raises ``OSError``."""
        await self._syncs.run(self.disk.fsync, fd)

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
