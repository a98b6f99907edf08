"""``PlacedSubtrees``: the subtrees of a daemon's terminals, in its own process and in its workers.

Without workers it is the daemon's own ``Subtrees``, with nothing between. With them each worker's
``TerminalHost`` starts and stops what is placed there; who is where is remembered here only.
"""

from __future__ import annotations

from typing import Any

import attrs
import structlog
import trio

from actors import ActorStopped, AskDeadline, AskError, Ref
from aegis.errors import Unavailable
from aegis.path_text import text_of_path
from aegis.protocol.inboxes import Deliver
from aegis.protocol.naming import name_key
from aegis.terminals.directory.hosting import (
    GROUP,
    SUPERVISOR,
    HostedTerminals,
    StartTerminal,
    StopTerminal,
    Subtrees,
)
from aegis.terminals.directory.placement import NoPlace, Place, choose_place
from aegis.terminals.retry import ask_again
from aegis.terminals.settings import TerminalFiles, TerminalSettings

log = structlog.get_logger("aegis.terminals")

WORKERS = "root/workers"
"""Below this path each worker is, by its name."""

START_TIMEOUT_S = 30.0
"""How long a worker may take to start a terminal; one that hangs is killed long before."""

STOP_TIMEOUT_S = 5.0
FIND_TIMEOUT_S = 2.0

TRIES = 3
"""How often a terminal is started whose workers die meanwhile, before that is told."""

WAIT_UP_S = 5.0
"""How long a start waits for a worker, behind one that died."""


class PlaceLost(NoPlace):
    """The worker died while it started the terminal."""


