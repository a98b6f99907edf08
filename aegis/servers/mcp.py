"""MCP over Streamable HTTP: the command set as tools. The only file that touches the MCP SDK.

Both eras of the protocol are served: the ``initialize`` handshake with sessions (up to 2025-11-25)
and the sessionless one (2026-07-28). Importing the SDK takes about two seconds of CPU: only the
daemon imports this file.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import mcp_types as types
import structlog
import trio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from aegis.names import shorten
from aegis.protocol.schema import input_schema, output_schema
from aegis.protocol.table import COMMANDS, Entry
from aegis.protocol.wire import to_plain
from aegis.servers.calls import (
    Caller,
    CallPort,
    Failure,
    Identity,
    failure_of,
    find_tool,
    internal_failure,
    one_sentence,
    visible,
)
from aegis.servers.http import MAX_BODY_BYTES
from aegis.servers.presence import Presence

SERVER_NAME = "aegis-actors"
SESSION_IDLE_S = 1800.0
MAX_SESSIONS = 1000
END_LIMIT_S = 0.3
STOPPING = Failure("unavailable", "the daemon is stopping")

PRIMER = """\
Live shared terminals and messages between agents and people.

Terminals are real shells on real PTYs that keep their state between commands: spawn one with \
aegis_term_spawn, run commands with aegis_term_run and get exit code and output, type into a \
program with aegis_term_keys, read what was run with aegis_term_read. Others may use the same \
terminal. A command that outlives its timeout goes on; its record is completed when it ends.

To be woken, subscribe to a terminal with aegis_term_subscribe, then call aegis_inbox_wait: it \
returns when a command of somebody else has finished there, or when somebody handed work to you \
with aegis_handoff. Acknowledge what you have read by passing `next` as `after`.

