"""``Outlet``: an open stream of a client: its credit, its rate, and the sending of its items.

A source waits for credit before it produces data, so nothing is buffered for a slow client. Only
waiting is cancelled, never a send: half a message would break the connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import trio

from actors import Reply
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.stream_table import StreamEntry
from aegis.protocol.streams import (
    MAX_CHUNK_BYTES,
    Claim,
    Gap,
    Item,
    Opened,
    OutputBytes,
    Release,
    RequestId,
    chunk_size,
    may_send_text,
    pack_output,
    with_more,
)
from aegis.servers.calls import Caller
from aegis.servers.requests import stream_frame
from aegis.servers.streams.pace import Pace

BYTES_PER_S = 16 * 1024 * 1024
"""The limit of flooding output, in bytes per second, for all streams of a daemon together."""

TURN_S = MAX_CHUNK_BYTES / BYTES_PER_S


class FloodLimit:
    """A rate limit that all floods of output share, first come, first served.

    Each message of a flood takes some tenths of a millisecond of the event loop: without the limit,
    fifty watchers of one flood would take nearly all of it. Small output, such as the echo of a
    key, is not limited.
    """

    def __init__(self) -> None:
        self._free_at = 0.0

    async def wait_turn(self) -> None:
        """Wait until the next large message may be sent."""
        at = max(self._free_at, trio.current_time())
        self._free_at = at + TURN_S
        await trio.sleep_until(at)


SendKeys = Callable[[bytes], Reply[Any]]
"""A function that sends keys to the terminal. Raises ``AegisError`` or ``AskError``."""

SendSize = Callable[[Claim | Release], Reply[Any]]
"""A function that claims or releases the terminal's size. Raises as ``SendKeys`` does."""


class StreamOut(Protocol):
    """The client's side of a stream, as its source uses it."""

    async def opened(self, start: object | None) -> None:
        """Send the notice that the stream is open, with the fields of ``start``. Called first."""

    async def room(self) -> None:
        """Wait until one frame of text may be sent."""

    async def room_for_bytes(self) -> int:
        """Wait until output may be sent; return the number of bytes allowed."""

    @property
    def credit(self) -> int:
        """The remaining credit; below 1, nothing may be sent."""

    async def item(self, item: object) -> None:
        """Send one item; requires room."""

    async def gap(self, dropped: int, cursor: int | None = None) -> None:
        """Send a notice that something was left out; requires room."""

    async def output(self, cursor: int, data: bytes) -> None:
        """Send bytes of a terminal, at most as many as there is room for."""

    def takes_input(self, send_keys: SendKeys, send_size: SendSize) -> None:
        """Pass the client's keys and claims on from now on."""


class Outlet:
    """A ``StreamOut`` for the stream ``number``, with an initial ``credit``.

    ``channel`` is the channel of its binary messages, None if it has none. ``send`` sends one
    message, ``flood_limit`` limits large output. ``on_input`` is called with the functions that
    send the channel's keys, and claims of the size, to the terminal.
    """

    def __init__(
        self,
        number: RequestId,
        channel: int | None,
        credit: int,
        send: Callable[[str | bytes], Awaitable[None]],
        flood_limit: FloodLimit,
        on_input: Callable[[SendKeys, SendSize], None],
    ) -> None:
        self._id = number
        self._channel = channel
        self._credit = credit
        self._send_message = send
        self._flood_limit = flood_limit
        self._on_input = on_input
        self._pace = Pace()
        self._more = trio.Event()
        self._sending = trio.CancelScope()
        self.is_open = False

    @property
    def credit(self) -> int:
        """The remaining credit; below 1, nothing may be sent."""
        return self._credit

    def give(self, amount: int) -> None:
        """Add credit from the client."""
        self._credit = with_more(self._credit, amount)
        self._more.set()

    def abort(self) -> None:
        """Stop sending, as the connection is over: data being sent need not arrive."""
        self._sending.cancel()

    async def opened(self, start: object | None) -> None:
        """Send the notice that the stream is open, with the fields of ``start``."""
        self.is_open = True
        said = {} if start is None else to_plain(start)
        await self._send(stream_frame(Opened(id=self._id, channel=self._channel), said))

    async def room(self) -> None:
        """Wait until one frame of text may be sent."""
        while not may_send_text(self._credit):
            self._more = trio.Event()
            await self._more.wait()

    async def room_for_bytes(self) -> int:
        """Wait until output may be sent; return the number of bytes allowed."""
        await trio.sleep_until(self._pace.next_at)
        await self.room()
        if self._pace.is_flood:
            await self._flood_limit.wait_turn()
        return chunk_size(self._credit)

    async def item(self, item: object) -> None:
        """Send one item; it costs the credit of its frame."""
        await self._pay_and_send(stream_frame(Item(id=self._id, item=to_plain(item))))

    async def gap(self, dropped: int, cursor: int | None = None) -> None:
        """Send a notice that something was left out; it costs the credit of its frame."""
        await self._pay_and_send(stream_frame(Gap(id=self._id, dropped=dropped, cursor=cursor)))

    async def output(self, cursor: int, data: bytes) -> None:
        """Send bytes of a terminal; each costs one unit of credit."""
        assert self._channel is not None
        self._credit -= len(data)
        await self._send(pack_output(OutputBytes(self._channel, cursor, data)))
        self._pace = self._pace.after(len(data), trio.current_time())

    def takes_input(self, send_keys: SendKeys, send_size: SendSize) -> None:
        """Pass the client's keys and claims on from now on."""
        self._on_input(send_keys, send_size)

    async def _pay_and_send(self, frame: str) -> None:
        self._credit -= len(frame)
        await self._send(frame)

    async def _send(self, message: str | bytes) -> None:
        with trio.CancelScope(shield=True) as self._sending:
            await self._send_message(message)


class StreamPort(Protocol):
    """The port to the sources of streams."""

    async def stream(
        self,
        caller: Caller,
        entry: StreamEntry,
        arguments: Mapping[str, object],
        out: StreamOut,
    ) -> str:
        """Serve one stream until its subject ends; return a sentence that says so.

        Raises ``AegisError`` or ``AskError`` if it cannot be opened, or fails.
        Cancelled when the client closes it or disconnects.
        """
        ...
