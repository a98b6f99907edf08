"""A client of the WebSocket's streams: it reads what comes and, if it likes, gives credit back."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import attrs
import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_client_stream

from aegis.protocol.streams import (
    MAX_CREDIT,
    OutputBytes,
    pack_keys,
    unpack_output,
)
from tests.e2e.harness import GUARD_S, DaemonProcess

BUFFER_BYTES = 262_144


def cost(frame: Any) -> int:
    """What a message of a stream took of its credit."""
    if isinstance(frame, OutputBytes):
        return len(frame.data)
    return len(json.dumps(frame, ensure_ascii=False, separators=(",", ":")))


class StreamEnded(Exception):
    """The stream is over; ``frame`` said so."""

    def __init__(self, frame: dict[str, Any]) -> None:
        super().__init__(str(frame))
        self.frame = frame


class Refused(Exception):
    """The stream, or a request, was answered with an error."""

    def __init__(self, frame: dict[str, Any]) -> None:
        super().__init__(frame["message"])
        self.code = frame["code"]


@attrs.define(eq=False)
class Stream:
    """One open stream. ``got`` is all that came and was not taken yet, frames and bytes."""

    client: StreamClient
    number: int
    opened: dict[str, Any]
    returns_credit: bool = True
    got: list[Any] = attrs.field(factory=list)
    news: trio.Event = attrs.field(factory=trio.Event)

    @property
    def channel(self) -> int:
        channel: int = self.opened["channel"]
        return channel

    async def next(self) -> Any:
        """The next frame, or ``OutputBytes``. Raises ``StreamEnded``."""
        with trio.fail_after(GUARD_S):
            while not self.got:
                self.news = trio.Event()
                await self.news.wait()
        frame = self.got.pop(0)
        if isinstance(frame, dict) and frame["type"] == "ended":
            raise StreamEnded(frame)
        if self.returns_credit:
            await self.give(max(cost(frame), 1))
        return frame

    async def item(self) -> dict[str, Any]:
        """The next item; everything before it is passed over."""
        while True:
            frame = await self.next()
            if isinstance(frame, dict) and frame["type"] == "item":
                item: dict[str, Any] = frame["item"]
                return item

    async def item_where(self, fits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next item that fits."""
        while not fits(item := await self.item()):
            pass
        return item

    async def bytes_until(self, text: bytes) -> bytes:
        """The bytes that come, up to and with ``text``, and what came in one message with it."""
        data = b""
        while text not in data:
            frame = await self.next()
            if isinstance(frame, OutputBytes):
                data += frame.data
        return data

    async def all_bytes(self) -> tuple[bytes, dict[str, Any]]:
        """The bytes that still come, and the frame that ends the stream."""
        data = b""
        try:
            while True:
                frame = await self.next()
                if isinstance(frame, OutputBytes):
                    data += frame.data
        except StreamEnded as ended:
            return data, ended.frame

    async def give(self, amount: int) -> None:
        with suppress(ConnectionClosed):
            await self.client.send(type="credit", id=self.number, amount=min(amount, MAX_CREDIT))

    async def type(self, keys: bytes) -> None:
        await self.client.connection.send_message(pack_keys(self.channel, keys))

    async def close(self) -> None:
        await self.client.send(type="close", id=self.number)