A failed call says in one sentence what to do instead."""

log = structlog.get_logger("aegis.servers.mcp")

_TALKATIVE = ("mcp.server.streamable_http", "mcp.server.streamable_http_manager")

Context = ServerRequestContext[Any, Any]


class McpFace:
    """The MCP server. Like the SDK's session manager, one object runs once."""

    def __init__(
        self, port: CallPort, *, version: str, session_idle_s: float = SESSION_IDLE_S
    ) -> None:
        self._port = port
        self._presence = Presence(port, session_idle_s)
        self._calls: set[trio.CancelScope] = set()
        self._call_ended = trio.Event()
        self._holding = trio.CancelScope(shield=True)
        server = Server(
            SERVER_NAME,
            version=version,
            instructions=PRIMER,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            get_tool_input_schema=_INPUT_SCHEMAS.get,
        )
        server.middleware[:] = [self._attend]
        self._manager = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=session_idle_s,
            max_sessions=MAX_SESSIONS,
            max_request_body_size=MAX_BODY_BYTES,
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Hold the sessions until cancelled; started once requests can be handled."""
        with _quiet_about_goodbyes():
            async with trio.open_nursery() as nursery:
                await nursery.start(self._hold_sessions)
                task_status.started()
                try:
                    await trio.sleep_forever()
                finally:
                    # Calls end first: cancelled together with its session, a call in flight
                    # makes the SDK wait a second for a write that nobody takes.
                    await self._end_calls()
                    self._holding.cancel()

    async def handle(
        self,
        identity: Identity,
        scope: Any,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Serve one HTTP request (ASGI) of somebody whose key was checked.

        The SDK lets a session be used only by the user that opened it; anybody else gets 404.
        """
        user = AuthenticatedUser(AccessToken(token="", client_id=user_name(identity), scopes=[]))
        await self._manager.handle_request(
            {**scope, "user": user, "aegis": identity}, receive, send
        )

    async def _hold_sessions(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self._holding:
            async with self._manager.run(), trio.open_nursery() as nursery:
                nursery.start_soon(self._presence.run)
                task_status.started()

    async def _end_calls(self) -> None:
        for scope in self._calls:
            scope.cancel()
        with trio.move_on_after(END_LIMIT_S, shield=True):
            while self._calls:
                self._call_ended = trio.Event()
                await self._call_ended.wait()

    async def _attend(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: tell the port who comes and goes, and the client who it is."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            with self._presence.during(_caller(ctx)):
                result = await call_next(ctx)
        else:
            result = await call_next(ctx)
            if ctx.method == "initialize":
                self._open_session(_identity(ctx), _connection(ctx))
        if ctx.method in ("initialize", "server/discover") and isinstance(result, Mapping):
            return {**result, "instructions": instructions(_identity(ctx))}
        return result

    def _open_session(self, identity: Identity, connection: Connection) -> None:
        if "aegis" in connection.state or connection.session_id is None:
            return  # a client may initialize twice
        caller = Caller(identity, "mcp", connection.session_id)
        connection.state["aegis"] = caller
        self._port.opened(caller)
        connection.exit_stack.callback(self._port.closed, caller)

    async def _list_tools(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_TOOLS[each.name] for each in visible(_identity(ctx))])

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        scope = trio.CancelScope()
        self._calls.add(scope)
        try:
            with scope:
                return await self._outcome_with_progress(ctx, params)
        finally:
            self._calls.discard(scope)
            self._call_ended.set()
        return tool_error(params.name, STOPPING)

    async def _outcome_with_progress(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """The outcome; a client that sent a progress token is told meanwhile how it gets on."""
        caller = _caller(ctx)
        entry = _REPORTING.get(params.name)
        if entry is None or "progress_token" not in (ctx.meta or {}):
            return await self._outcome(caller, params)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._report_progress, ctx, caller, entry, params.arguments or {})
            result = await self._outcome(caller, params)
            nursery.cancel_scope.cancel()
        return result

    async def _report_progress(
        self, ctx: Context, caller: Caller, entry: Entry, arguments: Mapping[str, object]
    ) -> None:
        numbers = itertools.count(1)

        async def report(line: str) -> None:
            await ctx.session.report_progress(next(numbers), message=line)

        try:
            await self._port.report_progress(caller, entry, arguments, report)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # the client has gone; its call hears of it by itself
        except Exception:
            log.exception("progress not told", tool=entry.tool)

    async def _outcome(
        self, caller: Caller, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            entry = find_tool(caller.identity, params.name)
            reply = await self._port.call(caller, entry, params.arguments or {})
            return tool_result(to_plain(reply))
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                log.exception("a tool call failed", tool=params.name)
                failure = internal_failure("the tool")
            return tool_error(params.name, failure)


@contextmanager
def _quiet_about_goodbyes() -> Iterator[None]:
    """Keep tracebacks out of the log that the SDK writes when a session ends under a request."""
    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    for logger in loggers:
        logger.addFilter(_is_worth_logging)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(_is_worth_logging)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, anyio.ClosedResourceError | anyio.BrokenResourceError)


def tool_of(entry: Entry) -> types.Tool:
    """The tool that a command is to an MCP client."""
    title = entry.name.replace("_", " ").capitalize()
    command: type = entry.command
    reply: type = entry.reply
    return types.Tool(
        name=entry.tool,
        title=title,
        description=entry.doc,
        input_schema=input_schema(command),
        output_schema=output_schema(reply),
        annotations=types.ToolAnnotations(
            title=title,
            read_only_hint=entry.read_only,
            destructive_hint=entry.destructive,
            idempotent_hint=entry.idempotent or entry.read_only,
        ),
    )


def tool_result(plain: Mapping[str, Any]) -> types.CallToolResult:
    """A success: the reply as structured content, and the same JSON as text."""
    text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"))
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=plain
    )


def tool_error(tool: str, failure: Failure) -> types.CallToolResult:
    """A failure: one sentence that begins with the tool's name."""
    name = f"{one_sentence(shorten(tool))}: "
    sentence = name + failure.sentence.removeprefix(name)
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=sentence)], is_error=True
    )


def instructions(identity: Identity) -> str:
    """The primer, and who the client is."""
    if identity.handle is not None:
        return f"{PRIMER}\n\nYour handle is {identity.handle}; `from_handle` can be left out."
    return f"{PRIMER}\n\nYou are the operator: say in `from_handle` which agent you act as."


def user_name(identity: Identity) -> str:
    """What the SDK tells users apart by, and what a caller without a session is known by."""
    return "operator" if identity.handle is None else f"handle:{identity.handle}"


def _identity(ctx: Context) -> Identity:
    assert ctx.request is not None
    identity = ctx.request.scope["aegis"]
    assert isinstance(identity, Identity)
    return identity


def _caller(ctx: Context) -> Caller:
    identity = _identity(ctx)
    session = None
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        session = _connection(ctx).session_id
    return Caller(identity, "mcp", session or user_name(identity))


def _connection(ctx: Context) -> Connection:
    """The SDK's connection: its ``exit_stack`` is how one learns that a session ended.

    The SDK has no public way to it from a low-level handler.
    """
    connection = ctx.session._connection
    assert isinstance(connection, Connection)
    return connection


_TOOLS = {entry.name: tool_of(entry) for entry in COMMANDS}
_REPORTING = {entry.tool: entry for entry in COMMANDS if entry.tells_progress}
_INPUT_SCHEMAS = {tool.name: tool.input_schema for tool in _TOOLS.values()}
