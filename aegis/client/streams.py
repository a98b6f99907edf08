"""Streams as asynchronous iterators, with flow control by credit.

The daemon sends at most ``WINDOW`` bytes ahead of the reader. So a slow reader uses at most that
much memory, and gets a ``Gap`` for the items that it missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar, cast

import trio

from aegis.client.errors import ClientError, CommandFailed, ConnectionLost, ProtocolMismatch
from aegis.client.frames import FailureFrame, OpenedFrame
from aegis.client.link import AnswerLost, FrameLink
from aegis.client.stream_kinds import InboxKind, InboxValue, Kind, OutputKind, OutputValue
from aegis.protocol.command import Command
from aegis.protocol.inboxes import ReadInbox
from aegis.protocol.output_streams import OutputStart
from aegis.protocol.streams import (
    MAX_KEYS_BYTES,
    Ended,
    Gap,
    Item,
    OutputBytes,
)

T = TypeVar("T")

WINDOW = 256 * 1024
"""Credit of a stream: the most bytes that are received and not yet read."""

MAX_MESSAGES = 1000

CREDIT_STEP = WINDOW // 4
"""Credit is returned to the daemon in steps of this many bytes."""


class Keeper(Protocol):
    """The session that keeps streams open over successive connections."""

    async def call(self, command: type[Command[T]], arguments: dict[str, object]) -> T:
        """Call a command. Raises ``ClientError``."""
        ...

    @property
    def patience_s(self) -> float:
        """Seconds that a call waits for a connection."""
        ...

    def reopen(self, stream: Stream[Any]) -> None:
        """Open the stream on the present connection or, without one, on the next."""
        ...

    def fail_unless_lost(self, stream: Stream[Any], error: ClientError) -> None:
        """Fail the stream unless the present connection ends soon."""
        ...


class Stream(Generic[T]):
    """The values of one stream, in order: ``async for value in stream``.

    The iteration ends when the subject of the stream ends, and raises ``CommandFailed`` if the
    stream fails. If several tasks iterate, each value goes to one of them. ``unread``: the credit,
    in bytes, used by values that are not read yet. ``is_open``: the daemon has opened the stream.
    """

    def __init__(self, keeper: Keeper, kind: Kind[T]) -> None:
        self._keeper = keeper
        self._kind = kind
        self._link: FrameLink | None = None
        self._number = 0
        self._values: deque[tuple[T, int]] = deque()
        self.unread = 0
        self._owed = 0
        self._changed = trio.lowlevel.ParkingLot()
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
            await self._changed.park()
        await trio.lowlevel.checkpoint_if_cancelled()
        value, cost = self._values.popleft()
        self._give_back(cost)
        return value

    async def wait_open(self) -> None:
        """Wait until the daemon has opened the stream. Raises ``ClientError`` if it refuses."""
        while not self.is_open:
            if self._end is not None:
                raise self._end
            await self._changed.park()

    async def prepare(self) -> None:
        """Prepare the first opening. Raises ``ClientError``."""

    async def complete(self) -> None:
        """Fetch the values that no opening can ask for. Raises ``ClientError``."""

    def open_on(self, link: FrameLink) -> None:
        """Open the stream, or open it again, on a connection."""
        self._link, self._owed = link, 0
        credit = max(0, WINDOW - self.unread)
        self._number = link.open(self, self._kind.stream, self._kind.arguments(), credit)

    def close(self) -> None:
        """Close the stream and drop the unread values."""
        self._is_over = True
        self._values.clear()
        if self._link is not None:
            self._link.close(self._number)

    def fail(self, error: ClientError | None) -> None:
        """End the stream with ``error``; None: the stream ended normally."""
        self._is_over, self._end = True, error
        self._changed.unpark_all()

    def on_opened(self, opened: OpenedFrame) -> None:
        """Handle that the stream was opened, or opened again."""
        self._take(lambda: self._kind.opened(opened.start), 0)
        self.is_open = True
        self._changed.unpark_all()

    def on_refused(self, failure: FailureFrame) -> None:
        """Handle a refusal: open the stream from the start, or fail."""
        if self._kind.is_restarted(failure.code):
            self._keeper.reopen(self)
        else:
            self.fail(CommandFailed(failure.code, failure.message))

    def on_item(self, item: Item, cost: int) -> None:
        """Queue the value of an item, which used ``cost`` bytes of credit."""
        self._take(lambda: self._kind.items(item.item), cost)

    def on_bytes(self, output: OutputBytes) -> None:
        """Ignore bytes, which only streams of output have."""
        del output

    def on_gap(self, gap: Gap, cost: int) -> None:
        """Queue a gap, which used ``cost`` bytes of credit."""
        self._take(lambda: [cast("T", self._kind.gap(gap))], cost)

    def on_ended(self, ended: Ended) -> None:
        """End the stream, normally or with an error."""
        if ended.code in (None, "closed"):
            self.fail(None)
            return
        error = CommandFailed(str(ended.code), ended.message or "the stream broke")
        if ended.code == "unavailable":  # the daemon is stopping and closes the connection next
            self.on_lost()
            self._keeper.fail_unless_lost(self, error)
        else:
            self.fail(error)

    def on_lost(self) -> None:
        """Handle the loss of the connection; the next one opens the stream again."""
        self._link = None

    def add(self, values: Iterable[T]) -> None:
        """Queue values that did not arrive over the stream itself."""
        self._values.extend((value, 0) for value in values)
        self._changed.unpark_all()

    def _take(self, make: Callable[[], Iterable[T]], cost: int) -> None:
        if self._is_over:
            return
        try:
            values = list(make())
        except ProtocolMismatch as error:
            self.fail(error)
            return
        self.unread += cost if values else 0
        for value in values:  # the first of them carries the cost
            self._values.append((value, cost))
            cost = 0
        self._changed.unpark_all()

    def _give_back(self, cost: int) -> None:
        self.unread -= cost
        self._owed += cost
        if self._owed >= CREDIT_STEP and self._link is not None:
            self._link.give_credit(self._number, self._owed)
            self._owed = 0


class OutputStream(Stream[OutputValue]):
    """The output of a terminal; ``type`` sends keys to the terminal."""

    def __init__(self, keeper: Keeper, kind: OutputKind) -> None:
        super().__init__(keeper, kind)
        self._output = kind
        self._channel: int | None = None
        self._claimed: tuple[int, int] | None = None

    @property
    def start(self) -> OutputStart:
        """The state of the terminal when the stream was first opened."""
        assert self._output.start is not None
        return self._output.start

    async def type(self, keys: str | bytes) -> None:
        """Type ``keys`` unchanged and in order; return when they are sent.

        Raises ``ConnectionLost``; some of the keys may have been typed then. Keys that the terminal
        does not accept are reported by a ``Refused`` value of the stream.
        """
        data = keys.encode() if isinstance(keys, str) else keys
        for begin in range(0, len(data), MAX_KEYS_BYTES):
            await self._type(data[begin : begin + MAX_KEYS_BYTES], is_first=begin == 0)

    async def _type(self, keys: bytes, *, is_first: bool) -> None:
        link, channel = await self._open_channel()
        try:
            await link.type_keys(channel, keys)
        except AnswerLost as lost:
            raise ConnectionLost(
                f"the connection was lost while keys were typed ({lost}): they may have been typed",
                maybe_done=lost.was_sent or not is_first,
            ) from None

    async def _open_channel(self) -> tuple[FrameLink, int]:
        with trio.move_on_after(self._keeper.patience_s):
            while not self._is_over:
                if self._link is not None and self._channel is not None:
                    return self._link, self._channel
                await self._changed.park()
            raise self._end or CommandFailed("unavailable", "this stream is over")
        raise ConnectionLost("there is no connection to type keys over", maybe_done=False)

    def claim_size(self, cols: int, rows: int, *, take: bool = False) -> None:
        """Become the owner of the terminal's size, or stay it, and resize its window.

        If another client owns the size, ``take`` makes this stream the owner; without it a
        ``Refused`` value of the stream follows. Ownership ends with the stream. After a lost
        connection the claim is made again, without ``take``.
        """
        self._claimed = (cols, rows)
        if self._link is not None and self._channel is not None:
            self._link.claim_size(self._number, cols, rows, take=take)

    def release_size(self) -> None:
        """Give up the ownership of the terminal's size."""
        self._claimed = None
        if self._link is not None and self._channel is not None:
            self._link.release_size(self._number)

    def on_opened(self, opened: OpenedFrame) -> None:
        """Handle that the stream was opened, or opened again."""
        self._channel = opened.channel
        super().on_opened(opened)
        if self._claimed is not None:
            self.claim_size(*self._claimed)

    def on_bytes(self, output: OutputBytes) -> None:
        """Queue a chunk of output."""
        self._take(lambda: [self._output.chunk(output)], len(output.data))

    def on_lost(self) -> None:
        """Handle the loss of the connection; the next one opens the stream again."""
        self._channel = None
        super().on_lost()


