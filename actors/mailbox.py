"""A bounded, class-checked mailbox with two lanes: control goes before messages.

The control lane holds the ``Signal``s of the runtime: a stop (``Ref.stop``, or the supervisor's)
and ``Context.finish``. The user lane keeps everything else in one order: messages, and the
runtime's notifications (timers, ``Down``). A ``Down`` must not overtake the messages that the
monitored actor sent before, nor a timer those that came before it was due; notifications are
privileged only in that there is always room for them.

Putting is synchronous: a schedule point per message, as in a channel's ``send``, is ten times
slower than a list. The mailbox belongs to the address, not to one incarnation of the actor.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, NoReturn

import attrs
import outcome
import trio

from actors.envelope import Envelope, Notification
from actors.errors import MailboxFull, MisuseError, WrongMessage
from actors.faults import DELIVER_AFTER, DELIVER_BEFORE


class Overflow(enum.Enum):
    """The policy of a full mailbox for one more message."""

    REJECT = "reject"
    """The sender gets ``MailboxFull``."""
    DROP_OLDEST = "drop_oldest"
    """The oldest queued message is dropped; the caller of a dropped request gets ``MailboxFull``.

    Timers and ``Down`` are never dropped.
    """
    WAIT = "wait"
    """``Ref.send`` and ``Ref.ask`` wait for room, first come, first served.

    A ``tell``, which cannot wait, gets ``MailboxFull``.
    """


class OnRestart(enum.Enum):
    """The policy for queued messages when an incarnation ends.

    ``CLEAR`` fails queued requests and drops the other messages.
    """

    KEEP = "keep"
    CLEAR = "clear"


@attrs.frozen(kw_only=True)
class MailboxSpec:
    """The options of a mailbox: ``capacity`` in messages (at least 1), and two policies.

    A quarter of the capacity is reserved for messages that are not requests: a caller learns that
    there is no room and can retry, the sender of a ``tell`` cannot.
    """

    capacity: int = attrs.field(default=1024, validator=attrs.validators.ge(1))
    overflow: Overflow = Overflow.REJECT
    on_restart: OnRestart = OnRestart.KEEP


class Signal(enum.Enum):
    """An instruction to an incarnation, taken before all messages. Not public."""

    STOP = "stop"
    """Sent by the supervisor or by ``Ref.stop``."""
    FINISH = "finish"
    """Sent by the actor itself."""


class _Sender(NamedTuple):
    """A task that waits for room for its message, which is bare or in an envelope."""

    task: trio.lowlevel.Task
    item: object


class Mailbox:
    """The queue of one address. One task may wait for a message, any number for room.

    An item is an ``Envelope`` (a request), a ``Notification``, or a bare message. ``items`` holds
    the newer ones in order, ``older`` the earlier ones in reverse.
    """

    # Two lists, both taken from at the end, take constant time however long the queue is. A deque
    # would too, but an empty one takes 0.7 KiB, and most mailboxes are empty. An incarnation reads
    # signals, older and senders directly: a call per message costs a tenth of handling it.

    __slots__ = (
        "_accepts",
        "_capacity",
        "_for_requests",
        "_is_handing",
        "_owner",
        "_waiter",
        "dropped",
        "handle_now",
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
        self.handle_now: Callable[[object], bool | None] | None = None  # of this incarnation
        self._is_handing = False

    def __len__(self) -> int:
        """Return the number of queued messages, without signals."""
        return len(self.items) + len(self.older)

    def put(self, message: object) -> None:
        """Queue a message that is not a request.

        Raises ``WrongMessage``, and ``MailboxFull`` unless the policy drops old messages.
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

    def hand_over(self, message: object) -> bool:
        """Let the receiver handle a message before this returns, if it is idle; else queue it.

        The receiver may still refuse to handle it in the sender's step; then it is queued too. It
        never overtakes a queued message. Return whether it was handled, without a crash. Raises the
        errors of ``put``.
        """
        handle, waiter = self.handle_now, self._waiter
        # A receiver that is waiting is in no handler, neither of its own task nor, further down
        # this stack, of a message that was handed over.
        is_idle = waiter is not None and not (self.items or self.older or self.signals)
        if handle is None or waiter is None or not is_idle or self._is_handing:
            self.put(message)
            return False
        if DELIVER_BEFORE.plan is not None:
            DELIVER_BEFORE.hit()
        if type(message) not in self._accepts:
            self._refuse_class(message)
        self._is_handing = True
        try:
            # In the context variables of the receiver's task: its helper tasks inherit them.
            is_handled = waiter.context.run(handle, message)
        finally:
            self._is_handing = False
        if is_handled is False:
            self.items.insert(0, message)  # before those that came meanwhile
            self.wake()
        if DELIVER_AFTER.plan is not None:
            DELIVER_AFTER.hit()
        return is_handled is True

    def put_request(self, envelope: Envelope) -> None:
        """Queue a request, which must leave a quarter of the room. Raises the errors of ``put``."""
        if DELIVER_BEFORE.plan is not None:
            DELIVER_BEFORE.hit()
        if type(envelope.message) not in self._accepts:
            self._refuse_class(envelope.message)
        if not self._has_room(envelope):
            self._make_room()
        self.items.append(envelope)
        self.wake()
        if DELIVER_AFTER.plan is not None:
            DELIVER_AFTER.hit()

    async def put_when_room(self, item: object) -> None:
        """Queue a message after those of earlier senders; wait for room if that is the policy.

        A checkpoint only if it waits. A cancelled call has not queued the message. Raises the
        errors of ``put``, and the error passed to ``refuse_senders``.
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
        """Return whether ``put_when_room`` would wait: no room, or earlier senders wait."""
        if self.spec.overflow is not Overflow.WAIT:
            return False
        return bool(self.senders) or not self._has_room(item)

    async def _wait_for_room(self, sender: _Sender) -> None:
        if self.senders is None:
            self.senders = deque()
        senders = self.senders

        def abort(_: object) -> trio.lowlevel.Abort:
            # Do not admit the next sender here, even if there is room: when several are cancelled
            # at once, the order of a set would decide which one. The next take admits them.
            senders.remove(sender)
            return trio.lowlevel.Abort.SUCCEEDED

        senders.append(sender)
        await trio.lowlevel.wait_task_rescheduled(abort)

    def refuse_senders(self, error: Exception) -> None:
        """Raise ``error`` in every sender that waits for room."""
        while self.senders:
            trio.lowlevel.reschedule(self.senders.popleft().task, outcome.Error(error))

    def _has_room(self, item: object) -> bool:
        is_request = isinstance(item, Envelope) and item.reply is not None
        return len(self.items) + len(self.older) < (
            self._for_requests if is_request else self._capacity
        )

    def admit(self) -> None:
        """Queue the messages of waiting senders, in order, as far as there is room."""
        while self.senders and self._has_room(self.senders[0].item):
            sender = self.senders.popleft()
            self.items.append(sender.item)
            trio.lowlevel.reschedule(sender.task)
            self.wake()

    def put_always(self, message: object) -> None:
        """Queue a notification of the runtime (a timer, a ``Down``) even if there is no room.

        Their number is bounded by the actor's own timers and monitors.
        """
        if type(message) not in self._accepts:
            self._refuse_class(message)
        self.items.append(Notification(message))
        self.wake()

    def put_signal(self, signal: Signal) -> None:
        """Queue a signal, which is taken before any message."""
        if signal not in self.signals:
            self.signals.append(signal)
        self.wake()

    def take(self) -> object:
        """Remove and return the next signal, or else the next item, or else None."""
        if self.signals:
            return self.signals.pop(0)
        if self.older or self.items:
            item = self.older.pop() if self.older else self.take_newer()
            if self.senders:
                self.admit()
            return item
        return None

    def take_newer(self) -> object:
        """Remove and return the oldest of ``items``, when ``older`` is empty."""
        items = self.items
        if len(items) == 1:
            return items.pop()
        self.older.extend(reversed(items))
        items.clear()
        return self.older.pop()

    def take_all(self) -> list[object]:
        """Remove and return all items, oldest first; then admit waiting senders."""
        taken = [*reversed(self.older), *self.items]
        self.older.clear()
        self.items.clear()
        self.admit()
        return taken

    def drop_signals(self) -> None:
        """Discard the signals of an earlier incarnation."""
        self.signals.clear()

    async def wait(self) -> None:
        """Wait for a signal or an item. A checkpoint only if there is none yet."""
        if self.signals or self.items or self.older:
            return
        if self._waiter is not None:
            raise MisuseError(f"two tasks wait on the mailbox of {self._owner}")
        self._waiter = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _: object) -> trio.lowlevel.Abort:
        self._waiter = (
            None  # a message that arrives before the cancelled task runs must not wake it
        )
        return trio.lowlevel.Abort.SUCCEEDED

    def wake(self) -> None:
        """Wake the waiting task, so that it looks again."""
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
        """Drop the first item that is not a notification; return whether there was one."""
        for index in oldest_first:
            item = lane[index]
            if not isinstance(item, Notification):
                del lane[index]
                self.dropped += 1
                if isinstance(item, Envelope) and item.reply is not None:
                    dropped = MailboxFull(
                        f"dropped by {self._owner}: newer messages came", path=self._owner
                    )
                    item.reply.give_up(dropped)
                return True
        return False
