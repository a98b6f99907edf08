"""``McpFace``: the MCP server over HTTP and over lines, with the command set as tools.

Both kinds of the protocol are served: with the ``initialize`` handshake and sessions (up to
2025-11-25), and without sessions (2026-07-28). Importing the SDK takes about two seconds of CPU
time, so only the daemon imports this module, through ``lazy``.
"""

from __future__ import annotations

import itertools
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
import attrs
import mcp_types as types
import structlog
import trio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from aegis.errors import Forbidden
from aegis.names import shorten
from aegis.protocol.derived.tool_schema import tool_input_schema, tool_output_schema
from aegis.protocol.derived.wire import command_from, model_arguments, to_plain
from aegis.protocol.entry import Entry
from aegis.protocol.inboxes import MessageList
from aegis.protocol.naming import name_key
from aegis.protocol.table import TOOLS
from aegis.protocol.tool_sets import CALL_TOOL, LIST_TOOLS, Offer, called
from aegis.protocol.tools import ListTools, ToolInfo, ToolList
from aegis.servers.call_limit import advice
from aegis.servers.calls import (
    Caller,
    CallPort,
    Failure,
    Identity,
    failure_of,
    find_tool,
    internal_failure,
    one_sentence,
    unknown_command,
    visible,
)
from aegis.servers.connection import with_identity
from aegis.servers.gateway.http_app import MAX_BODY_BYTES, OneAnswer
from aegis.servers.json_text import json_text
from aegis.servers.mcp.context import (
    ANSWER,
    STOPPING,
    Context,
    answer_of,
    caller_of,
    connection_of,
    identity_of,
    is_from_pipe,
    is_modern,
    user_name,
)
from aegis.servers.mcp.documents import fitted_messages, without_nulls
from aegis.servers.mcp.http_calls import HttpCall, HttpCalls, McpSession
from aegis.servers.mcp.pipe import serve_pipe
from aegis.servers.mcp.post_answer import PostAnswer, Receive, Send, accept_of, with_accept
from aegis.servers.mcp.resources import McpResources
from aegis.servers.mcp.running_calls import END_LIMIT_S, CallerSessions, RunningCalls
from aegis.servers.wires.port import TextWire

SERVER_NAME = "aegis-actors"
SESSION_IDLE_S = 1800.0
MAX_SESSIONS = 1000
MAX_DESCRIBED = 16 * 1024
"""The size of the descriptions in a reply of ``aegis_tools``; further tools are only named."""

PRIMER = """\
Live shared terminals and messages between agents and people.

Terminals are real shells on real PTYs that keep their state between commands: spawn one with \
aegis_term_spawn, run a command with aegis_term_run and get its exit code and output, send keys to \
a program with aegis_term_keys, see its screen with aegis_term_screen, read the records of past \
commands with aegis_term_read. Other agents and people may use the same terminal. A command that \
exceeds its timeout keeps running; wait for its end, for a text or for quiet with aegis_term_wait, \
and read its output so far with aegis_term_output.

The error of a failed call says in one sentence what to do."""

MORE_PRIMER = """\
There are more tools than are listed: aegis_tools describes them, and aegis_call calls one."""

INBOX_PRIMER = """\
To be notified, subscribe to a terminal with aegis_term_subscribe, then call aegis_inbox_wait: it \
returns when a command of another caller has finished there, or when another caller handed work to \
you with aegis_handoff. Acknowledge the messages that you have read by passing `next` as `after`. \
Ledgers and inboxes are also resources, whose updates you can subscribe to."""

DRIVEN_PRIMER = """\
Messages from others, and news of the terminals that you subscribe to with aegis_term_subscribe, \
arrive as turns of your conversation. Send messages with aegis_handoff. Ledgers are \
resources too."""

log = structlog.get_logger("aegis.servers.mcp")

_NOISY_LOGGERS = ("mcp.server.streamable_http", "mcp.server.streamable_http_manager")