class InboxStream(Stream[InboxValue]):
    """The new messages of an inbox.

    The stream starts after the newest message and records its id, so no message is missed while
    the connection is lost. An inbox that was empty at the start is read whole after a loss.
    """

    def __init__(self, keeper: Keeper, kind: InboxKind) -> None:
        super().__init__(keeper, kind)
        self._inbox = kind
        self._was_empty = False
        self._delayed: list[tuple[Item, int]] | None = None
        self._is_reopened = trio.Event()

    async def prepare(self) -> None:
        """Find the newest message. Raises ``ClientError``."""
        if self._inbox.after is not None:
            return
        limit = MAX_MESSAGES if self._was_empty else 1
        found = await self._keeper.call(ReadInbox, {"unread": False, "limit": limit})
        if found.messages:
            self._inbox.after = found.messages[-1].id
        if self._was_empty:
            self.add(found.messages)
        self._was_empty = True

    def open_on(self, link: FrameLink) -> None:
        """Open the stream, or open it again, on a connection."""
        # Without a message to start after, the daemon sends the messages from the opening on: one
        # that arrived since prepare() found the inbox empty is read by complete().
        is_uncertain = self.is_open and self._inbox.after is None
        self._delayed = [] if is_uncertain else None
        self._is_reopened = trio.Event()
        super().open_on(link)

    async def complete(self) -> None:
        """Read the inbox that was empty before the stream was opened again."""
        if self._delayed is None:
            return
        await self._is_reopened.wait()
        found = await self._keeper.call(ReadInbox, {"unread": False, "limit": MAX_MESSAGES})
        known = {message.id for message in found.messages}
        delayed, self._delayed = self._delayed, None
        if found.messages:
            self._inbox.after = found.messages[-1].id
            self.add(found.messages)
        for item, cost in delayed:
            if item.item.get("id") in known:
                self.unread += cost
                self._give_back(cost)
            else:
                super().on_item(item, cost)

    def on_opened(self, opened: OpenedFrame) -> None:
        """Handle that the stream was opened, or opened again."""
        super().on_opened(opened)
        self._is_reopened.set()

    def on_item(self, item: Item, cost: int) -> None:
        """Queue a message, behind those that are still read."""
        if self._delayed is None:
            super().on_item(item, cost)
        else:
            self._delayed.append((item, cost))

    def on_lost(self) -> None:
        """Handle the loss of the connection; the next one opens the stream again."""
        self._delayed = None
        super().on_lost()
