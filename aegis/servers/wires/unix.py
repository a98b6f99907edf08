"""The choice of a protocol for a connection of the Unix socket: frames, or MCP after a hello.

From the client:  {"type": "mcp", "version": 1, "handle": "pm"}
From the server:  {"type": "mcp", "version": 1, "server": "aegis-actors/…", "handle": "pm"}
or an error as in ``requests``, with the id null; then the connection is closed.

All later lines are MCP as on standard input and output: one JSON-RPC message is one line.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import attrs
import trio

from aegis.errors import AegisError, InvalidRequest
from aegis.json_bounds import read_json
from aegis.names import check_handle
from aegis.servers.calls import OPERATOR, Failure, Identity, one_sentence, within
from aegis.servers.gateway.client_stream import ClientStream
from aegis.servers.requests import error_frame
from aegis.servers.wires.conversation import ServerContext, converse
from aegis.servers.wires.lines import LineWire
from aegis.servers.wires.port import TextWire, WireClosed

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


VERSION = 1
MAX_HELLO_BYTES = 4096


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
