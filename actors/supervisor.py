"""Supervisors: one task that owns one nursery, starts children, and carries the policy out.

Only the supervisor's task starts children: ``start_soon`` copies the caller's context variables,
and an outer request must not leak into a long-lived actor. Everything reaches that task as an
event, the end of a pause included, so that it always notices a stop. ``Supervision`` decides what
follows from an event; this file carries it out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import trio

from actors import faults
from actors.cell import Cell, PlaceState
from actors.errors import ActorError, ActorStopped, MisuseError, SupervisorFailed
from actors.incarnation import run_actor
from actors.policy import Exit, ExitKind, describe
from actors.ref import Ref
from actors.reply import Reply
from actors.spec import AnySpec, ChildSpec, SupervisorSpec
from actors.supervision import (
    Action,
    BackoffPause,
    EndIncarnation,
    EndSupervisor,
    RemoveChild,
    StartChild,
    StopChild,
    Supervision,
    Up,
    start_failed,
)
from actors.system import System


@attrs.frozen(eq=False)
class _Started:
    cell: Cell


@attrs.frozen(eq=False)
class _Ended:
    cell: Cell
    exit: Exit


@attrs.frozen(eq=False)
class _PauseOver:
    ticket: int


@attrs.frozen(eq=False)
class _StartChild:
    spec: AnySpec
    reply: Reply[Ref[Any]]


@attrs.frozen(eq=False)
class _StopChild:
    name: str
    reply: Reply[None]


@attrs.frozen(eq=False)
class _StopCell:
    cell: Cell


@attrs.frozen(eq=False)
class _StopAll:
    """This supervisor is to stop."""


_Event = _Started | _Ended | _PauseOver | _StartChild | _StopChild | _StopCell | _StopAll


async def run_supervisor(system: System, cell: Cell, on_started: Callable[[Cell], None]) -> Exit:
    """Run one incarnation of the supervisor at ``cell``."""
    supervisor = Supervisor(system, cell, on_started)
    cell.supervisor = supervisor
    try:
        return await supervisor.run()
    finally:
        cell.supervisor = None


class Supervisor:
    """One incarnation of a supervisor."""

    __slots__ = (
        "_cell",
        "_events",
        "_is_over",
        "_nursery",
        "_on_started",
        "_result",
        "_rules",
        "_spec",
        "_start_replies",
        "_stop_replies",
        "_system",
    )

    def __init__(self, system: System, cell: Cell, on_started: Callable[[Cell], None]) -> None:
        assert isinstance(cell.spec, SupervisorSpec)
        self._system = system
        self._cell = cell
        self._spec = cell.spec
        self._rules = Supervision(cell.path, cell.spec)
        # Bounded by the number of children (at most a start, an end and a pause of each) and of
        # callers of start_child and stop_child. Not a deque: there are many supervisors, and an
        # empty deque takes 0.7 KiB.
        self._events: list[_Event] = []
        self._is_over = False
        self._start_replies: dict[str, Reply[Ref[Any]]] = {}
        self._stop_replies: dict[str, list[Reply[None]]] = {}
        self._on_started = on_started
        self._result: Exit | None = None

    def _post(self, event: _Event) -> None:
        if self._is_over:
            self._refuse(event)
        else:
            self._events.append(event)
            self._cell.mailbox.wake()

    def start_child(self, spec: AnySpec, reply: Reply[Ref[Any]]) -> None:
        """Start a child, and reply with its address when it is up."""
        self._post(_StartChild(spec, reply))

    def stop_child(self, name: str, reply: Reply[None]) -> None:
        """Stop a child for good, and reply when it has ended."""
        self._post(_StopChild(name, reply))

    def remove_when_down(self, cell: Cell) -> None:
        """Start no further incarnation of ``cell``, a child."""
        self._post(_StopCell(cell))

    async def run(self) -> Exit:
        """Run until stopped or until the rules end it, and return how it ended.

        A failure of the supervisor itself is a crash like a child's: its children are cancelled.
        """
        try:
            await self._work()
        except* Exception as group:
            self._result = Exit(ExitKind.CRASHED, self._failed(group))
        finally:
            self._end_cancelled_children()
            self._refuse_waiting()
        result = self._result or Exit(ExitKind.STOPPED)
        if result.error is not None:
            self._observe("crashed", self._cell, result.error)
        return result

    async def _work(self) -> None:
        async with trio.open_nursery() as nursery:
            self._cell.run_within(nursery.cancel_scope)
            self._nursery = nursery
            self._add_places()
            self._carry_out(self._rules.begin())
            while self._result is None:
                self._handle(await self._next_event())
            nursery.cancel_scope.cancel()

    def _failed(self, group: ExceptionGroup[Exception]) -> ActorError:
        error = SupervisorFailed(f"{self._cell.path} itself failed: {describe(group)}")
        error.__cause__ = group
        return error

    async def _next_event(self) -> _Event:
        # The checkpoint lets other tasks run between two events. A stop precedes all of them.
        mailbox = self._cell.mailbox
        await trio.lowlevel.checkpoint()
        while not (mailbox.signals or self._events):
            await mailbox.wait()
        if mailbox.signals:
            mailbox.drop_signals()
            self._cell.state = PlaceState.STOPPING
            return _StopAll()
        return self._events.pop(0)

    def _add_places(self) -> None:
        # A restarted supervisor keeps its children's places, so their addresses stay valid.
        for spec in self._spec.children:
            if spec.name not in self._cell.children:
                self._add_place(spec)
        self._sort_places()

    def _add_place(self, spec: AnySpec) -> None:
        self._cell.children[spec.name] = self._system.make_cell(self._cell, spec)

    def _sort_places(self) -> None:
        places = self._cell.children
        for spec in self._spec.children:
            if spec.name in places:
                places[spec.name] = places.pop(spec.name)

    # Events.

    def _handle(self, event: _Event) -> None:
        rules = self._rules
        match event:
            case _Started(cell):
                self._child_started(cell)
            case _Ended(cell, ended):
                now, chance = trio.current_time(), self._system.chance.random()
                self._carry_out(rules.ended(cell.spec.name, ended, now, chance))
            case _PauseOver(ticket):
                self._carry_out(rules.pause_over(ticket))
            case _StartChild(spec, reply):
                self._start_child(spec, reply)
            case _StopChild(name, reply):
                self._stop_child(name, reply)
            case _StopCell(cell):
                if self._cell.children.get(cell.spec.name) is cell:
                    self._carry_out(rules.remove(cell.spec.name))
            case _StopAll():
                self._carry_out(rules.stop())

    def _child_started(self, cell: Cell) -> None:
        # While the supervisor is ending, the callers of start_child are refused at the end.
        name = cell.spec.name
        if not self._rules.is_ending:
            self._observe("started", cell)
            if name in self._start_replies:
                self._start_replies.pop(name).send(cell.ref)
        self._carry_out(self._rules.started(name))

    def _start_child(self, spec: AnySpec, reply: Reply[Ref[Any]]) -> None:
        if self._rules.is_ending:
            reply.fail(ActorStopped(f"{self._cell.path} is stopping"))
            return
        try:
            self._check_new_child(spec)
        except MisuseError as error:
            reply.fail(error)
            return
        self._add_place(spec)
        self._start_replies[spec.name] = reply
        self._carry_out(self._rules.add(spec))

    def _check_new_child(self, spec: AnySpec) -> None:
        if not self._spec.dynamic:
            raise MisuseError(f"{self._cell.path} is not dynamic: its children are fixed")
        if spec.name in self._cell.children:
            raise MisuseError(f"{self._cell.path} already has a child {spec.name!r}")
        self._spec.check_child(spec)

    def _stop_child(self, name: str, reply: Reply[None]) -> None:
        if name not in self._cell.children:
            reply.send(None)
        else:
            self._stop_replies.setdefault(name, []).append(reply)
            self._carry_out(self._rules.remove(name))

    # Actions.

    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case StartChild(name):
                    self._start(name)
                case StopChild(name):
                    faults.STOP_BEFORE.hit()
                    self._cell.children[name].request_stop()
                    faults.STOP_AFTER.hit()
                case EndIncarnation(name, ended):
                    self._end_incarnation(self._cell.children[name], ended)
                case RemoveChild(name, ended):
                    self._remove(self._cell.children[name], ended)
                case BackoffPause(ticket, delay_s):
                    self._nursery.start_soon(self._pause, ticket, delay_s)
                case Up():
                    self._report_up()
                case EndSupervisor(ended):
                    self._result = ended

    def _start(self, name: str) -> None:
        cell = self._cell.children.get(name) or self._replace_place(name)
        is_restart = cell.incarnation > 0
        faults.START_BEFORE.hit()
        if is_restart:
            faults.RESTART_BEFORE.hit()
        cell.begin_incarnation()
        self._nursery.start_soon(self._run_child, cell, name=cell.path)
        if is_restart:
            faults.RESTART_AFTER.hit()
        faults.START_AFTER.hit()

    def _replace_place(self, name: str) -> Cell:
        # The child was stopped for good, and restarts with its group.
        self._add_place(next(spec for spec in self._spec.children if spec.name == name))
        self._sort_places()
        return self._cell.children[name]

    async def _run_child(self, cell: Cell) -> None:
        run = run_actor if isinstance(cell.spec, ChildSpec) else run_supervisor
        ended = await run(self._system, cell, self._report_started)
        self._post(_Ended(cell, ended))

    def _report_started(self, cell: Cell) -> None:
        self._post(_Started(cell))

    async def _pause(self, ticket: int, delay_s: float) -> None:
        await trio.sleep(delay_s)
        self._post(_PauseOver(ticket))

    def _report_up(self) -> None:
        if self._cell.state is PlaceState.STARTING:
            self._cell.state = PlaceState.RUNNING
        self._on_started(self._cell)

    def _end_incarnation(self, cell: Cell, ended: Exit) -> None:
        # Children of a dynamic supervisor that is ending are not started again.
        cell.end_incarnation(ended)
        if self._rules.is_ending and self._spec.dynamic:
            cell.make_final(ended)
        else:
            cell.notify_watchers(ended, final=False)

    def _remove(self, cell: Cell, ended: Exit) -> None:
        name = cell.spec.name
        cell.end_incarnation(ended)
        cell.make_final(ended)
        if name in self._start_replies:
            self._start_replies.pop(name).fail(start_failed(cell.path, ended))
        for reply in self._stop_replies.pop(name, []):
            reply.send(None)

    # The end.

    def _end_cancelled_children(self) -> None:
        # Their incarnations were cancelled together with this supervisor.
        for cell in list(self._cell.children.values()):
            if not _is_down(cell):
                cell.end_incarnation(Exit(ExitKind.STOPPED))
                if not self._spec.dynamic:
                    cell.notify_watchers(Exit(ExitKind.STOPPED), final=False)

    def _refuse_waiting(self) -> None:
        stopped = Exit(ExitKind.STOPPED)
        if self._spec.dynamic:
            for cell in list(self._cell.children.values()):
                cell.make_final(stopped)
        for reply in self._start_replies.values():
            reply.fail(ActorStopped(f"{self._cell.path} is stopping"))
        for replies in self._stop_replies.values():
            for stopped_reply in replies:
                stopped_reply.send(None)
        self._is_over = True
        events, self._events = self._events, []
        for event in events:
            self._refuse(event)

    def _refuse(self, event: _Event) -> None:
        if isinstance(event, _StartChild):
            event.reply.fail(ActorStopped(f"{self._cell.path} is stopping"))
        elif isinstance(event, _StopChild):
            event.reply.send(None)

    def _observe(self, kind: str, cell: Cell, error: Exception | None = None) -> None:
        self._system.observe(kind, cell.path, incarnation=cell.incarnation, error=error)


def _is_down(cell: Cell) -> bool:
    return cell.state in (PlaceState.DOWN, PlaceState.STOPPED)
