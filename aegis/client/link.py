"""One connection to a daemon, with its calls in progress and its open streams."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import attrs
import trio

from aegis.client.errors import CommandFailed, ProtocolMismatch
from aegis.client.frames import (
    FailureFrame,
    OpenedFrame,
    ReplyFrame,
    Welcome,
    cancel_frame,
    claim_frame,
    close_frame,
    credit_frame,
    hello_frame,
    open_frame,
    parse_incoming,
    release_frame,
    request_frame,
)
from aegis.client.sizes import check_size
from aegis.client.transport import Transport, TransportClosed
from aegis.errors import InvalidRequest
from aegis.protocol.streams import (
    Ended,
    Gap,
    Item,
    OutputBytes,
    pack_keys,
    unpack_output,
)

HELLO_LIMIT_S = 10.0


class AnswerLost(Exception):
    """The connection ended before the answer arrived; the text is the reason.

    ``was_sent``: the request was sent, or its sending had begun.
    """

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


class Receiver(Protocol):
    """The interface of an open stream to its connection."""

    def on_opened(self, opened: OpenedFrame) -> None:
        """Handle that the stream was opened."""
        ...

    def on_refused(self, failure: FailureFrame) -> None:
        """Handle that the stream was refused."""
        ...

    def on_item(self, item: Item, cost: int) -> None:
        """Handle an item, which used ``cost`` bytes of credit."""
        ...

    def on_bytes(self, output: OutputBytes) -> None:
        """Handle output bytes."""
        ...

    def on_gap(self, gap: Gap, cost: int) -> None:
        """Handle a gap, which used ``cost`` bytes of credit."""
        ...

    def on_ended(self, ended: Ended) -> None:
        """Handle the end of the stream."""
        ...

    def on_lost(self) -> None:
        """Handle the loss of the connection."""
        ...


@attrs.define(eq=False)
class _PendingCall:
    on_settled: Callable[[], None]
    settled: trio.Event = attrs.field(factory=trio.Event)
    answer: ReplyFrame | FailureFrame | None = None
    is_sent: bool = False


@attrs.define(eq=False)
class _Outgoing:
    message: str | bytes
    call: _PendingCall | None = None
    written: trio.Event | None = None


class FrameLink:
    """The frame protocol over one ``wire``. ``numbers`` yields the ids of requests and streams."""

    def __init__(self, wire: Transport, numbers: Iterator[int] | None = None) -> None:
        self._wire = wire
        self._numbers = itertools.count(1) if numbers is None else numbers
        self._calls: dict[int, _PendingCall] = {}
        self._streams: dict[int, Receiver] = {}
        self._channels: dict[int, Receiver] = {}
        self._outbox: deque[_Outgoing] = deque()
        self._queued = trio.Event()
        self._over: str | None = None

    async def greet(self, *, token: str | None, session: str | None) -> Welcome:
        """Exchange hello frames.

        Raises ``CommandFailed`` for an invalid key, and ``TransportClosed``.
        """
        with trio.move_on_after(HELLO_LIMIT_S):
            await self._wire.send(hello_frame(token=token, session=session))
            message = await self._wire.receive()
            frame = parse_incoming(message) if isinstance(message, str) else None
            if isinstance(frame, FailureFrame):
                raise CommandFailed(frame.code, frame.message)
            if isinstance(frame, Welcome):
                return frame
            raise ProtocolMismatch("the daemon did not answer the hello: it is of another version")
        raise TransportClosed(f"no answer to the hello within {HELLO_LIMIT_S:g} s")

    async def run(self) -> str:
        """Serve the connection until it ends; return the reason. Calls in progress are lost."""
        reason = "the daemon does not answer any more"
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                nursery.start_soon(self._watch, nursery.cancel_scope)
                reason = await self._read()
                nursery.cancel_scope.cancel()
        finally:
            self._lose(reason)
        return reason

    async def request(
        self, command: str, arguments: dict[str, object], on_settled: Callable[[], None]
    ) -> dict[str, Any]:
        """Call a command and return its result. Raises ``CommandFailed``, ``AnswerLost``.

        ``on_settled`` is called when the daemon has finished the request; after a cancellation that
        is later than the end of this call.
        """
        number = next(self._numbers)
        call = _PendingCall(on_settled)
        try:
            frame = request_frame(number, command, arguments)
            check_size(frame.encode())
            if self._over is not None:
                raise AnswerLost(self._over, was_sent=False)
            self._calls[number] = call
            self._post(_Outgoing(frame, call))
            await call.settled.wait()
        finally:
            if not call.settled.is_set():
                self._give_up(number, call)
        return self._result(call)

    def open(
        self, receiver: Receiver, stream: str, arguments: dict[str, object], credit: int
    ) -> int:
        """Open a stream that is handled by ``receiver``; return its id."""
        number = next(self._numbers)
        if self._over is None:
            self._streams[number] = receiver
            self._post(_Outgoing(open_frame(number, stream, arguments, credit)))
        return number

    def give_credit(self, number: int, amount: int) -> None:
        """Allow the daemon to send ``amount`` more bytes of the stream."""
        if number in self._streams:
            self._post(_Outgoing(credit_frame(number, amount)))

    def close(self, number: int) -> None:
        """Close a stream; its receiver gets nothing more."""
        if self._remove_stream(number) is not None:
            self._post(_Outgoing(close_frame(number)))

    def claim_size(self, number: int, cols: int, rows: int, *, take: bool) -> None:
        """Claim the size of the terminal of a stream."""
        if number in self._streams:
            self._post(_Outgoing(claim_frame(number, cols, rows, take=take)))

    def release_size(self, number: int) -> None:
        """Release the size of the terminal of a stream."""
        if number in self._streams:
            self._post(_Outgoing(release_frame(number)))

    async def type_keys(self, channel: int, keys: bytes) -> None:
        """Send keys and wait until they are written. Raises ``AnswerLost``."""
        outgoing = _Outgoing(pack_keys(channel, keys), written=trio.Event())
        if self._over is None:
            self._post(outgoing)
            assert outgoing.written is not None
            await outgoing.written.wait()
        if self._over is not None:
            raise AnswerLost(self._over, was_sent=outgoing not in self._outbox)

    async def _read(self) -> str:
        try:
            while True:
                message = await self._wire.receive()
                if isinstance(message, bytes):
                    self._take_bytes(message)
                else:
                    self._take(message)
        except (TransportClosed, ProtocolMismatch) as error:
            return str(error)

    async def _write(self) -> None:
        try:
            while True:
                while not self._outbox:
                    self._queued = trio.Event()
                    await self._queued.wait()
                outgoing = self._outbox.popleft()
                if outgoing.call is not None:
                    outgoing.call.is_sent = True
                await self._wire.send(outgoing.message)
                if outgoing.written is not None:
                    outgoing.written.set()
        except TransportClosed:
            pass  # the reader gets the same error, after the frames received before it

    async def _watch(self, scope: trio.CancelScope) -> None:
        await self._wire.watch()
        scope.cancel()

    def _take(self, message: str) -> None:
        frame, cost = parse_incoming(message), len(message)
        match frame:
            case ReplyFrame(number) | FailureFrame(int(number)) if number in self._calls:
                self._calls[number].answer = frame
                self._settle(number)
            case FailureFrame(int(number)) if number in self._streams:
                self._streams.pop(number).on_refused(frame)
            case OpenedFrame(number, channel) if number in self._streams:
                if channel is not None:
                    self._channels[channel] = self._streams[number]
                self._streams[number].on_opened(frame)
            case Item(id=int(number)) if number in self._streams:
                self._streams[number].on_item(frame, cost)
            case Gap(id=int(number)) if number in self._streams:
                self._streams[number].on_gap(frame, cost)
            case Ended(id=int(number)) if number in self._streams:
                receiver = self._remove_stream(number)
                assert receiver is not None
                receiver.on_ended(frame)
            case FailureFrame(None):
                raise ProtocolMismatch(
                    f"the daemon did not understand this client: {frame.message}"
                )

    def _take_bytes(self, message: bytes) -> None:
        try:
            output = unpack_output(message)
        except InvalidRequest as error:
            raise ProtocolMismatch(str(error)) from None
        receiver = self._channels.get(output.channel)
        if receiver is not None:
            receiver.on_bytes(output)

    def _post(self, outgoing: _Outgoing) -> None:
        self._outbox.append(outgoing)
        self._queued.set()

    def _settle(self, number: int) -> None:
        call = self._calls.pop(number)
        call.settled.set()
        call.on_settled()

    def _give_up(self, number: int, call: _PendingCall) -> None:
        if number not in self._calls:
            call.on_settled()  # the request was not queued
        elif call.is_sent:
            self._post(_Outgoing(cancel_frame(number)))
        else:
            self._outbox = deque(each for each in self._outbox if each.call is not call)
            self._settle(number)

    def _result(self, call: _PendingCall) -> dict[str, Any]:
        match call.answer:
            case ReplyFrame():
                return call.answer.result
            case FailureFrame():
                raise CommandFailed(call.answer.code, call.answer.message)
            case None:
                raise AnswerLost(self._over or "", was_sent=call.is_sent)

    def _remove_stream(self, number: int) -> Receiver | None:
        receiver = self._streams.pop(number, None)
        self._channels = {
            channel: each for channel, each in self._channels.items() if each is not receiver
        }
        return receiver

    def _lose(self, reason: str) -> None:
        self._over = reason
        for number in list(self._calls):
            self._settle(number)
        lost, self._streams, self._channels = list(self._streams.values()), {}, {}
        for receiver in lost:
            receiver.on_lost()
        for outgoing in self._outbox:
            if outgoing.written is not None:
                outgoing.written.set()
