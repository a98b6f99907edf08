"""A bounded, class-checked mailbox with two lanes: control goes before messages.

The control lane holds ``Signal``s, which only the runtime puts: a stop (``Ref.stop``, or the
supervisor's) and ``Context.finish``. Everything else lies in the user lane, in one order: messages,
and the runtime's own news (timers, ``Down``). ``Down`` must not overtake what the monitored actor
had sent, and a timer not what came before it was due; news is privileged only in that it always
finds room.

Putting is synchronous: a schedule point per message (what a channel's ``send`` costs) is an order
of magnitude slower than a deque. The mailbox belongs to the address, not to one life of the actor.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import Any, NamedTuple

import attrs
import outcome
import trio

from actors.errors import MailboxFull, MisuseError, WrongMessage
from actors.faults import DELIVER_AFTER, DELIVER_BEFORE
from actors.reply import Reply


class Overflow(enum.Enum):
    """What a full mailbox does with one more message."""

    REJECT = "reject"
    """The sender gets ``MailboxFull``."""
    DROP_OLDEST = "drop_oldest"
    """The oldest waiting message goes; if it was a request, its asker gets ``MailboxFull``.

    News of the runtime (timers, ``Down``) is never dropped for room.
    """
    WAIT = "wait"
    """``Ref.send`` and ``Ref.ask`` wait for room, first come, first served.

    A ``tell``, which cannot wait, gets ``MailboxFull``.
    """


class OnRestart(enum.Enum):
    """What becomes of waiting messages when the actor starts a new life."""

    KEEP = "keep"
    CLEAR = "clear"


@attrs.frozen(kw_only=True)
class MailboxSpec:
    """``capacity`` in messages, 1 or more.

    A quarter of it is kept for messages that nobody waits for: an asker is told that there is no
    room and can come again, a teller (a sibling with news) cannot.
    """

    capacity: int = attrs.field(default=1024, validator=attrs.validators.ge(1))
    overflow: Overflow = Overflow.REJECT
    on_restart: OnRestart = OnRestart.KEEP


class Handling:
    """One message being handled by the actor at ``path``; ``active`` until its handler ends."""

    __slots__ = ("active", "chain", "path")

    def __init__(self, path: str, chain: tuple[Asker, ...]) -> None:
        self.path = path
        self.chain = chain
        self.active = True


class Asker(NamedTuple):
    """A link of the chain of askers: a handler, and the reply that it asked for."""

    handling: Handling
    reply: Reply[Any]

    @property
    def is_waiting(self) -> bool:
        """Whether that handler cannot end before the reply came."""
        return self.handling.active and not self.reply.is_settled


class Envelope:
    """A message on its way: with the reply somebody waits for, if any, and the chain of askers.

    ``deferred`` says that the handler may end without an answer.
    """

    __slots__ = ("chain", "deferred", "message", "reply")

    def __init__(
        self, message: object, reply: Reply[Any] | None = None, chain: tuple[Asker, ...] = ()
    ) -> None:
        self.message = message
        self.reply = reply
        self.chain = chain
        self.deferred = False


class News(Envelope):
    """A message of the runtime itself: a timer, a ``Down``."""

    __slots__ = ()


class Signal(enum.Enum):
    """What is said to a life in the control lane, ahead of all messages. Not public."""

    STOP = "stop"
    """Its supervisor, or whoever holds its ``Ref``, ends it."""
    FINISH = "finish"
    """The actor itself ends it."""


class _Sender(NamedTuple):
    """A task that waits until there is room for its message."""

    task: trio.lowlevel.Task
    envelope: Envelope


class Mailbox:
    """The queue of one address; one task at a time may wait on it, and any number for room."""

    __slots__ = (
        "_accepts",
        "_for_requests",
        "_messages",
        "_owner",
        "_senders",
        "_signals",
        "_waiter",
        "dropped",
        "spec",
    )

    def __init__(self, owner: str, accepts: frozenset[type], spec: MailboxSpec) -> None:
        self._owner = owner
        self._accepts = accepts
        self.spec = spec
        self._for_requests = spec.capacity - spec.capacity // 4
        self.dropped = 0
        self._messages: deque[Envelope] = deque()
        self._signals: deque[Signal] = deque()
        self._waiter: trio.lowlevel.Task | None = None
        self._senders: deque[_Sender] = deque()

    def __len__(self) -> int:
        """How many messages wait; signals are not counted."""
        return len(self._messages)

    def put(self, envelope: Envelope) -> None:
        """Queue a message. Raises ``WrongMessage``, or ``MailboxFull`` if the policy rejects."""
        if DELIVER_BEFORE.plan is not None:
            DELIVER_BEFORE.hit()
        self._check_class(envelope.message)
        if not self._has_room(envelope):
            self._make_room()
        self._messages.append(envelope)
        self._wake()
        if DELIVER_AFTER.plan is not None:
            DELIVER_AFTER.hit()

    async def put_when_room(self, envelope: Envelope) -> None:
        """Queue a message, after those of earlier senders; where the policy is to wait, wait.

        A checkpoint only if it waits. Cancelled, the message is not queued. Raises what ``put``
        raises, and what ``refuse_senders`` is given.
        """
        if not self.must_wait(envelope):
            self.put(envelope)
            return
        DELIVER_BEFORE.hit()
        self._check_class(envelope.message)
        await self._wait_for_room(_Sender(trio.lowlevel.current_task(), envelope))
        DELIVER_AFTER.hit()

    def must_wait(self, envelope: Envelope) -> bool:
        """Whether a sender that can wait must: there is no room, or others wait already."""
        return self.spec.overflow is Overflow.WAIT and not (
            self._has_room(envelope) and not self._senders
        )

    async def _wait_for_room(self, sender: _Sender) -> None:
        def abort(_: object) -> trio.lowlevel.Abort:
            # Nobody is let in here, even if there is room for the next: when several are cancelled
            # at once, who is let in would hang on the order of a set. The next take lets them in.
            self._senders.remove(sender)
            return trio.lowlevel.Abort.SUCCEEDED

        self._senders.append(sender)
        await trio.lowlevel.wait_task_rescheduled(abort)

    def refuse_senders(self, error: Exception) -> None:
        """Raise ``error`` at everybody who waits for room."""
        while self._senders:
            trio.lowlevel.reschedule(self._senders.popleft().task, outcome.Error(error))

    def _has_room(self, envelope: Envelope) -> bool:
        room = self.spec.capacity if envelope.reply is None else self._for_requests
        return len(self._messages) < room

    def _admit(self) -> None:
        """Let in who waits, in order, as far as there is room."""
        while self._senders and self._has_room(self._senders[0].envelope):
            sender = self._senders.popleft()
            self._messages.append(sender.envelope)
            trio.lowlevel.reschedule(sender.task)
            self._wake()

    def put_always(self, message: object) -> None:
        """Queue a message of the runtime (a timer, a monitor's news) even when there is no room.

        Bounded all the same: by the timers and monitors that the actor itself asked for.
        """
        self._check_class(message)
        self._messages.append(News(message))
        self._wake()

    def put_signal(self, signal: Signal) -> None:
        """Queue a signal; it is taken before any message."""
        if signal not in self._signals:
            self._signals.append(signal)
        self._wake()

    def take(self) -> Signal | Envelope | None:
        """The next signal, else the next message, else None."""
        if self._signals:
            return self._signals.popleft()
        if self._messages:
            envelope = self._messages.popleft()
            if self._senders:
                self._admit()
            return envelope
        return None

    def take_all(self) -> list[Envelope]:
        """Remove and give all waiting messages, oldest first; who waits for room gets it."""
        taken = list(self._messages)
        self._messages.clear()
        self._admit()
        return taken

    def drop_signals(self) -> None:
        """Forget signals meant for a life that is over."""
        self._signals.clear()

    async def wait(self) -> None:
        """Wait until there is something to take. A checkpoint only if there is nothing yet."""
        if self._signals or self._messages:
            return
        if self._waiter is not None:
            raise MisuseError(f"two tasks wait on the mailbox of {self._owner}")
        self._waiter = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self._waiter = None  # a message that comes before the cancelled task runs wakes nobody
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake(self) -> None:
        if self._waiter is not None:
            waiter, self._waiter = self._waiter, None
            trio.lowlevel.reschedule(waiter)

    def _check_class(self, message: object) -> None:
        if type(message) not in self._accepts:
            accepted = ", ".join(sorted(each.__name__ for each in self._accepts)) or "nothing"
            raise WrongMessage(
                f"{self._owner} does not accept {type(message).__name__}; it accepts {accepted}"
            )

    def _make_room(self) -> None:
        if self.spec.overflow is not Overflow.DROP_OLDEST:
            raise MailboxFull(
                f"the mailbox of {self._owner} is full ({self.spec.capacity} messages); try later"
            )
        oldest = next((each for each in self._messages if not isinstance(each, News)), None)
        if oldest is None:
            return
        self.dropped += 1
        self._messages.remove(oldest)
        if oldest.reply is not None:
            oldest.reply.fail(MailboxFull(f"dropped by {self._owner}: newer messages came"))
