"""One incarnation of an actor: setup, messages one by one, teardown, and its exit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from actors import faults
from actors.actor import Actor, Context
from actors.cell import Cell, PlaceState, ended_error
from actors.envelope import Envelope, Handler, current_handler
from actors.errors import NoReply, Refusal
from actors.faults import RECEIVE_AFTER, RECEIVE_BEFORE, FaultPoint
from actors.mailbox import Signal
from actors.policy import Exit, ExitKind
from actors.spec import ChildSpec
from actors.system import System

BATCH = 64
"""The maximum number of messages handled between two checkpoints."""

CLEANUP_S = 1.0
"""The time limit of a teardown, in seconds."""


async def run_actor(system: System, cell: Cell, on_started: Callable[[Cell], None]) -> Exit:
    """Run one incarnation in ``cell`` and return how it ended.

    An ``Exception`` anywhere in it is a crash. ``Cancelled`` from outside, ``KeyboardInterrupt``
    and ``SystemExit`` pass through. In every case all callers that wait for it get an outcome.
    """
    kind = ExitKind.STOPPED
    incarnation = _Incarnation(system, cell)
    try:
        kind = await incarnation.run(on_started)
    except* Exception as group:
        incarnation.crashes.insert(0, group)
    finally:
        ended = incarnation.end(kind)
    return ended


class _Incarnation:
    __slots__ = (
        "_cell",
        "_context",
        "_failure",
        "_handler",
        "_receive_now",
        "_spec",
        "_stall_s",
        "_subject",
        "_system",
        "_tracer",
        "crashes",
    )

    def __init__(self, system: System, cell: Cell) -> None:
        assert isinstance(cell.spec, ChildSpec)
        self._system = system
        self._cell = cell
        self._spec = cell.spec
        self._subject = cell.spec.actor.__name__  # of the fault points passed here
        self._handler = Handler(cell.path)
        self._tracer = system.tracer
        self._context: Context | None = None
        self._receive_now: Callable[[Any], bool] | None = None
        self._failure: Exception | None = None  # of a message that was handed over
        self._stall_s = 0.0
        self.crashes: list[Exception] = []

    async def run(self, on_started: Callable[[Cell], None]) -> ExitKind:
        kind = ExitKind.STOPPED  # if it is cancelled
        actor = self._spec.new_actor()
        assert isinstance(actor, Actor), f"{actor!r} is not an Actor"
        async with trio.open_nursery() as nursery:
            self._cell.run_within(nursery.cancel_scope)
            actor.context = self._context = Context(self._system, self._cell, nursery)
            try:
                await faults.SETUP_BEFORE.reach(self._subject)
                await actor.setup()
                await faults.SETUP_AFTER.reach(self._subject)
                if self._cell.state is PlaceState.STARTING:
                    self._cell.state = PlaceState.RUNNING
                on_started(self._cell)
                kind = await self._serve(actor, actor.context)
            finally:
                await self._tear_down(actor)
            nursery.cancel_scope.cancel()
        return kind

    def end(self, kind: ExitKind) -> Exit:
        """Report the end, settle the owed replies, and return the exit."""
        cell = self._cell
        ended = Exit(kind)
        if self.crashes:
            ended = Exit(ExitKind.CRASHED, _as_one(self.crashes))
            self._system.observe(
                "crashed", cell.path, incarnation=cell.incarnation, error=ended.error
            )
        elif self._tracer is not None:
            self._tracer("ended", cell.path, f"life {cell.incarnation} {ended.reason}")
        for reply in self._owed():
            reply.give_up(ended_error(cell.path, ended))
        return ended

    def _owed(self) -> list[Any]:
        context = self._context
        if context is None:
            return []
        current = context.current.reply if isinstance(context.current, Envelope) else None
        owed = context.still_owed()
        return owed if current is None else [*owed, current]

    async def _tear_down(self, actor: Actor[Any]) -> None:
        # An exception here is collected, not raised: it must not hide why the incarnation ended.
        cell = self._cell
        self._handler.number = 0
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEANUP_S) as scope:
            try:
                await faults.TEARDOWN_BEFORE.reach(self._subject)
                await actor.teardown()
                await faults.TEARDOWN_AFTER.reach(self._subject)
            except Exception as error:
                self.crashes.append(error)
        if scope.cancelled_caught:
            self._system.observe("teardown_cut", cell.path, incarnation=cell.incarnation)

    async def _serve(self, actor: Actor[Any], context: Context) -> ExitKind:
        # All work per bare message is written out here: a call for each message is measurable.
        mailbox, handler, receive = self._cell.mailbox, self._handler, actor.receive
        items, older, signals = mailbox.items, mailbox.older, mailbox.signals
        is_traced = self._tracer is not None
        number = handled = 0
        current_handler.set((handler, -1))  # for messages that are handed over before the first
        if type(actor).receive_now is not Actor.receive_now:
            self._receive_now, mailbox.handle_now = actor.receive_now, self._handle_now
        while not signals:
            if older:
                item = older.pop()
            elif items:
                item = mailbox.take_newer()
            else:
                handled = 0
                item = None  # else an idle actor keeps its last message, and the reply to it
                await mailbox.wait()
                if self._receive_now is not None:
                    await self._after_handing()
                continue
            if mailbox.senders:
                mailbox.admit()
            number += 1
            handler.number = number
            current_handler.set((handler, number))
            context.current = item
            if isinstance(item, Envelope) or is_traced or RECEIVE_BEFORE.plan is not None:
                await self._handle(receive, item)
            else:
                await receive(item)
            handler.number = 0
            context.current = None
            handled += 1
            if handled == BATCH:
                handled = 0
                context.deliver_due()
                await trio.lowlevel.checkpoint()
        return ExitKind.STOPPED if signals.pop(0) is Signal.STOP else ExitKind.FINISHED

    async def _handle(self, receive: Callable[[Any], Awaitable[None]], item: object) -> None:
        # The request of a cancelled handler is settled by end().
        envelope = item if isinstance(item, Envelope) else Envelope(item)
        self._handler.chain = envelope.chain
        if self._tracer is not None:
            self._tracer("message", self._cell.path, repr(envelope.message))
        try:
            if RECEIVE_BEFORE.plan is not None:
                await RECEIVE_BEFORE.reach(self._subject)
            await receive(envelope.message)
            if RECEIVE_AFTER.plan is not None:
                await RECEIVE_AFTER.reach(self._subject)
        except Refusal as refusal:
            if envelope.reply is None:
                raise
            envelope.reply.fail(refusal)
        except Exception as error:
            if envelope.reply is not None:
                envelope.reply.give_up(ended_error(self._cell.path, Exit(ExitKind.CRASHED, error)))
            raise
        self._handler.chain = ()
        self._check_answered(envelope)

    def _handle_now(self, message: object) -> bool | None:
        """Handle a message in the step of its sender; None if that ends this incarnation.

        False: the message is to be queued.
        """
        assert self._receive_now is not None
        if self._tracer is not None:
            self._tracer("message", self._cell.path, repr(message))
        try:
            if RECEIVE_BEFORE.plan is not None and self._is_stalled(RECEIVE_BEFORE):
                return False
            is_handled = self._receive_now(message)
            if RECEIVE_AFTER.plan is not None and is_handled:
                self._is_stalled(RECEIVE_AFTER)
        except Exception as error:
            # Raised by the actor's own task: the sender must not see it.
            self._failure = error
            self._cell.mailbox.wake()
            return None
        return is_handled

    def _is_stalled(self, point: FaultPoint) -> bool:
        """Pass a fault point; if it takes time, the actor's own task waits, before all else."""
        self._stall_s = point.delay(self._subject)
        if self._stall_s > 0:
            self._cell.mailbox.wake()
        return self._stall_s > 0

    async def _after_handing(self) -> None:
        """Do what a message that was handed over has left to this task."""
        if self._failure is not None:
            raise self._failure
        if self._stall_s > 0:
            stall_s, self._stall_s = self._stall_s, 0.0
            await trio.sleep(stall_s)

    def _check_answered(self, envelope: Envelope) -> None:
        reply = envelope.reply
        if reply is None or envelope.deferred or reply.is_settled:
            return
        path, request = self._cell.path, type(envelope.message).__name__
        reply.fail(NoReply(f"{path} ended {request} without a reply", path=path))


def _as_one(crashes: list[Exception]) -> Exception:
    """Return the one exception that crashed an incarnation, or a group of several."""
    error = (
        crashes[0]
        if len(crashes) == 1
        else ExceptionGroup("several errors in one incarnation", crashes)
    )
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
