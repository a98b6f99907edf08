"""Clients of every face, on Trio, that one test can hold at once: lines, WebSocket, MCP.

Each calls a command by its name and gets the reply, or ``CommandFailed``, or ``Lost``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import httpx2
import trio
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from trio_websocket import ConnectionClosed, WebSocketConnection, open_websocket_url

from aegis.client.line import CommandFailed
from aegis.servers.wires.unix import LineBuffer
from aegis.state.endpoint import Endpoint
from tests.e2e.harness import GUARD_S

MAX_LINE_BYTES = 16 * 1024 * 1024


class Lost(Exception):
    """The connection ended before the answer came."""


class Caller(Protocol):
    """A client of some face."""

    async def call(self, command: str, **arguments: object) -> dict[str, Any]:
        """Call and wait; several may be under way. Raises ``CommandFailed`` or ``Lost``."""
        ...


class Pending:
    """A call under way, as a task of ``nursery``."""

    def __init__(
        self, nursery: trio.Nursery, caller: Caller, command: str, **arguments: object
    ) -> None:
        self._done = trio.Event()
        self._outcome: dict[str, Any] | Exception = Lost("it did not end")
        nursery.start_soon(self._run, caller, command, arguments)

    async def _run(self, caller: Caller, command: str, arguments: dict[str, object]) -> None:
        try:
            self._outcome = await caller.call(command, **arguments)
        except (CommandFailed, Lost) as error:
            self._outcome = error
        self._done.set()

    @property
    def is_done(self) -> bool:
        return self._done.is_set()

    async def outcome(self) -> dict[str, Any] | Exception:
        """The reply, or the error."""
        with trio.fail_after(GUARD_S):
            await self._done.wait()
        return self._outcome

    async def result(self) -> dict[str, Any]:
        """The reply. Raises what came in its place."""
        outcome = await self.outcome()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class _Frames:
    """What lines and the WebSocket share: requests with ids, and their answers."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)
        self._waiting: dict[int, trio.MemorySendChannel[dict[str, Any] | None]] = {}
        self._is_lost = False

    async def send(self, text: str) -> None:
        raise NotImplementedError

    async def call(self, command: str, **arguments: object) -> dict[str, Any]:
        if self._is_lost:
            raise Lost("the connection is closed")
        number = next(self._ids)
        self._waiting[number], answer = trio.open_memory_channel[dict[str, Any] | None](1)
        frame = {"type": "request", "id": number, "command": command, "arguments": arguments}
        await self.send(json.dumps(frame))
        got = await answer.receive()
        if got is None:
            raise Lost("the connection was closed")
        if got["type"] == "error":
            raise CommandFailed(got["code"], got["message"])
        result: dict[str, Any] = got["result"]
        return result

    def take(self, text: str | bytes) -> None:
        """A frame came."""
        frame = json.loads(text)
        self._waiting.pop(frame["id"]).send_nowait(frame)

    def lose(self) -> None:
        """No frame will come any more."""
        self._is_lost = True
        while self._waiting:
            self._waiting.popitem()[1].send_nowait(None)


class _LineCaller(_Frames):
    def __init__(self, stream: trio.SocketStream) -> None:
        super().__init__()
        self._stream = stream
        self._sending = trio.StrictFIFOLock()

    async def send(self, text: str) -> None:
        try:
            async with self._sending:
                await self._stream.send_all(text.encode() + b"\n")
        except trio.BrokenResourceError as error:
            raise Lost("the connection broke") from error

    async def listen(self) -> None:
        lines = LineBuffer(MAX_LINE_BYTES)
        try:
            async for data in self._stream:
                lines.feed(bytes(data))
                while (line := lines.next_line()) is not None:
                    self.take(line)
        except trio.BrokenResourceError:
            pass
        finally:
            self.lose()


class _WebSocketCaller(_Frames):
    def __init__(self, connection: WebSocketConnection) -> None:
        super().__init__()
        self._connection = connection

    async def send(self, text: str) -> None:
        try:
            await self._connection.send_message(text)
        except ConnectionClosed as error:
            raise Lost("the connection was closed") from error

    async def listen(self) -> None:
        try:
            while True:
                self.take(await self._connection.get_message())
        except ConnectionClosed:
            pass
        finally:
            self.lose()


class _McpCaller:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, command: str, **arguments: object) -> dict[str, Any]:
        try:
            result = await self._client.call_tool(f"aegis_{command}", dict(arguments))
        except Exception as error:
            raise Lost(repr(error)) from error
        if result.is_error:
            [content] = result.content
            raise CommandFailed("", getattr(content, "text", ""))
        structured: dict[str, Any] | None = result.structured_content
        assert structured is not None
        return structured


@asynccontextmanager
async def line_caller(endpoint: Endpoint) -> AsyncIterator[Caller]:
    """The operator, by the Unix socket."""
    stream = await trio.open_unix_socket(endpoint.socket)
    caller = _LineCaller(stream)
    async with stream, trio.open_nursery() as nursery:
        nursery.start_soon(caller.listen)
        yield caller
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def websocket_caller(endpoint: Endpoint) -> AsyncIterator[Caller]:
    """The operator, by a WebSocket."""
    headers = [(b"authorization", f"Bearer {endpoint.token}".encode())]
    async with open_websocket_url(endpoint.ws, extra_headers=headers) as connection:
        caller = _WebSocketCaller(connection)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(caller.listen)
            yield caller
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def mcp_caller(url: str, mode: str) -> AsyncIterator[Caller]:
    """The owner of the session at ``url``, by the official client in the era ``mode``."""
    async with (
        httpx2.AsyncClient(timeout=GUARD_S) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        await client.list_tools()  # the client holds results against the schemas in it
        yield _McpCaller(client)
