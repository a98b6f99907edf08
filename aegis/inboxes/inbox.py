"""``Inbox``: the actor of the durable messages of one handle, and of their readers.

Reading does not consume a message: passing ``after`` acknowledges it. A message is shown, and its
delivery confirmed, once it is synced. A deferred delivery (``defer_sync``) is written at once and
synced later, at the latest before a reader is answered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs
import structlog

from actors import Actor, Reply, Request, Timer
from aegis.errors import AegisError, StorageError, Unavailable
from aegis.inboxes import faults
from aegis.inboxes.bodies import Bodies
from aegis.inboxes.followers import Followers
from aegis.inboxes.loading import Loaded, load_state, newest_messages
from aegis.inboxes.rules import message_line, read_line
from aegis.inboxes.settling import Settle, Settling
from aegis.inboxes.state import InboxState
from aegis.inboxes.unsynced import Arrival, Reader, Reading, Unsynced
from aegis.journal.appender import Appender, Position
from aegis.journal.disk import Disk, shown
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.protocol import resources
from aegis.protocol.feeds import FollowInbox, InboxNews
from aegis.protocol.inboxes import (
    Deliver,
    Message,
    MessageList,
    ReadInbox,
    Receipt,
    SyncInbox,
    WaitInbox,
)
from aegis.publishing import publish_change

log = structlog.get_logger("aegis.inboxes")

T = TypeVar("T")

WAIT_LIMIT = 50
"""The largest number of messages that one wait returns."""

MAX_ARRIVING = 8_192
MAX_ARRIVING_CHARS = 8 * 1024 * 1024
"""The limits of messages, and of their characters, that are written and not synced. Further
messages are refused, as the disk is too slow."""


MAX_DEFERRED = 256
MAX_DEFERRED_CHARS = 1024 * 1024
"""The limits of deferred messages, and of the characters of all unsynced ones, at which the inbox
syncs without a request.

