"""A worker: one function in a process of its own, with a link to it.

Each worker has a task, a cancel scope and exactly one nursery of tractor, so that its failure does
not affect others. tractor does not report the death of a process or the loss of a connection; here
the process is watched, the connection has heartbeats, and the result is always a value, ``end``.
Every end has the same form: the process ends or is killed, its connection ends with it, and pending
calls fail.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import trio

from actors.errors import LinkLost, MisuseError, WorkerGone
from actors.nodes.compat.process import Spawn, end_process
from actors.nodes.compat.subactor import Subactor, open_subactor
from actors.nodes.links.heartbeat import Beat
from actors.nodes.links.link import Link
from actors.nodes.runtime import NodeRuntime
from actors.nodes.workers.child_side import converse
from actors.nodes.workers.worker_end import Seen, WorkerEnd, how_it_ended

AFTERMATH_S = 1.0
"""The time, in seconds, that a connection may outlive its process, or the reverse."""


def _positive(instance: object, attribute: attrs.Attribute[float], value: float) -> None:
    if value <= 0:
        raise MisuseError(f"{attribute.name} must be more than 0 seconds.")


@attrs.frozen(kw_only=True)
class WorkerSpec:
    """The specification of a worker.

    ``entry`` is ``module:function``: a coroutine function that is called with the worker's side of
    the link and ``argument``. ``environment`` is this process's own unless it is given.
    """

    name: str
    entry: str
    argument: bytes = b""
    start_within_s: float = attrs.field(default=20.0, validator=_positive)
    stop_within_s: float = attrs.field(default=5.0, validator=_positive)
    beat: Beat = attrs.field(factory=Beat)
    environment: Mapping[str, str] | None = None


class Worker:
    """One worker process; call ``run`` once."""

    def __init__(self, runtime: NodeRuntime, spec: WorkerSpec) -> None:
        self.spec = spec
        self.end: WorkerEnd | None = None
        """How the worker ended; ``None`` while it runs."""
        self.ended = trio.Event()
        self._runtime = runtime
        self._spawn = Spawn(runtime.key.secret, spec.environment)
        self._seen = Seen()
        self._scope = trio.CancelScope()
        self._link: Link | None = None
        self._subactor: Subactor | None = None
        self._up = trio.Event()
        self._ending = trio.Event()
        self._has_begun = False
        self._is_over = False

    @property
    def pid(self) -> int | None:
        """The process id, once there is a process."""
        process = self._spawn.process
        return None if process is None else process.pid

    @property
    def uid(self) -> tuple[str, str] | None:
        """Tractor's identifier of the process, once there is one."""
        return self._spawn.uid

    async def run(self) -> WorkerEnd:
        """Start the process, wait until it has been reaped, and return how it ended.

        A failure of the process is not raised. If this is cancelled, the process is killed at once.
        """
        if self._has_begun:
            raise MisuseError("A worker runs only once: make another one to run it again.")
        self._has_begun = True
        self._runtime.adopt(self)
        try:
            await self._live()
        finally:
            with trio.CancelScope(shield=True):
                await self._bury()
        assert self.end is not None
        return self.end

    async def wait_up(self) -> None:
        """Wait until the function runs. Raises ``WorkerGone`` if the worker ended before."""
        await self._up.wait()
        self._connected()

    async def send(self, message: bytes) -> None:
        """Send a message to the worker, once there is room.

        Raises ``WorkerGone`` if it is not up or has ended, ``NodeError`` if the message is
        longer than 1 MiB.
        """
        link = self._connected()
        try:
            await link.send(message)
        except LinkLost as error:
            raise self._gone() from error

    async def receive(self) -> bytes:
        """Return the next message of the worker. Raises ``WorkerGone`` if it has ended."""
        link = self._connected()
        try:
            return await link.receive()
        except LinkLost as error:
            raise self._gone() from error

    def stop(self) -> None:
        """Ask the worker to end in order; it is killed after ``stop_within_s`` seconds."""
        self._seen.stop_asked = True
        if self._link is None:
            self.kill()
        else:
            self._link.ask_to_stop()
            self._ending.set()

    def kill(self) -> None:
        """Kill the process."""
        process = self._spawn.process
        if process is None:
            self._scope.cancel()
        else:
            process.kill()

    async def _live(self) -> None:
        async with trio.open_nursery() as nursery:
            for task in (
                self._watch_process,
                self._limit_start,
                self._limit_ending,
                self._abort_when_cancelled,
            ):
                nursery.start_soon(task)
            await self._note_trouble()
            self._is_over = True
            nursery.cancel_scope.cancel()

    async def _note_trouble(self) -> None:
        try:
            with self._scope:
                await self._converse()
        except* Exception as group:
            self._seen.trouble = self._seen.trouble or _first(group)

    async def _converse(self) -> None:
        spec = self.spec
        async with open_subactor(spec.name, converse.__module__, self._spawn) as subactor:
            self._subactor = subactor
            async with subactor.conversation(
                converse,
                entry=spec.entry,
                argument=spec.argument,
                every_s=spec.beat.every_s,
                lost_after_s=spec.beat.lost_after_s,
                stop_within_s=spec.stop_within_s,
            ) as (wrong, stream):
                if wrong:
                    self._seen.trouble = wrong
                else:
                    await self._carry(Link(stream, spec.beat))
            self._ending.set()
            await subactor.leave()

    async def _carry(self, link: Link) -> None:
        """Run the link until the worker sends its outcome, or the link is lost."""
        self._link = link
        self._seen.was_up = True
        self._up.set()
        if self._seen.stop_asked:
            self.stop()
        try:
            self._seen.outcome = await link.run()
        except LinkLost as error:
            await self._lost(error)

    async def _lost(self, error: LinkLost) -> None:
        """Wait for the end of the process, which also ends the link; kill it if it still runs."""
        process = self._spawn.process
        assert process is not None
        if self._subactor is not None and self._subactor.has_ended:
            with trio.move_on_after(AFTERMATH_S):
                await process.wait()
        if process.returncode is None:
            self._seen.lost = str(error)
            process.kill()
            await process.wait()
        self._abort()

    def _abort(self) -> None:
        """End the process, the connection and what waits for either.

        The connection is closed on this side, too: through one that seems open tractor would say
        goodbye and wait half a second for the answer, several times.
        """
        self.kill()
        if self._subactor is not None:
            self._subactor.disconnect()
        self._scope.cancel()

    async def _abort_when_cancelled(self) -> None:
        """Kill the process and drop the connection when the caller of ``run`` is cancelled."""
        try:
            await trio.sleep_forever()
        finally:
            self._seen.stop_asked |= not self._is_over
            self._abort()

    async def _watch_process(self) -> None:
        """Close everything after the end of the process, even if its connection stays open."""
        await self._spawn.spawned.wait()
        process = self._spawn.process
        assert process is not None
        await process.wait()
        if self._link is not None:
            await trio.sleep(AFTERMATH_S)
        self._abort()

    async def _limit_start(self) -> None:
        with trio.move_on_after(self.spec.start_within_s):
            await self._up.wait()
            return
        self._seen.overdue = True
        self.kill()

    async def _limit_ending(self) -> None:
        await self._ending.wait()
        await trio.sleep(self.spec.stop_within_s)
        self._seen.overdue = True
        self.kill()

    async def _bury(self) -> None:
        """Reap the process and say how it ended."""
        process = self._spawn.process
        if process is not None:
            self._seen.returncode = process.returncode
            process.kill()
            await end_process(process)
        self._runtime.release(self)
        self.end = how_it_ended(self._seen)
        self.ended.set()
        self._up.set()

    def _connected(self) -> Link:
        if self._link is None:
            raise self._gone()
        return self._link

    def _gone(self) -> WorkerGone:
        name = self.spec.name
        if self.end is not None:
            return WorkerGone(f"The worker {name} has ended ({self.end.kind.value}).")
        if self._link is None:
            return WorkerGone(f"The worker {name} is not up: wait for wait_up() before using it.")
        return WorkerGone(f"The worker {name} is ending.")


def _first(group: BaseExceptionGroup[BaseException]) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
