"""A bounded, class-checked mailbox with two lanes: signals of the runtime go before messages.

Putting is synchronous: a schedule point per message (what a channel's ``send`` costs) is an order
of magnitude slower than a deque. The mailbox belongs to the address, not to one life of the actor.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import attrs
import trio

from actors.errors import MailboxFull, MisuseError, WrongMessage
from actors.reply import Reply


class Overflow(enum.Enum):
    """What a full mailbox does with one more message."""

    REJECT = "reject"
    """The sender gets ``MailboxFull``."""
    DROP_OLDEST = "drop_oldest"
    """The oldest waiting message goes; if it was a request, its asker gets ``MailboxFull``.

    News of the runtime (timers, ``Down``) is never dropped for room.
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
    """What is said to a life ahead of all messages."""

    STOP = "stop"
    """Its supervisor, or whoever holds its ``Ref``, ends it."""
    FINISH = "finish"
    """The actor itself ends it."""


class Mailbox:
    """The queue of one address; one task at a time may wait on it."""

    __slots__ = (
        "_accepts",
        "_for_requests",
        "_messages",
        "_owner",
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

    def __len__(self) -> int:
        """How many messages wait; signals are not counted."""
        return len(self._messages)

    def put(self, envelope: Envelope) -> None:
        """Queue a message. Raises ``WrongMessage``, or ``MailboxFull`` if the policy rejects."""
        self._check_class(envelope.message)
        capacity = self.spec.capacity
        if len(self._messages) >= (capacity if envelope.reply is None else self._for_requests):
            self._make_room()
        self._messages.append(envelope)
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
            return self._messages.popleft()
        return None

    def take_all(self) -> Iterator[Envelope]:
        """Remove and give all waiting messages, oldest first."""
        while self._messages:
            yield self._messages.popleft()

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
        if self.spec.overflow is Overflow.REJECT:
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
