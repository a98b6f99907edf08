"""HTTP/1.1 on a client's stream (RFC 9112): one request at a time.

The application runs in the task of the connection; only its own calls of ``receive`` read from the
client. Each head is parsed strictly (``http1``).
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import trio

from aegis.servers.gateway.client_stream import ClientStream
from aegis.servers.gateway.http1 import (
    MAX_HEAD_BYTES,
    RequestHead,
    header_lines,
    plain_answer,
    size_of_head,
    strict_head,
)

KEEP_ALIVE_S = 15.0
"""Seconds that a connection may stay idle, including the time to receive the next head."""

LINGER_S = 1.0
"""Seconds in which the rest of a refused request is read and dropped."""

MAX_DROPPED_BYTES = 16 * 1024 * 1024
"""Bytes of a refused request that are read and dropped, so that its sender gets the answer."""

MAX_LINE_BYTES = 4096
"""The longest line with the size of a chunk, its extensions included."""

GONE = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Headers = Iterable[tuple[bytes, bytes]]
App = Callable[["Exchange"], Awaitable[None]]

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\r\n]*)?\r\n")
_STATUS_LINES = {
    each.value: f"HTTP/1.1 {each.value} {each.phrase}\r\n".encode() for each in HTTPStatus
}
_NO_UPGRADE = plain_answer(403, "open a WebSocket on a new connection")
_TOO_LARGE = plain_answer(431, f"the request's head is larger than {MAX_HEAD_BYTES} bytes")
_LONG_LINE = plain_answer(431, "the size of a chunk, or the trailers, are too long")
_CUT_OFF = plain_answer(400, "the connection ended within a request")
_BAD_CHUNK = plain_answer(400, "the body is not in chunks as RFC 9112 defines them")
_FAILED = plain_answer(500, "the request failed; see the daemon's log")


async def serve_http(stream: ClientStream, app: App) -> None:
    """Serve the requests of one connection, one after the other, until it is over."""
    data = bytearray()
    with contextlib.suppress(*GONE):
        while not stream.ending.is_set() and (head := await _next_head(stream, data)) is not None:
            exchange = Exchange(stream, head, data)
            if exchange.waits_for_continue:
                await stream.send_all(_CONTINUE)
            await app(exchange)
            if not await exchange.finish():
                return


async def _next_head(stream: ClientStream, data: bytearray) -> RequestHead | None:
    """Remove the next head from ``data``, reading what is missing, and return it.

    None if the client sent none in time, or was refused.
    """
    if data:  # requests that came in one piece: others must have their turn between them
        await trio.lowlevel.checkpoint()
    with trio.move_on_after(KEEP_ALIVE_S) as stream.idle:
        while not (size := size_of_head(data)):
            if len(data) > MAX_HEAD_BYTES:
                await _refuse(stream, _TOO_LARGE)
                return None
            received = await stream.receive_some()
            if not received:
                if data:
                    await stream.send_all(_CUT_OFF)
                return None
            data += received
        head = strict_head(bytes(data[:size]))
        del data[:size]
        if isinstance(head, bytes):
            await _refuse(stream, head)
            return None
        if head.wants_websocket:
            await _refuse(stream, _NO_UPGRADE)
            return None
        return head
    return None


async def _refuse(stream: ClientStream, answer: bytes) -> None:
    """Send an answer that closes the connection; read and drop the rest of the request."""
    await stream.send_all(answer)
    # Closing a socket with unread data sends a reset, and the client may lose the answer.
    left = MAX_HEAD_BYTES
    with trio.move_on_after(LINGER_S):
        while left > 0 and (data := await stream.receive_some(left)):
            left -= len(data)


class Exchange:
    """One request and its response. ``data`` has the bytes that were received and not read."""

    def __init__(self, stream: ClientStream, head: RequestHead, data: bytearray) -> None:
        self.head = head
        self.client = stream
        self._data = data
        self._is_chunked = b"transfer-encoding" in head.fields
        self._left = int(head.fields.get(b"content-length", b"0"))
        """Bytes of the body, or of the current chunk, that are not read."""
        self._is_received = not self._is_chunked and not self._left
        """Whether the request was read to its end."""
        self._has_given = False
        self._is_gone = False
        self._closes = b"close" in head.fields.get(b"connection", b"").lower()
        self._start: bytes | None = None
        self._is_started = False
        self._is_answered = False
        self._is_bodiless = False
        self._rest: int | None = None
        """Bytes that the response still has by its Content-Length; None: it is sent in chunks."""

    @property
    def waits_for_continue(self) -> bool:
        """Whether the client sends its body only after an interim response (RFC 9110, 10.1.1)."""
        expected = self.head.fields.get(b"expect", b"").lower()
        return expected == b"100-continue" and not self._is_received

    def scope(self) -> Scope:
        """Return the ASGI scope of the request."""
        head = self.head
        return {
            "type": "http",
            "http_version": "1.1",
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "method": head.method,
            "scheme": "http",
            "path": unquote(head.path),
            "raw_path": head.path.encode(),
            "query_string": head.query,
            "root_path": "",
            "headers": list(head.headers),
            "client": None,
            "server": None,
            "state": {},
            "extensions": {},
        }

    def take_body(self, most: int) -> bytes | None:
        """Return the body if it has at most ``most`` bytes and all were received, else None."""
        if self._is_chunked or len(self._data) < self._left or self._left > most:
            return None
        body = bytes(self._data[: self._left])
        del self._data[: self._left]
        self._left, self._is_received, self._has_given = 0, True, True
        return body

    async def receive(self) -> Message:
        """Return the next part of the body (ASGI); behind it, wait until the client has gone."""
        try:
            if not self._is_received:
                part = await self._part()
                return {"type": "http.request", "body": part, "more_body": not self._is_received}
            if not self._has_given:
                self._has_given = True
                return {"type": "http.request", "body": b"", "more_body": False}
            while not self._is_gone and not self._is_answered:
                await self._await_end()
        except GONE:
            self._is_gone = True
        return {"type": "http.disconnect"}

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a part of the response (ASGI). A client that has gone is no error."""
        if message["type"] == "http.response.start":
            self._start = self._head_of(message["status"], message["headers"])
            if self._rest and not self._is_bodiless:
                return  # sent in one piece with the body
            await self._write(b"")
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._is_bodiless:
            body = b""
        elif self._rest is None:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (
                b"" if more else b"0\r\n\r\n"
            )
        else:
            self._rest -= len(body)
        await self._write(body)
        self._is_answered = not more

    async def finish(self) -> bool:
        """End the exchange; return whether the connection can serve another request."""
        if not self._is_started:
            await self._write(_FAILED)
            return False
        is_whole = self._is_answered and (self._is_bodiless or not self._rest)
        if not self._is_received and not self._is_gone:
            # Closing a socket with unread data sends a reset, and the client may lose the answer.
            left = MAX_DROPPED_BYTES
            with trio.move_on_after(LINGER_S):
                while left > 0 and not self._is_received and not self._is_gone:
                    left -= len((await self.receive()).get("body", b""))
        return is_whole and self._is_received and not self._closes and not self._is_gone

    def _head_of(self, status: int, headers: Headers) -> bytes:
        """Return the head of the response, and note how its body is framed."""
        lines = [(name.lower(), value) for name, value in headers]
        given = dict(lines)
        self._closes |= given.get(b"connection") == b"close" or self.client.ending.is_set()
        self._is_bodiless = self.head.method == "HEAD" or status in (204, 304)
        length = given.get(b"content-length")
        if length is not None:
            self._rest = int(length)
        elif status not in (204, 304):
            lines.append((b"transfer-encoding", b"chunked"))
        if self._closes and b"connection" not in given:
            lines.append((b"connection", b"close"))
        return head_bytes(status, lines)

    async def _write(self, body: bytes) -> None:
        start, self._start = self._start, None
        if start is not None:
            self._is_started, body = True, start + body
        if not body or self._is_gone:
            return
        rest = self.client.send_now(body)
        if not rest:
            return
        try:
            # Shielded: half an answer would spoil those behind it. A send has its own deadline.
            with trio.CancelScope(shield=True):
                await self.client.send_all(rest)
        except GONE:
            self._is_gone = True

    async def _part(self) -> bytes:
        """Return the next bytes of the body."""
        if self._is_chunked and not self._left and not await self._next_chunk():
            return b""
        if not self._data:
            await self._more()
        part = bytes(self._data[: self._left])
        del self._data[: self._left]
        self._left -= len(part)
        if not self._left:
            if self._is_chunked:
                await self._line_end()
            else:
                self._is_received = self._has_given = True
        return part

    async def _next_chunk(self) -> bool:
        """Read the size of the next chunk; at the last one, read the trailers and return False."""
        size = _CHUNK_SIZE.fullmatch(await self._line(MAX_LINE_BYTES))
        if size is None:
            await self._refuse_body(_BAD_CHUNK)
        else:
            self._left = int(size[1], 16)
        if self._left:
            return True
        trailers = b""
        while (line := await self._line(MAX_HEAD_BYTES - len(trailers))) != b"\r\n":
            trailers += line
        if header_lines(trailers) is None:
            await self._refuse_body(_BAD_CHUNK)
        self._is_received = self._has_given = True
        return False

    async def _line(self, most: int) -> bytes:
        """Remove and return a line with its end."""
        while (end := self._data.find(b"\n") + 1) == 0:
            if len(self._data) > most:
                await self._refuse_body(_LONG_LINE)
            await self._more()
        if end > most:
            await self._refuse_body(_LONG_LINE)
        line = bytes(self._data[:end])
        del self._data[:end]
        if not line.endswith(b"\r\n"):
            await self._refuse_body(_BAD_CHUNK)
        return line

    async def _line_end(self) -> None:
        """Read the end of the line behind a chunk."""
        while len(self._data) < len(b"\r\n"):
            await self._more()
        if not self._data.startswith(b"\r\n"):
            await self._refuse_body(_BAD_CHUNK)
        del self._data[:2]

    async def _more(self) -> None:
        received = await self.client.receive_some()
        if not received:
            await self._refuse_body(_CUT_OFF)
        self._data += received

    async def _refuse_body(self, answer: bytes) -> None:
        """Refuse a body that cannot be read to its end. Raises ``BrokenResourceError``."""
        if not self._is_started:
            self._is_started = True
            await _refuse(self.client, answer)
        raise trio.BrokenResourceError("the body is malformed")

    async def _await_end(self) -> None:
        """Read ahead until the client has gone; what it sends is its next request."""
        if len(self._data) > MAX_HEAD_BYTES:  # it must wait for the answer, and its end is not seen
            await trio.sleep_forever()
        received = await self.client.receive_some()
        self._data += received
        self._is_gone = not received


def head_bytes(status: int, headers: Headers) -> bytes:
    """Return the head of a response; ``headers`` frame its body."""
    lines = [b"%b: %b\r\n" % pair for pair in headers]
    return b"%bdate: %b\r\n%b\r\n" % (
        _STATUS_LINES[status],
        _date(int(time.time())),
        b"".join(lines),
    )


@lru_cache(maxsize=1)
def _date(now: int) -> bytes:
    """Return the value of the header Date; it is made once a second."""
    return formatdate(now, usegmt=True).encode()