class StreamClient:
    """Several streams and requests on one connection; ``run`` takes what comes."""

    def __init__(self, connection: WebSocketConnection, stream: trio.SocketStream) -> None:
        self.connection = connection
        self._stream = stream
        self._answers: dict[int, trio.MemorySendChannel[dict[str, Any]]] = {}
        self._streams: dict[int, Stream] = {}
        self._channels: dict[int, Stream] = {}
        self._waiting: dict[int, bool] = {}
        self._last = 0
        self._may_read = trio.Event()
        self._may_read.set()

    def stop_reading(self) -> None:
        """Read nothing from the socket until ``go_on``."""
        self._may_read = trio.Event()

    def go_on(self) -> None:
        """Read again."""
        self._may_read.set()

    async def send(self, **frame: object) -> None:
        await self.connection.send_message(json.dumps(frame))

    def cut(self) -> None:
        """Lose the connection, without a word."""
        self._stream.socket.close()

    async def run(self) -> None:
        """Until the connection ends."""
        try:
            while True:
                await self._may_read.wait()
                self._take(await self.connection.get_message())
        except ConnectionClosed:
            for stream in self._streams.values():
                self._give(stream, {"type": "ended", "code": "lost", "id": stream.number})

    def _take(self, message: str | bytes) -> None:
        if isinstance(message, bytes):
            output = unpack_output(message)
            self._give(self._channels[output.channel], output)
            return
        frame = json.loads(message)
        number = frame["id"]
        if frame["type"] == "opened":
            stream = Stream(self, number, frame, self._waiting.pop(number))
            self._streams[number] = stream
            if frame["channel"] is not None:
                self._channels[frame["channel"]] = stream
        if frame["type"] in ("opened", "reply", "error"):
            self._answers.pop(number).send_nowait(frame)
        else:
            self._give(self._streams[number], frame)

    def _give(self, stream: Stream, frame: Any) -> None:
        stream.got.append(frame)
        stream.news.set()

    async def _answer(self, number: int, **frame: object) -> dict[str, Any]:
        sender, receiver = trio.open_memory_channel[dict[str, Any]](1)
        self._answers[number] = sender
        await self.send(id=number, **frame)
        with trio.fail_after(GUARD_S):
            answer = await receiver.receive()
        if answer["type"] == "error":
            raise Refused(answer)
        return answer

    async def open(
        self,
        stream: str,
        *,
        credit: int = 262_144,
        returns_credit: bool = True,
        **arguments: object,
    ) -> Stream:
        """Open a stream. Raises ``Refused``."""
        self._last += 1
        number = self._last
        self._waiting[number] = returns_credit
        await self._answer(number, type="open", stream=stream, arguments=arguments, credit=credit)
        return self._streams[number]

    async def call(self, command: str, **arguments: object) -> Any:
        """The result of a command. Raises ``Refused``."""
        self._last += 1
        frame = await self._answer(self._last, type="request", command=command, arguments=arguments)
        return frame["result"]


@asynccontextmanager
async def stream_client(
    daemon: DaemonProcess, *, over: str = "tcp", session: str | None = None
) -> AsyncIterator[StreamClient]:
    """A client on a connection of its own, over TCP or the Unix socket (``over="unix"``).

    The operator, unless the secret of a ``session`` is given.
    """
    stream: trio.SocketStream
    if over == "unix":
        stream, host = await trio.open_unix_socket(daemon.endpoint.socket), "localhost"
    else:
        host, _, port = daemon.endpoint.url.removeprefix("http://").rpartition(":")
        stream = await trio.open_tcp_stream(host, int(port))
    headers = []
    if session is None and over == "tcp":
        headers.append((b"authorization", f"Bearer {daemon.endpoint.token}".encode()))
    async with trio.open_nursery() as nursery:
        with trio.fail_after(GUARD_S):
            connection = await wrap_client_stream(
                nursery,
                stream,
                host if over == "unix" else daemon.endpoint.url.removeprefix("http://"),
                "/ws",
                extra_headers=headers,
                max_message_size=MAX_CREDIT,
                receive_buffer_size=BUFFER_BYTES,
            )
        client = StreamClient(connection, stream)
        if session is not None:
            await client.send(type="hello", version=1, session=session)
            await connection.get_message()
        nursery.start_soon(client.run)
        try:
            yield client
        finally:
            with trio.move_on_after(1, shield=True):
                await connection.aclose()
            # Where the daemon is gone the connection leaves it open.
            await trio.aclose_forcefully(stream)
            nursery.cancel_scope.cancel()
