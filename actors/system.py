"""``System``: one tree of actors, opened and closed with ``async with open_system(spec)``."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from actors.cell import Cell, Down
from actors.deadlines import Deadlines
from actors.errors import ActorError, ActorStopped, MisuseError, StartFailed
from actors.place import Place, Route
from actors.policy import Exit, ExitKind, describe
from actors.ref import Ref
from actors.registry import Registry
from actors.slow_steps import SlowStepObserver, watched_steps
from actors.spec import AnySpec, SupervisorSpec
from actors.supervisor import Supervisor
from actors.supervisor_ref import SupervisorRef
from actors.tree import QUEUED_AT_MOST, Node, TreeWatch, Views, snapshot


@attrs.frozen
class LifeEvent:
    """Something happened to a life.

    ``kind`` is "started", "crashed" (by ``error``), or "teardown_cut": the teardown took longer
    than it may and was cancelled.
    """

    kind: str
    path: str
    incarnation: int = 0
    error: Exception | None = None


Observer = Callable[[LifeEvent], None]
"""Called within the runtime's own tasks: it must be quick and must not raise."""


Tracer = Callable[[str, str, str], None]
"""Gets a kind, a path and a detail for everything that happens; likewise quick, never raising."""


class System:
    """A running tree.

    ``dead_letters`` counts messages told to actors that had stopped for good, ``late_replies``
    what handlers answered when the asker had its outcome already or had gone away.
    """

    def __init__(
        self,
        spec: SupervisorSpec,
        observer: Observer | None = None,
        chance: random.Random | None = None,
        tracer: Tracer | None = None,
        above: str = "",
    ) -> None:
        self.above = above
        self.registry = Registry()
        self.chance = random.Random() if chance is None else chance  # noqa: S311 - jitter
        self.dead_letters = 0
        self.late_replies = 0
        self.tracer = tracer
        self.deadlines = Deadlines()
        self.views = Views()
        self._observer = observer
        self._stopped = trio.Event()
        self._cells: dict[str, Cell] = {}
        self._supervisors: dict[str, Supervisor] = {}
        self._routes: dict[str, Route] = {}
        self.on_forgotten: list[Callable[[str], None]] = []
        self.grafts: dict[str, Callable[[], list[Node]]] = {}
        self.refreshers: dict[str, Callable[[], Awaitable[None]]] = {}
        self._root_task: trio.lowlevel.Task | None = None
        self._root = self.make_cell(None, spec)

    def ref(self, path: str) -> Ref[Any]:
        """The address of the actor at ``path``. Raises ``ActorStopped`` if there is none.

        Of a path in another process that is not known yet: who asks there will see.
        """
        return self.place(path).ref

    def supervisor(self, path: str) -> SupervisorRef:
        """The handle of the supervisor at ``path``. Raises ``ActorStopped`` if there is none."""
        cell = self._cell(path)
        if not cell.is_supervisor:
            raise MisuseError(f"{path} is an actor, not a supervisor")
        return SupervisorRef(cell)

    def tree(self) -> Node:
        """The whole tree as it is now."""
        return snapshot(self._root, self.grafts)

    async def fresh_tree(self, timeout: float) -> Node:
        """Likewise, and what it shows of mailboxes in other processes is as new.

        Of those that do not answer within ``timeout`` seconds it is as it was last known: at the
        last change of state.
        """
        with trio.move_on_after(timeout):
            async with trio.open_nursery() as nursery:
                for refresh in list(self.refreshers.values()):
                    nursery.start_soon(refresh)
        return self.tree()

    def watch_tree(self, capacity: int = QUEUED_AT_MOST) -> TreeWatch:
        """The tree as it changes, the whole of it first; at most ``capacity`` changes are kept.

        with system.watch_tree() as watch:
            async for view in watch:  # a Node, then Changes; after a Gap a Node again
        """
        return self.views.watch(self.tree, capacity)

    async def wait_stopped(self) -> None:
        """Wait until the whole tree has ended: stopped, or finished with significant children."""
        await self._stopped.wait()

    def _cell(self, path: str) -> Cell:
        cell = self._cells.get(path)
        if cell is None:
            raise ActorStopped(f"there is nothing at {path}")
        return cell

    # What follows is for the runtime's own files.

    def place(self, path: str) -> Place:
        """What is at ``path``, here or elsewhere. Raises ``ActorStopped`` if there is nothing."""
        if path not in self._cells:
            for prefix, route in self._routes.items():
                if prefix and path.startswith(f"{prefix}/"):
                    return route.place(path)
            above = self._routes.get("")
            if above is not None and not f"{path}/".startswith(f"{self._root.path}/"):
                return above.place(path)
        return self._cell(path)

    def add_route(self, prefix: str, route: Route) -> None:
        """What is below the path ``prefix``, and not here, is in another process.

        An empty prefix: whatever is not here.
        """
        self._routes[prefix] = route

    def remove_route(self, prefix: str, route: Route) -> None:
        """Nothing is there any more, unless another way was found since."""
        if self._routes.get(prefix) is route:
            del self._routes[prefix]

    def cell(self, path: str) -> Cell | None:
        """The place at ``path`` in this process."""
        return self._cells.get(path)

    def make_cell(self, parent: Cell | None, spec: AnySpec) -> Cell:
        """A new place in the tree."""
        cell = Cell(self, parent, spec)
        self._cells[cell.path] = cell
        self.views.changed(cell)
        return cell

    def forget(self, cell: Cell) -> None:
        """The place is empty for good: free its path and its names."""
        if self._cells.get(cell.path) is cell:
            del self._cells[cell.path]
        self.registry.remove(cell.ref)
        for forgotten in self.on_forgotten:
            forgotten(cell.path)

    def monitor(self, *, watcher: Cell, watched: Ref[Any]) -> None:
        """Let ``watcher`` hear of the ends of lives of ``watched``."""
        if isinstance(watcher.spec, SupervisorSpec) or Down not in watcher.spec.actor.accepts():
            raise MisuseError(f"{watcher.path} cannot monitor: it does not accept Down")
        watcher.watch(self.place(watched.path))

    def running_supervisor(self, cell: Cell) -> Supervisor | None:
        """The present life of the supervisor at ``cell``, if it has one."""
        return self._supervisors.get(cell.path)

    async def run_supervisor(self, cell: Cell, on_started: Callable[[], None]) -> Exit:
        """Live one life of the supervisor at ``cell``."""
        supervisor = self._supervisors[cell.path] = Supervisor(cell)
        try:
            return await supervisor.run(on_started)
        finally:
            del self._supervisors[cell.path]

    async def run_root(self, on_started: Callable[[], None]) -> None:
        """Live the root's only life. Raises what made it give up."""
        self._root_task = trio.lowlevel.current_task()
        self._root.begin_life()
        ended = Exit(ExitKind.STOPPED)
        try:
            ended = await self.run_supervisor(self._root, on_started)
        finally:
            self._root.make_final(ended)
            self._stopped.set()
            self.views.close()
        if ended.error is not None:
            raise ended.error

    def request_stop(self) -> None:
        """Stop the whole tree in order."""
        self._root.request_stop()

    def stop_cell(self, cell: Cell) -> None:
        """Stop one place in order and for good, whether it has a life now or not."""
        cell.request_stop()
        supervisor = None if cell.parent is None else self.running_supervisor(cell.parent)
        if supervisor is not None:
            supervisor.forget_when_down(cell)

    def path_of(self, task: trio.lowlevel.Task) -> str:
        """Where in the tree ``task`` belongs; empty if nowhere."""
        path = ""
        above: trio.lowlevel.Task | None = task
        while above is not None:
            if not path and above.name in self._cells:
                path = above.name
            if above is self._root_task:
                return path
            above = None if above.parent_nursery is None else above.parent_nursery.parent_task
        return ""

    def observe(
        self, kind: str, path: str, *, incarnation: int = 0, error: Exception | None = None
    ) -> None:
        """Tell the observer."""
        if self.tracer is not None:
            told = "" if error is None else f" {describe(error)}"
            self.tracer(kind, path, f"life {incarnation}{told}")
        if self._observer is not None:
            self._observer(LifeEvent(kind, path, incarnation, error))


