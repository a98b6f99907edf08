"""The runtime of nodes in this process: listens for workers and for nodes that join.

It sees its workers end before it does.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import trio

from actors.nodes.compat.network import LOOPBACK, Network
from actors.nodes.compat.root import (
    forget,
    forget_strangers,
    listens_at,
    open_root,
    remembered,
)
from actors.nodes.joining.joins import Joined, Joins
from actors.nodes.links.key import NodeKey, new_key


class Running(Protocol):
    """A worker, as the runtime must know it."""

    ended: trio.Event

    @property
    def uid(self) -> tuple[str, str] | None:
        """What tractor calls it, once there is a process."""

    def kill(self) -> None:
        """End it now."""


class NodeRuntime:
    """An open runtime. ``address`` is where it listens, ``key`` what workers and nodes prove."""

    def __init__(self, actor: Any, address: tuple[str, int], key: NodeKey, joins: Joins) -> None:
        self._actor = actor
        self._workers: set[Running] = set()
        self._joins = joins
        self.key = key
        self.address = address

    async def next_join(self) -> Joined:
        """Wait for a node that joins, and take it; ``MisuseError`` while another task waits.

        At most 16 wait to be taken, each for 5 s; the others are refused.
        """
        return await self._joins.next()

    def adopt(self, worker: Running) -> None:
        """Note a worker that begins."""
        self._workers.add(worker)

    def release(self, worker: Running) -> None:
        """Forget a worker that has ended, with all that is remembered of it."""
        self._workers.discard(worker)
        if worker.uid is not None:
            forget(self._actor, worker.uid, self._living())

    def forget_who_left(self) -> None:
        """Forget all that is remembered of nodes that are gone; called when one leaves."""
        forget_strangers(self._actor, self._living())

    def remembered(self) -> dict[str, int]:
        """How much is remembered of workers and nodes, by the name of the memory."""
        mine = {"workers": len(self._workers), "joins": len(self._joins.uids)}
        return {**remembered(self._actor), **mine}

    def _living(self) -> frozenset[tuple[str, str]]:
        workers = frozenset(each.uid for each in self._workers if each.uid is not None)
        return workers | self._joins.uids

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

    It listens at ``host`` and, where that is another, on loopback for its own workers as well.
    ``port`` 0 is any free one. Raises ``NodesNotInstalled`` without the extra ``nodes``,
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
    """Who leaves, also while there is no runtime yet that would want to know."""

    def __init__(self) -> None:
        self.runtime: NodeRuntime | None = None

    def note(self) -> None:
        """Let the runtime forget who left."""
        if self.runtime is not None:
            self.runtime.forget_who_left()
