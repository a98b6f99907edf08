"""``System``: one running tree of actors; ``open_system`` makes it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import attrs
import trio

from actors.cell import Cell, Down
from actors.deadlines import Deadlines
from actors.errors import ActorStopped, MisuseError
from actors.place import RefTarget
from actors.policy import describe
from actors.ref import Ref
from actors.registry import Registry
from actors.router import Routers
from actors.spec import AnySpec, ChildSpec, SupervisorSpec
from actors.supervisor_ref import SupervisorRef
from actors.tree import QUEUED_AT_MOST, Node, TreeWatch, Views


@attrs.frozen
class LifeCycleEvent:
    """An event in the life cycle of the actor or supervisor at ``path``.

    ``kind`` is "started", "crashed" (by ``error``), or "teardown_cut": the teardown exceeded its
    time limit and was cancelled. ``incarnation`` counts from 1.
    """

    kind: str
    path: str
    incarnation: int = 0
    error: Exception | None = None


Observer = Callable[[LifeCycleEvent], None]
"""Called in the runtime's own tasks: it must be quick and must not raise."""


Tracer = Callable[[str, str, str], None]
"""Called with a kind, a path and a detail for each event; it must be quick and must not raise."""


class System:
    """A running tree of actors.

    ``dead_letters`` counts messages to actors that were stopped for good; ``late_replies`` counts
    answers that came after the caller had its outcome or had stopped waiting.
    """

    def __init__(
        self,
        spec: SupervisorSpec,
        observer: Observer | None = None,
        chance: random.Random | None = None,
        tracer: Tracer | None = None,
        above: str = "",
    ) -> None:
        self.registry = Registry()
        self.chance = random.Random() if chance is None else chance  # noqa: S311 - jitter
        self.dead_letters = 0
        self.late_replies = 0
        self.tracer = tracer
        self.deadlines = Deadlines()
        self.views = Views()
        self.routers = Routers()
        self._observer = observer
        self._stopped = trio.Event()
        self._cells: dict[str, Cell] = {}
        self.root_task: trio.lowlevel.Task | None = None
        self.root = self.make_cell(None, spec, above)

    def ref(self, path: str) -> Ref[Any]:
        """Return the address of the actor at ``path``. Raises ``ActorStopped`` if there is none.

        A path in another process is not checked here: a request to it fails if there is no actor.
        """
        return Ref(self.place(path))

    def supervisor(self, path: str) -> SupervisorRef:
        """Return the handle of the supervisor at ``path``.

        Raises ``ActorStopped`` if there is nothing, and ``MisuseError`` if there is an actor.
        """
        cell = self._cell(path)
        if isinstance(cell.spec, ChildSpec):
            raise MisuseError(f"{path} is an actor, not a supervisor")
        return SupervisorRef(cell)

    def tree(self) -> Node:
        """Return the whole tree as it is now."""
        return self.root.node()

    async def fresh_tree(self, timeout: float) -> Node:
        """Return the whole tree with the current depths of mailboxes in other processes.

        For a process that does not answer within ``timeout`` seconds the depths are the last known
        ones, which date from each actor's last change of state.
        """
        with trio.move_on_after(timeout):
            await self.routers.refresh()
        return self.tree()

    def watch_tree(self, capacity: int = QUEUED_AT_MOST) -> TreeWatch:
        """Return a reader of the tree: all of it first, then changes, at most ``capacity`` queued.

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

    # For the runtime's own files.

    def place(self, path: str) -> RefTarget:
        """Return the place at ``path``, in this or another process.

        Raises ``ActorStopped`` if there is none.
        """
        if path not in self._cells:
            place = self.routers.place(path, root=self.root.path)
            if place is not None:
                return place
        return self._cell(path)

    def cell(self, path: str) -> Cell | None:
        """Return the place at ``path`` in this process, or None."""
        return self._cells.get(path)

    def make_cell(self, parent: Cell | None, spec: AnySpec, above: str = "") -> Cell:
        """Add a place below ``parent``; the root, which has none, is below the path ``above``."""
        above = above if parent is None else parent.path
        path = f"{above}/{spec.name}" if above else spec.name
        cell = self._cells[path] = Cell(self, parent, path, spec)
        cell.publish()
        return cell

    def remove(self, cell: Cell) -> None:
        """Free the path and the names of a place that is stopped for good."""
        if self._cells.get(cell.path) is cell:
            del self._cells[cell.path]
        self.registry.remove(cell.ref)
        self.routers.forgotten(cell.path)

    def monitor(self, *, watcher: Cell, watched: Ref[Any]) -> None:
        """Notify ``watcher`` whenever an incarnation of ``watched`` ends."""
        if isinstance(watcher.spec, SupervisorSpec) or Down not in watcher.spec.actor.accepts():
            raise MisuseError(f"{watcher.path} cannot monitor: it does not accept Down")
        watcher.watch(self.place(watched.path))

    def has_stopped(self) -> None:
        """Release the waiters for the end of the tree, and its readers."""
        self._stopped.set()
        self.views.close()

    def path_of(self, task: trio.lowlevel.Task) -> str:
        """Return the path of the actor or supervisor that ``task`` belongs to, or an empty path."""
        path = ""
        above: trio.lowlevel.Task | None = task
        while above is not None:
            if not path and above.name in self._cells:
                path = above.name
            if above is self.root_task:
                return path
            above = None if above.parent_nursery is None else above.parent_nursery.parent_task
        return ""

    def observe(
        self, kind: str, path: str, *, incarnation: int = 0, error: Exception | None = None
    ) -> None:
        """Report an event to the observer and the tracer."""
        if self.tracer is not None:
            detail = "" if error is None else f" {describe(error)}"
            self.tracer(kind, path, f"life {incarnation}{detail}")
        if self._observer is not None:
            self._observer(LifeCycleEvent(kind, path, incarnation, error))