class McpFace:
    """The MCP server. Like the SDK's session manager, one object runs once."""

    def __init__(
        self, port: CallPort, *, version: str, session_idle_s: float = SESSION_IDLE_S
    ) -> None:
        self._port = port
        self._sessions_of_callers = CallerSessions(port, session_idle_s)
        self._running_calls = RunningCalls()
        self._resources = McpResources(port, self._running_calls)
        self._holding = trio.CancelScope()
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
            on_completion=self._resources.complete,
            get_tool_input_schema=_INPUT_SCHEMAS.get,
        )
        server.middleware[:] = [self._attend]
        self._http_calls = HttpCalls(
            self._running_calls,
            self._sessions_of_callers,
            {
                "resultType": "complete",
                "_meta": {types.SERVER_INFO_META_KEY: server.server_info_stamp},
            },
            self._carry_out,
            lambda tool: result_document(error_of(tool, STOPPING)),
        )
        self.serve_call = self._http_calls.serve
        self._manager = StreamableHTTPSessionManager(
            server,
            session_idle_timeout=session_idle_s,
            max_sessions=MAX_SESSIONS,
            max_request_body_size=MAX_BODY_BYTES,
            json_response=True,  # PostAnswer makes streams of them where it is needed
        )

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the sessions until cancelled; started once requests can be handled."""
        with _without_session_tracebacks():
            async with trio.open_nursery() as nursery:
                await nursery.start(self._hold_sessions)
                # Not before: Trio ignores started() in a task whose start was cancelled, so a
                # shielded task would run for ever below a start() that waits for its end.
                self._holding.shield = True
                task_status.started()
                try:
                    await trio.sleep_forever()
                finally:
                    # Calls end first: cancelled together with its session, a running call makes
                    # the SDK wait a second for a write that nothing reads.
                    await self._running_calls.end(END_LIMIT_S)
                    self._holding.cancel()

    async def handle(
        self,
        identity: Identity,
        scope: Any,
        receive: Receive,
        send: Send,
    ) -> None:
        """Serve one HTTP request (ASGI) of an authenticated client.

        The SDK lets only the user that opened a session use it; other users get 404.
        """
        user = AuthenticatedUser(AccessToken(token="", client_id=user_name(identity), scopes=[]))
        scope = {**scope, "user": user, "aegis": identity}
        answer = OneAnswer(send)
        if scope["method"] == "POST":
            await self._answer_post(scope, receive, answer)
            return
        if scope["method"] == "GET" and accept_of(scope["headers"]) == b"*/*":
            scope["headers"] = with_accept(scope["headers"])
        with self._resources.noticed(scope, answer) as noticing:
            await self._manage(scope, receive, noticing, answer)

    async def _answer_post(self, scope: Any, receive: Receive, answer: OneAnswer) -> None:
        post = PostAnswer(scope["headers"], await receive(), answer)
        scope = {**scope, "headers": with_accept(scope["headers"]), ANSWER: post}
        async with trio.open_nursery() as nursery:

            def abandon() -> None:
                if not self._close_request(post):
                    nursery.cancel_scope.cancel()

            nursery.start_soon(post.watch, receive, abandon)
            await self._manage(scope, post.receive, post.send, answer)
            nursery.cancel_scope.cancel()

    async def _manage(self, scope: Any, receive: Receive, send: Send, answer: OneAnswer) -> None:
        try:
            await self._manager.handle_request(scope, receive, send)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            if not answer.is_whole:
                raise
            # The session ended after the response, while a message in it was still being handled.

    def _close_request(self, post: PostAnswer) -> bool:
        """Stop waiting for the answer to a request of a session, whose client has gone.

        The call itself continues until the session ends. Return whether there is a session.
        """
        if post.session is None:
            return False
        transport = self._manager._server_instances.get(post.session)
        if transport is not None:
            transport.close_sse_stream(str(post.request_id))
        return True

    async def converse(self, identity: Identity, wire: TextWire, stopping: trio.Event) -> None:
        """Serve a connection of lines until the client disconnects, is refused, or ``stopping``.

        The connection is one caller, with and without sessions of the protocol.
        """
        caller = Caller(identity, "mcp", f"stdio-{secrets.token_hex(8)}")
        self._port.opened(caller)
        try:
            with self._resources.stream_of(caller.connection):
                await serve_pipe(self._server, wire, caller, stopping)
        finally:
            self._port.closed(caller)

    async def end_sessions(self, voided: frozenset[Identity]) -> None:
        """End the sessions of identities whose keys were voided, and the calls in them."""
        # Private attributes: a session of the SDK outlives its connections, and the SDK has no
        # public way to end one.
        sessions = list(self._http_calls.sessions.values())
        for each in [each for each in sessions if each.caller.identity in voided]:
            await self._manager._discard_session(each.caller.connection, each.transport)

    def changed(self, key: str) -> None:
        """Notify the subscribers of the resource with this key."""
        self._resources.changed(key)

    async def _hold_sessions(self, *, task_status: trio.TaskStatus[None]) -> None:
        with self._holding:
            async with self._manager.run(), trio.open_nursery() as nursery:
                nursery.start_soon(self._sessions_of_callers.run)
                nursery.start_soon(self._http_calls.run)
                await nursery.start(self._resources.run)
                task_status.started()

    async def _attend(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Middleware: open and close callers at the port, and add instructions to the handshake."""
        answer = answer_of(ctx)
        if answer is not None and ctx.request_id is not None:
            session = None if is_modern(ctx) else connection_of(ctx).session_id
            answer.dispatched(ctx.request_id, session)
        if is_from_pipe(ctx):
            result = await call_next(ctx)
        elif is_modern(ctx):
            with self._sessions_of_callers.during(caller_of(ctx)):
                result = await call_next(ctx)
        else:
            result = await call_next(ctx)
            if ctx.method == "initialize":
                self._open_session(identity_of(ctx), connection_of(ctx))
        identity = identity_of(ctx)
        if ctx.method in ("initialize", "server/discover") and isinstance(result, Mapping):
            return {**result, "instructions": instructions(identity, self._port.offer(identity))}
        return result

    def _open_session(self, identity: Identity, connection: Connection) -> None:
        if "aegis" in connection.state or connection.session_id is None:
            return  # a client may initialize twice
        transport = self._manager._server_instances.get(connection.session_id)
        if transport is None:
            return
        caller = Caller(identity, "mcp", connection.session_id)
        session, sessions = McpSession(caller, connection, transport), self._http_calls.sessions
        connection.state["aegis"] = caller
        sessions[caller.connection.encode()] = session
        self._port.opened(caller)
        connection.exit_stack.callback(self._port.closed, caller)
        connection.exit_stack.callback(sessions.pop, caller.connection.encode(), None)
        connection.exit_stack.push_async_callback(session.end_calls)

    async def _list_tools(
        self, ctx: Context, _: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        identity = identity_of(ctx)
        self._port.listed(caller_of(ctx))
        is_bound, offer = identity.handle is not None, self._port.offer(identity)
        offered = [each for each in visible(identity, TOOLS) if each.name in offer.commands]
        tools = [tool_of(each, is_bound=is_bound, in_full=offer.is_whole) for each in offered]
        return types.ListToolsResult(tools=tools)

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        answer, token = answer_of(ctx), (ctx.meta or {}).get("progress_token")

        async def send(number: int, line: str) -> None:
            if answer is None:
                await ctx.session.report_progress(number, message=line)
            elif token is not None:
                await answer.notify_progress(token, number, line)

        with self._running_calls.call():
            call = partial(self._outcome, caller_of(ctx), params.name, params.arguments or {})
            if token is None:
                return tool_result(await call())
            async with trio.open_nursery() as nursery:
                outcome = await call(send, nursery.start_soon)
                nursery.cancel_scope.cancel()
            return tool_result(outcome)
        return tool_result(error_of(params.name, STOPPING))

    async def _carry_out(self, call: HttpCall, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a call without the SDK; its progress is reported once it is long."""
        token = (params.get("_meta") or {}).get("progressToken")
        send = None if token is None else partial(call.notify, token)
        arguments = params.get("arguments") or {}
        caller, start = call.owner.caller, call.report_with
        return result_document(await self._outcome(caller, params["name"], arguments, send, start))

    async def _report_progress(
        self,
        caller: Caller,
        entry: Entry,
        arguments: Mapping[str, object],
        send: Callable[[int, str], Awaitable[None]],
    ) -> None:
        numbers = itertools.count(1)

        async def report(line: str) -> None:
            await send(next(numbers), line)

        try:
            await self._port.report_progress(caller, entry, arguments, report)
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass  # the client has disconnected, which also ends its call
        except Exception:
            log.exception("progress not sent", tool=entry.tool)

    async def _outcome(
        self,
        caller: Caller,
        tool: str,
        arguments: Mapping[str, object],
        send: Callable[[int, str], Awaitable[None]] | None = None,
        start: Callable[[Callable[[], Awaitable[None]]], None] | None = None,
    ) -> CallOutcome:
        """Return the outcome of a call, of the inner one for ``aegis_call``.

        If the client wants progress and the tool has some, ``start`` gets a function that passes it
        to ``send`` until cancelled.
        """
        try:
            offer = self._port.offer(caller.identity)
            entry = offered_tool(caller.identity, offer, tool)
            if entry is CALL_TOOL:
                tool, arguments = called(arguments)
                entry = offered_tool(caller.identity, offer, tool)
            arguments = model_arguments(entry.command, arguments)
            if entry is LIST_TOOLS:
                request = with_identity(command_from(entry, arguments), caller.identity)
                assert isinstance(request, ListTools)
                return reply_of(to_plain(described_tools(caller.identity, offer, request.word)))
            if send is not None and start is not None and entry.tells_progress:
                start(partial(self._report_progress, caller, entry, arguments, send))
            plain = to_plain(await self._port.call(caller, entry, arguments))
            left_out = None
            if entry.reply is MessageList:
                plain, left_out = fitted_messages(plain)
            return reply_of(plain, left_out or advice(entry, plain, offer.call_limit_s))
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                log.exception("a tool call failed", tool=tool)
                failure = internal_failure("the tool")
            return error_of(tool, failure)


@attrs.frozen
class CallOutcome:
    """The outcome of a tool call: texts, and the reply as a JSON object; None for an error."""

    texts: list[str]
    reply: Mapping[str, Any] | None


@contextmanager
def _without_session_tracebacks() -> Iterator[None]:
    """Suppress the SDK's tracebacks about sessions that end during a request."""
    loggers = [logging.getLogger(name) for name in _NOISY_LOGGERS]
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


def offered_tool(identity: Identity, offer: Offer, name: str) -> Entry:
    """Return the entry of a tool. Raises ``Forbidden`` if the address does not offer it."""
    entry = find_tool(identity, name)
    refusal = offer.refuse(entry)
    if refusal is not None:
        raise Forbidden(refusal)
    return entry


def described_tools(identity: Identity, offer: Offer, word: str | None) -> ToolList:
    """Return the tools that the address accepts and does not list; with a word, those about it.

    A tool's name finds it also if it is listed. Raises ``NotFound``.
    """
    callable_ones = [each for each in visible(identity, TOOLS) if offer.refuse(each) is None]
    others = [each for each in callable_ones if each.name not in offer.commands]
    if word is None or not word.strip():
        return ToolList(tools=[_described(each, None) for each in others])
    named = [each for each in callable_ones if word.strip() in (each.name, each.tool)]
    parts = name_key(word).split()
    about = [each for each in others if all(part in _searched(each) for part in parts)]
    found = named or about
    if not found:
        raise unknown_command(word, [each.tool for each in others])
    is_bound = identity.handle is not None
    size, tools = 0, list[ToolInfo]()
    for each in found:
        schema = tool_input_schema(each, is_bound=is_bound)
        size += len(each.doc) + len(json_text(schema))
        tools.append(_described(each, schema if not tools or size <= MAX_DESCRIBED else None))
    return ToolList(tools=tools)


def _searched(entry: Entry) -> str:
    return name_key(f"{entry.tool} {entry.doc}")


def _described(entry: Entry, schema: dict[str, Any] | None) -> ToolInfo:
    """Return a tool with its schema, or else with the first line of its description only."""
    doc = entry.doc if schema is not None else entry.doc.partition("\n")[0]
    return ToolInfo(name=entry.tool, description=doc, schema=schema)


def tool_of(entry: Entry, *, is_bound: bool, in_full: bool = True) -> types.Tool:
    """Return the MCP tool of a command; ``is_bound``: for a session that belongs to a handle.

    Without ``in_full`` the output schema says only that a reply is an object: a client shows it to
    no model, and it is longer than all the rest.
    """
    return types.Tool(
        name=entry.tool,
        description=entry.doc,
        input_schema=tool_input_schema(entry, is_bound=is_bound),
        output_schema=tool_output_schema(entry) if in_full else {"type": "object"},
        annotations=_annotations(entry),
    )


def _annotations(entry: Entry) -> types.ToolAnnotations:
    """Return the hints; those of MCP's default value False are left out.

    For a tool that only reads, the other hints mean nothing.
    """
    if entry.read_only:
        return types.ToolAnnotations(read_only_hint=True)
    return types.ToolAnnotations(
        destructive_hint=entry.destructive, idempotent_hint=entry.idempotent or None
    )


def reply_of(plain: Mapping[str, Any], advice: str | None = None) -> CallOutcome:
    """Return a success: the reply, and its JSON, without nulls, as text.

    ``advice`` is a sentence after the text. Raises ``UnsendableText``.
    """
    return CallOutcome(
        [json_text(without_nulls(plain)), *([] if advice is None else [advice])], plain
    )


def error_of(tool: str, failure: Failure) -> CallOutcome:
    """Return an error: one sentence that begins with the tool's name."""
    name = f"{one_sentence(shorten(tool))}: "
    return CallOutcome([name + failure.sentence.removeprefix(name)], None)


def tool_result(outcome: CallOutcome) -> types.CallToolResult:
    """Return an outcome as the result for the SDK."""
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text) for text in outcome.texts],
        structured_content=outcome.reply,
        is_error=outcome.reply is None,
    )


def result_document(outcome: CallOutcome) -> dict[str, Any]:
    """Return an outcome as the SDK would send it."""
    content = [{"text": text, "type": "text"} for text in outcome.texts]
    if outcome.reply is None:
        return {"content": content, "isError": True}
    return {"content": content, "isError": False, "structuredContent": outcome.reply}


def instructions(identity: Identity, offer: Offer) -> str:
    """Return the primer, and the client's handle."""
    parts = [PRIMER, DRIVEN_PRIMER if offer.is_driven else INBOX_PRIMER]
    if offer.reaches_all and not offer.is_whole:
        parts.append(MORE_PRIMER)
    primer = "\n\n".join(parts)
    if identity.handle is not None:
        return f"{primer}\n\nYour handle is {identity.handle}."
    return f"{primer}\n\nYou are the operator: say in `from_handle` which agent you act as."


_INPUT_SCHEMAS = {entry.tool: tool_input_schema(entry, is_bound=False) for entry in TOOLS}
