"""The choice of a protocol for a connection of the Unix socket: its first line, frames or MCP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from aegis.errors import AegisError
from aegis.servers.calls import Failure, Identity, one_sentence
from aegis.servers.gateway.client_stream import ClientStream
from aegis.servers.requests import error_frame
from aegis.servers.wires.conversation import ServerContext
from aegis.servers.wires.lines import LineWire, serve_lines
from aegis.servers.wires.mcp_hello import MAX_HELLO_BYTES, McpHello, mcp_hello, mcp_welcome
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
        await serve_lines(stream, stopping, context=context)
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
