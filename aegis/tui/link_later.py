"""``LateLink``: the link to the daemon, loaded after the window shows something.

Trio, the client and the protocol take about as long to import as Textual. They are imported in a
thread, while the first frame is shown and keys are taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import trio

    from aegis.client.client import Client
    from aegis.tui.feeds import FeedSubscriber
    from aegis.tui.link import DaemonLink
    from aegis.tui.model.world import World

Work = Callable[["Client"], Awaitable[Any]]

MAX_EARLY = 64
"""Calls that wait for the first connection."""


class LateLink:
    """The link of the app to the daemon at ``root``, under ``handle``.

    ``link_type`` makes it, by the arguments of ``DaemonLink``; None: that class itself. ``loaded``
    is called once everything is imported.
    """

    def __init__(
        self,
        root: str | Path,
        handle: str | None,
        link_type: type[DaemonLink] | None,
        loaded: Callable[[], None],
    ) -> None:
        self._loaded = loaded
        self._root = root
        self._handle = handle
        self._type = link_type
        self._link: DaemonLink | None = None
        self._is_stopped = False
        self._early: list[tuple[Work, str]] | None = []

    async def run(self, world: World, listener: FeedSubscriber) -> None:
        """Load the link, and keep ``world`` up to date until ``stop``. Raises what ends it."""
        link_type, feeds = await asyncio.to_thread(_load)
        self._loaded()
        if self._is_stopped:
            return
        follow = feeds(world, listener).start

        def connected(client: Client, nursery: trio.Nursery) -> None:
            follow(client, nursery)
            early, self._early = self._early or [], None
            for work, what in early:
                self.call(work, what=what)

        self._link = (self._type or link_type)(
            self._root, self._handle, report=listener.report, feeds=connected
        )
        await self._link.start()

    def call(self, work: Work, *, what: str = "") -> None:
        """Run ``work`` with the client in a task, once there is a connection.

        A failure is reported as one sentence, which ``what`` begins.
        """
        if self._link is not None and self._early is None:
            self._link.call(work, what=what)
        elif self._early is not None and len(self._early) < MAX_EARLY:
            self._early.append((work, what))

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to the daemon now."""
        client = None if self._link is None else self._link.client
        return client is not None and client.is_connected

    async def stop(self) -> None:
        """End the link, and wait for its end. Must be called before the event loop ends."""
        self._is_stopped = True
        if self._link is not None:
            await self._link.stop()


def _load() -> tuple[type[DaemonLink], Any]:
    """Import what shows the daemon's state."""
    from aegis.tui.feeds import Feeds
    from aegis.tui.link import DaemonLink

    for name in ("terminal", "conversation"):  # the panes that are shown first
        import_module(f"aegis.tui.panes.{name}")
    return DaemonLink, Feeds
