"""``Actor``: a mailbox and a handler, run by a supervisor, one message at a time.

    class Account(Actor[Deposit | Balance]):
        async def setup(self) -> None:
            self._amount = 0

        async def receive(self, message: Deposit | Balance) -> None:
            match message:
                case Deposit(amount=amount):
                    self._amount += amount
                case Balance():
                    self.reply(message, self._amount)

An exception ends the incarnation, and the supervisor decides whether another one starts. A
``Refusal`` raised while a request is handled becomes the result of that request instead.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin

import trio

from actors.cell import Cell
from actors.envelope import Envelope, current_handler
from actors.errors import AskError, MisuseError
from actors.mailbox import Signal
from actors.messages import Request, message_classes
from actors.ref import Ref
from actors.reply import Reply
from actors.spec import ChildSpec
from actors.system import System
from actors.timers import Timer, Timers

M = TypeVar("M")
N = TypeVar("N")
T = TypeVar("T")


class Context:
    """The runtime as seen by one incarnation of an actor: ``self.context``."""

    __slots__ = ("_alarm", "_cell", "_nursery", "_sweep_at", "_system", "current", "owed", "timers")

    def __init__(self, system: System, cell: Cell, nursery: trio.Nursery) -> None:
        self._system = system
        self._cell = cell
        self._nursery = nursery
        self.timers = Timers()
        self._alarm: trio.CancelScope | None = None
        self.owed: list[Reply[Any]] = []
        self.current: object = None  # the message being handled, as it was queued
        self._sweep_at = 64

    @property
    def system(self) -> System:
        """The system that this actor is part of."""
        return self._system

    @property
    def path(self) -> str:
        """The actor's path in the tree, such as ``root/accounts/ada``."""
        return self._cell.path

    @property
    def incarnation(self) -> int:
        """The number of this incarnation: 1, and one more for each restart."""
        return self._cell.incarnation

    @property
    def ref(self) -> Ref[Any]:
        """This actor's own address."""
        return self._cell.ref

    def start_soon(self, task: Callable[..., Awaitable[object]], *arguments: Any) -> None:
        """Start a helper task: cancelled with this incarnation, and its failure is a crash.

        No handler waits for the task, so its asks are not part of a chain of askers.
        """
        token = current_handler.set(None)
        try:
            self._nursery.start_soon(task, *arguments)
        finally:
            current_handler.reset(token)

    async def start(self, task: Callable[..., Awaitable[object]], *arguments: Any) -> Any:
        """Start a helper task and return the value that it passes to ``task_status.started``.

        A handler that calls this waits for the task, so the task's asks while that message is
        handled are part of the handler's chain of askers.
        """
        return await self._nursery.start(task, *arguments)

    def after(self, seconds: float, message: object) -> Timer:
        """Send ``message`` to this actor in ``seconds``, unless the incarnation ends before.

        Return the timer, to cancel it. Helper tasks may call this too.
        """
        timer = self.timers.after(seconds, message)
        if self._alarm is None:
            self._alarm = trio.CancelScope()
            self.start_soon(self._deliver_timers)
        elif timer.deadline < self._alarm.deadline:
            self._alarm.deadline = timer.deadline
        return timer

    def deliver_due(self) -> None:
        """Put the messages of due timers into the mailbox. For the runtime."""
        tracer = self._system.tracer
        for message in self.timers.take_due():
            if tracer is not None:
                tracer("timer", self._cell.path, repr(message))
            self._cell.mailbox.put_always(message)

    async def _deliver_timers(self) -> None:
        # One task for all timers of an incarnation, not a deadline on every wait for a message: a
        # cancel scope per wait costs more than the message. An idle actor has no such task.
        while (deadline := self.timers.next_deadline()) < math.inf:
            with trio.CancelScope(deadline=deadline) as self._alarm:
                await trio.sleep_forever()
            self.deliver_due()
        self._alarm = None

    def sibling(self, name: str, actor: type[Actor[N]]) -> Ref[N]:
        """Return the address of the child ``name`` of the same supervisor, of class ``actor``.

        Raises ``MisuseError`` if there is none.
        """
        parent = self._cell.parent
        cell = None if parent is None else parent.children.get(name)
        known = cell.spec if cell is not None else None
        if cell is None or not isinstance(known, ChildSpec) or not issubclass(known.actor, actor):
            raise MisuseError(f"{self.path} has no sibling {name!r} of class {actor.__name__}")
        return cell.ref

    def monitor(self, ref: Ref[Any]) -> None:
        """Receive a ``Down`` whenever an incarnation of ``ref`` ends. Idempotent.

        Lasts across restarts of both actors. Raises ``ActorStopped`` if the actor at that address
        has stopped for good, and ``MisuseError`` if this actor does not accept ``Down``.
        """
        self._system.monitor(watcher=self._cell, watched=ref)

    def register(self, group: str, name: str) -> None:
        """Register this actor as ``name`` in ``group`` until it stops for good.

        Raises ``MisuseError`` if another running actor has the name.
        """
        self._system.registry.add(group, name, self._cell.ref)

    def finish(self) -> None:
        """End this incarnation, in order, after the current message."""
        self._cell.mailbox.put_signal(Signal.FINISH)

    def owe(self, reply: Reply[Any]) -> None:
        """Record a deferred reply, so that the end of this incarnation settles it.

        For the runtime.
        """
        if len(self.owed) >= self._sweep_at:
            self.owed = self.still_owed()
            self._sweep_at = max(64, 2 * len(self.owed))
        reply.owner = self
        self.owed.append(reply)

    def still_owed(self) -> list[Reply[Any]]:
        """Return the replies that only this incarnation can send. For the runtime."""
        return [each for each in self.owed if each.owner is self and not each.is_settled]


