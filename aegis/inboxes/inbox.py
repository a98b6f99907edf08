"""``Inbox``: the durable messages of one handle, and whoever waits for the next.

Reading does not consume: passing ``after`` acknowledges. A message is shown, and its delivery
confirmed, once it is synced.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

import attrs

from actors import Actor, Reply, Timer
from aegis.errors import StorageError, Unavailable
from aegis.inboxes import faults
from aegis.inboxes.rules import MAX_UNREAD_BYTES, InboxState, message_line, message_of, read_line
from aegis.journal.appender import Appender, Position
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.journal.reader import LedgerReader
from aegis.protocol.inboxes import Deliver, Message, MessageList, ReadInbox, Receipt, WaitInbox

WAIT_LIMIT = 50
"""Messages that one wait gives at most."""

LOADED_LINES = 200_000
LOADED_BYTES = 2 * MAX_UNREAD_BYTES
"""How much of the end of a ledger is read at the start: what is unread is always the end of it."""


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
class _Write:
    """A line on its way to the disk, and who is told: of a delivery, or of an acknowledgement."""

    position: Position
    message: Message | None = None
    up_to: str | None = None
    replies: list[Reply[Receipt]] = attrs.field(factory=list)
    request: ReadInbox | WaitInbox | None = None
    reader: Reply[MessageList] | None = None


class Inbox(Actor[Deliver | ReadInbox | WaitInbox | WaitDeadline | EndWait]):
    """The inbox of one handle; its ledger is ``path``."""

    def __init__(self, *, handle: str, path: Path, flusher: Flusher) -> None:
        self._handle = handle
        self._path = path
        self._flusher = flusher
        self._state = InboxState()
        self._waiter: _Waiter | None = None
        self._waits = 0
        self._writes: deque[_Write] = deque()
        self._arriving: dict[str, _Write] = {}

    async def setup(self) -> None:
        """Open the ledger and read what it holds."""
        self._appender = await Appender.open(self._path, self._flusher)
        await self._load()
        self._appender.on_outcome = self._settle
        await self.context.start(self._appender.run)
        self.context.register("inbox", self._handle.lower())

    async def receive(
        self, message: Deliver | ReadInbox | WaitInbox | WaitDeadline | EndWait
    ) -> None:
        """Handle a delivery, a reader, or the end of a wait."""
        match message:
            case Deliver():
                await self._deliver(message)
            case ReadInbox() | WaitInbox():
                await self._acknowledge_and_answer(message)
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
            self._arriving[delivery.id].replies.append(self.defer(delivery))
        else:
            self._state.check_room(self._handle)
            message = message_of(delivery)
            faults.APPEND_BEFORE.hit(self._handle)
            position = await self._append(message_line(message))
            faults.APPEND_AFTER.hit(self._handle)
            write = _Write(position, message=message, replies=[self.defer(delivery)])
            self._arriving[message.id] = write
            self._enqueue(write)

    def _delivered(self, write: _Write) -> None:
        assert write.message is not None
        faults.CONFIRM_BEFORE.hit(self._handle)
        self._state.add(write.message)
        waited = self._waiter is not None and not self._waiter.reply.is_settled
        position = len(self._state) - 1
        for reply in write.replies:
            reply.send(_receipt(write.message.id, landed=waited, position=position))
        if waited:
            self._answer_waiter()

    # Reading.

    async def _acknowledge_and_answer(self, request: ReadInbox | WaitInbox) -> None:
        if request.after is None or not self._state.check_cursor(request.after):
            self._answer(request, self.defer(request))
            return
        position = await self._append(read_line(request.after))
        self._enqueue(
            _Write(position, up_to=request.after, request=request, reader=self.defer(request))
        )

    def _acknowledged(self, write: _Write) -> None:
        assert write.up_to is not None
        self._state.acknowledge(write.up_to)
        if write.request is not None and write.reader is not None:
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
            messages = await self._newest(limit)
        except StorageError as error:
            reply.fail(error)
        else:
            reply.send(_list(messages))

    async def _newest(self, limit: int) -> list[Message]:
        """The newest messages, read or not. Lines that say what was read lie between them."""
        reading = await LedgerReader(self._path).last_n_async(
            2 * limit + 1, end=self._appender.synced
        )
        state = InboxState()
        for line in reading.records:
            if line.get("kind") == "message":
                state.apply(line)
        return state.unread(2 * limit + 1)[-limit:]

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

    async def _load(self) -> None:
        reading = await LedgerReader(self._path).last_n_async(
            LOADED_LINES, end=self._appender.synced, max_bytes=LOADED_BYTES
        )
        for line in reading.records:
            self._state.apply(line)

    async def _append(self, fields: dict[str, object]) -> Position:
        if self._appender.failed:
            await self._appender.recover()
        return self._appender.append(encode_line(fields))

    def _enqueue(self, write: _Write) -> None:
        self._writes.append(write)
        self._appender.request_sync()

    def _settle(self) -> None:
        """A sync has ended, or the disk has refused: everybody whose line it was is told."""
        try:
            while self._writes and self._appender.is_synced(self._writes[0].position):
                write = self._writes.popleft()
                if write.message is not None:
                    self._arriving.pop(write.message.id, None)
                    self._delivered(write)
                else:
                    self._acknowledged(write)
        except StorageError as error:
            self._refuse(error)

    def _refuse(self, error: StorageError) -> None:
        """Nothing that was not synced is in the ledger any more."""
        for write in self._writes:
            for reply in write.replies:
                reply.fail(error)
            if write.reader is not None:
                write.reader.fail(error)
        self._writes.clear()
        self._arriving.clear()


def stopping() -> Unavailable:
    """What somebody is told who would wait for ever: nothing comes any more."""
    return Unavailable("aegis_inbox_wait: the daemon is stopping; what came is kept")


def _receipt(message_id: str, *, landed: bool, position: int) -> Receipt:
    return Receipt(
        id=message_id, status="landed" if landed else "queued", position=0 if landed else position
    )


def _list(messages: list[Message]) -> MessageList:
    return MessageList(messages=messages, next=messages[-1].id if messages else None)
