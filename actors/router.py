"""Routes to the places of other processes: the port that ``actors.nodes`` implements.

A system knows its own places. Every other path belongs to a ``Router``, added under the path that
its process is at: ``root/workers/w1``, or an empty path for everything that is not in this system.
"""

from __future__ import annotations

from typing import Protocol

import trio

from actors.place import RefTarget
from actors.tree import Node


class Router(Protocol):
    """The way to the places of one other process."""

    def place(self, path: str) -> RefTarget:
        """Return the place at ``path``, whether or not there is an actor."""
        ...

    def nodes(self) -> list[Node]:
        """Return that process's part of the tree as last reported, for ``System.tree``."""
        ...

    async def refresh(self) -> None:
        """Ask that process for the mailbox depths that ``nodes`` shows, and wait for the answer."""

    def forgotten(self, path: str) -> None:
        """Note that the actor of this system at ``path`` has stopped for good."""


class Routers:
    """The routers of one system, by the path that their places are below."""

    def __init__(self) -> None:
        self._routers: list[Router] = []
        self._by_path: dict[str, Router] = {}

    def add(self, path: str, router: Router) -> None:
        """Route the places below ``path``. Replaces an earlier router of the same path."""
        self._routers.append(router)
        self._by_path[path] = router

    def remove(self, path: str, router: Router) -> None:
        """Undo ``add``, except where another router has replaced this one."""
        self._routers.remove(router)
        if self._by_path.get(path) is router:
            del self._by_path[path]

    def place(self, path: str, root: str) -> RefTarget | None:
        """Return the place at ``path``, which is not in the system of ``root``, or None."""
        for above, router in self._by_path.items():
            if above and path.startswith(f"{above}/"):
                return router.place(path)
        rest = self._by_path.get("")
        if rest is None or f"{path}/".startswith(f"{root}/"):
            return None
        return rest.place(path)

    def nodes_below(self, path: str) -> list[Node]:
        """Return the part of the tree that another process has directly below ``path``."""
        router = self._by_path.get(path)
        return [] if router is None else router.nodes()

    def forgotten(self, path: str) -> None:
        """Notify all routers that the actor at ``path`` has stopped for good."""
        for router in self._routers:
            router.forgotten(path)

    async def refresh(self) -> None:
        """Refresh the mailbox depths of all other processes, at the same time."""
        async with trio.open_nursery() as nursery:
            for path, router in list(self._by_path.items()):
                if path:  # a process above this one shows nothing here
                    nursery.start_soon(router.refresh)
