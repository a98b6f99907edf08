"""The runtime of nodes in this process: listens for workers, and sees them end before it does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import trio

from actors.nodes.compat.network import Network
from actors.nodes.compat.root import forget, open_root, remembered
from actors.nodes.key import NodeKey, new_key

LOOPBACK = "127.0.0.1"


class Running(Protocol):
    """A worker, as the runtime must know it."""

    ended: trio.Event

    @property
    def uid(self) -> tuple[str, str] | None:
        """What tractor calls it, once there is a process."""

    def kill(self) -> None:
        """End it now."""


class NodeRuntime:
    """An open runtime. ``address`` is where it listens, ``key`` what workers prove."""

    def __init__(self, actor: Any, key: NodeKey) -> None:
        self._actor = actor
        self._workers: set[Running] = set()
        self.key = key
        self.address: tuple[str, int] = tuple(actor.accept_addr[:2])

    def adopt(self, worker: Running) -> None:
        """Note a worker that begins."""
        self._workers.add(worker)

    def release(self, worker: Running) -> None:
        """Forget a worker that has ended, with all that is remembered of it."""
        self._workers.discard(worker)
        if worker.uid is not None:
            others = frozenset(other.uid for other in self._workers if other.uid is not None)
            forget(self._actor, worker.uid, others)

    def remembered(self) -> dict[str, int]:
        """How much is remembered of workers, by the name of the memory."""
        return {**remembered(self._actor), "workers": len(self._workers)}

    async def end_workers(self) -> None:
        """Kill the workers that still run and wait until each has been reaped."""
        for worker in list(self._workers):
            worker.kill()
            await worker.ended.wait()


@asynccontextmanager
async def open_runtime(
    name: str = "root", *, key: NodeKey | None = None, host: str = LOOPBACK, port: int = 0
) -> AsyncIterator[NodeRuntime]:
    """Open the runtime of nodes, with a key of its own unless one is given.

    ``port`` 0 is any free one. Raises ``NodesNotInstalled`` without the extra ``nodes``,
    ``MisuseError`` while another runtime is open in this process, ``OSError`` if it cannot listen.
    """
    key = key or new_key()
    async with open_root(name, host, Network(key, port)) as actor:
        runtime = NodeRuntime(actor, key)
        try:
            yield runtime
        finally:
            with trio.CancelScope(shield=True):
                await runtime.end_workers()
