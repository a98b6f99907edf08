"""Streams as async iterators: what came and was not read yet, and the credit that it cost.

The daemon may send ``WINDOW`` bytes that were not read yet, and no more. So a reader that falls
behind holds that much memory, and is told what it missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar, cast

import trio

from aegis.client.errors import ClientError, CommandFailed, ConnectionLost, ProtocolMismatch
from aegis.client.frames import Failure, Opened
from aegis.client.link import Link, LinkLost
from aegis.client.stream_kinds import InboxKind, InboxValue, Kind, OutputKind, OutputValue
from aegis.protocol.command import Command
from aegis.protocol.inboxes import ReadInbox
from aegis.protocol.streams import (
    MAX_KEYS_BYTES,
    Ended,
    Gap,
    Item,
    OutputBytes,
    OutputStart,
)

T = TypeVar("T")

WINDOW = 256 * 1024
"""Credit of a stream, in bytes: what may have come and not been read."""

MAX_MESSAGES = 1000

CREDIT_STEP = WINDOW // 4
"""Credit is given back in steps of this size."""


class Keeper(Protocol):
    """Who keeps streams open over one connection and the next."""

    async def call(self, command: type[Command[T]], arguments: dict[str, object]) -> T:
        """Have a command carried out. Raises ``ClientError``."""
        ...

    @property
    def patience_s(self) -> float:
        """Seconds that a call waits for a connection."""
        ...

    def reopen(self, stream: Stream[Any]) -> None:
        """Open the stream on the present connection, or on the next."""
        ...

    def fail_unless_lost(self, stream: Stream[Any], error: ClientError) -> None:
        """Have the stream fail, if the present connection does not end soon; else go on then."""
        ...


class Stream(Generic[T]):
    """What comes on one stream, in order: ``async for value in stream``.

    It ends when what it tells of is over; ``CommandFailed`` is raised if it broke. One task reads
    it; another that does so too gets what the first does not. ``unread`` is how much credit, in
    bytes, what came and was not read has cost; ``is_open``: the daemon has opened it once.
    """

    def __init__(self, keeper: Keeper, kind: Kind[T]) -> None:
        self._keeper = keeper
        self._kind = kind
        self._link: Link | None = None
        self._number = 0
        self._values: deque[tuple[T, int]] = deque()
        self.unread = 0
        self._owed = 0
        self._news = trio.lowlevel.ParkingLot()
        self.is_open = False
        self._end: ClientError | None = None
        self._is_over = False

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        while not self._values:
            if self._is_over:
                if self._end is not None:
                    raise self._end
                raise StopAsyncIteration
            await self._news.park()
        await trio.lowlevel.checkpoint_if_cancelled()
        value, cost = self._values.popleft()
        self._give_back(cost)
        return value

    async def wait_open(self) -> None:
        """Wait until the daemon has opened it. Raises ``ClientError`` if it does not."""
        while not self.is_open:
            if self._end is not None:
                raise self._end
            await self._news.park()

    async def prepare(self) -> None:
        """Find out what must be known before it is opened. Raises ``ClientError``."""

    def open_on(self, link: Link) -> None:
        """Open it, or open it again, on this connection."""
        self._link, self._owed = link, 0
        credit = max(0, WINDOW - self.unread)
        self._number = link.open(self, self._kind.stream, self._kind.arguments(), credit)

    def close(self) -> None:
        """Ask for nothing more, and forget what was not read."""
        self._is_over = True
        self._values.clear()
        if self._link is not None:
            self._link.close(self._number)

    def fail(self, error: ClientError | None) -> None:
        """Nothing more will come, because of ``error``; None: because it is over."""
        self._is_over, self._end = True, error
        self._news.unpark_all()

    def on_opened(self, opened: Opened) -> None:
        """It is open, or open again."""
        self._take(lambda: self._kind.opened(opened.start), 0)
        self.is_open = True
        self._news.unpark_all()

    def on_refused(self, failure: Failure) -> None:
        """The daemon does not open it."""
        if self._kind.is_restarted(failure.code):
            self._keeper.reopen(self)
        else:
            self.fail(CommandFailed(failure.code, failure.message))

    def on_item(self, item: Item, cost: int) -> None:
        """An item came, for so much credit."""
        self._take(lambda: [self._kind.item(item.item)], cost)

    def on_bytes(self, output: OutputBytes) -> None:
        """Only output has bytes."""
        del output

    def on_gap(self, gap: Gap, cost: int) -> None:
        """Something was left out."""
        self._take(lambda: [cast("T", self._kind.gap(gap))], cost)

    def on_ended(self, ended: Ended) -> None:
        """It is over: closed, or broken."""
        if ended.code in (None, "closed"):
            self.fail(None)
            return
        error = CommandFailed(str(ended.code), ended.message or "the stream broke")
        if ended.code == "unavailable":  # as a daemon says that stops: the connection is next
            self.on_lost()
            self._keeper.fail_unless_lost(self, error)
        else:
            self.fail(error)

    def on_lost(self) -> None:
        """The connection is gone; it goes on with the next."""
        self._link = None

    def tell(self, values: Iterable[T]) -> None:
        """Hand on what did not come over the stream itself."""
        self._values.extend((value, 0) for value in values)
        self._news.unpark_all()

    def _take(self, make: Callable[[], Iterable[T]], cost: int) -> None:
        if self._is_over:
            return
        try:
            values = list(make())
        except ProtocolMismatch as error:
            self.fail(error)
            return
        for value in values:
            self._values.append((value, cost))
            self.unread += cost
        self._news.unpark_all()

    def _give_back(self, cost: int) -> None:
        self.unread -= cost
        self._owed += cost
        if self._owed >= CREDIT_STEP and self._link is not None:
            self._link.give_credit(self._number, self._owed)
            self._owed = 0


class OutputStream(Stream[OutputValue]):
    """What a terminal prints, as it prints it; keys can be typed there."""

    def __init__(self, keeper: Keeper, kind: OutputKind) -> None:
        super().__init__(keeper, kind)
        self._output = kind
        self._channel: int | None = None

    @property
    def start(self) -> OutputStart:
        """How the terminal was when the stream was first opened."""
        assert self._output.start is not None
        return self._output.start

    async def type(self, keys: str | bytes) -> None:
        """Type ``keys`` exactly as given, in order; returns once they have left.

        Raises ``ConnectionLost``: some may have been typed. That the program did not take them
        comes as a ``Refused`` on the stream.
        """
        data = keys.encode() if isinstance(keys, str) else keys
        for begin in range(0, len(data), MAX_KEYS_BYTES):
            await self._type(data[begin : begin + MAX_KEYS_BYTES], is_first=begin == 0)

    async def _type(self, keys: bytes, *, is_first: bool) -> None:
        link, channel = await self._open_channel()
        try:
            await link.type_keys(channel, keys)
        except LinkLost as lost:
            raise ConnectionLost(
                f"the connection was lost while keys were typed ({lost}): they may have been typed",
                maybe_done=lost.was_sent or not is_first,
            ) from None

    async def _open_channel(self) -> tuple[Link, int]:
        with trio.move_on_after(self._keeper.patience_s):
            while not self._is_over:
                if self._link is not None and self._channel is not None:
                    return self._link, self._channel
                await self._news.park()
            raise self._end or CommandFailed("unavailable", "this stream is over")
        raise ConnectionLost("there is no connection to type keys over", maybe_done=False)

    def on_opened(self, opened: Opened) -> None:
        """It is open, or open again."""
        self._channel = opened.channel
        super().on_opened(opened)

    def on_bytes(self, output: OutputBytes) -> None:
        """Bytes came."""
        self._take(lambda: [self._output.chunk(output)], len(output.data))

    def on_lost(self) -> None:
        """The connection is gone; it goes on with the next."""
        self._channel = None
        super().on_lost()


class InboxStream(Stream[InboxValue]):
    """Messages of an inbox as they come.

    It begins behind the newest message that there is, and remembers which that was: what comes
    while the connection is lost is not missed. An inbox without any is read whole after a loss.
    """

    def __init__(self, keeper: Keeper, kind: InboxKind) -> None:
        super().__init__(keeper, kind)
        self._inbox = kind
        self._was_empty = False

    async def prepare(self) -> None:
        """Find the newest message there is. Raises ``ClientError``."""
        if self._inbox.after is not None:
            return
        limit = MAX_MESSAGES if self._was_empty else 1
        found = await self._keeper.call(ReadInbox, {"unread": False, "limit": limit})
        if found.messages:
            self._inbox.after = found.messages[-1].id
        if self._was_empty:
            self.tell(found.messages)
        self._was_empty = True
