"""One life of an actor: set-up, messages one by one, teardown, and how it ended."""

from __future__ import annotations

from collections.abc import Callable

import trio

from actors.actor import Actor, Context
from actors.cell import Cell, State, gone
from actors.errors import ActorStopped, NoReply, Refusal
from actors.mailbox import Envelope, Handling, Signal
from actors.policy import Exit, ExitKind
from actors.ref import current_handling
from actors.spec import ChildSpec

BATCH = 64
"""Messages handled per checkpoint at most."""

CLEANUP_S = 1.0
"""Seconds that a teardown may take."""


async def run_actor(cell: Cell, on_started: Callable[[], None]) -> Exit:
    """Live one life in ``cell`` and say how it ended.

    An ``Exception`` anywhere in it is a crash. ``Cancelled`` from outside, ``KeyboardInterrupt``
    and ``SystemExit`` pass through.
    """
    crash: Exception | None = None
    kind = ExitKind.STOPPED
    life = _Life(cell)
    try:
        with cell.scope:
            kind = await life.run(on_started)
    except* Exception as group:
        crash = group
    ended = Exit(kind) if crash is None else Exit(ExitKind.CRASHED, crash)
    life.settle_owed(ended)
    return ended


class _Life:
    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._context: Context | None = None

    async def run(self, on_started: Callable[[], None]) -> ExitKind:
        assert isinstance(self._cell.spec, ChildSpec)
        actor = self._cell.spec.actor(**self._cell.spec.arguments)
        async with trio.open_nursery() as nursery:
            actor.context = self._context = Context(self._cell, nursery)
            try:
                await actor.setup()
                if self._cell.state is State.STARTING:
                    self._cell.state = State.RUNNING
                on_started()
                kind = await self._serve(actor, actor.context)
            finally:
                with trio.CancelScope(shield=True, deadline=trio.current_time() + CLEANUP_S):
                    await actor.teardown()
            nursery.cancel_scope.cancel()
        return kind

    def settle_owed(self, ended: Exit) -> None:
        if self._context is not None:
            for reply in self._context.owed:
                if not reply.is_settled:
                    reply.fail(gone(self._cell.path, ended))

    async def _serve(self, actor: Actor[object], context: Context) -> ExitKind:
        mailbox = self._cell.mailbox
        handled = 0
        while not context.finished:
            item = mailbox.take()
            if item is Signal.STOP:
                return ExitKind.STOPPED
            if item is None:
                handled = 0
                await self._wait(context)
            else:
                assert isinstance(item, Envelope)
                await self._handle(actor, context, item)
                handled += 1
                if handled == BATCH:
                    handled = 0
                    self._deliver_due(context)
                    await trio.lowlevel.checkpoint()
        return ExitKind.FINISHED

    async def _wait(self, context: Context) -> None:
        deadline = context.timers.next_deadline()
        if deadline == float("inf"):
            await self._cell.mailbox.wait()
            return
        with trio.CancelScope(deadline=deadline):
            await self._cell.mailbox.wait()
        self._deliver_due(context)

    def _deliver_due(self, context: Context) -> None:
        for message in context.timers.take_due():
            self._cell.mailbox.put_always(message)

    async def _handle(self, actor: Actor[object], context: Context, envelope: Envelope) -> None:
        handling = Handling(self._cell.path, envelope.chain)
        current_handling.set(handling)
        context.current = envelope
        try:
            await actor.receive(envelope.message)
        except Refusal as refusal:
            if envelope.reply is None:
                raise
            envelope.reply.fail(refusal)
        except Exception as error:
            if envelope.reply is not None:
                envelope.reply.fail(gone(self._cell.path, Exit(ExitKind.CRASHED, error)))
            raise
        finally:
            handling.active = False
            context.current = None
            self._check_answered(envelope)

    def _check_answered(self, envelope: Envelope) -> None:
        reply = envelope.reply
        if reply is None or reply.is_settled:
            return
        path, request = self._cell.path, type(envelope.message).__name__
        if self._cell.state is State.STOPPING:
            reply.fail(ActorStopped(f"{path} was stopped while it handled {request}"))
        else:
            reply.fail(NoReply(f"{path} ended {request} without a reply"))
