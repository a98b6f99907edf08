"""``OpenStreams``: the streams of one connection, each a task that ends with the connection.

A stream that fails sends its error and ends; the other streams and requests continue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import attrs
import structlog
import trio

from actors import Reply
from actors.errors import AskError
from aegis.errors import AegisError, Busy, InvalidRequest
from aegis.protocol.output_streams import (
    KeysRefusedItem,
    Refused,
    SizeRefusedItem,
)
from aegis.protocol.stream_table import BY_STREAM, StreamEntry
from aegis.protocol.streams import (
    MAX_STREAMS,
    Claim,
    Close,
    Credit,
    Ended,
    Open,
    Release,
    RequestId,
    unpack_keys,
)
from aegis.servers.calls import Caller, Failure, failure_of, find_stream, internal_failure
from aegis.servers.requests import error_frame, stream_frame
from aegis.servers.streams.outlet import FloodLimit, Outlet, SendKeys, SendSize, StreamPort
from aegis.servers.wires.port import WireClosed

CANCELLED = Failure("cancelled", "closed by the client before it was open")
STOPPING = Failure(
    "unavailable", "the daemon is stopping, or the key of this connection was voided"
)
TOO_MANY = Failure("busy", f"this connection has {MAX_STREAMS} streams open; close one first")
NO_STREAMS = Failure("invalid_request", "streams are opened on the WebSocket, not on lines")

MAX_UNANSWERED = 512
"""Messages of input that the terminal has not answered yet."""

TOO_MANY_KEYS = (
    f"{MAX_UNANSWERED} messages of keys are not answered by the terminal yet; wait a moment, "
    "then type again"
)

InputT = TypeVar("InputT")

log = structlog.get_logger("aegis.servers.streams")


@attrs.define(eq=False)
class _Stream:
    """An open stream. ``why`` is the reason for its cancellation; None: its client closed it."""

    frame: Open
    channel: int | None
    outlet: Outlet
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    typist: InputSender[bytes] | None = None
    sizer: InputSender[Claim | Release] | None = None
    typing: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    why: Failure | None = None


class OpenStreams:
    """The open streams of ``caller``; ``port`` serves them.

    ``send`` sends one message of any kind, ``flood_limit`` limits large output, the tasks run in
    ``nursery``.
    """

    def __init__(
        self,
        port: StreamPort,
        caller: Caller,
        send: Callable[[str | bytes], Awaitable[None]],
        flood_limit: FloodLimit,
        nursery: trio.Nursery,
    ) -> None:
        self._port = port
        self._caller = caller
        self._send = send
        self._flood_limit = flood_limit
        self._nursery = nursery
        self._streams: dict[RequestId, _Stream] = {}
        self._channels: dict[int, _Stream] = {}
        self._last_channel = 0
        self._is_stopping = False

    def __contains__(self, number: RequestId) -> bool:
        """Return whether a stream of this id is open, or being opened."""
        return number in self._streams

    async def open(self, frame: Open) -> None:
        """Open a stream, or send the refusal."""
        refusal = self._refusal()
        if refusal is not None:
            await self._send(error_frame(frame.id, refusal))
            return
        entry = BY_STREAM.get(frame.stream)
        channel = self._new_channel() if entry is not None and entry.has_channel else None
        outlet = Outlet(
            frame.id,
            channel,
            frame.credit,
            self._send,
            self._flood_limit,
            lambda send_keys, send_size: self._begin_input(stream, send_keys, send_size),
        )
        stream = _Stream(frame, channel, outlet)
        self._streams[frame.id] = stream
        if channel is not None:
            self._channels[channel] = stream
        self._nursery.start_soon(self._serve, stream)

    def give_credit(self, frame: Credit) -> None:
        """Add credit to a stream."""
        stream = self._streams.get(frame.id)
        if stream is not None:
            stream.outlet.give(frame.amount)

    def close(self, frame: Close) -> None:
        """Close a stream at the client's request."""
        stream = self._streams.get(frame.id)
        if stream is not None:
            stream.scope.cancel()

    def type(self, message: bytes) -> None:
        """Send the keys of a binary message. Raises ``InvalidRequest`` if it is malformed."""
        channel, keys = unpack_keys(message)
        if not 1 <= channel <= self._last_channel:
            raise InvalidRequest(f"no stream of this connection has channel {channel}")
        stream = self._channels.get(channel)
        if stream is not None and stream.typist is not None:
            stream.typist.put(keys)

    def size(self, frame: Claim | Release) -> None:
        """Claim or release the size of a stream's terminal."""
        stream = self._streams.get(frame.id)
        if stream is not None and stream.sizer is not None:
            stream.sizer.put(frame)

    def stop(self) -> None:
        """End all streams, as the daemon stops or the client's key is void."""
        self._is_stopping = True
        for stream in self._streams.values():
            stream.why = STOPPING
            stream.scope.cancel()

    def abort(self) -> None:
        """Stop sending on all streams, as the connection is over."""
        for stream in self._streams.values():
            stream.outlet.abort()

    def _refusal(self) -> Failure | None:
        if self._caller.face != "websocket":
            return NO_STREAMS
        if self._is_stopping:
            return STOPPING
        return TOO_MANY if len(self._streams) >= MAX_STREAMS else None

    def _new_channel(self) -> int:
        self._last_channel += 1
        return self._last_channel

    def _begin_input(self, stream: _Stream, send_keys: SendKeys, send_size: SendSize) -> None:
        outlet = stream.outlet
        stream.typist = InputSender(send_keys, outlet, _keys_refused)
        stream.sizer = InputSender(send_size, outlet, _size_refused)
        self._nursery.start_soon(self._run_input, stream, stream.typist, stream.sizer)

    async def _run_input(self, stream: _Stream, *senders: InputSender[Any]) -> None:
        with stream.typing:
            async with trio.open_nursery() as nursery:
                for sender in senders:
                    nursery.start_soon(sender.run)

    async def _serve(self, stream: _Stream) -> None:
        failure: Failure | None = None
        is_cancelled = True
        try:
            with stream.scope:
                failure = await self._outcome(stream)
                is_cancelled = False
        finally:
            stream.typing.cancel()
            del self._streams[stream.frame.id]
            if stream.channel is not None:
                del self._channels[stream.channel]
        await self._send(_last_frame(stream, stream.why if is_cancelled else failure))

    async def _outcome(self, stream: _Stream) -> Failure:
        """Serve the stream until its subject has ended; return why it ended."""
        frame = stream.frame
        try:
            entry: StreamEntry = find_stream(self._caller.identity, frame.stream)
            sentence = await self._port.stream(self._caller, entry, frame.arguments, stream.outlet)
        except WireClosed:
            raise
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                log.exception("a stream failed", stream=frame.stream)
                failure = internal_failure(f"stream {frame.stream}")
            return failure
        return Failure("closed", sentence)


