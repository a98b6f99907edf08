"""Pings and tool calls over HTTP, without the SDK: nearly all that agents send.

Unusual requests are left to the SDK, which refuses or serves them. A call runs in the
task of its connection. A call that takes longer than ``OPEN_AFTER_S`` gets a task of its own beside
it, which opens an event stream, keeps it open, reports progress and detects that the client has
gone (``PostAnswer``). What differs between the two eras of MCP is in ``McpSession`` and
``Sessionless``.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import attrs
import mcp_types as types
import structlog
import trio
from mcp.server.connection import Connection
from mcp.server.streamable_http import REQUEST_CANCELLED, StreamableHTTPServerTransport
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from aegis.protocol.table import BY_TOOL
from aegis.servers.calls import Caller, Identity
from aegis.servers.gateway.http_server import Exchange
from aegis.servers.json_text import encode_json
from aegis.servers.mcp import post_answer
from aegis.servers.mcp.context import user_name
from aegis.servers.mcp.post_answer import PostAnswer, accepts
from aegis.servers.mcp.running_calls import END_LIMIT_S, CallerSessions, RunningCall, RunningCalls

VERSIONS = frozenset({"2025-06-18", "2025-11-25"})
"""The versions of sessions whose results have the form that is made here."""

SESSIONLESS = "2026-07-28"
"""The version without sessions."""

MAX_DEPTH = 100
"""Brackets in a request: more of them may be nested deeper than the parser of the SDK takes."""

BUMP_S = 60.0
"""Seconds by which a session without requests may end too early: its deadline is rarely moved."""

_HEADER_VERSIONS = frozenset(each.encode() for each in HANDSHAKE_PROTOCOL_VERSIONS)
_FIELDS = frozenset({"jsonrpc", "id", "method", "params"})
_CALL_PARAMS = frozenset({"name", "arguments", "_meta"})
_is_reserved = re.compile("io.modelcontextprotocol/").match
"""Match the name of metadata that only the era without sessions has."""

_ENDED = {
    "code": types.INTERNAL_ERROR,
    "message": "Session terminated before the request completed",
}
_CANCELLED = {"code": REQUEST_CANCELLED, "message": "Request cancelled"}

log = structlog.get_logger("aegis.servers.mcp")

Call = Callable[["HttpCall", Mapping[str, Any]], Awaitable[dict[str, Any]]]


@attrs.define(eq=False)
class McpSession:
    """A session of the handshake era over HTTP, and its tool calls in progress.

    A call continues after its client has gone, until the session ends.
    """

    caller: Caller
    connection: Connection
    transport: StreamableHTTPServerTransport
    calls: RunningCalls = attrs.field(factory=RunningCalls)
    ends_with_client = False
    added: Mapping[str, Any] = {}

    @property
    def id(self) -> str | None:
        """The id that clients send."""
        return self.caller.connection

    def serves(self, fields: Mapping[bytes, bytes]) -> bool:
        """Return whether requests in this session, with these headers, are served here."""
        version, scope = fields.get(b"mcp-protocol-version"), self.transport.idle_scope
        is_ending = self.transport.is_terminated or (scope is not None and scope.cancel_called)
        return (
            (version is None or version in _HEADER_VERSIONS)
            and self.connection.protocol_version in VERSIONS
            and not is_ending  # the SDK answers with 404
        )

    def takes(self, fields: Mapping[bytes, bytes], params: Mapping[str, Any]) -> bool:
        """Return whether a call with these headers and parameters is one of this era."""
        return not any(map(_is_reserved, params.get("_meta") or ()))

    def began(self, call: HttpCall) -> None:
        """Add a call."""
        self.used()
        self.calls.began(call)

    def ended(self, call: HttpCall) -> None:
        """Remove a call."""
        self.calls.ended(call)

    async def end_calls(self) -> None:
        """Cancel the calls in progress, as the session has ended, and wait for their end."""
        for call in self.calls.all:
            call.error = _ENDED
        await self.calls.end(END_LIMIT_S)

    def used(self) -> None:
        """Let the session end later, as it was used now."""
        # The SDK ends a session by the deadline of a scope, which is infinite during a request.
        scope, idle_s = self.transport.idle_scope, self.transport._idle_timeout
        if scope is not None and idle_s is not None:
            due = trio.current_time() + idle_s
            if scope.deadline < due - min(BUMP_S, idle_s / 30):
                scope.deadline = due

    @contextlib.contextmanager
    def in_use(self) -> Any:
        """Keep the session during the block."""
        transport = self.transport
        transport._requests_in_flight += 1
        if transport.idle_scope is not None:
            transport.idle_scope.deadline = math.inf
        try:
            yield
        finally:
            transport._requests_in_flight -= 1
            if transport.idle_scope is not None and not transport._requests_in_flight:
                transport.idle_scope.deadline = trio.current_time() + (transport._idle_timeout or 0)


@attrs.frozen(eq=False)
class Sessionless:
    """A caller of the era without sessions. A call ends when its client goes.

    ``added`` are the fields that every result has besides its own.
    """

    caller: Caller
    added: Mapping[str, Any]
    _present: CallerSessions
    ends_with_client = True
    id: None = None

    def takes(self, fields: Mapping[bytes, bytes], params: Mapping[str, Any]) -> bool:
        """Return whether the headers repeat what is in the body, and the metadata is complete."""
        name, meta = params["name"], params.get("_meta") or {}
        if (
            # Names of tools are plain ASCII, so their header is not encoded.
            name not in BY_TOOL
            or fields.get(b"mcp-name") != name.encode()
            or fields.get(b"mcp-method") != b"tools/call"
            or meta.get(types.PROTOCOL_VERSION_META_KEY) != SESSIONLESS
        ):
            return False
        try:
            validate_client_request("tools/call", SESSIONLESS, params)
        except ValidationError:
            return False
        return True

    def began(self, call: HttpCall) -> None:
        """Keep the caller open."""
        self._present.began(self.caller)

    def ended(self, call: HttpCall) -> None:
        """Let the caller become idle."""
        self._present.ended(self.caller)

    def in_use(self) -> AbstractContextManager[None]:
        """There is nothing to keep."""
        return contextlib.nullcontext()


class HttpCall(RunningCall):
    """A tool call in progress, in the task of its connection."""

    def __init__(
        self, owner: McpSession | Sessionless, exchange: Exchange, request_id: str | int
    ) -> None:
        super().__init__(request_id)
        self.owner = owner
        self._report: Callable[[], Awaitable[None]] | None = None
        self.is_over = False
        self._exchange = exchange
        self._post: PostAnswer | None = None
        self._attending = trio.CancelScope()
        self._left = trio.Event()

    async def attend(self) -> None:
        """Keep the client waiting: open a stream, send pings and progress, and see it go."""
        if self.is_over:
            return
        exchange = self._exchange
        self._post = post = PostAnswer(list(exchange.head.headers), {}, exchange.send)
        post.dispatched(self.id, self.owner.id, open_after_s=0)
        try:
            with self._attending, self.owner.in_use():
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(post.watch, exchange.receive, self._abandon)
                    if self._report is not None:
                        nursery.start_soon(self._report)
        except Exception:
            log.exception("a long call is attended no longer")
        finally:
            self._left.set()

    def report_with(self, report: Callable[[], Awaitable[None]]) -> None:
        """Set the function that reports progress once the call is long."""
        self._report = report

    async def notify(self, token: str | int, number: int, line: str) -> None:
        """Send a line of progress on the stream."""
        assert self._post is not None
        await self._post.notify_progress(token, number, line)

    async def answer(self, result: dict[str, Any]) -> None:
        """Send the response: the result, or the error of a call that was cancelled."""
        document = {"jsonrpc": "2.0", "id": self.id, "result": {**result, **self.owner.added}}
        if not result and self.error is not None:
            document = {"jsonrpc": "2.0", "id": self.id, "error": self.error}
        is_ended = not result and self.error is _ENDED
        body = encode_json({**document, "id": None} if is_ended else document)
        if self._post is not None:
            # Only one task reads from a socket: the next is the one that waits for a request.
            self._attending.cancel()
            await self._left.wait()
        await answer(self._exchange, self.owner.id, 500 if is_ended else 200, body, self._post)

    def _abandon(self) -> None:
        """Close the connection, whose client has gone. A call in a session continues."""
        self._exchange.client.abort()
        self._exchange.client.leave()
        self._attending.cancel()
        if self.owner.ends_with_client:
            self.scope.cancel()


class HttpCalls:
    """The sessions, and the calls in progress. Calls are served while ``run`` is running.

    ``present`` are the callers without a session, ``added`` the fields of their results. A call of
    ``carry_out`` returns the result of a tool call as a JSON object, ``stopping`` that of a call
    which the stop of the daemon cancelled, by the name of the tool.
    """

    def __init__(
        self,
        running_calls: RunningCalls,
        present: CallerSessions,
        added: Mapping[str, Any],
        carry_out: Call,
        stopping: Callable[[str], dict[str, Any]],
    ) -> None:
        self.sessions: dict[bytes, McpSession] = {}
        self._is_running = False
        self._running_calls = running_calls
        self._present = present
        self._added = added
        self._carry_out = carry_out
        self._stopping = stopping
        self._waiting: deque[tuple[float, HttpCall]] = deque()
        self._alarm = trio.CancelScope()

    async def run(self) -> None:
        """Attend to calls that take long, until cancelled."""
        self._is_running = True
        try:
            async with trio.open_nursery() as nursery:
                await self._attend_all(nursery)
        finally:
            self._is_running = False

    async def _attend_all(self, nursery: trio.Nursery) -> None:
        while True:
            # A new call moves the deadline and wakes no task.
            due = self._waiting[0][0] if self._waiting else math.inf
            with trio.CancelScope(deadline=due) as self._alarm:
                await trio.sleep_forever()
            now = trio.current_time()
            while self._waiting and (self._waiting[0][1].is_over or self._waiting[0][0] <= now):
                _, call = self._waiting.popleft()
                if not call.is_over:
                    nursery.start_soon(call.attend)

    async def serve(
        self, identity: Identity, exchange: Exchange, message: Any, body: bytes
    ) -> bool:
        """Answer a ping, a tool call or a cancellation; return False for any other request.

        ``message`` is the JSON of the body, None if it is none.
        """
        fields = exchange.head.fields
        if fields.get(b"content-type") != b"application/json" or not _is_usual(message, body):
            return False
        owner = self._owner(identity, fields)
        if owner is None or not any(accepts(fields.get(b"accept", b""))):
            return False
        method, request_id, params = message.get("method"), message.get("id"), message.get("params")
        session = owner if isinstance(owner, McpSession) else None
        if session and method == "notifications/cancelled" and "id" not in message:
            return await self._cancel(session, exchange, params)
        if type(request_id) is not int and type(request_id) is not str:
            return False
        if session and method == "ping" and (not params or "_meta" not in params):
            session.used()
            pong = encode_json({"jsonrpc": "2.0", "id": request_id, "result": {}})
            await answer(exchange, session.id, 200, pong)
            return True
        if method != "tools/call" or not params or not _is_usual_call(params):
            return False
        if not owner.takes(fields, params):
            return False
        await self._call(HttpCall(owner, exchange, request_id), params)
        return True

    def _owner(
        self, identity: Identity, fields: Mapping[bytes, bytes]
    ) -> McpSession | Sessionless | None:
        """Return the owner of a request with these headers; None if it is left to the SDK."""
        if fields.get(b"mcp-protocol-version") == SESSIONLESS.encode():
            caller = Caller(identity, "mcp", user_name(identity))
            return Sessionless(caller, self._added, self._present) if self._is_running else None
        session = self.sessions.get(fields.get(b"mcp-session-id", b""))
        if session is None or session.caller.identity != identity or not session.serves(fields):
            return None
        return session

    async def _call(self, call: HttpCall, params: Mapping[str, Any]) -> None:
        call.owner.began(call)
        self._running_calls.began(call)
        self._waiting.append((due := trio.current_time() + post_answer.OPEN_AFTER_S, call))
        if due < self._alarm.deadline:
            self._alarm.deadline = due
        result: dict[str, Any] = {}
        try:
            with call.scope:
                result = await self._carry_out(call, params)
            if not result and call.error is None:
                result = self._stopping(params["name"])
        finally:
            call.is_over = True
            self._running_calls.ended(call)
            call.owner.ended(call)
        await call.answer(result)

    async def _cancel(self, session: McpSession, exchange: Exchange, params: Any) -> bool:
        request = params.get("requestId") if isinstance(params, dict) else None
        calls = [each for each in session.calls.all if str(each.id) == str(request)]
        if not calls or type(request) not in (int, str):
            return False
        for call in calls:
            call.error = _CANCELLED
            call.scope.cancel()
        await answer(exchange, session.id, 202, b"")
        return True


async def answer(
    exchange: Exchange,
    session: str | None,
    status: int,
    body: bytes,
    post: PostAnswer | None = None,
) -> None:
    """Send a response, as JSON or as an event where the client accepts nothing else."""
    takes_json, _ = accepts(exchange.head.fields.get(b"accept", b""))
    headers = [(b"content-type", b"application/json")]
    if session is not None:
        headers.append((b"mcp-session-id", session.encode()))
    headers.append((b"content-length", str(len(body)).encode()))
    send = exchange.send
    if post is not None or (status == 200 and not takes_json):
        send = (post or PostAnswer(list(exchange.head.headers), {}, send)).send
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _is_usual(message: Any, body: bytes) -> bool:
    """Return whether every reader of JSON reads the body in the same way, as one message."""
    # The SDK's parser refuses lone surrogates and deep documents.
    return (
        isinstance(message, dict)
        and message.keys() <= _FIELDS
        and message.get("jsonrpc") == "2.0"
        and (message.get("params") is None or isinstance(message["params"], dict))
        and b"\\ud" not in body
        and b"\\uD" not in body
        and body.count(b"[") + body.count(b"{") <= MAX_DEPTH
    )


def _is_usual_call(params: Mapping[str, Any]) -> bool:
    if not params.keys() <= _CALL_PARAMS or type(params.get("name")) is not str:
        return False
    arguments, meta = params.get("arguments"), params.get("_meta")
    if not (arguments is None or isinstance(arguments, dict)):
        return False
    if meta is None:
        return True
    token = meta.get("progressToken", "") if isinstance(meta, dict) else None
    return type(token) is str or type(token) is int