class Actor(Generic[M]):
    """Base class of actors; ``M`` is the union of the accepted messages, ``None`` for none."""

    __slots__ = ("context",)

    context: Context
    _accepts: ClassVar[frozenset[type]] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in getattr(cls, "__orig_bases__", ()):
            if get_origin(base) is Actor:
                (union,) = get_args(base)
                if not isinstance(union, TypeVar):
                    cls._accepts = frozenset(message_classes(union))

    @classmethod
    def accepts(cls) -> frozenset[type]:
        """Return the classes of messages that the mailbox accepts."""
        return cls._accepts

    async def setup(self) -> None:
        """Begin an incarnation. An exception is a failed start."""

    async def receive(self, message: M) -> None:
        """Handle one message; the next one is handled after this returns."""
        raise NotImplementedError(f"{type(self).__name__} does not define receive()")

    def receive_now(self, message: M) -> bool:
        """Handle a message of ``Ref.hand_over`` in the sender's step, or return False.

        False, without any effect: ``receive`` is to handle it, in this actor's own task. It is
        called only between two messages. It must not use the current task, so it may not open a
        cancel scope; ``Context.start_soon`` and ``Context.after`` are allowed.
        """
        return False

    async def teardown(self) -> None:
        """Release the resources of an incarnation, however it ended, a failed setup included.

        Shielded from cancellation, with a deadline of one second. Helper tasks are cancelled after
        it, so they may still run meanwhile.
        """

    def reply(self, request: Request[T], value: T) -> None:
        """Answer the current request. Raises ``MisuseError`` for any other request."""
        reply = self._current(request).reply
        if reply is not None:
            reply.send(value)

    def defer(self, request: Request[T]) -> Reply[T]:
        """Take the reply of the current request, to send it later in this incarnation.

        If the incarnation ends before, the caller gets ``ActorCrashed`` or ``ActorStopped``.
        Raises ``MisuseError`` for any other request.
        """
        envelope = self._current(request)
        reply: Reply[T] = envelope.reply if envelope.reply is not None else Reply()
        envelope.deferred = True
        self.context.owe(reply)
        return reply

    def pass_on(self, request: Request[T], to: Ref[Any], new: Request[T] | None = None) -> None:
        """Let ``to`` answer the current request, or ``new`` in its place.

        If ``to`` cannot take it (it has stopped, is full, or itself waits for this answer), the
        caller gets that error; for a request without a caller it is raised here.
        """
        envelope = self._current(request)
        try:
            to.pass_on(request if new is None else new, envelope)
        except AskError as error:
            if envelope.reply is None:
                raise
            envelope.reply.give_up(error)
        envelope.reply = None

    def _current(self, request: object) -> Envelope:
        current = self.context.current
        if current is request:  # no caller waits
            current = self.context.current = Envelope(request)
        if not isinstance(current, Envelope) or current.message is not request:
            raise MisuseError(
                f"{self.context.path} answers {type(request).__name__}, which is not its current "
                "message; to answer later, take the reply with defer() first"
            )
        return current
