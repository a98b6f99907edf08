"""A bounded, class-checked mailbox with two lanes: control goes before messages.

The control lane holds ``Signal``s, which only the runtime puts: a stop (``Ref.stop``, or the
supervisor's) and ``Context.finish``. Everything else lies in the user lane, in one order: messages,
and the runtime's own news (timers, ``Down``). ``Down`` must not overtake what the monitored actor
had sent, and a timer not what came before it was due; news is privileged only in that it always
finds room.

Putting is synchronous: a schedule point per message (what a channel's ``send`` costs) is an order
of magnitude slower than a list. The mailbox belongs to the address, not to one life of the actor.
"""

from __future__ import annotations

import enum
from collections import deque
from typing import NamedTuple, NoReturn

import attrs
import outcome
import trio

from actors.envelope import Envelope, News
from actors.errors import MailboxFull, MisuseError, WrongMessage
from actors.faults import DELIVER_AFTER, DELIVER_BEFORE


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


class Signal(enum.Enum):
    """What is said to a life in the control lane, ahead of all messages. Not public."""

    STOP = "stop"
    """Its supervisor, or whoever holds its ``Ref``, ends it."""
    FINISH = "finish"
    """The actor itself ends it."""


class _Sender(NamedTuple):
    """A task that waits until there is room for its message, which is bare or in an envelope."""

    task: trio.lowlevel.Task
    item: object


