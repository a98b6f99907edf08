"""``WorkerNode``: a worker process as a child in the tree; its supervisor restarts it as any other.

Its actors are below it. Its crash is the end of its process, however that came.
"""

from __future__ import annotations

import attrs
import trio

from actors.actor import Actor
from actors.cell import State
from actors.errors import WorkerDied
from actors.messages import Request
from actors.nodes.links.vocabulary import Vocabulary
from actors.nodes.names import Exports
from actors.nodes.peer import Peer
from actors.nodes.runtime import NodeRuntime
from actors.nodes.workers.worker import Worker, WorkerSpec
from actors.nodes.workers.worker_end import EndKind


@attrs.frozen
class WorkerDescription:
    """The number of its process."""

    pid: int


@attrs.frozen
class DescribeWorker(Request[WorkerDescription]):
    """Say which process it is; answered once that is up."""


class WorkerNode(Actor[DescribeWorker]):
    """Starts the worker of ``spec`` in each of its lives.

    The function of the worker must use ``hosted_system``. ``exports`` says which names of this
    process are told there.
    """

    def __init__(
        self, *, runtime: NodeRuntime, spec: WorkerSpec, vocabulary: Vocabulary, exports: Exports
    ) -> None:
        self._worker = Worker(runtime, spec)
        self._vocabulary = vocabulary
        self._exports = exports
        self._is_stopping = False

    async def setup(self) -> None:
        """Start the process, and wait until its actors are up and their names are known."""
        self._peer = Peer(
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
        """Say which process it is."""
        assert self._worker.pid is not None
        self.reply(message, WorkerDescription(self._worker.pid))

    async def teardown(self) -> None:
        """End the process."""
        self._is_stopping = True
        self._worker.stop()
        await self._worker.ended.wait()
        is_asked = self._state is State.STOPPING
        self._peer.end("it was stopped" if is_asked else "it failed", crashed=not is_asked)

    @property
    def _state(self) -> State:
        cell = self.context.system.cell(self.context.path)
        return State.STOPPED if cell is None else cell.state

    async def _run(self) -> None:
        end = await self._worker.run()
        stopped = end.kind in (EndKind.DONE, EndKind.STOPPED)
        self._peer.end(str(end), crashed=not stopped)
        if not self._is_stopping:
            raise WorkerDied(f"worker {self._worker.spec.name} {end}")
        await trio.lowlevel.checkpoint()
