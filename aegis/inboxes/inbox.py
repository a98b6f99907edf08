"""``Inbox``: the actor of the durable messages of one handle, and of their readers.

Reading does not consume a message: passing ``after`` acknowledges it. A message is shown, and its
delivery confirmed, once it is durable. A deferred delivery (``defer_sync``) is written at once and
synced later, at the latest before a reader is answered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs
import structlog

from actors import Actor, Reply, Request, Timer
from aegis.clock import utc_now
from aegis.errors import AegisError, Busy, StorageError, Unavailable
from aegis.inboxes import faults
from aegis.inboxes.reading import ReadMessages, newest_messages
from aegis.inboxes.rows import (
    Acknowledgement,
    InboxMessage,
    InboxRow,
    message_in,
    message_of,
    row_of,
    upgraded,
    with_text,
)
from aegis.inboxes.unread import Arriving, UnreadMessages
from aegis.journal.disk import shown
from aegis.journal.flusher import Flusher
from aegis.journal.reader import ON_LOOP_BYTES
from aegis.journal.table import Table
from aegis.protocol import resources
from aegis.protocol.feeds import FollowInbox, InboxNews, InboxPlace
from aegis.protocol.inboxes import (
    Deliver,
    Message,
    MessageList,
    ReadInbox,
    Receipt,
    SyncInbox,
    WaitInbox,
)
from aegis.protocol.wakes import parse_wake_id
from aegis.publishing import publish_change

log = structlog.get_logger("aegis.inboxes")

T = TypeVar("T")

WAIT_LIMIT = 50
"""The largest number of messages that one wait returns."""

MAX_FOLLOWERS = 256
"""Streams that may wait for messages of one inbox."""

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

MAX_KEPT_CHARS = 8 * 1024
"""The longest message that is kept in memory, if it is the newest: a stream waits for it."""

MAX_REPORTED = 1_000
"""Damaged lines of one inbox that are logged."""

SUBSTRATE = "substrate"
"""The sender of messages that the daemon itself writes."""

Reader = ReadInbox | WaitInbox | FollowInbox
"""A request that is answered with messages."""


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


@attrs.frozen(kw_only=True)
class Settle(Request[None]):
    """Reply once every earlier request but a wait for the next message is answered."""


@attrs.define(eq=False)
class _Arrival:
    """A message that is written, not durable; its ``senders`` wait for that."""

    row: InboxMessage
    is_wake: bool
    is_deferred: bool
    senders: list[Reply[Receipt]]


@attrs.define(eq=False)
class _Reading:
    """A reader that waits until all messages so far, or its acknowledgement, are durable.

    One that acknowledges nothing does not wait longer than its ``timer``.
    """

    request: Reader
    reply: Reply[Any]
    timer: Timer | None


@attrs.define(eq=False)
class _Waiter:
    number: int
    reply: Reply[MessageList]
    timer: Timer


@attrs.frozen
class _Follower:
    request: FollowInbox
    place: InboxPlace
    reply: Reply[InboxNews]


InboxRequest = (
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


class Inbox(Actor[InboxRequest]):
    """The inbox of one handle; its ledger is ``path``."""

    def __init__(self, *, handle: str, path: Path, flusher: Flusher) -> None:
        self._handle = handle
        self._path = path
        self._flusher = flusher
        self._unread: UnreadMessages
        self._arrivals: dict[str, _Arrival] = {}
        self._arriving = Arriving()
        self._deferred = 0
        self._last_number = 0
        self._readings: dict[int, _Reading] = {}
        self._followers: list[_Follower] = []
        self._waiter: _Waiter | None = None
        self._numbers = 0
        self._reads = 0  # of the disk, in progress
        self._settlers: list[Reply[None]] = []
        self._newest: InboxMessage | None = None
        self._reported: set[int] = set()

    async def setup(self) -> None:
        """Register the inbox and open the ledger. If the disk refuses, each request tries again."""
        self._read_before = ReadMessages()
        self._table: Table[InboxRow] = Table(
            self._path,
            InboxRow,
            self._flusher,
            self.context,
            changed=self._changed,
            lost=self._derive,
            upgrade=upgraded,
            beginning=self._read_before.find,
        )
        self._is_derived = False
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
        _fail(self._senders(), ended)
        _fail((each.reply for each in self._readings.values()), ended)
        if self._waiter is not None:
            self._waiter.reply.fail(ended)
        self._table.close()

    async def receive(self, message: InboxRequest) -> None:
        """Handle a delivery, a reader, or the end of a wait."""
        match message:
            case Deliver():
                if not self._is_usable:
                    await self._open()
                self._deliver(message)
            case ReadInbox() | WaitInbox() | FollowInbox():
                if not self._is_usable:
                    await self._open()
                self._take_reader(message)
            case SyncInbox():
                self._sync_deferred()
            case WaitDeadline(wait=number):
                if self._waiter is not None and self._waiter.number == number:
                    self._end_wait()
            case ReadingDeadline(number=number):
                self._read_on(number)
            case EndWait():
                if self._waiter is not None:
                    self._waiter.reply.fail(stopping())
            case Settle():
                self._settlers.append(self.defer(message))
                self._sync_deferred()
                self._check_settled()

    @property
    def _is_usable(self) -> bool:
        return self._is_derived and not self._table.problem

    async def _open(self) -> None:
        """Open the ledger, or try the disk again. Raises ``StorageError`` if it was never read."""
        await self._table.open()
        if not self._table.is_open:
            raise StorageError(self._table.refusal)
        self._derive()

    def _derive(self) -> None:
        """Derive the unread messages, once the rows were read."""
        if not self._is_derived:
            self._is_derived = True
            self._unread = UnreadMessages(self._table, self._read_before.known)
            self._read_before.known.clear()
            self._last_number = max(self._unread.newest_place, 0)

    # Delivering.

    def _deliver(self, delivery: Deliver) -> None:
        arrival = self._arrivals.get(delivery.id)
        if arrival is not None:
            arrival.senders.append(self.defer(delivery))
            if not delivery.defer_sync:
                self._table.sync()
            return
        if self._unread.knows(delivery.id):
            self.reply(delivery, Receipt(id=delivery.id, status="queued", position=0))
            return
        self._unread.check_room(self._handle, delivery, self._arriving)
        self._check_arriving()
        self._check_order(delivery.after)
        faults.APPEND_BEFORE.hit(self._handle)
        row = row_of(delivery, self._last_number + 1)
        then = partial(self._delivered, delivery.id)
        if not self._table.put(row, then, is_deferred=delivery.defer_sync):
            raise StorageError(self._table.refusal)
        faults.APPEND_AFTER.hit(self._handle)
        self._last_number = row.number
        self._newest = row if row.chars <= MAX_KEPT_CHARS else None
        is_wake = parse_wake_id(row.id) is not None
        arrival = _Arrival(row, is_wake, delivery.defer_sync, [self.defer(delivery)])
        self._arrivals[row.id] = arrival
        self._arriving.count(row, is_wake=is_wake, sign=1)
        if delivery.defer_sync:
            self._deferred += 1
            self._sync_if_enough()

    def _sync_if_enough(self) -> None:
        """Sync deferred messages if a reader waits, or if there are too many."""
        publish_change(self.context.system, resources.Inbox(self._handle))
        is_enough = self._deferred >= MAX_DEFERRED or self._arriving.chars >= MAX_DEFERRED_CHARS
        if is_enough or self._is_watched:
            self._table.sync()

    def _sync_deferred(self) -> None:
        if self._deferred:
            self._table.sync()

    def _sync_if_watched(self) -> None:
        """Sync if a reader waits, for messages deferred before the wait began."""
        if self._is_watched:
            self._sync_deferred()

    @property
    def _is_watched(self) -> bool:
        """Whether a reader waits for the next message."""
        waits = self._waiter is not None and not self._waiter.reply.is_settled
        return waits or any(not each.reply.is_settled for each in self._followers)

    def _check_arriving(self) -> None:
        arriving = self._arriving
        if arriving.messages >= MAX_ARRIVING or arriving.chars >= MAX_ARRIVING_CHARS:
            raise Unavailable(
                f"the disk is slow: {arriving.messages} messages to {self._handle!r} wait to be "
                "synced; send again later"
            )

    def _check_order(self, after: str | None) -> None:
        """Raise ``Unavailable`` unless the sender's previous message ``after`` was written."""
        if after is not None and after not in self._arrivals and not self._unread.knows(after):
            raise Unavailable(
                f"the previous message to {self._handle!r} could not be stored: send both again"
            )

    def _delivered(self, message_id: str) -> None:
        """Show a message that is durable now, and answer its senders."""
        faults.CONFIRM_BEFORE.hit(self._handle)
        arrival = self._arrivals.pop(message_id)
        self._arriving.count(arrival.row, is_wake=arrival.is_wake, sign=-1)
        self._deferred -= arrival.is_deferred
        row = self._table.rows[message_id]
        assert isinstance(row, InboxMessage)
        self._unread.add(row)
        has_waiter = self._waiter is not None and not self._waiter.reply.is_settled
        position = 0 if has_waiter else len(self._unread) - 1
        receipt = Receipt(
            id=message_id, status="landed" if has_waiter else "queued", position=position
        )
        for reply in arrival.senders:
            reply.send(receipt)
        if has_waiter:
            self._answer_waiter()

    def _senders(self) -> list[Reply[Receipt]]:
        return [reply for each in self._arrivals.values() for reply in each.senders]

    def _changed(self) -> None:
        """Answer streams and waiters, after a sync has ended or the disk has refused."""
        if self._table.problem:
            self._refuse(StorageError(self._table.refusal))
        if self._is_derived:
            self._followers = [each for each in self._followers if not self._answered(each)]
        self._check_settled()
        publish_change(self.context.system, resources.Inbox(self._handle))

    def _refuse(self, error: StorageError) -> None:
        """Fail the requests whose lines are not in the ledger.

        A reader that acknowledged nothing gets the durable messages.
        """
        _fail(self._senders(), error)
        self._arrivals.clear()
        self._arriving, self._deferred = Arriving(), 0
        if self._is_derived:
            self._last_number = max(self._unread.newest_place, 0)
        readings, self._readings = self._readings, {}
        for each in readings.values():
            if each.timer is None:
                each.reply.fail(StorageError(*error.args))
            else:
                each.timer.cancel()
                self._answer(each.request, each.reply)

    def _check_settled(self) -> None:
        """Answer the requests to settle, once no other answer is owed."""
        while self._settlers and not (self._arrivals or self._readings or self._reads):
            self._settlers.pop().send(None)

    # Reading.

    def _take_reader(self, request: Reader) -> None:
        """Answer when the acknowledgement of the request, and deferred messages, are durable."""
        reader = cast("Request[Any]", request)
        after = None if isinstance(request, FollowInbox) else request.after
        acknowledges = after is not None and self._unread.check_cursor(after)
        if not acknowledges and not self._deferred:
            self._answer(request, self.defer(reader))
            return
        self._numbers += 1
        number = self._numbers
        then, timer = partial(self._read_on, number), None
        if after is not None and acknowledges:
            row = self._unread.acknowledgement(after)
            acknowledged = partial(self._acknowledged, row, number)
            if not self._table.put(row, acknowledged, is_deferred=True):
                raise StorageError(self._table.refusal)
        else:
            timer = self.context.after(SYNC_PATIENCE_S, ReadingDeadline(number=number))
            self._table.settled(then)
        self._readings[number] = _Reading(request, self.defer(reader), timer)
        self._table.sync()

    def _acknowledged(self, row: Acknowledgement, number: int) -> None:
        self._unread.acknowledge(row)
        self._read_on(number)

    def _read_on(self, number: int) -> None:
        """Answer the reader, after the sync that it waited for, or too long."""
        reading = self._readings.pop(number, None)
        if reading is not None:
            if reading.timer is not None:
                reading.timer.cancel()
            self._answer(reading.request, reading.reply)
            self._check_settled()

    def _answer(self, request: Reader, reply: Reply[Any]) -> None:
        match request:
            case FollowInbox():
                self._follow(request, reply)
            case ReadInbox(unread=False, limit=limit):
                self._read_soon(self._answer_all, limit, reply)
            case ReadInbox(limit=limit):
                self._send(reply, self._unread.first(limit), _list)
            case WaitInbox(timeout=timeout):
                self._wait(reply, timeout)

    async def _answer_all(self, limit: int, reply: Reply[MessageList]) -> None:
        end = self._table.synced
        read = partial(newest_messages, self._flusher.disk, self._path, end, limit)
        try:
            reply.send(_list(await self._flusher.look(read)))
        except StorageError as error:
            reply.fail(error)

    def _send(
        self,
        reply: Reply[T],
        rows: list[InboxMessage],
        make: Callable[[list[Message]], T],
    ) -> None:
        """Read messages; answer with the result of ``make``. A few are read at once."""
        newest = self._newest
        if len(rows) == 1 and newest is not None and newest.id == rows[0].id:
            reply.send(make([self._unread.shown(rows[0], message_of(newest))]))
            return
        if sum(each.message.size for each in rows) > ON_LOOP_BYTES:
            self._read_soon(self._send_many, reply, rows, make)
            return
        try:
            lines = self._table.lines_of([each.message for each in rows])
            reply.send(make([*map(self._message, rows, lines)]))
        except StorageError as error:
            reply.fail(error)

    async def _send_many(
        self,
        reply: Reply[T],
        rows: list[InboxMessage],
        make: Callable[[list[Message]], T],
    ) -> None:
        try:
            lines = await self._table.lines_of_many([each.message for each in rows])
            reply.send(make([*map(self._message, rows, lines)]))
        except StorageError as error:
            reply.fail(error)

    def _message(self, row: InboxMessage, line: Any) -> Message:
        """Return the message of a row, or one in its place that says that it is damaged."""
        message = None if isinstance(line, str) else message_in(line)
        if message is None or message.id != row.id:
            message = self._substitute(
                row, line if isinstance(line, str) else "another line is there"
            )
        return self._unread.shown(row, message)

    def _substitute(self, row: InboxMessage, reason: str) -> Message:
        # Without a message in its place it could not be acknowledged.
        start = row.message.start
        where, file = f"bytes {start} to {start + row.message.size}", shown(self._path)
        if start not in self._reported and len(self._reported) < MAX_REPORTED:
            self._reported.add(start)
            log.warning("message damaged", file=file, id=row.id, where=f"{where}: {reason}")
        return with_text(
            Message(
                id=row.id,
                sender=SUBSTRATE,
                body=f"this message cannot be read: {where} of {file} are damaged: {reason}",
                text="",
                timestamp=utc_now(),
            )
        )

    def _read_soon(self, read: Callable[..., Awaitable[None]], *args: object) -> None:
        self._reads += 1
        self.context.start_soon(self._read_counted, read, *args)

    async def _read_counted(self, read: Callable[..., Awaitable[None]], *args: object) -> None:
        try:
            await read(*args)
        finally:
            self._reads -= 1
            self._check_settled()

    # Waiting.

    def _wait(self, reply: Reply[MessageList], timeout: float) -> None:
        self._end_wait()
        if len(self._unread) > 0:
            self._send(reply, self._unread.first(WAIT_LIMIT), _list)
            return
        self._numbers += 1
        timer = self.context.after(timeout, WaitDeadline(wait=self._numbers))
        self._waiter = _Waiter(self._numbers, reply, timer)
        self._sync_if_watched()

    def _answer_waiter(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.timer.cancel()
            self._send(waiter.reply, self._unread.first(WAIT_LIMIT), _list)

    def _end_wait(self) -> None:
        """End the current wait with an empty list."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.timer.cancel()
            waiter.reply.send(_list([]))

    # Streams.

    def _follow(self, request: FollowInbox, reply: Reply[InboxNews]) -> None:
        try:
            if request.place is None:
                place = self._place_after(request.after)
                reply.send(InboxNews(messages=[], missed=0, place=place))
            elif not self._answered(follower := _Follower(request, request.place, reply)):
                self._make_room()
                self._followers.append(follower)
        except AegisError as error:
            reply.fail(error)
        self._sync_if_watched()

    def _place_after(self, after: str | None) -> InboxPlace:
        unread = self._unread
        at = unread.newest_place if after is None else unread.place_of(after)
        behind = unread.behind(at, 1)
        number = unread.number(behind[0]) - 1 if behind else max(unread.newest_place, 0)
        return InboxPlace(at=at, number=number, life=self.context.incarnation)

    def _make_room(self) -> None:
        if len(self._followers) >= MAX_FOLLOWERS:
            self._followers = [each for each in self._followers if not each.reply.is_settled]
        if len(self._followers) >= MAX_FOLLOWERS:
            raise Busy(f"{MAX_FOLLOWERS} streams follow this inbox already; close one first")

    def _answered(self, follower: _Follower) -> bool:
        """Answer the stream if there are messages; return whether it is answered."""
        if follower.reply.is_settled:
            return True
        place = follower.place
        found = self._unread.behind(place.at, follower.request.limit)
        if not found:
            return False
        newest = found[-1]
        number = self._unread.number(newest)
        missed = max(number - place.number - len(found), 0)
        here = InboxPlace(at=newest.place, number=number, life=self.context.incarnation)
        self._send(follower.reply, found, partial(_news, missed=missed, place=here))
        return True


def stopping() -> Unavailable:
    """Return the error for a waiter when the daemon stops: no more messages will come."""
    return Unavailable("aegis_inbox_wait: the daemon is stopping; messages are kept")


def _fail(replies: Iterable[Reply[Any]], error: StorageError | Unavailable) -> None:
    for reply in replies:
        # Each caller gets its own exception: a shared one would collect the tracebacks of all.
        reply.fail(type(error)(*error.args))


def _list(messages: list[Message]) -> MessageList:
    return MessageList(messages=messages, next=messages[-1].id if messages else None)


def _news(messages: list[Message], *, missed: int, place: InboxPlace) -> InboxNews:
    return InboxNews(messages=messages, missed=missed, place=place)