@asynccontextmanager
async def open_system(
    spec: SupervisorSpec,
    *,
    observer: Observer | None = None,
    on_slow_step: SlowStepObserver | None = None,
    debug: bool = False,
    chance: random.Random | None = None,
    tracer: Tracer | None = None,
    above: str = "",
    prepare: Callable[[System], None] | None = None,
) -> AsyncIterator[System]:
    """Start the tree of ``spec``, wait until all of it is up, and stop it in order at the end.

    Raises ``StartFailed`` if it does not come up. If the root gives up while the body runs, the
    body is cancelled and ``RestartsExhausted`` is raised.

    ``observer`` hears of starts and crashes. ``on_slow_step`` hears of every step of this loop that
    blocked it for more than 0.1 s; with ``debug`` its stack is told too, at the cost of a thread.
    ``chance`` is what the jitter of pauses is drawn from, if it is to be known; ``tracer`` hears of
    every life, message and timer. ``above`` is the path of what the tree hangs below, if anything;
    ``prepare`` is called with the system before the first life begins.
    """
    system = System(spec, observer, chance, tracer, above)
    if prepare is not None:
        prepare(system)
    up = trio.Event()
    alarm = trio.CancelScope()
    root_failure: ActorError | None = None
    body_failure: Exception | None = None

    async def live(scope: trio.CancelScope) -> None:
        nonlocal root_failure
        try:
            await system.run_root(up.set)
            if not up.is_set():
                raise StartFailed(f"{spec.name} was stopped before it was up")
        except ActorError as error:
            root_failure = error
            scope.cancel()
        finally:
            alarm.cancel()

    with watched_steps(on_slow_step, system.path_of, debug=debug):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_ring, system.deadlines, alarm)
            nursery.start_soon(live, nursery.cancel_scope, name=spec.name)
            await up.wait()
            try:
                yield system
            except Exception as error:  # kept bare: the nursery would wrap it in a group
                body_failure = error
            finally:
                system.request_stop()
    if root_failure is not None:
        root_failure.__context__ = body_failure  # its cause stays what made the root fail
        raise root_failure
    if body_failure is not None:
        raise body_failure


async def _ring(deadlines: Deadlines, alarm: trio.CancelScope) -> None:
    with alarm:
        await deadlines.ring_for_ever()
