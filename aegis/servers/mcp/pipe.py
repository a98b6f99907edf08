"""MCP over a connection of lines, as on standard input and output: one message is one line.

The client's first request decides the kind of the protocol (with or without sessions), and the SDK
serves both. The SDK has no limits of its own, so they are here: the number of requests in progress,
the length of a line, and the number of malformed messages in a row.
"""

from __future__ import annotations

import anyio
import mcp_types as types
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_dual_era_loop
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from pydantic import ValidationError

from aegis.errors import InvalidRequest
from aegis.json_bounds import (
    MAX_KEYS,
    BadId,
    RepeatedKey,
    has_too_many_keys,
    make_ids_whole,
    read_json,
)
from aegis.servers.calls import Caller, one_sentence
from aegis.servers.mcp.context import PipeRequest
from aegis.servers.wires.conversation import MAX_STRIKES
from aegis.servers.wires.port import TextWire, WireClosed

MAX_IN_PROGRESS = 64
"""Requests of one connection that are not answered yet."""

ENDLESS = frozenset({"subscriptions/listen"})
"""Requests that end with the connection: the end of input does not wait for their answers."""

LAST_ANSWERS_S = 0.3
"""Seconds that requests in progress may continue when the daemon stops; then they are cancelled.

Shorter than the grace period of the gateway, which then closes the connections.
"""

GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError)

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Answer = types.JSONRPCResponse | types.JSONRPCError


async def serve_pipe(server: Server, wire: TextWire, caller: Caller, stopping: trio.Event) -> None:
    """Serve MCP to ``caller`` until it disconnects, is refused, or ``stopping``.

    A client that closes its sending side is still sent the answers to all its requests. Requests in
    progress are cancelled when the client disconnects; at ``stopping`` they have ``LAST_ANSWERS_S``
    seconds.
    """
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    pipe = _Pipe(wire, caller)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(pipe.send_all, from_server)
        async with trio.open_nursery() as reading, server.lifespan(server) as state:
            reading.start_soon(pipe.receive_all, to_server, to_client.clone())
            reading.start_soon(pipe.end_after, stopping)
            await serve_dual_era_loop(
                server, from_client, to_client, lifespan_state=state, session_id=caller.connection
            )
            reading.cancel_scope.cancel()


class _Pipe:
    """One connection, between the wire and the SDK."""

    def __init__(self, wire: TextWire, caller: Caller) -> None:
        self._wire = wire
        self._caller = caller
        self._in_progress: dict[types.RequestId, str] = {}
        """The methods of the requests in progress."""
        self._answered = trio.Event()
        self._reading = trio.CancelScope()
        self._strikes = 0

    async def receive_all(
        self, to_server: Incoming, to_client: MemoryObjectSendStream[SessionMessage]
    ) -> None:
        """Pass the client's messages to the SDK, until it disconnects or is refused."""
        async with to_server, to_client:
            with self._reading:
                while self._strikes < MAX_STRIKES:
                    try:
                        await self._receive_one(to_server, to_client)
                    except WireClosed:
                        await self._answer_rest()
                        return
                    except GONE:
                        return

    async def send_all(self, from_server: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send the messages of the SDK and the refusals to the client, until both have ended."""
        async with from_server:
            try:
                async for each in from_server:
                    text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._wire.send(text)
                    if isinstance(each.message, Answer):
                        self._is_answered(each.message.id)
            except WireClosed:
                self._reading.cancel()

    async def end_after(self, stopping: trio.Event) -> None:
        """When the daemon stops, wait briefly for the requests in progress, then stop reading."""
        await stopping.wait()
        with trio.move_on_after(LAST_ANSWERS_S):
            while self._in_progress:
                await self._answered.wait()
        self._reading.cancel()

    async def _answer_rest(self) -> None:
        """After the end of input, wait for the answers, unless the client reads no longer."""

        async def give_up() -> None:
            await self._wire.wait_gone()
            nursery.cancel_scope.cancel()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(give_up)
            while not ENDLESS.issuperset(self._in_progress.values()):
                await self._answered.wait()
            nursery.cancel_scope.cancel()

    async def _receive_one(
        self, to_server: Incoming, to_client: MemoryObjectSendStream[SessionMessage]
    ) -> None:
        try:
            message = _message(await self._wire.receive())
            refusal = self._refusal(message)
            self._strikes = 0
        except (InvalidRequest, MCPError) as error:
            self._strikes += 1
            code = error.code if isinstance(error, MCPError) else types.INVALID_REQUEST
            refusal = _error(None, code, str(error))
        if refusal is not None:
            await to_client.send(SessionMessage(refusal))
            return
        if isinstance(message, types.JSONRPCRequest):
            self._in_progress[message.id] = message.method
        await to_server.send(SessionMessage(message, self._metadata(message)))

    def _refusal(self, message: types.JSONRPCMessage) -> types.JSONRPCError | None:
        """Return the refusal of a request with a used id, or beyond the limit; else None."""
        if not isinstance(message, types.JSONRPCRequest):
            return None
        if message.id in self._in_progress:
            sentence = f"request {message.id!r} is still in progress; use another id"
            return _error(None, types.INVALID_REQUEST, sentence)
        if len(self._in_progress) >= MAX_IN_PROGRESS:
            sentence = (
                f"{MAX_IN_PROGRESS} requests are in progress already; wait for an answer first"
            )
            return _error(message.id, types.INTERNAL_ERROR, sentence)
        return None

    def _metadata(self, message: types.JSONRPCMessage) -> ServerMessageMetadata:
        async def unanswered() -> None:
            if isinstance(message, types.JSONRPCRequest):
                self._is_answered(message.id)

        return ServerMessageMetadata(
            request_context=PipeRequest(self._caller), on_request_unanswered=unanswered
        )

    def _is_answered(self, request: types.RequestId | None) -> None:
        if request is not None:
            self._in_progress.pop(request, None)
        self._answered.set()
        self._answered = trio.Event()


def _message(line: str | bytes) -> types.JSONRPCMessage:
    """Parse a line as a JSON-RPC message. Raises ``MCPError``."""
    if has_too_many_keys(line.encode(errors="replace") if isinstance(line, str) else line):
        raise MCPError(types.INVALID_REQUEST, f"a line must have at most {MAX_KEYS} keys")
    try:
        document = read_json(line)
        make_ids_whole(document)
    except (RepeatedKey, BadId) as error:
        raise MCPError(types.INVALID_REQUEST, one_sentence(str(error))) from None
    except (ValueError, RecursionError) as error:
        raise _no_message(types.PARSE_ERROR, str(error)) from None
    try:
        # Not ``validate_json``: its parser rejects lone surrogates, and a call with one in its
        # arguments could not be answered by its id.
        return types.jsonrpc_message_adapter.validate_python(document, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _no_message(types.INVALID_REQUEST, first["msg"]) from None


def _no_message(code: int, why: str) -> MCPError:
    return MCPError(code, f"a line must be one JSON-RPC message ({one_sentence(why)})")


def _error(request: types.RequestId | None, code: int, sentence: str) -> types.JSONRPCError:
    error = types.ErrorData(code=code, message=sentence)
    return types.JSONRPCError(jsonrpc="2.0", id=request, error=error)
