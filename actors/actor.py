"""``Actor``: one mailbox, one message at a time, a life that a supervisor begins and ends.

    class Account(Actor[Deposit | Balance]):
        async def setup(self) -> None:
            self._amount = 0

        async def receive(self, message: Deposit | Balance) -> None:
            match message:
                case Deposit(amount=amount):
                    self._amount += amount
                case Balance():
                    self.reply(message, self._amount)

What an actor raises ends its life, and its supervisor decides what follows; a ``Refusal`` raised
while a request is handled is that request's answer instead.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin

import trio

from actors.cell import Cell
from actors.envelope import Envelope, current_turn
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
    """What one life of an actor may use of the runtime."""

    def __init__(self, system: System, cell: Cell, nursery: trio.Nursery) -> None:
        self._system = system
        self._cell = cell
        self._nursery = nursery
        self.timers = Timers()
        self._alarm: trio.CancelScope | None = None
        self.owed: list[Reply[Any]] = []
        self.current: object = None  # the message in hand, as it lay in the mailbox
        self._sweep_at = 64

    @property
    def system(self) -> System:
        """The system that this actor lives in."""
        return self._system

    @property
    def path(self) -> str:
        """Where this actor sits in the tree."""
        return self._cell.path

    @property
    def incarnation(self) -> int:
        """1 for the first life, one more for each restart."""
        return self._cell.incarnation

    @property
    def ref(self) -> Ref[Any]:
        """This actor's own address."""
        return self._cell.ref

    def start_soon(self, task: Callable[..., Awaitable[object]], *arguments: Any) -> None:
        """Start a helper task that ends with this life; what it raises ends this life.

        No handler waits for it, so what it asks belongs to no chain of askers.
        """
        token = current_turn.set(None)
        try:
            self._nursery.start_soon(task, *arguments)
        finally:
            current_turn.reset(token)

    async def start(self, task: Callable[..., Awaitable[object]], *arguments: Any) -> Any:
        """Like ``start_soon``, and wait until the task says that it has started.

        Called by a handler, which then waits for it: what the task asks while that message is in
        hand belongs to the handler's chain of askers.
        """
        return await self._nursery.start(task, *arguments)

    def after(self, seconds: float, message: object) -> Timer:
        """Send ``message`` to this actor in ``seconds``, unless this life ends before.

        Helper tasks may call it too.
        """
        timer = self.timers.after(seconds, message)
        if self._alarm is None:
            self._alarm = trio.CancelScope()
            self.start_soon(self._ring)
        elif timer.deadline < self._alarm.deadline:
            self._alarm.deadline = timer.deadline
        return timer

    def deliver_due(self) -> None:
        """Put what is due into the mailbox. For the runtime."""
        tracer = self._system.tracer
        for message in self.timers.take_due():
            if tracer is not None:
                tracer("timer", self._cell.path, repr(message))
            self._cell.mailbox.put_always(message)

    async def _ring(self) -> None:
        # One task for all timers of a life, and not a deadline on every wait for a message: a
        # cancel scope per wait costs more than the message. An idle actor has no such task.
        while (deadline := self.timers.next_deadline()) < math.inf:
            with trio.CancelScope(deadline=deadline) as self._alarm:
                await trio.sleep_forever()
            self.deliver_due()
        self._alarm = None

    def sibling(self, name: str, actor: type[Actor[N]]) -> Ref[N]:
        """The address of another child of the same supervisor, which is of class ``actor``."""
        parent = self._cell.parent
        cell = None if parent is None else parent.children.get(name)
        known = cell.spec if cell is not None else None
        if cell is None or not isinstance(known, ChildSpec) or not issubclass(known.actor, actor):
            raise MisuseError(f"{self.path} has no sibling {name!r} of class {actor.__name__}")
        return cell.ref

    def monitor(self, ref: Ref[Any]) -> None:
        """Get a ``Down`` whenever a life of ``ref`` ends. This actor must accept ``Down``.

        Lasts across restarts of both; a second time it changes nothing. Raises ``ActorStopped``
        if there is nobody at that address any more.
        """
        self._system.monitor(watcher=self._cell, watched=ref)

    def register(self, group: str, name: str) -> None:
        """Make this actor known as ``name`` in ``group`` of the registry until it stops."""
        self._system.registry.add(group, name, self._cell.ref)

    def finish(self) -> None:
        """End this life, in order, after the message in hand."""
        self._cell.mailbox.put_signal(Signal.FINISH)

    def owe(self, reply: Reply[Any]) -> None:
        """Remember a reply to be given later, so that the end of this life settles it.

        For the runtime.
        """
        if len(self.owed) >= self._sweep_at:
            self.owed = self.still_owed()
            self._sweep_at = max(64, 2 * len(self.owed))
        reply.owner = self
        self.owed.append(reply)

    def still_owed(self) -> list[Reply[Any]]:
        """The replies that nobody else will give. For the runtime."""
        return [each for each in self.owed if each.owner is self and not each.is_settled]


class Actor(Generic[M]):
    """Base of all actors; ``M`` is the union of the messages it accepts, ``None`` for none."""

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
        """The classes of messages that the mailbox lets in."""
        return cls._accepts

    async def setup(self) -> None:
        """Begin a life. What it raises is a failed start."""

    async def receive(self, message: M) -> None:
        """Handle one message. The next one waits until this returns."""
        raise NotImplementedError(f"{type(self).__name__} does not say how it receives messages")

    async def teardown(self) -> None:
        """End a life, whichever way it ended, a failed set-up included.

        Shielded, with a deadline of its own of one second. Helper tasks may still run; they are
        cancelled after it.
        """

    def reply(self, request: Request[T], value: T) -> None:
        """Answer the request in hand."""
        reply = self._current(request).reply
        if reply is not None:
            reply.send(value)

    def defer(self, request: Request[T]) -> Reply[T]:
        """Take the reply owed for the request in hand, to answer it later in this life.

        If this life ends before, the asker gets ``ActorCrashed`` or ``ActorStopped``.
        """
        envelope = self._current(request)
        reply: Reply[T] = envelope.reply if envelope.reply is not None else Reply()
        envelope.deferred = True
        self.context.owe(reply)
        return reply

    def pass_on(self, request: Request[T], to: Ref[Any], new: Request[T] | None = None) -> None:
        """Let ``to`` answer the request in hand, or ``new`` in its place.

        Where ``to`` cannot take it (stopped, full, itself waiting for this answer), the asker
        gets that error. Raised here only if nobody asks.
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
        if current is request:  # somebody told it
            current = self.context.current = Envelope(request)
        if not isinstance(current, Envelope) or current.message is not request:
            raise MisuseError(
                f"{self.context.path} answers {type(request).__name__}, which is not the message "
                "in hand; to answer later, take the reply with defer() first"
            )
        return current
