"""``PlacedSubtrees``: the subtrees of a daemon's terminals, in its own process and in its workers.

Without workers every call goes to the daemon's own ``Subtrees``. With workers, the ``TerminalHost``
of each one starts and stops the subtrees there; only this class knows which worker has which
terminal.
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
from aegis.terminals.directory.placement import CandidateNode, NoPlace, choose_place
from aegis.terminals.retry import ask_across_restarts
from aegis.terminals.settings import TerminalFiles, TerminalSettings

log = structlog.get_logger("aegis.terminals")

WORKERS = "root/workers"
"""The path of the workers; each is a child with its name."""

START_TIMEOUT_S = 30.0
"""How long a worker may take to start a terminal; a worker that hangs is killed long before."""

STOP_TIMEOUT_S = 5.0
FIND_TIMEOUT_S = 2.0

TRIES = 3
"""How often the start of a terminal is tried while workers die, before it is refused."""

WAIT_UP_S = 5.0
"""How long a start waits for another worker after one died."""


class PlaceLost(NoPlace):
    """The worker died while it started the terminal."""


@attrs.define(eq=False, kw_only=True)
class PlacedSubtrees:
    """The subtrees of this process (``local``) and of its ``workers``, which are given by name."""

    local: Subtrees
    workers: tuple[str, ...] = ()
    _nodes: dict[str, str] = attrs.field(factory=dict, init=False)
    _worker_up: trio.Event = attrs.field(factory=trio.Event, init=False)

    @property
    def inboxes(self) -> Ref[Deliver]:
        """The actor that delivers to inboxes."""
        return self.local.inboxes

    def node_of(self, name: str) -> str:
        """Return the name of the terminal's node."""
        return self._nodes.get(name_key(name), self.local.node)

    def path(self, name: str) -> str:
        """Return the path of the subtree of the terminal ``name``, as it was spawned."""
        node = self.node_of(name)
        return self.local.path(name) if self._is_local(node) else f"{_below(node)}/{name}"

    def root(self, name: str) -> Ref[Any]:
        """Return the address of the subtree's supervisor, for monitoring."""
        return self.local.system.ref(self.path(name))

    def front(self, name: str) -> Ref[Any] | None:
        """Return the front of the terminal; None if it has ended. The name may have any case."""
        return self.local.front(name)

    # Workers that start and end.

    def worker_up(self) -> None:
        """Continue the starts that wait for a worker: one is up."""
        self._worker_up.set()
        self._worker_up = trio.Event()

    async def wait_up(self, timeout_s: float) -> bool:
        """Wait until any node takes terminals; return False after ``timeout_s``."""
        with trio.move_on_after(timeout_s):
            while not self._is_any_up():
                await self._worker_up.wait()
            return True
        return False

    async def wait_worker(self, timeout_s: float) -> None:
        """Wait until another worker comes up, ``timeout_s`` at most."""
        with trio.move_on_after(timeout_s):
            await self._worker_up.wait()

    def _is_any_up(self) -> bool:
        return any(each.is_up and not each.by_name for each in self._places())

    def _places(self) -> list[CandidateNode]:
        counts = dict.fromkeys((self.local.node, *self.workers), 0)
        for node in self._nodes.values():
            counts[node] += 1
        return [
            CandidateNode(
                name=node,
                is_up=self._is_local(node) or self._host(node) is not None,
                terminals=number,
                by_name=self._is_local(node) and bool(self.workers),
            )
            for node, number in counts.items()
        ]

    def check_node(self, wanted: str | None) -> None:
        """Raise ``AegisError`` if a terminal for the node ``wanted`` cannot be started now."""
        if wanted is not None or self.workers:
            choose_place(self._places(), wanted)

    def _is_local(self, node: str) -> bool:
        return node == self.local.node

    def _host(self, node: str) -> Ref[Any] | None:
        ref = self.local.system.registry.find(GROUP, node)
        return None if ref is None or ref.is_stopped else ref

    # Starting and stopping.

    async def start(
        self, settings: TerminalSettings, files: TerminalFiles, wanted: str | None = None
    ) -> Ref[Any]:
        """Start the writer, the front and a shell; return the front.

        They start on the node ``wanted``, else on the least loaded one, or on another one if that
        dies. Raises what ``Subtrees.start`` raises, and ``PlaceLost``.
        """
        if not self.workers and wanted is None:
            return await self.local.start(settings, files)
        # On a node it is not new: one that died may have written its files.
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
        node = self._nodes[key] = choose_place(self._places(), wanted)
        try:
            if self._is_local(node):
                return await self.local.start(settings, files)
            return await self._start_at(node, settings, files)
        except Exception:
            self._nodes.pop(key, None)
            raise

    async def _start_at(
        self, node: str, settings: TerminalSettings, files: TerminalFiles
    ) -> Ref[Any]:
        """Start on a worker. If the outcome is unknown, undo it and raise ``PlaceLost``."""
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
        """Stop the subtree, if it exists, and wait until it is gone."""
        node = self.node_of(name)
        try:
            if self._is_local(node):
                await self.local.stop(name)
            else:
                await self._stop_at(node, name)
        finally:
            self.remove(name)

    async def _stop_at(self, node: str, name: str) -> None:
        host = self._host(node)
        if host is None:  # the worker is down, and its subtrees with it
            return
        try:
            await ask_across_restarts(host, StopTerminal(name=name), timeout=STOP_TIMEOUT_S)
        except ActorStopped:
            return
        except AskError as error:
            log.warning("terminal not stopped", terminal=name, node=node, error=str(error))

    def remove(self, name: str) -> None:
        """Drop the node of a terminal whose subtree is gone."""
        self._nodes.pop(name_key(name), None)

    # After a crash of the directory.

    async def find(self) -> list[str]:
        """Return the names of the terminals that have a subtree on any node."""
        names = list(self.local.names)
        for node in self.workers:
            for name in await self._names_at(node):
                self._nodes[name_key(name)] = node
                names.append(name)
        return names

    async def _names_at(self, node: str) -> list[str]:
        host = self._host(node)
        if host is None:
            return []
        try:
            hosted = await ask_across_restarts(host, HostedTerminals(), timeout=FIND_TIMEOUT_S)
            return list(hosted.names)
        except AskError as error:
            log.warning("node does not answer", node=node, error=str(error))
        # The registry still has the fronts of its terminals.
        registry, below = self.local.system.registry, f"{_below(node)}/"
        refs = [registry.find("terminal", key) for key in registry.names("terminal")]
        paths = [ref.path for ref in refs if ref is not None and not ref.is_stopped]
        return [path.split("/")[-2] for path in paths if path.startswith(below)]


def _below(node: str) -> str:
    """Return the path of the supervisor of a worker's terminals."""
    return f"{WORKERS}/{node}/{SUPERVISOR}"
