"""``SyncThreads``: threads that sync files, and hand over many outcomes in one wake of the loop.

Each thread takes the next file as long as there is one, so that a crowd of files costs the loop a
thread's start per thread, and one wake for all that ended since the last; a task and a thread for
each file would cost it more than the syncs take.

A thread that hangs in a sync cannot be ended, so whoever waits for it may go at any time. It syncs
a descriptor of its own: the number it holds can never come to mean another file.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import deque
from collections.abc import Callable

import attrs
import outcome
import trio

from aegis.journal.disk import Disk

_Outcome = outcome.Value[None] | outcome.Error


@attrs.define(eq=False)
class _Sync:
    """One sync that a task waits for, until it went: then ``task`` is None."""

    sync: Callable[[int], None]
    fd: int
    task: trio.lowlevel.Task | None


class SyncThreads:
    """At most ``limit`` of them, which come and go with the work. For one loop."""

    def __init__(self, disk: Disk, limit: int) -> None:
        self._disk = disk
        self._limit = limit
        self._running = 0
        self._queue: deque[_Sync] = deque()
        self._ended: deque[tuple[_Sync, _Outcome] | None] = deque()

    async def run(self, sync: Callable[[int], None], fd: int) -> None:
        """Call ``sync`` with a duplicate of ``fd`` in a thread; may be cancelled at once.

        Raises ``OSError``, that of ``sync`` or EAGAIN if there can be no thread.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        waiting = _Sync(sync, self._disk.dup(fd), trio.lowlevel.current_task())
        self._queue.append(waiting)
        self._start_one()

        def abort(_: object) -> trio.lowlevel.Abort:
            self._forget(waiting)
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)

    def _forget(self, waiting: _Sync) -> None:
        waiting.task = None
        with contextlib.suppress(ValueError):  # a thread has it already, and closes its descriptor
            self._queue.remove(waiting)
            self._disk.close(waiting.fd)

    def _start_one(self) -> None:
        """One more thread, if there may be one; each ends by itself when there is nothing to do."""
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
            trio.lowlevel.start_thread_soon(lambda: self._work(wake), ended)
        except RuntimeError:  # the system gives us no more
            self._running -= 1
            self._refuse_unless_at_work()
            wake()

    def _refuse_unless_at_work(self) -> None:
        refusal = outcome.Error(OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)))
        while self._queue and not self._running:
            waiting = self._queue.popleft()
            self._disk.close(waiting.fd)
            self._ended.append((waiting, refusal))

    def _work(self, wake: Callable[[], None]) -> None:
        while True:
            try:
                waiting = self._queue.popleft()
            except IndexError:
                return
            self._ended.append((waiting, outcome.capture(self._sync_one, waiting)))
            _unless_over(wake)

    def _sync_one(self, waiting: _Sync) -> None:
        try:
            waiting.sync(waiting.fd)
        finally:
            self._disk.close(waiting.fd)

    def _deliver(self) -> None:
        while self._ended:
            ended = self._ended.popleft()
            if ended is None:
                self._running -= 1
            elif (task := ended[0].task) is not None:
                trio.lowlevel.reschedule(task, ended[1])
        for _ in range(len(self._queue)):  # what came while a thread was about to end
            self._start_one()


def _unless_over(wake: Callable[[], None]) -> None:
    with contextlib.suppress(trio.RunFinishedError):  # nobody waits any more
        wake()
