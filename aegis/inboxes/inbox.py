"""``Inbox``: the durable messages of one handle, and whoever waits for the next.

Reading does not consume: passing ``after`` acknowledges. A message is shown, and its delivery
confirmed, once it is synced.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import attrs

from actors import Actor, Reply, Timer
from aegis.announcing import announce
from aegis.errors import StorageError, Unavailable
from aegis.inboxes import faults
from aegis.inboxes.followers import Followers
from aegis.inboxes.loading import load_state, newest_messages
from aegis.inboxes.rules import message_line, message_of, read_line
from aegis.inboxes.state import InboxState
from aegis.journal.appender import Appender, Position
from aegis.journal.disk import Disk
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.protocol import resources
from aegis.protocol.feeds import FollowInbox
from aegis.protocol.inboxes import Deliver, Message, MessageList, ReadInbox, Receipt, WaitInbox

T = TypeVar("T")

WAIT_LIMIT = 50
"""Messages that one wait gives at most."""

MAX_ARRIVING = 8_192
MAX_ARRIVING_CHARS = 8 * 1024 * 1024
"""Messages, and characters of them, that are written and wait for their sync: beyond that the disk
is too slow for its senders, and they are told."""


@attrs.frozen(kw_only=True)
class WaitDeadline:
    """The wait number ``wait`` has lasted long enough."""

    wait: int


@attrs.frozen(kw_only=True)
class EndWait:
    """The daemon stops: whoever waits is told."""


@attrs.define(eq=False)
class _Waiter:
    number: int
    reply: Reply[MessageList]
    timer: Timer


@attrs.define(eq=False)
class _Arrival:
    """A message whose line, which begins ``at``, is on its way to the disk; who sent it, waits."""

    position: Position
    at: int
    message: Message
    senders: list[Reply[Receipt]]


@attrs.define(eq=False)
class _Acknowledgement:
    """Likewise the line that says that everything up to ``up_to`` was read."""

    position: Position
    up_to: str
    request: ReadInbox | WaitInbox
    reader: Reply[MessageList]


InboxMessage = Deliver | ReadInbox | WaitInbox | FollowInbox | WaitDeadline | EndWait


class Inbox(Actor[InboxMessage]):
    """The inbox of one handle; its ledger is ``path``."""

    def __init__(self, *, handle: str, path: Path, flusher: Flusher) -> None:
        self._handle = handle
        self._path = path
        self._flusher = flusher
        self._state = InboxState()
        self._is_open = False
        self._waiter: _Waiter | None = None
        self._waits = 0
        self._writes: deque[_Arrival | _Acknowledgement] = deque()
        self._arriving: dict[str, _Arrival] = {}
        self._arriving_chars = 0

    async def setup(self) -> None:
        """Be found; open the ledger. If the disk refuses, each request tries that again."""
        self._followers = Followers(self.context.incarnation)
        self.context.register("inbox", self._handle.lower())
        with contextlib.suppress(StorageError):
            await self._open()
        announce(self.context.system, resources.Inbox(self._handle))

    async def teardown(self) -> None:
        """Whoever waits is told what to do now: the runtime could only say that it crashed."""
        ended = Unavailable(
            f"the inbox of {self._handle!r} ended before it could answer; call again: nothing that "
            "it confirmed is lost"
        )
        self._refuse(ended)
        if self._waiter is not None:
            self._waiter.reply.fail(ended)
        if self._is_open:
            self._appender.close()

    async def receive(self, message: InboxMessage) -> None:  # noqa: C901 - one line per message
        """Handle a delivery, a reader, or the end of a wait."""
        match message:
            case Deliver():
                if not self._is_open:
                    await self._open()
                await self._deliver(message)
            case ReadInbox() | WaitInbox():
                if not self._is_open:
                    await self._open()
                await self._acknowledge_and_answer(message)
            case FollowInbox():
                if not self._is_open:
                    await self._open()
                self._followers.take(message, self.defer(message), self._state)
            case WaitDeadline(wait=number):
                if self._waiter is not None and self._waiter.number == number:
                    self._end_wait()
            case EndWait():
                if self._waiter is not None:
                    self._waiter.reply.fail(stopping())

    # Delivering.

    async def _deliver(self, delivery: Deliver) -> None:
        if self._state.knows(delivery.id):
            self.reply(delivery, Receipt(id=delivery.id, status="queued", position=0))
        elif delivery.id in self._arriving:
            self._arriving[delivery.id].senders.append(self.defer(delivery))
        else:
            self._state.check_room(self._handle, delivery)
            self._check_arriving()
            self._check_order(delivery.after)
            message = message_of(delivery)
            faults.APPEND_BEFORE.hit(self._handle)
            position, at = await self._append(message_line(message))
            faults.APPEND_AFTER.hit(self._handle)
            arrival = _Arrival(position, at, message, [self.defer(delivery)])
            self._arriving[message.id] = arrival
            self._arriving_chars += len(message.body)
            self._enqueue(arrival)

    def _check_arriving(self) -> None:
        if len(self._arriving) >= MAX_ARRIVING or self._arriving_chars >= MAX_ARRIVING_CHARS:
            raise Unavailable(
                f"the disk is slow: {len(self._arriving)} messages for {self._handle!r} wait to be "
                "synced; send again later"
            )

    def _check_order(self, after: str | None) -> None:
        """What its sender sent just before is there, or on its way to the disk."""
        if after is not None and after not in self._arriving and not self._state.knows(after):
            raise Unavailable(
                f"the message before it could not be kept for {self._handle!r}: send both again"
            )

    def _delivered(self, arrival: _Arrival) -> None:
        message = arrival.message
        del self._arriving[message.id]
        self._arriving_chars -= len(message.body)
        faults.CONFIRM_BEFORE.hit(self._handle)
        self._state.add(message, arrival.at)
        waited = self._waiter is not None and not self._waiter.reply.is_settled
        position = len(self._state) - 1
        for reply in arrival.senders:
            reply.send(_receipt(message.id, landed=waited, position=position))
        if waited:
            self._answer_waiter()

    # Reading.

    async def _acknowledge_and_answer(self, request: ReadInbox | WaitInbox) -> None:
        if request.after is None or not self._state.check_cursor(request.after):
            self._answer(request, self.defer(request))
            return
        line = read_line(request.after, needed_from=self._state.needed_from(request.after))
        position, _ = await self._append(line)
        self._enqueue(_Acknowledgement(position, request.after, request, self.defer(request)))

    def _acknowledged(self, write: _Acknowledgement) -> None:
        self._state.acknowledge(write.up_to)
        self._answer(write.request, write.reader)

    def _answer(self, request: ReadInbox | WaitInbox, reply: Reply[MessageList]) -> None:
        match request:
            case ReadInbox(unread=False, limit=limit):
                self.context.start_soon(self._answer_all, limit, reply)
            case ReadInbox(limit=limit):
                reply.send(_list(self._state.unread(limit)))
            case WaitInbox(timeout=timeout):
                self._wait(reply, timeout)

    async def _answer_all(self, limit: int, reply: Reply[MessageList]) -> None:
        try:
            messages = await self._read(
                partial(newest_messages, limit=limit), self._appender.synced
            )
        except StorageError as error:
            reply.fail(error)
        else:
            reply.send(_list(messages))

    def _wait(self, reply: Reply[MessageList], timeout: float) -> None:
        self._end_wait()
        if len(self._state) > 0:
            reply.send(_list(self._state.unread(WAIT_LIMIT)))
            return
        self._waits += 1
        timer = self.context.after(timeout, WaitDeadline(wait=self._waits))
        self._waiter = _Waiter(self._waits, reply, timer)

    def _answer_waiter(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.timer.cancel()
            waiter.reply.send(_list(self._state.unread(WAIT_LIMIT)))

    def _end_wait(self) -> None:
        """An older wait ends with an empty list."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.timer.cancel()
            waiter.reply.send(_list([]))

    # The ledger.

    async def _open(self) -> None:
        """Open the ledger and read what it holds. Raises ``StorageError``."""
        appender = await Appender.open(self._path, self._flusher)
        with contextlib.ExitStack() as undo:
            undo.callback(appender.close)
            self._state = await self._read(load_state, appender.synced)
            undo.pop_all()
        appender.start(self.context.start_soon)
        appender.on_outcome = self._settle
        self._appender = appender
        self._is_open = True

    async def _read(self, read: Callable[[Disk, Path, int], T], end: int) -> T:
        """What ``read`` finds in the first ``end`` bytes of the ledger."""
        return await self._flusher.look(partial(read, self._flusher.disk, self._path, end))

    async def _append(self, fields: dict[str, object]) -> tuple[Position, int]:
        """Where the line ends, and where it begins."""
        if self._appender.failed:
            await self._appender.recover()
        position = self._appender.append(encode_line(fields))
        return position, position.start

    def _enqueue(self, write: _Arrival | _Acknowledgement) -> None:
        self._writes.append(write)
        self._appender.request_sync()

    def _settle(self) -> None:
        """A sync has ended, or the disk has refused: everybody whose line it was is told."""
        before = len(self._writes)
        try:
            while self._writes and self._appender.is_synced(self._writes[0].position):
                write = self._writes.popleft()
                if isinstance(write, _Arrival):
                    self._delivered(write)
                else:
                    self._acknowledged(write)
        except StorageError as error:
            self._refuse(error)
        if len(self._writes) < before:
            self._followers.look(self._state)
            announce(self.context.system, resources.Inbox(self._handle))

    def _refuse(self, error: StorageError | Unavailable) -> None:
        """Nothing that was not synced is in the ledger any more, or so nobody may believe."""
        for write in self._writes:
            waiting = write.senders if isinstance(write, _Arrival) else [write.reader]
            for reply in waiting:
                reply.fail(_again(error))
        self._writes.clear()
        self._arriving.clear()
        self._arriving_chars = 0


def stopping() -> Unavailable:
    """What somebody is told who would wait for ever: nothing comes any more."""
    return Unavailable("aegis_inbox_wait: the daemon is stopping; what came is kept")


def _again(error: StorageError | Unavailable) -> StorageError | Unavailable:
    # Each caller gets an exception of its own: a shared one would gather all their tracebacks.
    return type(error)(*error.args)


def _receipt(message_id: str, *, landed: bool, position: int) -> Receipt:
    return Receipt(
        id=message_id, status="landed" if landed else "queued", position=0 if landed else position
    )


def _list(messages: list[Message]) -> MessageList:
    return MessageList(messages=messages, next=messages[-1].id if messages else None)
