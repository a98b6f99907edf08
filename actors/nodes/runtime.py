"""The runtime of nodes in this process: it listens for workers and for nodes that join.

All workers have ended before the runtime closes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import trio

from actors.nodes.compat.network import LOOPBACK, Network
from actors.nodes.compat.root import (
    drop_departed,
    drop_worker,
    listens_at,
    open_root,
    remembered,
)
from actors.nodes.joining.joins import Joined, Joins
from actors.nodes.links.key import NodeKey, new_key


class Running(Protocol):
    """A worker, as far as the runtime uses it."""

    ended: trio.Event

    @property
    def uid(self) -> tuple[str, str] | None:
        """Tractor's identifier of the process, once there is one."""

    def kill(self) -> None:
        """Kill the process."""


class NodeRuntime:
    """An open runtime: it listens at ``address``, and workers and nodes prove ``key``."""

    def __init__(self, actor: Any, address: tuple[str, int], key: NodeKey, joins: Joins) -> None:
        self._actor = actor
        self._workers: set[Running] = set()
        self._joins = joins
        self.key = key
        self.address = address

    async def next_join(self) -> Joined:
        """Wait for a node that joins, and return it.

        At most 16 nodes are queued, each for 5 s; others are refused. Raises ``MisuseError`` while
        another task waits.
        """
        return await self._joins.next()

    def adopt(self, worker: Running) -> None:
        """Add a worker that starts."""
        self._workers.add(worker)

    def release(self, worker: Running) -> None:
        """Remove a worker that has ended, and tractor's records of it."""
        self._workers.discard(worker)
        if worker.uid is not None:
            drop_worker(self._actor, worker.uid, self._living())

    def drop_departed(self) -> None:
        """Remove tractor's records of nodes that have left."""
        drop_departed(self._actor, self._living())

    def remembered(self) -> dict[str, int]:
        """Return the number of records of workers and nodes, by kind."""
        mine = {"workers": len(self._workers), "joins": len(self._joins.uids)}
        return {**remembered(self._actor), **mine}

    def _living(self) -> frozenset[tuple[str, str]]:
        workers = frozenset(each.uid for each in self._workers if each.uid is not None)
        return workers | self._joins.uids

    async def end_workers(self) -> None:
        """Kill the running workers, and wait until all are reaped."""
        for worker in list(self._workers):
            worker.kill()
            await worker.ended.wait()


@asynccontextmanager
async def open_runtime(
    name: str = "root", *, key: NodeKey | None = None, host: str = LOOPBACK, port: int = 0
) -> AsyncIterator[NodeRuntime]:
    """Open the runtime of nodes, with a new key unless one is given.

    It listens at ``host``, and also on loopback for its own workers. ``port`` 0 is any free port.
    Raises ``NodesNotInstalled`` without the extra ``nodes``,
    ``MisuseError`` while another runtime is open in this process, ``OSError`` if it cannot listen.
    """
    key = key or new_key()
    departures = _Departures()
    joins = Joins(departures.note)
    network = Network(key, host, port, departed=departures.note)
    async with open_root(name, network, joins.receive) as actor:
        runtime = NodeRuntime(actor, listens_at(actor, network), key, joins)
        departures.runtime = runtime
        try:
            yield runtime
        finally:
            with trio.CancelScope(shield=True):
                await runtime.end_workers()


class _Departures:
    """Departures of nodes, which may occur before the runtime exists."""

    def __init__(self) -> None:
        self.runtime: NodeRuntime | None = None

    def note(self) -> None:
        """Remove the records of nodes that have left."""
        if self.runtime is not None:
            self.runtime.drop_departed()
