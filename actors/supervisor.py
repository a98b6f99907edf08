"""Supervisors: one task that owns one nursery, starts children, and carries the policy out.

Only the supervisor's task starts children: ``start_soon`` copies the caller's context variables,
and an outer request must not leak into a long-lived actor. Everything that happens comes to it as
an event, a due restart included, so that a stop is always heard.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs
import trio

from actors.cell import Cell, State
from actors.errors import ActorStopped, MisuseError, RestartsExhausted, StartFailed
from actors.life import run_actor
from actors.mailbox import Signal
from actors.policy import (
    Budget,
    Exit,
    ExitKind,
    ForgetChild,
    GiveUp,
    RestartChild,
    decide,
    describe,
)
from actors.ref import Ref
from actors.reply import Reply
from actors.spec import AnySpec, ChildSpec, SupervisorSpec


@attrs.frozen(eq=False)
class _Started:
    cell: Cell


@attrs.frozen(eq=False)
class _Ended:
    cell: Cell
    exit: Exit


@attrs.frozen(eq=False)
class _RestartDue:
    cell: Cell


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
    reply: Reply[None]


@attrs.frozen(eq=False)
class _StopDue:
    """Only wakes the supervisor: its state says the rest."""


_Event = _Started | _Ended | _RestartDue | _StartChild | _StopChild | _StopCell | _StopDue


class SupervisorRef:
    """The handle of a dynamic supervisor: start and stop its children."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell

    @property
    def names(self) -> list[str]:
        """The names of the children there are, in the order of starting."""
        return list(self._cell.children)

    async def start_child(self, spec: AnySpec) -> Ref[Any]:
        """Start a child and wait until its set-up is done.

        Raises ``StartFailed`` (its ``__cause__`` is what the set-up raised), ``MisuseError`` if the
        name is taken, ``ActorStopped`` while the supervisor is not up. If the caller is cancelled,
        the child starts all the same.
        """
        reply: Reply[Ref[Any]] = Reply()
        self._supervisor().post(_StartChild(spec, reply))
        return await reply.wait()

    async def stop_child(self, name: str) -> None:
        """Stop a child in order and wait until it is gone. No such child: nothing to do."""
        reply: Reply[None] = Reply()
        self._supervisor().post(_StopChild(name, reply))
        await reply.wait()

    def _supervisor(self) -> Supervisor:
        supervisor = self._cell.system.running_supervisor(self._cell)
        if supervisor is None:
            raise ActorStopped(f"{self._cell.path} is not running")
        return supervisor