class Mailbox:
    """The queue of one address; one task at a time may wait on it, and any number for room.

    Items are requests in an ``Envelope``, ``News``, and bare messages. ``items`` holds the newer
    ones in order, ``older`` those before them in reverse, so that both are taken from at the end:
    that costs the same however many wait. (A deque would do it too, but an empty one takes
    0.7 KiB, and mailboxes are many and mostly empty.) A life reads ``signals``, ``older`` and
    ``senders`` itself: a call for each message costs a tenth of it.
    """

    __slots__ = (
        "_accepts",
        "_capacity",
        "_for_requests",
        "_owner",
        "_waiter",
        "dropped",
        "items",
        "older",
        "senders",
        "signals",
        "spec",
    )

    def __init__(self, owner: str, accepts: frozenset[type], spec: MailboxSpec) -> None:
        self._owner = owner
        self._accepts = accepts
        self.spec = spec
        self._capacity = spec.capacity
        self._for_requests = spec.capacity - spec.capacity // 4
        self.dropped = 0
        self.items: list[object] = []
        self.older: list[object] = []
        self.signals: list[Signal] = []
        self.senders: deque[_Sender] | None = None  # made when needed: an empty one takes 0.7 KiB
        self._waiter: trio.lowlevel.Task | None = None

    def __len__(self) -> int:
        """How many messages wait; signals are not counted."""
        return len(self.items) + len(self.older)

    def put(self, message: object) -> None:
        """Queue a message that nobody waits for.

        Raises ``WrongMessage``, or ``MailboxFull`` if the policy rejects.
        """
        if DELIVER_BEFORE.plan is not None:
            DELIVER_BEFORE.hit()
        if type(message) not in self._accepts:
            self._refuse_class(message)
        if len(self.items) + len(self.older) >= self._capacity:
            self._make_room()
        self.items.append(message)
        if self._waiter is not None:
            self.wake()
        if DELIVER_AFTER.plan is not None:
            DELIVER_AFTER.hit()

    def put_request(self, envelope: Envelope) -> None:
        """Queue a request, likewise; it must leave a quarter of the room."""
        DELIVER_BEFORE.hit()
        if type(envelope.message) not in self._accepts:
            self._refuse_class(envelope.message)
        if not self._has_room(envelope):
            self._make_room()
        self.items.append(envelope)
        self.wake()
        DELIVER_AFTER.hit()

    async def put_when_room(self, item: object) -> None:
        """Queue a message after those of earlier senders; where the policy is to wait, wait.

        A checkpoint only if it waits. Cancelled, the message is not queued. Raises what ``put``
        raises, and what ``refuse_senders`` is given.
        """
        if self.must_wait(item):
            DELIVER_BEFORE.hit()
            message = item.message if isinstance(item, Envelope) else item
            if type(message) not in self._accepts:
                self._refuse_class(message)
            await self._wait_for_room(_Sender(trio.lowlevel.current_task(), item))
            DELIVER_AFTER.hit()
        elif isinstance(item, Envelope):
            self.put_request(item)
        else:
            self.put(item)

    def must_wait(self, item: object) -> bool:
        """Whether a sender that can wait must: there is no room, or others wait already."""
        if self.spec.overflow is not Overflow.WAIT:
            return False
        return bool(self.senders) or not self._has_room(item)

    async def _wait_for_room(self, sender: _Sender) -> None:
        if self.senders is None:
            self.senders = deque()
        senders = self.senders

        def abort(_: object) -> trio.lowlevel.Abort:
            # Nobody is let in here, even if there is room for the next: when several are cancelled
            # at once, who is let in would hang on the order of a set. The next take lets them in.
            senders.remove(sender)
            return trio.lowlevel.Abort.SUCCEEDED

        senders.append(sender)
        await trio.lowlevel.wait_task_rescheduled(abort)

    def refuse_senders(self, error: Exception) -> None:
        """Raise ``error`` at everybody who waits for room."""
        while self.senders:
            trio.lowlevel.reschedule(self.senders.popleft().task, outcome.Error(error))

    def _has_room(self, item: object) -> bool:
        is_request = isinstance(item, Envelope) and item.reply is not None
        return len(self) < (self._for_requests if is_request else self._capacity)

    def admit(self) -> None:
        """Let in who waits, in order, as far as there is room."""
        while self.senders and self._has_room(self.senders[0].item):
            sender = self.senders.popleft()
            self.items.append(sender.item)
            trio.lowlevel.reschedule(sender.task)
            self.wake()

    def put_always(self, message: object) -> None:
        """Queue a message of the runtime (a timer, a monitor's news) even when there is no room.

        Bounded all the same: by the timers and monitors that the actor itself asked for.
        """
        if type(message) not in self._accepts:
            self._refuse_class(message)
        self.items.append(News(message))
        self.wake()

    def put_signal(self, signal: Signal) -> None:
        """Queue a signal; it is taken before any message."""
        if signal not in self.signals:
            self.signals.append(signal)
        self.wake()

    def take(self) -> object:
        """The next ``Signal``, else the next item, else None."""
        if self.signals:
            return self.signals.pop(0)
        if self.older or self.items:
            item = self.older.pop() if self.older else self.take_newer()
            if self.senders:
                self.admit()
            return item
        return None

    def take_newer(self) -> object:
        """The next item when no older one is left; the others are the older ones from now on."""
        items = self.items
        if len(items) == 1:
            return items.pop()
        self.older.extend(reversed(items))
        items.clear()
        return self.older.pop()

    def take_all(self) -> list[object]:
        """Remove and give all waiting items, oldest first; who waits for room gets it."""
        taken = [*reversed(self.older), *self.items]
        self.older.clear()
        self.items.clear()
        self.admit()
        return taken

    def drop_signals(self) -> None:
        """Forget signals meant for a life that is over."""
        self.signals.clear()

    async def wait(self) -> None:
        """Wait until there is something to take. A checkpoint only if there is nothing yet."""
        if self.signals or self.items or self.older:
            return
        if self._waiter is not None:
            raise MisuseError(f"two tasks wait on the mailbox of {self._owner}")
        self._waiter = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self._waiter = None  # a message that comes before the cancelled task runs wakes nobody
        return trio.lowlevel.Abort.SUCCEEDED

    def wake(self) -> None:
        """Let who waits look again."""
        if self._waiter is not None:
            waiter, self._waiter = self._waiter, None
            trio.lowlevel.reschedule(waiter)

    def _refuse_class(self, message: object) -> NoReturn:
        accepted = ", ".join(sorted(each.__name__ for each in self._accepts)) or "nothing"
        raise WrongMessage(
            f"{self._owner} does not accept {type(message).__name__}; it accepts {accepted}"
        )

    def _make_room(self) -> None:
        if self.spec.overflow is not Overflow.DROP_OLDEST:
            raise MailboxFull(
                f"the mailbox of {self._owner} is full ({self.spec.capacity} messages); try later",
                path=self._owner,
            )
        if not self.older:
            self.older.extend(reversed(self.items))
            self.items.clear()
        if not self._drop_one(self.older, range(len(self.older) - 1, -1, -1)):
            self._drop_one(self.items, range(len(self.items)))

    def _drop_one(self, lane: list[object], oldest_first: range) -> bool:
        """Drop the first that is no news; False if all are."""
        for index in oldest_first:
            item = lane[index]
            if not isinstance(item, News):
                del lane[index]
                self.dropped += 1
                if isinstance(item, Envelope) and item.reply is not None:
                    dropped = MailboxFull(
                        f"dropped by {self._owner}: newer messages came", path=self._owner
                    )
                    item.reply.give_up(dropped)
                return True
        return False
