"""The stand-in for the class with which tractor reads and writes messages on a connection.

tractor's own class buffers any announced length, continues after a message that cannot be decoded,
and does not report that a connection ended. Around every message it formats log lines with the
whole of it, also when nobody logs: 6 ms for 64 KiB. Here lengths are bounded, a message that is
none ends the connection, its end is an event, and a payload is shown in a log line by its size.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import trio

from actors.errors import NodeError
from actors.nodes.compat.message_frames import MessageReader, framed

READ_SIZE = 65_536
"""The largest read, in bytes."""


class Payload:
    """Bytes whose ``repr`` is only their number. msgpack encodes ``view``."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"<{len(self.data)} bytes>"


class MessageTransport:
    """One connection, as tractor's ``MsgTransport`` describes it.

    ``Closed`` is the class that tractor expects to be raised at the end of a connection.
    """

    def __init__(
        self,
        stream: trio.SocketStream,
        encode: Callable[[Any], bytes],
        decode: Callable[[bytes], Any],
        closed: type[Exception],
    ) -> None:
        self.stream = stream
        self.drained: list[Any] = []
        self.ended = trio.Event()
        self._encode = encode
        self._decode = decode
        self._closed = closed
        self._reader = MessageReader()
        self._whole: list[bytes] = []
        self._sending = trio.StrictFIFOLock()
        self._laddr: tuple[str, int] = stream.socket.getsockname()[:2]
        self._raddr: tuple[str, int] = stream.socket.getpeername()[:2]

    @property
    def laddr(self) -> tuple[str, int]:
        """Host and port of this end."""
        return self._laddr

    @property
    def raddr(self) -> tuple[str, int]:
        """Host and port of the other end."""
        return self._raddr

    def connected(self) -> bool:
        """Return whether this end is still open."""
        return self.stream.socket.fileno() != -1

    async def send(self, message: Any) -> None:
        """Send one message whole, after those before it; what is too long is refused."""
        async with self._sending:
            await self.stream.send_all(framed(self._encode(_bare(message))))

    async def recv(self) -> Any:
        """Return the next message.

        Raises tractor's own error when the connection has ended, or was closed here, ``NodeError``
        when what came is no message: then the connection is of no use any more.
        """
        if not self.connected():
            raise self._end("The connection was closed on this side.")
        try:
            while not self._whole:
                self._whole = self._reader.feed(await self._read())[::-1]
            message = self._decoded(self._whole.pop())
        except NodeError:
            self.ended.set()
            raise
        if message is None:
            # tractor's word for it. It would cancel what the other side had called, and then wait
            # for all that anybody had called, on whichever connection.
            raise self._end("The other side says that it sends no more.")
        return _wrapped(message)

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return await self.recv()

    async def drain(self) -> AsyncIterator[Any]:
        """Yield the remaining messages until the other side closes."""
        while True:
            try:
                message = await self.recv()
            except self._closed:
                return
            yield message

    async def _read(self) -> bytes:
        try:
            data = await self.stream.receive_some(READ_SIZE)
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError) as error:
            raise self._end("The connection broke.") from error
        if not data:
            raise self._end("The other side closed the connection.")
        return data

    def _decoded(self, message: bytes) -> Any:
        try:
            return self._decode(message)
        except Exception as error:
            raise NodeError("A message came that is none; the connection ends.") from error

    def _end(self, why: str) -> Exception:
        self.ended.set()
        return self._closed(why)


def _bare(message: Any) -> Any:
    """``message`` as it is encoded: a payload as its bytes."""
    if isinstance(message, dict) and isinstance(held := message.get("yield"), Payload):
        return {**message, "yield": held.data}
    return message


def _wrapped(message: Any) -> Any:
    """``message`` as tractor handles and shows it: bytes as a payload."""
    if isinstance(message, dict) and isinstance(held := message.get("yield"), bytes):
        message["yield"] = Payload(held)
    return message