class Supervisor:
    """One life of a supervisor."""

    def __init__(self, cell: Cell) -> None:
        assert isinstance(cell.spec, SupervisorSpec)
        self._cell = cell
        self._spec = cell.spec
        self._budget = Budget(intensity=cell.spec.intensity, period_s=cell.spec.period_s)
        # Bounded by the number of children (each has at most a start, an end and a restart in it)
        # and of those who ask for a start or a stop.
        self._send, self._receive = trio.open_memory_channel[_Event](math.inf)
        self._to_start: deque[Cell] = deque()
        self._start_replies: dict[str, Reply[Ref[Any]]] = {}
        self._stop_replies: dict[str, list[Reply[None]]] = {}
        self._on_started: Callable[[], None] = lambda: None
        self._failure: Exception | None = None

    def post(self, event: _Event) -> None:
        """Let the supervisor's task know."""
        try:
            self._send.send_nowait(event)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._refuse(event)

    def forget_when_down(self, cell: Cell) -> None:
        """Let no life follow the present one of ``cell``, a child."""
        self.post(_StopCell(cell, Reply()))

    async def run(self, on_started: Callable[[], None]) -> Exit:
        """Live until stopped, or until the budget of restarts is exhausted."""
        self._on_started = on_started
        try:
            with self._cell.scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._watch_for_stop)
                    self._begin_static_children()
                    await self._work(nursery)
                    await self._stop_children()
                    nursery.cancel_scope.cancel()
        finally:
            self._end_cut_children()
            self._refuse_waiting()
        if self._failure is None:
            return Exit(ExitKind.STOPPED)
        self._observe("crashed", self._cell, self._failure)
        return Exit(ExitKind.CRASHED, self._failure)

    async def _watch_for_stop(self) -> None:
        mailbox = self._cell.mailbox
        while mailbox.take() is not Signal.STOP:
            await mailbox.wait()
        self._cell.state = State.STOPPING
        self._send.send_nowait(_StopDue())

    def _begin_static_children(self) -> None:
        for spec in self._spec.children:
            if spec.name not in self._cell.children:
                self._cell.children[spec.name] = self._cell.system.make_cell(self._cell, spec)
            self._to_start.append(self._cell.children[spec.name])

    async def _work(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery
        self._start_next()
        while self._cell.state is not State.STOPPING and self._failure is None:
            self._handle(await self._receive.receive())

    def _start_next(self) -> None:
        while self._to_start and self._to_start[0].is_final:  # stopped before its turn came
            self._to_start.popleft()
        if self._to_start:
            self._start(self._to_start[0])
        elif self._cell.state is State.STARTING:
            self._cell.state = State.RUNNING
            self._on_started()

    def _start(self, cell: Cell) -> None:
        cell.begin_life()
        self._nursery.start_soon(self._live, cell, name=cell.path)

    async def _live(self, cell: Cell) -> None:
        run = run_actor if isinstance(cell.spec, ChildSpec) else self._cell.system.run_supervisor
        ended = await run(cell, lambda: self.post(_Started(cell)))
        self.post(_Ended(cell, ended))

    def _handle(self, event: _Event) -> None:
        match event:
            case _Started(cell):
                self._child_started(cell)
            case _Ended(cell, ended):
                self._child_ended(cell, ended)
            case _RestartDue(cell):
                if cell.state is State.DOWN:
                    self._start(cell)
            case _StartChild(spec, reply):
                self._start_dynamic(spec, reply)
            case _StopChild(name, reply):
                self._stop_child(self._cell.children.get(name), reply)
            case _StopCell(cell, reply):
                self._stop_child(cell, reply)

    def _child_started(self, cell: Cell) -> None:
        self._observe("started", cell)
        if self._to_start and self._to_start[0] is cell:
            self._to_start.popleft()
            self._start_next()
        reply = self._start_replies.pop(cell.spec.name, None)
        if reply is not None:
            reply.send(cell.ref)

    def _child_ended(self, cell: Cell, ended: Exit) -> None:
        cell.end_life(ended)
        if cell.spec.name in self._start_replies:
            self._start_replies.pop(cell.spec.name).fail(_start_failed(cell, ended))
            self._forget(cell, ended)
        elif cell.spec.name in self._stop_replies:
            self._forget(cell, Exit(ExitKind.STOPPED))
            if self._to_start and self._to_start[0] is cell:
                self._start_next()
        elif self._to_start and self._to_start[0] is cell:
            self._fail_start(cell, ended)
        else:
            self._apply_policy(cell, ended)

    def _fail_start(self, cell: Cell, ended: Exit) -> None:
        cell.tell_watchers(ended, final=False)
        self._failure = _start_failed(cell, ended)

    def _apply_policy(self, cell: Cell, ended: Exit) -> None:
        now, chance = trio.current_time(), random.random()  # noqa: S311 - jitter, not a secret
        decision, self._budget = decide(cell.spec, ended, self._budget, now, chance)
        match decision:
            case ForgetChild():
                self._forget(cell, ended)
            case RestartChild(delay_s):
                cell.tell_watchers(ended, final=False)
                self._restart_after(cell, delay_s)
            case GiveUp(restarts):
                cell.tell_watchers(ended, final=False)
                self._failure = RestartsExhausted(
                    f"{self._cell.path} gave up: {restarts} restarts within "
                    f"{self._spec.period_s:g} s, the last of {cell.path} ({ended.reason})"
                )
                self._failure.__cause__ = ended.error

    def _restart_after(self, cell: Cell, delay_s: float) -> None:
        if delay_s <= 0:
            self._start(cell)
        else:
            self._nursery.start_soon(self._announce_restart, cell, delay_s)

    async def _announce_restart(self, cell: Cell, delay_s: float) -> None:
        await trio.sleep(delay_s)
        self.post(_RestartDue(cell))

    def _forget(self, cell: Cell, ended: Exit) -> None:
        cell.make_final(ended)
        for reply in self._stop_replies.pop(cell.spec.name, []):
            reply.send(None)

    def _start_dynamic(self, spec: AnySpec, reply: Reply[Ref[Any]]) -> None:
        if not self._spec.dynamic:
            reply.fail(MisuseError(f"{self._cell.path} is not dynamic: its children are fixed"))
        elif spec.name in self._cell.children:
            reply.fail(MisuseError(f"{self._cell.path} already has a child {spec.name!r}"))
        else:
            cell = self._cell.system.make_cell(self._cell, spec)
            self._cell.children[spec.name] = cell
            self._start_replies[spec.name] = reply
            self._start(cell)

    def _stop_child(self, cell: Cell | None, reply: Reply[None]) -> None:
        if cell is None or cell.is_final:
            reply.send(None)
        elif cell.state is State.DOWN:
            self._forget(cell, Exit(ExitKind.STOPPED))
            reply.send(None)
        else:
            self._stop_replies.setdefault(cell.spec.name, []).append(reply)
            cell.request_stop()

    async def _stop_children(self) -> None:
        """In reverse order, one after the other; the children of a dynamic one all at once."""
        cells = [cell for cell in self._cell.children.values() if not _is_down(cell)]
        groups = [cells] if self._spec.dynamic else [[cell] for cell in reversed(cells)]
        for group in groups:
            for cell in group:
                cell.request_stop()
            await self._wait_until_down(group)

    async def _wait_until_down(self, group: list[Cell]) -> None:
        alive = {cell for cell in group if not _is_down(cell)}
        while alive:
            match await self._receive.receive():
                case _Ended(cell, ended):
                    self._end_child(cell, ended)
                    alive.discard(cell)
                case _StopChild(name, reply):
                    self._stop_replies.setdefault(name, []).append(reply)
                case _StartChild() as event:
                    self._refuse(event)

    def _end_cut_children(self) -> None:
        """The lives that were cancelled together with this supervisor."""
        for cell in list(self._cell.children.values()):
            if not _is_down(cell):
                self._end_child(cell, Exit(ExitKind.STOPPED))

    def _end_child(self, cell: Cell, ended: Exit) -> None:
        """A child ended while this supervisor ends; a static one waits for its next life."""
        cell.end_life(ended)
        if self._spec.dynamic:
            cell.make_final(ended)
        else:
            cell.tell_watchers(ended, final=False)

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
        with self._send, self._receive, contextlib.suppress(trio.WouldBlock):
            while True:
                self._refuse(self._receive.receive_nowait())

    def _refuse(self, event: _Event) -> None:
        if isinstance(event, _StartChild):
            event.reply.fail(ActorStopped(f"{self._cell.path} is stopping"))
        elif isinstance(event, _StopChild | _StopCell):
            event.reply.send(None)

    def _observe(self, kind: str, cell: Cell, error: Exception | None = None) -> None:
        self._cell.system.observe(kind, cell.path, incarnation=cell.incarnation, error=error)


def _is_down(cell: Cell) -> bool:
    return cell.state in (State.DOWN, State.STOPPED)


def _start_failed(cell: Cell, ended: Exit) -> StartFailed:
    cause = ended.error
    failure = StartFailed(
        f"{cell.path} did not start: {describe(cause) if cause is not None else ended.reason}"
    )
    failure.__cause__ = cause
    return failure
