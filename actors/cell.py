"""``Cell``: one place in the tree, of an actor or a supervisor, across its incarnations."""

from __future__ import annotations

import enum
import math
from typing import Any, Protocol

import attrs
import trio

from actors.envelope import Envelope
from actors.errors import ActorCrashed, ActorStopped
from actors.mailbox import Mailbox, MailboxSpec, OnRestart, Signal
from actors.place import PlaceSystem, RefTarget, Watcher
from actors.policy import Exit, ExitKind
from actors.ref import Ref
from actors.reply import Reply
from actors.router import Routers
from actors.spec import AnySpec, ChildSpec
from actors.tree import Change, Node, Views


class PlaceState(enum.Enum):
    """The state of a place in the tree."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    DOWN = "down"
    """Nothing runs: before the first incarnation, or between two."""
    STOPPED = "stopped"
    """For good."""


@attrs.frozen
class Down:
    """A notification to a monitor: an incarnation of ``path`` ended.

    It arrives after every message that this incarnation sent to the same receiver. ``final``: the
    actor is not restarted; if that is decided only later (its supervisor has stopped), a second
    ``Down`` of the same incarnation reports it. ``with_node``: the whole process died; also final.
    """

    path: str
    incarnation: int
    reason: str
    crashed: bool
    final: bool
    with_node: bool = False


class CellSystem(PlaceSystem, Protocol):
    """The system of this process, as far as a ``Cell`` uses it."""

    @property
    def routers(self) -> Routers:
        """The routes to other processes."""
        ...

    @property
    def views(self) -> Views:
        """The readers of the tree's changes."""
        ...

    def remove(self, cell: Cell) -> None:
        """Free the path and the names of a place that is final."""


class RunningSupervisor(Protocol):
    """The current incarnation of a supervisor; every method returns before it is done."""

    def start_child(self, spec: AnySpec, reply: Reply[Ref[Any]]) -> None:
        """Start a child, and reply with its address when it is up."""

    def stop_child(self, name: str, reply: Reply[None]) -> None:
        """Stop a child for good, and reply when it has ended."""

    def remove_when_down(self, cell: Cell) -> None:
        """Start no further incarnation of ``cell``, a child."""


_NO_MESSAGES: frozenset[type] = frozenset()
_OF_SUPERVISOR = MailboxSpec(capacity=1)