A daemon that is killed sends as many again at its next start; the inbox drops them by their ids.
"""

SYNC_PATIENCE_S = 2.0
"""Seconds that a reader waits for deferred messages to be synced; then it gets the durable ones."""

SHOWN_DAMAGE = 3
"""The number of damaged lines of the ledger that are listed in the log."""


@attrs.frozen(kw_only=True)
class WaitDeadline:
    """The timeout of the wait with the number ``wait``."""

    wait: int


@attrs.frozen(kw_only=True)
class ReadingDeadline:
    """The timeout of the reading with this ``number``, which waits for a sync."""

    number: int


@attrs.frozen(kw_only=True)
class EndWait:
    """The request to end a wait, as the daemon stops."""


@attrs.define(eq=False)
class _Waiter:
    number: int
    reply: Reply[MessageList]
    timer: Timer


InboxMessage = (
    Deliver
    | SyncInbox
    | ReadInbox
    | WaitInbox
    | FollowInbox
    | WaitDeadline
    | ReadingDeadline
    | EndWait
    | Settle
)


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
        self._readings = 0
        self._unsynced = Unsynced()
        self._settling = Settling(self._unsynced)

    async def setup(self) -> None:
        """Register the inbox and open the ledger. If the disk refuses, each request tries again."""
        self._followers = Followers(
            self.context.incarnation,
            lambda reply, unread, make: self._bodies.answer(reply, unread, make),
        )
        self.context.register("inbox", self._handle.lower())
        with contextlib.suppress(StorageError):
            await self._open()
        publish_change(self.context.system, resources.Inbox(self._handle))

    async def teardown(self) -> None:
        # Readers and senders get an error that says what to do: the runtime could only report a
        # crash.
        ended = Unavailable(
            f"the inbox of {self._handle!r} ended before it could answer; call again: nothing that "
            "it confirmed is lost"
        )
        for each in self._unsynced.clear():
            _fail(each, ended)
        if self._waiter is not None:
            self._waiter.reply.fail(ended)
        if self._is_open:
            self._appender.close()

    async def receive(self, message: InboxMessage) -> None:
        """Handle a delivery, a reader, or the end of a wait."""
        match message:
            case Deliver():
                if not self._is_open:
                    await self._open()
                await self._deliver(message)
            case ReadInbox() | WaitInbox() | FollowInbox():
                if not self._is_open:
                    await self._open()
                await self._take_reader(message)
            case SyncInbox():
                if self._unsynced.deferred:
                    self._appender.request_sync()
            case WaitDeadline(wait=number):
                if self._waiter is not None and self._waiter.number == number:
                    self._end_wait()
            case ReadingDeadline(number=number):
                late = self._unsynced.take_reading(number)
                if late is not None:
                    self._answer(late.request, late.reader)
            case EndWait():
                if self._waiter is not None:
                    self._waiter.reply.fail(stopping())
            case Settle():
                self._settling.wait(self.defer(message))
                if self._unsynced.deferred:
                    self._appender.request_sync()

    # Delivering.

    async def _deliver(self, delivery: Deliver) -> None:
        if self._state.knows(delivery.id):
            self.reply(delivery, Receipt(id=delivery.id, status="queued", position=0))
            return
        arrival = self._unsynced.arrival(delivery.id)
        if arrival is not None:
            arrival.senders.append(self.defer(delivery))
            if not delivery.defer_sync:
                self._appender.request_sync()
            return
        self._state.check_room(self._handle, delivery, self._unsynced.arriving)
        self._check_arriving()
        self._check_order(delivery.after)
        faults.APPEND_BEFORE.hit(self._handle)
        line = message_line(delivery)
        position, size = await self._append(line)
        faults.APPEND_AFTER.hit(self._handle)
        if not delivery.defer_sync:
            self._appender.request_sync()  # first: the thread wakes up during what follows
        self._bodies.keep(position.start, size, line)
        self._unsynced.add_arrival(Arrival.of(delivery, position, size, self.defer(delivery)))
        if delivery.defer_sync:
            self._deferred()

    def _deferred(self) -> None:
        """Request a sync of deferred messages if a reader waits, or if there are too many."""
        publish_change(self.context.system, resources.Inbox(self._handle))
        is_enough = (
            self._unsynced.deferred >= MAX_DEFERRED
            or self._unsynced.arriving.chars >= MAX_DEFERRED_CHARS
        )
        if is_enough or self._is_watched:
            self._appender.request_sync()

    @property
    def _is_watched(self) -> bool:
        """Whether a reader waits for the next message."""
        waits = self._waiter is not None and not self._waiter.reply.is_settled
        return waits or self._followers.is_waiting

    def _check_arriving(self) -> None:
        arriving = self._unsynced.arriving
        if arriving.messages >= MAX_ARRIVING or arriving.chars >= MAX_ARRIVING_CHARS:
            raise Unavailable(
                f"the disk is slow: {arriving.messages} messages to {self._handle!r} wait to be "
                "synced; send again later"
            )

    def _check_order(self, after: str | None) -> None:
        """Raise ``Unavailable`` unless the sender's previous message ``after`` was written."""
        if after is not None and after not in self._unsynced and not self._state.knows(after):
            raise Unavailable(
                f"the previous message to {self._handle!r} could not be stored: send both again"
            )

    def _delivered(self, arrival: Arrival) -> None:
        faults.CONFIRM_BEFORE.hit(self._handle)
        self._state.add(arrival.message_id, arrival.chars, at=arrival.at, size=arrival.size)
        waited = self._waiter is not None and not self._waiter.reply.is_settled
        position = len(self._state) - 1
        for reply in arrival.senders:
            reply.send(_receipt(arrival.message_id, landed=waited, position=position))
        if waited:
            self._answer_waiter()

    # Reading.

    async def _take_reader(self, request: Reader) -> None:
        """Answer when the acknowledgement of the request, and deferred messages, are synced."""
        up_to = self._newly_read(request)
        reader = cast("Request[Any]", request)
        if up_to is not None:
            line = read_line(up_to, needed_from=self._state.needed_from(up_to))
            position, _ = await self._append(line)
        elif self._unsynced.deferred:
            position = self._unsynced.newest
        else:
            self._answer(request, self.defer(reader))
            return
        self._readings += 1
        number, timer = self._readings, None
        if up_to is None:
            timer = self.context.after(SYNC_PATIENCE_S, ReadingDeadline(number=number))
        self._unsynced.add_reading(
            Reading(
                number=number,
                position=position,
                up_to=up_to,
                request=request,
                reader=self.defer(reader),
                timer=timer,
            )
        )
        self._appender.request_sync()

    def _newly_read(self, request: Reader) -> str | None:
        """Return the message up to which the request acknowledges; None if that changes nothing."""
        if isinstance(request, FollowInbox) or request.after is None:
            return None
        return request.after if self._state.check_cursor(request.after) else None

    def _read_on(self, reading: Reading) -> None:
        """Answer the reader, after the sync that it waited for."""
        if reading.timer is not None:
            reading.timer.cancel()
        if reading.up_to is not None:
            self._state.acknowledge(reading.up_to)
        self._answer(reading.request, reading.reader)

    def _answer(self, request: Reader, reply: Reply[Any]) -> None:
        match request:
            case FollowInbox():
                self._follow(request, reply)
            case ReadInbox(unread=False, limit=limit):
                self._read_soon(self._answer_all, limit, reply)
            case ReadInbox(limit=limit):
                self._bodies.answer(reply, self._state.unread(limit), _list)
            case WaitInbox(timeout=timeout):
                self._wait(reply, timeout)

    def _follow(self, request: FollowInbox, reply: Reply[InboxNews]) -> None:
        try:
            self._followers.take(request, reply, self._state)
        except AegisError as error:
            reply.fail(error)
        self._sync_if_watched()

    def _sync_if_watched(self) -> None:
        """Request a sync if a reader waits, for messages deferred before the wait began."""
        if self._unsynced.deferred and self._is_watched:
            self._appender.request_sync()

    async def _answer_all(self, limit: int, reply: Reply[MessageList]) -> None:
        try:
            messages = await self._read(
                partial(newest_messages, limit=limit), self._appender.synced
            )
        except StorageError as error:
            reply.fail(error)
        else:
            reply.send(_list(messages))

    def _read_soon(self, read: Callable[..., Awaitable[None]], *args: object) -> None:
        self._settling.reading()
        self.context.start_soon(self._settling.run, read, *args)

    def _wait(self, reply: Reply[MessageList], timeout: float) -> None:
        self._end_wait()
        if len(self._state) > 0:
            self._bodies.answer(reply, self._state.unread(WAIT_LIMIT), _list)
            return
        self._waits += 1
        timer = self.context.after(timeout, WaitDeadline(wait=self._waits))
        self._waiter = _Waiter(self._waits, reply, timer)
        self._sync_if_watched()

    def _answer_waiter(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.timer.cancel()
            self._bodies.answer(waiter.reply, self._state.unread(WAIT_LIMIT), _list)

    def _end_wait(self) -> None:
        """End the current wait with an empty list."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.timer.cancel()
            waiter.reply.send(_list([]))

    # The ledger.

    async def _open(self) -> None:
        """Open the ledger and read its messages. Raises ``StorageError``."""
        appender = await Appender.open(self._path, self._flusher)
        with contextlib.ExitStack() as undo:
            undo.callback(appender.close)
            loaded = await self._read(load_state, appender.synced)
            undo.pop_all()
        self._report(loaded)
        self._state = loaded.state
        appender.start(self.context.start_soon)
        appender.on_outcome = self._settle
        self._appender = appender
        self._bodies = Bodies(appender, self._flusher, self._read_soon)
        self._is_open = True

    def _report(self, loaded: Loaded) -> None:
        """Log the damaged lines. They stay in the ledger."""
        if loaded.damaged_count:
            where = [f"bytes {each.start} to {each.end}: {each.reason}" for each in loaded.damaged]
            log.warning(
                "damaged lines skipped",
                file=shown(self._path),
                lines=loaded.damaged_count,
                where=where[:SHOWN_DAMAGE],
            )

    async def _read(self, read: Callable[[Disk, Path, int], T], end: int) -> T:
        """Return the result of ``read`` for the first ``end`` bytes of the ledger."""
        return await self._flusher.look(partial(read, self._flusher.disk, self._path, end))

    async def _append(self, fields: dict[str, object]) -> tuple[Position, int]:
        """Write a line; return its position and its size."""
        if self._appender.failed:
            await self._appender.recover()
        position = self._appender.append(encode_line(fields))
        return position, position.end - position.start

    def _settle(self) -> None:
        """Answer senders and readers, after a sync has ended or the disk has refused."""
        is_changed = False
        try:
            while (taken := self._unsynced.take(self._appender.is_synced)) is not None:
                is_changed = True
                if isinstance(taken, Arrival):
                    self._delivered(taken)
                else:
                    self._read_on(taken)
        except StorageError as error:
            is_changed = True
            self._refuse(error)
        if is_changed:
            self._followers.look(self._state)
            self._settling.check()
            publish_change(self.context.system, resources.Inbox(self._handle))

    def _refuse(self, error: StorageError) -> None:
        """Fail the requests whose lines were not synced and so are not in the ledger.

        A reader that acknowledged nothing gets the durable messages.
        """
        for each in self._unsynced.clear():
            if isinstance(each, Reading) and each.up_to is None:
                self._read_on(each)
            else:
                _fail(each, error)


def stopping() -> Unavailable:
    """Return the error for a waiter when the daemon stops: no more messages will come."""
    return Unavailable("aegis_inbox_wait: the daemon is stopping; messages are kept")


def _fail(write: Arrival | Reading, error: StorageError | Unavailable) -> None:
    replies = write.senders if isinstance(write, Arrival) else [write.reader]
    for reply in replies:
        reply.fail(_again(error))


def _again(error: StorageError | Unavailable) -> StorageError | Unavailable:
    # Each caller gets its own exception: a shared one would collect the tracebacks of all.
    return type(error)(*error.args)


def _receipt(message_id: str, *, landed: bool, position: int) -> Receipt:
    return Receipt(
        id=message_id, status="landed" if landed else "queued", position=0 if landed else position
    )


def _list(messages: list[Message]) -> MessageList:
    return MessageList(messages=messages, next=messages[-1].id if messages else None)
