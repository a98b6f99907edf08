"""``Flusher``: syncs in a bounded pool of threads for the whole process.

A thread that hangs in fsync cannot be ended, so a waiter may be cancelled at any time. The thread
syncs a duplicate of the descriptor, whose number cannot be reused for another file meanwhile.

Each thread takes files from the queue until it is empty (``SyncThreads``). So many files cost the
event loop one start per thread, and one wake-up for all syncs that ended since the last; a task and
a thread per file would cost more than the syncs themselves.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import attrs
import outcome
import trio

from aegis.journal.disk import Disk, OsDisk, sync_directory
from aegis.limits import in_thread, is_no_thread, no_thread

Outcome = outcome.Value[None] | outcome.Error
"""The outcome of a sync: nothing, or its ``OSError``."""

Done = Callable[[Outcome], object]
"""Called on the event loop with the outcome of a sync. Must not raise an ``Exception``."""


@attrs.define(eq=False)
class Sync:
    """One sync in the queue or in a thread; ``done`` is None once nobody waits for it."""

    sync: Callable[[int], None]
    fd: int
    done: Done | None


class SyncThreads:
    """At most ``limit`` threads, which run only while there is work. For one event loop."""

    def __init__(self, disk: Disk, limit: int) -> None:
        self._disk = disk
        self._limit = limit
        self._running = 0
        self._queue: deque[Sync] = deque()
        self._ended: deque[tuple[Sync, Outcome] | None] = deque()

    async def run(self, sync: Callable[[int], None], fd: int) -> None:
        """Call ``sync`` with a duplicate of ``fd`` in a thread; may be cancelled at once.

        Raises the ``OSError`` of ``sync``, or ``LimitReached`` if no thread can be started.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        waiting = self.begin(
            sync, fd, partial(trio.lowlevel.reschedule, trio.lowlevel.current_task())
        )

        def abort(_: object) -> trio.lowlevel.Abort:
            self.forget(waiting)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def begin(self, sync: Callable[[int], None], fd: int, done: Done) -> Sync:
        """Call ``sync`` with a duplicate of ``fd`` in a thread, and then ``done`` on the loop.

        Raises the ``OSError`` of the duplication. ``forget`` the result once ``done`` has no use.
        """
        begun = Sync(sync, self._disk.dup(fd), done)
        self._queue.append(begun)
        self._start_one()
        return begun

    def forget(self, waiting: Sync) -> None:
        """Do not call ``done``; a sync that is still in the queue is dropped."""
        waiting.done = None
        with contextlib.suppress(ValueError):  # a thread has taken it, and closes its descriptor
            self._queue.remove(waiting)
            self._disk.close(waiting.fd)

    def _start_one(self) -> None:
        """Start a thread, unless ``limit`` are running; a thread ends when the queue is empty."""
        if self._running == self._limit:
            return
        self._running += 1
        token = trio.lowlevel.current_trio_token()

        def wake() -> None:
            token.run_sync_soon(self._deliver, idempotent=True)

        def ended(_: object) -> None:
            self._ended.append(None)
            _unless_over(wake)

        try:
            trio.lowlevel.start_thread_soon(partial(self._work, wake), ended)
        except RuntimeError as error:
            if not is_no_thread(error):
                raise
            self._running -= 1
            self._refuse_unless_at_work()
            wake()

    def _refuse_unless_at_work(self) -> None:
        while self._queue and not self._running:
            waiting = self._queue.popleft()
            self._disk.close(waiting.fd)
            self._ended.append((waiting, outcome.Error(no_thread())))

    def _work(self, wake: Callable[[], None]) -> None:
        waiting = self._next()
        while waiting is not None:
            self._ended.append((waiting, outcome.capture(self._sync_one, waiting)))
            waiting = self._next()
            if waiting is not None:  # otherwise the end of the thread wakes the event loop
                _unless_over(wake)

    def _next(self) -> Sync | None:
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def _sync_one(self, waiting: Sync) -> None:
        try:
            waiting.sync(waiting.fd)
        finally:
            self._disk.close(waiting.fd)

    def _deliver(self) -> None:
        while self._ended:
            ended = self._ended.popleft()
            if ended is None:
                self._running -= 1
            elif (done := ended[0].done) is not None:
                done(ended[1])
        for _ in range(len(self._queue)):  # entries that arrived while a thread was about to end
            self._start_one()


def _unless_over(wake: Callable[[], None]) -> None:
    with contextlib.suppress(trio.RunFinishedError):  # the event loop has ended
        wake()


def _ignore(_: object) -> None:
    pass


T = TypeVar("T")

StartSoon = Callable[..., object]
"""Starts a task of the owner, as ``nursery.start_soon``."""

Forget = Callable[[], object]

MAX_THREADS = 8
"""The limit of threads that sync, and of those for other work. A stalled file blocks one
thread; more threads make no disk faster."""


class Flusher:
    """The pool of threads that all ledgers and notes of a process share.

    Create one for the process and pass it to each. ``disk`` is the disk that all of them use.
    """

    def __init__(self, disk: Disk | None = None, *, threads: int = MAX_THREADS) -> None:
        self.disk: Disk = OsDisk() if disk is None else disk
        self._syncs = SyncThreads(self.disk, threads)
        self._limiter = trio.CapacityLimiter(threads)

    async def fdatasync(self, fd: int) -> None:
        """Sync data and length; may be cancelled at once. Raises ``OSError``."""
        await self._syncs.run(self.disk.fdatasync, fd)

    def begin_fdatasync(
        self, fd: int, began: Callable[[], object], done: Done, start_soon: StartSoon
    ) -> Forget:
        """Sync data and length without a task that waits; return the function that forgets it.

        ``began`` is called right before the sync, perhaps in a thread: what was written before that
        call is covered. ``done`` is called on the event loop. A flusher without threads starts a
        task with ``start_soon``. Raises ``OSError`` if no sync can begin.
        """

        def sync(duplicate: int) -> None:
            began()
            self.disk.fdatasync(duplicate)

        return partial(self._syncs.forget, self._syncs.begin(sync, fd, done))

    async def fsync(self, fd: int) -> None:
        """Sync data and metadata; may be cancelled at once. Raises ``OSError``."""
        await self._syncs.run(self.disk.fsync, fd)

    async def sync_directory(self, directory: Path) -> None:
        """Sync the directory's entries; may be cancelled at once. Raises ``OSError``."""
        await in_thread(
            sync_directory, self.disk, directory, limiter=self._limiter, abandon_on_cancel=True
        )

    def close_soon(self, fd: int) -> None:
        """Close the last descriptor of a removed file, which frees its blocks, in a thread.

        May be called from any thread.
        """
        try:
            trio.lowlevel.start_thread_soon(partial(self.disk.close, fd), _ignore)
        except RuntimeError:
            self.disk.close(fd)

    async def call(self, blocking: Callable[[], T]) -> T:
        """Run a blocking function to its end, even if cancelled meanwhile."""
        # For functions that change files: an abandoned thread could change them later.
        return await in_thread(blocking, limiter=self._limiter)

    async def look(self, blocking: Callable[[], T]) -> T:
        """Run a blocking function that only reads; may be cancelled at once."""
        # Not in the pool: reads must not wait for files that stall in a sync.
        return await in_thread(blocking, abandon_on_cancel=True)
