"""MCP over HTTP and over lines: the command set as tools; ``mcp_resources.py`` has the resources.

Both eras of the protocol are served: the ``initialize`` handshake with sessions (up to 2025-11-25)
and the sessionless one (2026-07-28). Importing the SDK takes about two seconds of CPU: only the
daemon imports this file, and only this file and its ``mcp_*`` neighbours touch the SDK.
"""

from __future__ import annotations

import itertools
import logging
import secrets
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
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

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
from aegis.servers.in_flight import InFlight
from aegis.servers.json_text import json_text
from aegis.servers.mcp_completion import McpCompletion
from aegis.servers.mcp_context import (
    STOPPING,
    Context,
    caller_of,
    connection_of,
    identity_of,
    is_from_pipe,
    is_modern,
    user_name,
)
from aegis.servers.mcp_pipe import serve_pipe
from aegis.servers.mcp_resources import McpResources
from aegis.servers.one_answer import OneAnswer
from aegis.servers.presence import Presence
from aegis.servers.wires import TextWire

SERVER_NAME = "aegis-actors"
SESSION_IDLE_S = 1800.0
MAX_SESSIONS = 1000
END_LIMIT_S = 0.3

PRIMER = """\
Live shared terminals and messages between agents and people.

Terminals are real shells on real PTYs that keep their state between commands: spawn one with \
aegis_term_spawn, run commands with aegis_term_run and get exit code and output, type into a \
program with aegis_term_keys, look at what it draws with aegis_term_screen, read what was run with \
aegis_term_read. Others may use the same terminal. A command that outlives its timeout goes on; \
wait for its end, for a text or for quiet with aegis_term_wait, and read what it prints meanwhile \
with aegis_term_output.

To be woken, subscribe to a terminal with aegis_term_subscribe, then call aegis_inbox_wait: it \
returns when a command of somebody else has finished there, or when somebody handed work to you \
with aegis_handoff. Acknowledge what you have read by passing `next` as `after`. Ledgers and \
inboxes are resources too, whose updates you can subscribe to.

A failed call says in one sentence what to do instead."""

log = structlog.get_logger("aegis.servers.mcp")

_TALKATIVE = ("mcp.server.streamable_http", "mcp.server.streamable_http_manager")


class McpFace:
    """The MCP server. Like the SDK's session manager, one object runs once."""

    def __init__(
        self, port: CallPort, *, version: str, session_idle_s: float = SESSION_IDLE_S
    ) -> None:
        self._port = port
        self._presence = Presence(port, session_idle_s)
        self._in_flight = InFlight()
        self._sessions: set[Caller] = set()
        self._resources = McpResources(port, self._in_flight)
        self._holding = trio.CancelScope(shield=True)
        self._server = server = Server(
            SERVER_NAME,
            version=version,
            instructions=PRIMER,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._resources.list_resources,
            on_list_resource_templates=self._resources.list_templates,
            on_read_resource=self._resources.read,
            on_subscribe_resource=self._resources.subscribe,
            on_unsubscribe_resource=self._resources.unsubscribe,
            on_subscriptions_listen=self._resources.listen,
            on_completion=McpCompletion(port, self._in_flight).complete,
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
                    await self._in_flight.end(END_LIMIT_S)
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
        scope = {**scope, "user": user, "aegis": identity}
        answer = OneAnswer(send)
        with self._resources.noticed(scope, answer) as noticing:
            try:
                await self._manager.handle_request(scope, receive, noticing)
            except (anyio.ClosedResourceError, anyio.BrokenResourceError):
                if not answer.is_whole:
                    raise
                # The session ended while what was said in it, and confirmed, was on its way.

    async def converse(self, identity: Identity, wire: TextWire, stopping: trio.Event) -> None:
        """Serve one connection of lines until the client goes, is sent away, or ``stopping``.

        It is one caller, whichever era the client speaks.
        """
        caller = Caller(identity, "mcp", f"stdio-{secrets.token_hex(8)}")
        self._port.opened(caller)
        try:
            with self._resources.stream_of(caller.connection):
                await serve_pipe(self._server, wire, caller, stopping)
        finally:
            self._port.closed(caller)

    async def end_sessions(self, voided: frozenset[Identity]) -> None:
        """End the sessions of these identities, and the calls in them: their keys are void.

        A session of the SDK outlives the connections through which it was used, and it has no
        public way to end one from outside.
        """
        for caller in [each for each in self._sessions if each.identity in voided]:
            transport = self._manager._server_instances.get(caller.connection)
            if transport is not None:
                await self._manager._discard_session(caller.connection, transport)

    def changed(self, key: str) -> None:
        """The resource of this key has changed: clients that watch it are told."""
        self._resources.changed(key)

    async def _hold_sessions(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self._holding:
            async with self._manager.run(), trio.open_nursery() as nursery:
                nursery.start_soon(self._presence.run)
                await nursery.start(self._resources.run)
                task_status.started()

    async def _attend(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: tell the port who comes and goes, and the client who it is."""
        if is_from_pipe(ctx):
            result = await call_next(ctx)
        elif is_modern(ctx):
            with self._presence.during(caller_of(ctx)):
                result = await call_next(ctx)
        else:
            result = await call_next(ctx)
            if ctx.method == "initialize":
                self._open_session(identity_of(ctx), connection_of(ctx))
        if ctx.method in ("initialize", "server/discover") and isinstance(result, Mapping):
            return {**result, "instructions": instructions(identity_of(ctx))}
        return result

    def _open_session(self, identity: Identity, connection: Connection) -> None:
        if "aegis" in connection.state or connection.session_id is None:
            return  # a client may initialize twice
        caller = Caller(identity, "mcp", connection.session_id)
        connection.state["aegis"] = caller
        self._sessions.add(caller)
        self._port.opened(caller)
        connection.exit_stack.callback(self._port.closed, caller)
        connection.exit_stack.callback(self._sessions.discard, caller)

    async def _list_tools(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[_TOOLS[each.name] for each in visible(identity_of(ctx))]
        )

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        with self._in_flight.call():
            return await self._outcome_with_progress(ctx, params)
        return tool_error(params.name, STOPPING)

    async def _outcome_with_progress(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """The outcome; a client that sent a progress token is told meanwhile how it gets on."""
        caller = caller_of(ctx)
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
    """A success: the reply as structured content, and the same JSON as text.

    Raises ``UnsendableText``.
    """
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=json_text(plain))], structured_content=plain
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


_TOOLS = {entry.name: tool_of(entry) for entry in COMMANDS}
_REPORTING = {entry.tool: entry for entry in COMMANDS if entry.tells_progress}
_INPUT_SCHEMAS = {tool.name: tool.input_schema for tool in _TOOLS.values()}