class Cell:
    """The bookkeeping of one place; only the runtime touches it."""

    # Slots, here and in the other classes of the runtime: there are thousands of places, and a
    # dict of attributes takes as much memory as the attributes.

    __slots__ = (
        "_cancel_at",
        "_scope",
        "_state",
        "began_at",
        "children",
        "incarnation",
        "is_final",
        "mailbox",
        "parent",
        "path",
        "ref",
        "spec",
        "supervisor",
        "system",
        "watched",
        "watchers",
    )

    def __init__(self, system: CellSystem, parent: Cell | None, path: str, spec: AnySpec) -> None:
        self.system = system
        self.parent = parent
        self.spec = spec
        self.path = path
        self.supervisor: RunningSupervisor | None = None  # while one runs here
        self.mailbox = self._make_mailbox()
        self.children: dict[str, Cell] = {}
        self._state = PlaceState.DOWN
        self.is_final = False  # stopped for good
        self.incarnation = 0
        self.began_at = trio.current_time()
        self._cancel_at = math.inf
        self._scope: trio.CancelScope | None = None
        self.watchers: dict[str, Watcher] = {}
        self.watched: dict[str, RefTarget] = {}
        self.ref: Ref[Any] = Ref(self)

    def _make_mailbox(self) -> Mailbox:
        if isinstance(self.spec, ChildSpec):
            return Mailbox(self.path, self.spec.actor.accepts(), self.spec.mailbox)
        return Mailbox(self.path, _NO_MESSAGES, _OF_SUPERVISOR)

    @property
    def state(self) -> PlaceState:
        """The state; every change is published to the readers of the tree."""
        return self._state

    @state.setter
    def state(self, state: PlaceState) -> None:
        if state is not self._state:
            self._state = state
            self.publish()

    @property
    def kind(self) -> str:
        """The name of the actor's class, or ``Supervisor``."""
        return self.spec.actor.__name__ if isinstance(self.spec, ChildSpec) else "Supervisor"

    @property
    def restarts(self) -> int:
        """The number of incarnations before the current one."""
        return max(0, self.incarnation - 1)

    def begin_incarnation(self) -> None:
        """Start a new incarnation."""
        self.incarnation += 1
        self.state = PlaceState.STARTING
        self.began_at = trio.current_time()
        self._cancel_at, self._scope = math.inf, None
        self.mailbox.drop_signals()

    def run_within(self, scope: trio.CancelScope) -> None:
        """Set the cancel scope of the incarnation: that of its one nursery."""
        scope.deadline = self._cancel_at
        self._scope = scope

    def end_incarnation(self, ended: Exit) -> None:
        """Note that the incarnation has ended; another may follow."""
        self._scope = None
        self.state = PlaceState.DOWN
        if self.mailbox.spec.on_restart is OnRestart.CLEAR:
            self._fail_waiting(ended)

    def request_stop(self) -> None:
        """Stop the incarnation in order; after ``shutdown_s`` seconds it is cancelled."""
        if self.state not in (PlaceState.STARTING, PlaceState.RUNNING):
            return
        self.state = PlaceState.STOPPING
        self.mailbox.put_signal(Signal.STOP)
        self._cancel_at = trio.current_time() + self.spec.shutdown_s
        if self._scope is not None:
            self._scope.deadline = self._cancel_at

    def make_final(self, ended: Exit) -> None:
        """Stop the place for good: fail what is queued, notify watchers, and free the name."""
        if self.is_final:
            return
        for child in list(self.children.values()):
            child.make_final(Exit(ExitKind.STOPPED))
        self.is_final = True
        self.state = PlaceState.STOPPED
        self.mailbox.refuse_senders(
            ActorStopped(f"{self.path} has stopped; it takes no messages", path=self.path)
        )
        self._fail_waiting(ended)
        self.system.remove(self)
        if self.parent is not None and self.parent.children.get(self.spec.name) is self:
            del self.parent.children[self.spec.name]
        self._stop_watching()
        self.notify_watchers(ended, final=True)

    def stop_for_good(self) -> None:
        """Stop the incarnation in order, without a restart."""
        self.request_stop()
        supervisor = None if self.parent is None else self.parent.supervisor
        if supervisor is not None:
            supervisor.remove_when_down(self)

    def node(self) -> Node:
        """Return this place and everything below it as it is now, in the order of starting."""
        children = [child.node() for child in self.children.values()]
        return Node(
            path=self.path,
            name=self.spec.name,
            kind=self.kind,
            state=self.state.value,
            mailbox=len(self.mailbox),
            restarts=self.restarts,
            uptime_s=round(trio.current_time() - self.began_at, 3),
            children=[*children, *self.system.routers.nodes_below(self.path)],
        )

    def publish(self) -> None:
        """Notify the readers of the tree that this place is new or in another state."""
        if self.system.views.is_watched:
            change = Change(
                path=self.path,
                kind=self.kind,
                state=self.state.value,
                restarts=self.restarts,
                mailbox=len(self.mailbox),
            )
            self.system.views.publish(change)

    def watch(self, watched: RefTarget) -> None:
        """Monitor ``watched`` until either place is stopped for good."""
        watched.add_watcher(self)
        self.watched[watched.path] = watched

    def add_watcher(self, watcher: Watcher) -> None:
        """Notify ``watcher`` whenever an incarnation ends."""
        self.watchers[watcher.path] = watcher

    def remove_watcher(self, path: str) -> None:
        """Stop notifying the watcher of this path."""
        self.watchers.pop(path, None)

    def notify_watchers(self, ended: Exit, *, final: bool) -> None:
        """Send ``Down`` to every watcher."""
        down = Down(
            self.path, self.incarnation, ended.reason, ended.kind is ExitKind.CRASHED, final
        )
        for watcher in list(self.watchers.values()):
            watcher.mailbox.put_always(down)
            if final:
                del watcher.watched[self.path]
        if final:
            self.watchers.clear()

    def _stop_watching(self) -> None:
        for watched in self.watched.values():
            watched.remove_watcher(self.path)
        self.watched.clear()

    def _fail_waiting(self, ended: Exit) -> None:
        for item in self.mailbox.take_all():
            if isinstance(item, Envelope) and item.reply is not None:
                item.reply.give_up(ended_error(self.path, ended))


def ended_error(path: str, ended: Exit) -> ActorCrashed | ActorStopped:
    """Return the error of a request that was not answered because an incarnation ended."""
    if ended.kind is ExitKind.CRASHED:
        return ActorCrashed(f"{path} {ended.reason}", path=path)
    return ActorStopped(f"{path} has stopped; it cannot answer", path=path)