@attrs.define(eq=False, kw_only=True)
class PlacedSubtrees:
    """The subtrees of this process, ``local``, and those in the ``workers`` of these names."""

    local: Subtrees
    workers: tuple[str, ...] = ()
    _where: dict[str, str] = attrs.field(factory=dict, init=False)
    _news: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def inboxes(self) -> Ref[Deliver]:
        """Who brings wakes to inboxes."""
        return self.local.inboxes

    def node_of(self, name: str) -> str:
        """The name of the place where the terminal is."""
        return self._where.get(name_key(name), self.local.node)

    def path(self, name: str) -> str:
        """Where the subtree of the terminal ``name`` sits; the name as it was spawned."""
        node = self.node_of(name)
        return self.local.path(name) if self._is_here(node) else f"{_below(node)}/{name}"

    def root(self, name: str) -> Ref[Any]:
        """The address of the subtree's own supervisor. To be monitored."""
        return self.local.system.ref(self.path(name))

    def front(self, name: str) -> Ref[Any] | None:
        """The front of the terminal, whatever the case of the name; None if it has ended."""
        return self.local.front(name)

    # Workers that come and go.

    def came_up(self) -> None:
        """A worker can take terminals: let go on whoever waits for that."""
        self._news.set()
        self._news = trio.Event()

    async def wait_up(self, timeout_s: float) -> bool:
        """Wait until any place is up that takes what comes; whether one is."""
        with trio.move_on_after(timeout_s):
            while not self._is_any_up():
                await self._news.wait()
            return True
        return False

    async def wait_news(self, timeout_s: float) -> None:
        """Wait until a worker comes up, no longer than this."""
        with trio.move_on_after(timeout_s):
            await self._news.wait()

    def _is_any_up(self) -> bool:
        return any(each.is_up and not each.by_name for each in self._places())

    def _places(self) -> list[Place]:
        counts = dict.fromkeys((self.local.node, *self.workers), 0)
        for node in self._where.values():
            counts[node] += 1
        return [
            Place(
                name=node,
                is_up=self._is_here(node) or self._host(node) is not None,
                terminals=number,
                by_name=self._is_here(node) and bool(self.workers),
            )
            for node, number in counts.items()
        ]

    def check_node(self, wanted: str | None) -> None:
        """Raise ``AegisError`` where a terminal that wants this place cannot be started now."""
        if wanted is not None or self.workers:
            choose_place(self._places(), wanted)

    def _is_here(self, node: str) -> bool:
        return node == self.local.node

    def _host(self, node: str) -> Ref[Any] | None:
        ref = self.local.system.registry.find(GROUP, node)
        return None if ref is None or ref.is_stopped else ref

    # Starting and stopping.

    async def start(
        self, settings: TerminalSettings, files: TerminalFiles, wanted: str | None = None
    ) -> Ref[Any]:
        """Start the writer, the front and a shell; gives the front. Raises what they raise.

        At the place ``wanted``, else where there is room: and somewhere else if that dies.
        """
        if not self.workers and wanted is None:
            return await self.local.start(settings, files)
        for tries_left in reversed(range(TRIES)):
            try:
                return await self._start(settings, files, wanted)
            except PlaceLost:
                if not tries_left or not await self.wait_up(WAIT_UP_S):
                    raise
        raise AssertionError

    async def _start(
        self, settings: TerminalSettings, files: TerminalFiles, wanted: str | None
    ) -> Ref[Any]:
        key = name_key(settings.name)
        node = self._where[key] = choose_place(self._places(), wanted)
        try:
            if self._is_here(node):
                return await self.local.start(settings, files)
            return await self._start_at(node, settings, files)
        except Exception:
            self._where.pop(key, None)
            raise

    async def _start_at(
        self, node: str, settings: TerminalSettings, files: TerminalFiles
    ) -> Ref[Any]:
        """Raises ``PlaceLost`` if nobody can say what became of the start; then it is undone."""
        host, name = self._host(node), settings.name
        lost = PlaceLost(f"node {node!r} died while it started terminal {name!r}; try again")
        if host is None:
            raise lost
        request = StartTerminal(settings=settings, directory=text_of_path(files.directory))
        try:
            await host.ask(request, timeout=START_TIMEOUT_S)
        except AskDeadline:
            await self._stop_at(node, name)
            raise Unavailable(
                f"aegis_term_spawn: node {node!r} did not start terminal {name!r} within "
                f"{START_TIMEOUT_S:g} s; try again"
            ) from None
        except AskError as error:
            await self._stop_at(node, name)
            raise lost from error
        front = self.front(name)
        if front is None:
            raise lost
        return front

    async def stop(self, name: str) -> None:
        """Stop the subtree and wait until it is gone. No such subtree: nothing to do."""
        node = self.node_of(name)
        try:
            if self._is_here(node):
                await self.local.stop(name)
            else:
                await self._stop_at(node, name)
        finally:
            self.forget(name)

    async def _stop_at(self, node: str, name: str) -> None:
        host = self._host(node)
        if host is None:  # nothing is there any more
            return
        try:
            await ask_again(host, StopTerminal(name=name), timeout=STOP_TIMEOUT_S)
        except ActorStopped:
            return
        except AskError as error:
            log.warning("terminal not stopped", terminal=name, node=node, error=str(error))

    def forget(self, name: str) -> None:
        """The subtree is gone."""
        self._where.pop(name_key(name), None)

    # After a crash of whoever knew.

    async def find(self) -> list[str]:
        """The names of the terminals that have a subtree, wherever it is."""
        names = list(self.local.names)
        for node in self.workers:
            for name in await self._names_at(node):
                self._where[name_key(name)] = node
                names.append(name)
        return names

    async def _names_at(self, node: str) -> list[str]:
        """One that does not answer has at least those whose fronts are known."""
        host = self._host(node)
        if host is None:
            return []
        try:
            hosted = await ask_again(host, HostedTerminals(), timeout=FIND_TIMEOUT_S)
            return list(hosted.names)
        except AskError as error:
            log.warning("node does not answer", node=node, error=str(error))
        registry, below = self.local.system.registry, f"{_below(node)}/"
        refs = [registry.find("terminal", key) for key in registry.names("terminal")]
        paths = [ref.path for ref in refs if ref is not None and not ref.is_stopped]
        return [path.split("/")[-2] for path in paths if path.startswith(below)]


def _below(node: str) -> str:
    """The supervisor of the terminals of a worker."""
    return f"{WORKERS}/{node}/{SUPERVISOR}"
