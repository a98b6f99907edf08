"""``WorkerNode``: a worker process as an actor, restarted by its supervisor like any other.

The worker's actors are below it. Every end of the process without a stop is a crash of the actor.
"""

from __future__ import annotations

import attrs
import trio

from actors.actor import Actor
from actors.cell import PlaceState
from actors.errors import WorkerDied
from actors.messages import Request
from actors.nodes.links.vocabulary import Vocabulary
from actors.nodes.names import Exports
from actors.nodes.peer import PeerProcess
from actors.nodes.runtime import NodeRuntime
from actors.nodes.workers.worker import Worker, WorkerSpec
from actors.nodes.workers.worker_end import EndKind


@attrs.frozen
class WorkerDescription:
    """The process of a worker."""

    pid: int


@attrs.frozen
class DescribeWorker(Request[WorkerDescription]):
    """A request for the worker's process; answered once it is up."""


class WorkerNode(Actor[DescribeWorker]):
    """The actor that runs the worker of ``spec``: a new process for each incarnation.

    The function of the worker must use ``hosted_system``. ``exports`` selects the names of this
    process that it learns.
    """

    def __init__(
        self, *, runtime: NodeRuntime, spec: WorkerSpec, vocabulary: Vocabulary, exports: Exports
    ) -> None:
        self._worker = Worker(runtime, spec)
        self._vocabulary = vocabulary
        self._exports = exports
        self._is_stopping = False

    async def setup(self) -> None:
        """Start the process; wait until its actors are up and their names are known."""
        self._peer = PeerProcess(
            self.context.system,
            name=f"worker {self._worker.spec.name}",
            root=self.context.path,
            vocabulary=self._vocabulary,
            exports=self._exports,
            outlives_connection=False,
        )
        self._peer.begin()
        self.context.start_soon(self._run)
        await self._worker.wait_up()
        self.context.start_soon(self._peer.carry, self._worker)
        await self._peer.ready.wait()

    async def receive(self, message: DescribeWorker) -> None:
        """Answer with the process."""
        assert self._worker.pid is not None
        self.reply(message, WorkerDescription(self._worker.pid))

    async def teardown(self) -> None:
        """End the process."""
        self._is_stopping = True
        self._worker.stop()
        await self._worker.ended.wait()
        is_asked = self._state is PlaceState.STOPPING
        self._peer.end("it was stopped" if is_asked else "it failed", crashed=not is_asked)

    @property
    def _state(self) -> PlaceState:
        cell = self.context.system.cell(self.context.path)
        return PlaceState.STOPPED if cell is None else cell.state

    async def _run(self) -> None:
        end = await self._worker.run()
        stopped = end.kind in (EndKind.DONE, EndKind.STOPPED)
        self._peer.end(str(end), crashed=not stopped)
        if not self._is_stopping:
            raise WorkerDied(f"worker {self._worker.spec.name} {end}")
        await trio.lowlevel.checkpoint()
