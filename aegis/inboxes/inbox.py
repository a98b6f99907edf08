"""``Inbox``: the actor of the durable messages of one handle, and of their readers.

Reading does not consume a message: passing ``after`` acknowledges it. A message is shown, and its
delivery confirmed, once it is durable. A deferred delivery (``defer_sync``) is written at once and
synced later, at the latest before a reader is answered.

What is not unread any more moves to the archive of all inboxes once it is old. Its id stays known
there: a message whose id is in no row is looked for in the index, unless it is a wake about a
later record than all others of its terminal.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import attrs

from actors import Actor, Reply, Request, Timer
from aegis.errors import Busy, InvalidRequest, StorageError, Unavailable
from aegis.inboxes import faults
from aegis.inboxes.reading import InboxReader
from aegis.inboxes.rows import (
    MARK,
    Acknowledgement,
    InboxMessage,
    InboxRow,
    ReadMark,
    archived_id,
    archived_newest,
    archived_wakes,
    row_of,
    upgraded,
)
from aegis.inboxes.unread import Arriving, FoldKey, UnreadMessages, fold_of
from aegis.journal.archive import Archive, Keep
from aegis.journal.archiver import Archiver, Leaving
from aegis.journal.flusher import Flusher
from aegis.journal.table import Table
from aegis.names import shorten
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
from aegis.protocol.wakes import WakeId, parse_wake_id
from aegis.publishing import publish_change

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

FOLDED_TOGETHER = 64
"""The wakes of a terminal that a fold gets before it is written, so that they may be archived."""

MAX_READ_CHARS = 32 * 1024 * 1024
"""The limit of the characters of messages that are not unread, and not in the archive."""

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
    wake: WakeId | None
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
    """The inbox of one handle; its ledger is ``path``. All inboxes have one ``archive``."""

    def __init__(
        self, *, handle: str, path: Path, archive: Archive, keep: Keep, flusher: Flusher
    ) -> None:
        self._handle = handle
        self._path = path
        self._archive, self._keep = archive, keep
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
        self._folded: dict[FoldKey, list[InboxMessage]] = {}  # wakes whose folds are not written

    async def setup(self) -> None:
        """Register the inbox and open the ledger. If the disk refuses, each request tries again."""
        self._table: Table[InboxRow] = Table(
            self._path,
            InboxRow,
            self._flusher,
            self.context,
            changed=self._changed,
            lost=self._derive,
            upgrade=upgraded,
        )
        self._archiver = Archiver(
            self._archive,
            self._keep,
            self._flusher,
            self.context,
            find=self._leaving,
            leave=lambda _: None,
            max_size=MAX_READ_CHARS,
        )
        self._reader = InboxReader(
            self._handle, self._path, self._table, self._archive, self._flusher
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
                await self._deliver(message)
            case ReadInbox() | WaitInbox() | FollowInbox():
                if not self._is_usable:
                    await self._open()
                await self._take_reader(message)
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
        if not self._is_derived:
            self._derive()

    def _derive(self) -> None:
        """Derive the unread messages from what was read, or is left by a disk that refused."""
        self._is_derived = True
        self._folded.clear()
        self._unread = UnreadMessages(
            self._table.all_shown(), folded=self._fold_away, left=self._leave_unread
        )
        self._last_number = self._unread.newest
        if self._unread.is_old:
            self._convert()

    def _convert(self) -> None:
        """Write the rows of a version before today's in today's form."""
        old = [each for each in self._table.rows.values() if isinstance(each, Acknowledgement)]
        if self._unread.read:
            mark = ReadMark(id=MARK, up_to=old[-1].up_to, number=self._unread.read)
            self._table.put(mark, is_deferred=True)
        for fold in self._unread.folds():
            self._write_fold(fold)
        for each in old:
            self._table.drop(each.id)
        self._table.settled(self._table.compact)

    # What is not unread any more.

    def _fold_away(self, row: InboxMessage, fold: InboxMessage) -> None:
        """Let a folded wake leave the ledger once its fold is durable.

        A fold follows from its wakes again, so it is written for many of them together.
        """
        folded = self._folded.setdefault(fold_of(fold), [])
        folded.append(row)
        if len(folded) >= FOLDED_TOGETHER:
            del self._folded[fold_of(fold)]
            self._table.put(fold, partial(self._leave_folded, folded), is_deferred=True)

    def _write_fold(self, row: InboxMessage, then: Callable[[], None] | None = None) -> bool:
        """Write a fold; return whether that is to be done."""
        stored = self._table.rows[row.id]
        if isinstance(stored, InboxMessage) and stored.fold == row.fold:
            return False
        return self._table.put(row, then, is_deferred=then is None)

    def _leave_folded(self, rows: list[InboxMessage]) -> None:
        for each in rows:
            self._archiver.add(each.id, each.at, each.chars)

    def _leave_unread(self, row: InboxMessage) -> None:
        self._archiver.add(row.id, row.at, row.chars)
        if row.fold is not None:
            self._leave_folded(self._folded.pop(fold_of(row), []))

    def _leaving(self, message_id: str) -> Leaving | None:
        """Return a message as the archive gets it; None if it is unread."""
        row = self._table.rows.get(message_id)
        if not isinstance(row, InboxMessage) or message_id in self._unread:
            return None
        entries = {archived_id(self._handle, message_id): {"number": row.number}}
        entries[archived_newest(self._handle)] = {"number": self._unread.newest}
        wake = parse_wake_id(message_id)
        if wake is not None:
            entries[archived_wakes(self._handle, wake)] = {"seq": self._unread.highest(wake) or 0}
        return Leaving(self._table, (row,), entries, prefix=archived_id(self._handle, ""))

    async def _number_of(self, message_id: str) -> int | None:
        """Return the place of a durable or archived message; None if there was none."""
        row = self._table.shown(message_id)
        if isinstance(row, InboxMessage):
            return row.number
        entry = await self._archiver.entry(archived_id(self._handle, message_id))
        return None if entry is None else int(entry["number"])

    async def _archived_highest(self, wake: WakeId) -> int | None:
        """Return the highest record of this terminal that had an archived wake."""
        entry = await self._archiver.entry(archived_wakes(self._handle, wake))
        return None if entry is None else int(entry["seq"])

    async def _archived_newest(self) -> int:
        """Return the highest number of this inbox from which messages were archived; 0 if none.

        The ledger may be lost, and its archive not: no number is given again.
        """
        entry = await self._archiver.entry(archived_newest(self._handle))
        return 0 if entry is None else int(entry["number"])

    async def _knows(self, message_id: str) -> bool:
        """Return whether a durable message of this id was delivered before."""
        return await self._number_of(message_id) is not None

    # Delivering.

    async def _deliver(self, delivery: Deliver) -> None:
        arrival = self._arrivals.get(delivery.id)
        if arrival is not None:
            arrival.senders.append(self.defer(delivery))
            if not delivery.defer_sync:
                self._table.sync()
            return
        wake = parse_wake_id(delivery.id)
        highest = None if wake is None else self._unread.highest(wake)
        is_new = wake is not None and highest is not None and wake.seq > highest
        if not is_new and await self._knows(delivery.id):
            self.reply(delivery, Receipt(id=delivery.id, status="queued", position=0))
            return
        if wake is not None and highest is None:
            highest = await self._archived_highest(wake)
        if not self._last_number:
            self._last_number = await self._archived_newest()
        self._unread.check_room(self._handle, delivery, self._arriving)
        self._check_arriving()
        await self._check_order(delivery.after)
        faults.APPEND_BEFORE.hit(self._handle)
        row = row_of(
            delivery,
            self._last_number + 1,
            at=int(time.time()),
            highest=None if wake is None or (highest or 0) <= wake.seq else highest,
        )
        then = partial(self._delivered, delivery.id)
        if not self._table.put(row, then, is_deferred=delivery.defer_sync):
            raise StorageError(self._table.refusal)
        faults.APPEND_AFTER.hit(self._handle)
        self._last_number = row.number
        self._reader.keep(row)
        if wake is not None:
            self._unread.note(wake, highest)
        arrival = _Arrival(row, wake, delivery.defer_sync, [self.defer(delivery)])
        self._arrivals[row.id] = arrival
        self._arriving.count(row, is_wake=wake is not None, sign=1)
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

    async def _check_order(self, after: str | None) -> None:
        """Raise ``Unavailable`` unless the sender's previous message ``after`` was written."""
        if after is None or after in self._arrivals:
            return
        if not await self._knows(after):
            raise Unavailable(
                f"the previous message to {self._handle!r} could not be stored: send both again"
            )

    def _delivered(self, message_id: str) -> None:
        """Show a message that is durable now, and answer its senders."""
        faults.CONFIRM_BEFORE.hit(self._handle)
        arrival = self._arrivals.pop(message_id)
        self._arriving.count(arrival.row, is_wake=arrival.wake is not None, sign=-1)
        self._deferred -= arrival.is_deferred
        row = self._table.rows[message_id]
        assert isinstance(row, InboxMessage)
        self._unread.add(row, arrival.wake)
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
            self._last_number = self._unread.newest
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

    async def _take_reader(self, request: Reader) -> None:
        """Answer when the acknowledgement of the request, and deferred messages, are durable."""
        reader = cast("Request[Any]", request)
        after = None if isinstance(request, FollowInbox) else request.after
        number = 0 if after is None else await self._cursor(after)
        shrunk = None if after is None else self._unread.shrunk_by(after, number)
        acknowledges = shrunk is not None or self._unread.reaches(number)
        if not acknowledges and not self._deferred:
            self._answer(request, self.defer(reader))
            return
        self._numbers += 1
        reading, timer = self._numbers, None
        if after is not None and acknowledges:
            acknowledged = partial(self._acknowledged, after, number, reading)
            self._acknowledge(after, number, shrunk, acknowledged)
        else:
            timer = self.context.after(SYNC_PATIENCE_S, ReadingDeadline(number=reading))
            self._table.settled(partial(self._read_on, reading))
        self._readings[reading] = _Reading(request, self.defer(reader), timer)
        self._table.sync()

    async def _cursor(self, after: str) -> int:
        """Return the place of a message. Raises ``InvalidRequest`` for an unknown id."""
        number = await self._number_of(after)
        if number is None:
            raise InvalidRequest(
                f"after {shorten(after)!r} is not the 'next' of an earlier reply of this inbox"
            )
        # A later place is one of a ledger that was lost.
        return number if number <= self._unread.newest else 0

    def _acknowledge(
        self, up_to: str, number: int, shrunk: InboxMessage | None, then: Callable[[], None]
    ) -> None:
        """Write that messages are read; ``shrunk`` is the fold that has one as an older wake."""
        mark = self._table.rows.get(MARK)
        if isinstance(mark, ReadMark) and mark.number >= number:
            mark = attrs.evolve(mark)  # another reader's may not be durable yet
        else:
            mark = ReadMark(id=MARK, up_to=up_to, number=number)
        # A fold does not follow any more from wakes of which some are read.
        for each in self._unread.across(number):
            self._write_fold(shrunk if shrunk is not None and shrunk.id == each.id else each)
        if not self._table.put(mark, then, is_deferred=True):
            raise StorageError(self._table.refusal)

    def _acknowledged(self, up_to: str, number: int, reading: int) -> None:
        shrunk = self._unread.acknowledge(up_to, number)
        # The fold may have grown, and may have been written as it was, since this was written.
        if shrunk is None or not self._write_fold(shrunk, partial(self._read_on, reading)):
            self._read_on(reading)

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
        try:
            found = await self._reader.newest(limit, self._unread.newest)
        except StorageError as error:
            reply.fail(error)
            return
        answer = _list([*found.values()])
        # To acknowledge the newest message would acknowledge an unread one that is not shown.
        if not self._unread.has_all_among(found):
            answer = attrs.evolve(answer, next=None)
        reply.send(answer)

    def _send(
        self,
        reply: Reply[T],
        rows: list[InboxMessage],
        make: Callable[[list[Message]], T],
    ) -> None:
        """Read messages; answer with the result of ``make``. A few are read at once."""
        if self._reader.is_slow(rows):
            self._read_soon(self._send_many, reply, rows, make)
            return
        try:
            reply.send(make(self._reader.messages_now(rows)))
        except StorageError as error:
            reply.fail(error)

    async def _send_many(
        self,
        reply: Reply[T],
        rows: list[InboxMessage],
        make: Callable[[list[Message]], T],
    ) -> None:
        try:
            reply.send(make(await self._reader.messages(rows)))
        except StorageError as error:
            reply.fail(error)

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
        if request.place is None:
            self._read_soon(self._answer_place, request.after, reply)
        elif not self._answered(follower := _Follower(request, request.place, reply)):
            try:
                self._make_room()
            except Busy as error:
                reply.fail(error)
            else:
                self._followers.append(follower)
        self._sync_if_watched()

    async def _answer_place(self, after: str | None, reply: Reply[InboxNews]) -> None:
        """Answer with the place behind a message, or behind all."""
        try:
            at = self._unread.newest if after is None else await self._number_of(after)
        except StorageError as error:
            reply.fail(error)
            return
        if at is None:
            why = f"no message {shorten(after or '')!r} was ever in this inbox"
            reply.fail(InvalidRequest(why))
            return
        behind = self._unread.behind(at, 1)
        number = behind[0].number - 1 if behind else self._unread.newest
        place = InboxPlace(at=at, number=number, life=self.context.incarnation)
        reply.send(InboxNews(messages=[], missed=0, place=place))

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
        # A later place is one of a ledger that had other numbers: of a version before today's.
        at = place.at if place.at <= self._unread.newest else 0
        found = self._unread.behind(at, follower.request.limit)
        if not found:
            return False
        newest = found[-1].number
        missed = max(newest - place.number - len(found), 0)
        here = InboxPlace(at=newest, number=newest, life=self.context.incarnation)
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
