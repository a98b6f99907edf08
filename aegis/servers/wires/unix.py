"""The Unix socket: lines of JSON, which are frames as in ``requests``, or MCP after a hello.

A peer is accepted by its uid, and its process says for whom it acts (``ClientStream.process``); a
hello with a session's secret binds the operator to that handle. A client of frames that closes its
sending side has disconnected: its requests in progress are cancelled.

The hello for MCP:

From the client:  {"type": "mcp", "version": 1, "handle": "pm"}
From the server:  {"type": "mcp", "version": 1, "server": "aegis-actors/…", "handle": "pm"}
or an error as in ``requests``, with the id null; then the connection is closed.

All later lines are MCP as on standard input and output: one JSON-RPC message is one line.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

import attrs
import trio

from aegis.errors import AegisError, InvalidRequest
from aegis.json_bounds import read_json
from aegis.names import check_handle
from aegis.servers.calls import OPERATOR, Failure, Identity, one_sentence, within
from aegis.servers.gateway.client_stream import ClientStream
from aegis.servers.requests import MAX_FRAME_BYTES, error_frame
from aegis.servers.wires.conversation import ServerContext, converse
from aegis.servers.wires.port import TextWire, WireClosed

VERSION = 1
MAX_HELLO_BYTES = 4096
MAX_SKIPPED_BYTES = 64 * 1024 * 1024
"""Bytes of a line over the limit that are read and dropped, so that its sender gets the refusal."""

McpConversation = Callable[[Identity, TextWire, trio.Event], Awaitable[None]]


async def serve_unix(
    stream: ClientStream, stopping: trio.Event, *, context: ServerContext, mcp: McpConversation
) -> None:
    """Serve one connection until the client disconnects, is refused, or ``stopping``.

    An operator's process may ask for MCP as any handle, an agent's as its own.
    """
    line = await _first_line(stream, stopping)
    try:
        hello = mcp_hello(line)
    except AegisError as error:
        await _refuse(LineWire(stream), error)
        return
    if hello is None:
        await converse(LineWire(stream), context, "line", stream.process, stopping)
    else:
        await _serve_mcp(stream, hello, stopping, context.server, mcp)


async def _serve_mcp(
    stream: ClientStream, hello: McpHello, stopping: trio.Event, server: str, mcp: McpConversation
) -> None:
    wire = LineWire(stream)
    try:
        await wire.receive()  # the hello itself
        identity = hello.identity if stream.process is None else hello.of(stream.process)
        await wire.send(mcp_welcome(server, identity))
        await mcp(identity, wire, stopping)
    except WireClosed:
        return
    except AegisError as error:
        await _refuse(wire, error)


async def _refuse(wire: LineWire, error: AegisError) -> None:
    try:
        await wire.send(error_frame(None, Failure(error.code, one_sentence(str(error)))))
    except WireClosed:
        return


async def _first_line(stream: ClientStream, stopping: trio.Event) -> bytes:
    """Return the first line, or the beginning of one that is too long; it is received again."""

    async def give_up() -> None:
        await stopping.wait()
        nursery.cancel_scope.cancel()

    data = b""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up)
        data = await stream.read_ahead(lambda seen: b"\n" in seen, MAX_HELLO_BYTES)
        nursery.cancel_scope.cancel()
    return data.partition(b"\n")[0]


@attrs.frozen
class McpHello:
    """The request to speak MCP as ``identity``."""

    identity: Identity

    def of(self, process: Identity) -> Identity:
        """Return the identity for a client's process; the operator's means its own.

        Raises ``Forbidden`` if it is another handle.
        """
        return process if self.identity == OPERATOR else within(process, self.identity)


def mcp_hello(line: bytes) -> McpHello | None:
    """Parse a connection's first line as a request for MCP; None if it is another kind of line.

    Raises ``InvalidRequest`` if it asks for MCP in a way that cannot be served.
    """
    try:
        document = read_json(line)
    except (ValueError, RecursionError):  # ``requests.parse_frame`` reports the error
        return None
    if not isinstance(document, dict) or document.get("type") != "mcp":
        return None
    if document.keys() != {"type", "version", "handle"}:
        raise InvalidRequest("a hello for MCP must have 'type', 'version' and 'handle'")
    version, handle = document["version"], document["handle"]
    if version != VERSION or isinstance(version, bool):
        raise InvalidRequest(f"this server supports version {VERSION}; send that in 'version'")
    if handle is None:
        return McpHello(OPERATOR)
    if not isinstance(handle, str):
        raise InvalidRequest("'handle' must be text, or null for the operator")
    return McpHello(Identity(handle=check_handle(handle), operator=False))


def mcp_welcome(server: str, identity: Identity) -> str:
    """Return the server's answer to a hello that it accepts."""
    return json.dumps(
        {"type": "mcp", "version": VERSION, "server": server, "handle": identity.handle}
    )