def _keys_refused(refused: Refused) -> KeysRefusedItem:
    return KeysRefusedItem(keys_refused=refused)


def _size_refused(refused: Refused) -> SizeRefusedItem:
    return SizeRefusedItem(size_refused=refused)


def _last_frame(stream: _Stream, failure: Failure | None) -> str:
    number = stream.frame.id
    if not stream.outlet.is_open:
        return error_frame(number, failure or CANCELLED)
    if failure is None:
        return stream_frame(Ended(id=number, code=None, message=None))
    return stream_frame(Ended(id=number, code=failure.code, message=failure.sentence))


class InputSender(Generic[InputT]):
    """The input of one stream: keys, or claims of the terminal's size, in order.

    Sending does not wait for the terminal's answers; a task awaits them. ``run`` reports refusals
    to ``outlet``, until cancelled. ``send`` sends input to the terminal; it raises ``AegisError``
    or ``AskError``. ``item`` makes the item that reports a refusal.
    """

    def __init__(
        self,
        send: Callable[[InputT], Reply[Any]],
        outlet: Outlet,
        item: Callable[[Refused], object],
    ) -> None:
        self._send = send
        self._outlet = outlet
        self._item = item
        self._unanswered: deque[Reply[Any]] = deque()
        self._refused: AegisError | AskError | None = None
        self._news = trio.Event()
        self._refusal = trio.Event()

    def put(self, data: InputT) -> None:
        """Send input to the terminal; a refusal is reported by ``run``."""
        try:
            if len(self._unanswered) >= MAX_UNANSWERED:
                raise Busy(TOO_MANY_KEYS)
            self._unanswered.append(self._send(data))
        except (AegisError, AskError) as error:
            self._refuse(error)
        else:
            self._news.set()

    async def run(self) -> None:
        """Await the answers and report refusals; of several at once, the newest."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._await_answers)
            nursery.start_soon(self._send_refusals)

    async def _await_answers(self) -> None:
        while True:
            while self._unanswered:
                try:
                    await self._unanswered[0].wait()
                except (AegisError, AskError) as error:
                    self._refuse(error)
                self._unanswered.popleft()
            self._news = trio.Event()
            await self._news.wait()

    async def _send_refusals(self) -> None:
        while True:
            await self._refusal.wait()
            await self._outlet.room()
            self._refusal = trio.Event()
            error, self._refused = self._refused, None
            failure = None if error is None else failure_of(error)
            if failure is not None:
                refused = Refused(code=failure.code, message=failure.sentence)
                await self._outlet.item(self._item(refused))

    def _refuse(self, error: AegisError | AskError) -> None:
        self._refused = error
        self._refusal.set()