class LineWire:
    """A connection of lines, each one message; empty lines are skipped."""

    def __init__(self, stream: ClientStream) -> None:
        self._stream = stream
        self._lines = LineBuffer(MAX_FRAME_BYTES, MAX_SKIPPED_BYTES)
        self._sending = trio.StrictFIFOLock()

    async def receive(self) -> bytes:
        """Return the next line. Raises ``WireClosed``; for each long line ``InvalidRequest``."""
        try:
            while True:
                line = self._lines.next_line()
                if line is None:
                    self._lines.feed(await self._receive_some())
                elif line.strip():
                    return line
        except LineTooLong:
            raise InvalidRequest(
                f"a line must be at most {MAX_FRAME_BYTES} bytes long, and this one was longer: it "
                "was not read; write long texts to a file and send its path"
            ) from None
        except LineWithoutEnd:
            raise WireClosed from None

    async def send(self, message: str | bytes) -> None:
        """Send one line; several tasks may call it. Raises ``WireClosed``."""
        line = message.encode() if isinstance(message, str) else message
        async with self._sending:
            try:
                await self._stream.send_all(line + b"\n")
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                raise WireClosed from None

    async def wait_gone(self) -> None:
        """Return once the client has closed its receiving side too."""
        await self._stream.wait_hung_up()

    def trust(self, identity: Identity | None) -> None:
        self._stream.trust(identity)

    def holding(self, size: int) -> AbstractContextManager[None]:
        return self._stream.holding(size)

    async def _receive_some(self) -> bytes:
        try:
            data = await self._stream.receive_some()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise WireClosed from None
        if not data:
            raise WireClosed
        return data


class LineTooLong(ValueError):
    """The error for a line over the limit. It is skipped: the next line can be read."""


class LineWithoutEnd(ValueError):
    """The error for a line that is too long to be skipped: no later line can be read."""


class LineBuffer:
    """A buffer that collects bytes and returns whole lines of at most ``limit`` bytes.

    The lines are returned without their newline. Of a longer line at most ``skipped`` bytes beyond
    the limit are dropped.
    """

    def __init__(self, limit: int, skipped: int = 0) -> None:
        self._limit = limit
        self._most_skipped = skipped
        self._data = bytearray()
        self._searched = 0
        self._skipped: int | None = None

    def feed(self, data: bytes) -> None:
        """Add received bytes. Raises ``LineWithoutEnd``."""
        self._data += data
        if self._skipped is not None:
            self._skip(self._skipped)
        if self._skipped is not None and self._skipped > self._most_skipped:
            raise LineWithoutEnd

    def next_line(self) -> bytes | None:
        """Return the next line; None if incomplete. Raises ``LineTooLong`` beyond the limit."""
        if self._skipped is not None:
            return None
        end = self._data.find(b"\n", self._searched)
        if (len(self._data) if end < 0 else end) > self._limit:
            self._skip(-self._limit)
            raise LineTooLong
        if end < 0:
            self._searched = len(self._data)
            return None
        line = bytes(self._data[:end])
        del self._data[: end + 1]
        self._searched = 0
        return line

    def _skip(self, before: int) -> None:
        """Drop the rest of a line, of which ``before`` bytes beyond the limit were dropped."""
        end = self._data.find(b"\n")
        count = before + (len(self._data) if end < 0 else end)
        del self._data[: None if end < 0 else end + 1]
        self._searched = 0
        self._skipped = count if end < 0 else None
