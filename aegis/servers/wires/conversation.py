"""The conversation with one client over a connection of messages, a WebSocket or lines.

Several requests may be in progress and several streams open; each is a task of the connection, and
all end with it. A client is identified by its connection or by a hello as its first message.
"""

from __future__ import annotations

import enum
import math
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

import attrs
import structlog
import trio

from aegis.errors import AegisError, Forbidden, InvalidRequest
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.streams import (
    Claim,
    Close,
    Credit,
    Open,
    Release,
    RequestId,
)
from aegis.protocol.table import BY_NAME
from aegis.servers.access.auth import Keys
from aegis.servers.access.pages import PageKeys
from aegis.servers.calls import (
    Caller,
    CallPort,
    Face,
    Failure,
    Identity,
    failure_of,
    find_entry,
    internal_failure,
    one_sentence,
    within,
)
from aegis.servers.requests import (
    Cancel,
    CommandRequest,
    Frame,
    Hello,
    Ping,
    error_frame,
    hello_frame,
    parse_frame,
    pong_frame,
    reply_frame,
)
from aegis.servers.streams.outlet import FloodLimit, StreamPort
from aegis.servers.wires.open_streams import OpenStreams
from aegis.servers.wires.port import Binary, Wire, WireClosed

MAX_STRIKES = 8
HELLO_LIMIT_S = 10.0

MAX_IN_FLIGHT = 64
MAX_ANSWERS = 2 * MAX_IN_FLIGHT
"""The limit of requests in progress and answers that the client has not taken yet, together."""

MAX_LOOKUPS = 8
"""The limit of lookups in progress, with their answers; further lookups wait.

An answer to a lookup can be a thousand times as large as its request.
"""

MAX_UNREAD_CHARS = 4 * 1024 * 1024
"""The limit of characters in answers that the client has not taken yet; beyond it new requests
are refused."""

CANCELLED = Failure("cancelled", "cancelled by the client")
TOO_MANY = Failure(
    "busy", f"{MAX_IN_FLIGHT} requests of this connection are in flight; wait for an answer first"
)

UNREAD = Failure("busy", "this connection has too many unread answers; read them first")

log = structlog.get_logger("aegis.servers.conversation")


@attrs.frozen
class ServerContext:
    """The shared objects of all conversations: the ports, the keys, the server's name and version.

    ``instance`` names this run of the daemon, ``pages`` are the logged-in web pages.
    ``flood_limit`` is shared by the streams of all conversations.
    """

    port: CallPort
    streams: StreamPort
    keys: Keys
    server: str
    instance: str = attrs.field(factory=lambda: secrets.token_hex(8))
    pages: PageKeys | None = None
    flood_limit: FloodLimit = attrs.field(factory=FloodLimit)


class EndReason(enum.Enum):
    """The reason for the end of a conversation."""

    CLIENT_GONE = "the client went away"
    STOPPING = "the daemon stops"
    NO_HELLO = f"no hello came within {HELLO_LIMIT_S:g} seconds"
    FORBIDDEN = "not a valid key"
    LOGGED_OUT = "log in again: aegis-actors web"
    ABUSE = f"{MAX_STRIKES} malformed messages in a row"


class LoggedOut(Forbidden):
    """The error for a page whose keys are not, or no longer, valid."""


async def converse(
    wire: Wire,
    context: ServerContext,
    face: Face,
    identity: Identity | None,
    stopping: trio.Event,
    cookies: Sequence[str] = (),
) -> EndReason:
    """Serve a client until it disconnects, is refused, or ``stopping``.

    ``identity`` is the client's identity by its connection alone; None: it must send a hello first.
    ``cookies`` are those of a browser whose page has the origin of this daemon.
    Requests in progress are cancelled when the client disconnects; at ``stopping`` they are still
    answered.
    """
    conversation = _Conversation(wire, context, face, identity, cookies)
    try:
        return await conversation.run(stopping)
    finally:
        conversation.close()


@attrs.frozen
class _Client:
    """An identified client, with its requests in progress and its open streams."""

    caller: Caller
    answers: PendingRequests
    streams: OpenStreams


class _Conversation:
    def __init__(
        self,
        wire: Wire,
        context: ServerContext,
        face: Face,
        identity: Identity | None,
        cookies: Sequence[str],
    ) -> None:
        self._cookies = cookies
        self._wire = wire
        self._context = context
        self._face: Face = face
        self._identity = identity
        self._client: _Client | None = None
        self._strikes = 0
        self._reading = trio.CancelScope()
        limit_s = HELLO_LIMIT_S if identity is None else math.inf
        self._hello_by = trio.current_time() + limit_s

    async def run(self, stopping: trio.Event) -> EndReason:
        end = EndReason.STOPPING
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._stop_reading_at, stopping)
                with self._reading:
                    end = await self._read(nursery)
                    if self._client is not None:
                        self._client.streams.abort()
                    nursery.cancel_scope.cancel()
        except* WireClosed:
            end = EndReason.CLIENT_GONE
        return end

    def close(self) -> None:
        if self._client is not None:
            self._context.port.closed(self._client.caller)

    async def _stop_reading_at(self, stopping: trio.Event) -> None:
        await stopping.wait()
        self._reading.cancel()
        if self._client is not None:
            self._client.streams.stop()

    async def _read(self, nursery: trio.Nursery) -> EndReason:
        while self._strikes < MAX_STRIKES:
            try:
                await self._take(await self._message(), nursery)
                self._strikes = 0
            except InvalidRequest as error:
                self._strikes += 1
                await self._send_error(error)
            except Forbidden as error:
                await self._send_error(error)
                return EndReason.LOGGED_OUT if isinstance(error, LoggedOut) else EndReason.FORBIDDEN
            except trio.TooSlowError:
                return EndReason.NO_HELLO
        return EndReason.ABUSE

    async def _message(self) -> str | bytes | Binary:
        """Return the next message; raises ``TooSlowError`` if it should be a hello and is late."""
        if self._hello_by == math.inf:  # nearly always: a deadline would cost time in each request
            return await self._wire.receive()
        with trio.fail_at(self._hello_by):
            return await self._wire.receive()

    async def _take(self, message: str | bytes | Binary, nursery: trio.Nursery) -> None:
        if isinstance(message, Binary):
            if self._client is None:
                raise InvalidRequest("open a stream before you send binary messages")
            self._client.streams.type(message.data)
            return
        frame = parse_frame(message)
        if self._client is None:
            self._client = self._introduce(frame, nursery)
            if isinstance(frame, Hello):
                context, identity = self._context, self._client.caller.identity
                await self._send(hello_frame(context.server, context.instance, identity))
                return
        await self._carry_out(frame, self._client)

    async def _carry_out(self, frame: Frame, client: _Client) -> None:
        match frame:
            case Hello():
                raise InvalidRequest("a hello must be the first message")
            case Cancel():
                client.answers.cancel(frame)
            case CommandRequest():
                _check_unused(frame.id, client)
                await client.answers.start(frame)
            case Open():
                _check_unused(frame.id, client)
                await client.streams.open(frame)
            case Credit():
                client.streams.give_credit(frame)
            case Close():
                client.streams.close(frame)
            case Claim() | Release():
                client.streams.size(frame)
            case Ping():
                await self._send(pong_frame(frame.id))

    def _introduce(self, first: Frame, nursery: trio.Nursery) -> _Client:
        shown = first if isinstance(first, Hello) else Hello(version=1)
        if shown.page is None:
            identity = identity_of(shown, self._context.keys, self._identity)
        else:
            identity = self._page_identity(shown.page)
        caller = Caller(identity, self._face, secrets.token_hex(8))
        self._context.port.opened(caller)
        self._wire.trust(identity if shown.shows_key else None)
        self._hello_by = math.inf
        return _Client(
            caller,
            PendingRequests(self._context.port, caller, self._send, nursery),
            OpenStreams(
                self._context.streams, caller, self._send, self._context.flood_limit, nursery
            ),
        )

    def _page_identity(self, key: str) -> Identity:
        """Return the identity of a page. Raises ``LoggedOut``."""
        pages = self._context.pages
        found = None if pages is None else pages.identity_of(self._cookies, key)
        if found is None:
            raise LoggedOut("this page is not logged in, or no longer: aegis-actors web")
        return found

    async def _send_error(self, error: AegisError) -> None:
        failure = Failure(error.code, one_sentence(str(error)))
        await self._send(error_frame(None, failure))

    async def _send(self, message: str | bytes) -> None:
        """Send one message; it counts as unread until the client has taken it."""
        with self._wire.holding(len(message)):
            await self._wire.send(message)


def _check_unused(number: RequestId, client: _Client) -> None:
    if number in client.answers:
        raise InvalidRequest(f"request {number!r} is still in flight; use another id")
    if number in client.streams:
        raise InvalidRequest(f"stream {number!r} is still open; use another id")


def identity_of(hello: Hello, keys: Keys, known: Identity | None) -> Identity:
    """Return the identity for the key in the hello, or ``known`` from the connection without a key.

    Raises ``Forbidden`` if the key is not valid, or if there is neither a key nor ``known``.
    """
    identity = known
    if hello.token is not None:
        identity = keys.identity_of_token(hello.token)
    elif hello.session is not None:
        identity = keys.identity_of_session(hello.session)
    if identity is not None:
        return identity if known is None else within(known, identity)
    if hello.token is None and hello.session is None:
        raise Forbidden("send a hello with 'token' or 'session' first")
    raise Forbidden("the key in the hello is not valid")


class PendingRequests:
    """The requests in progress of ``caller``, which ``port`` carries out.

    ``send`` sends one message. The tasks run in ``nursery``.
    """

    def __init__(
        self,
        port: CallPort,
        caller: Caller,
        send: Callable[[str | bytes], Awaitable[None]],
        nursery: trio.Nursery,
    ) -> None:
        self._port = port
        self._caller = caller
        self._send = send
        self._nursery = nursery
        self._in_flight: dict[RequestId, trio.CancelScope] = {}
        self._lookups = trio.Semaphore(MAX_LOOKUPS)
        self._answers = 0
        self._unread_chars = 0

    def __contains__(self, number: RequestId) -> bool:
        """Return whether a request of this id is in progress."""
        return number in self._in_flight

    async def start(self, request: CommandRequest) -> None:
        """Start a request; answer with an error if too many are in progress."""
        if len(self._in_flight) >= MAX_IN_FLIGHT or self._answers >= MAX_ANSWERS:
            await self._send(error_frame(request.id, TOO_MANY))
            return
        if self._unread_chars >= MAX_UNREAD_CHARS:
            await self._send(error_frame(request.id, UNREAD))
            return
        scope = self._in_flight[request.id] = trio.CancelScope()
        self._answers += 1
        self._nursery.start_soon(self._answer, request, scope)

    def cancel(self, cancel: Cancel) -> None:
        """Cancel a request. If it is not in progress, it was just answered: then do nothing."""
        scope = self._in_flight.get(cancel.id)
        if scope is not None:
            scope.cancel()

    async def _answer(self, request: CommandRequest, scope: trio.CancelScope) -> None:
        answer = error_frame(request.id, CANCELLED)
        async with AsyncExitStack() as turn:
            try:
                # Only the call is cancelled, never a send: half a message would break the
                # connection.
                with scope:
                    if is_lookup(request):
                        await turn.enter_async_context(self._lookups)
                    answer = await self._outcome(request)
            finally:
                del self._in_flight[request.id]
            self._unread_chars += len(answer)
            await self._send(answer)
        self._unread_chars -= len(answer)
        self._answers -= 1

    async def _outcome(self, request: CommandRequest) -> str:
        try:
            entry = find_entry(self._caller.identity, request.command)
            reply = await self._port.call(self._caller, entry, request.arguments)
            return reply_frame(request.id, to_plain(reply))
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                log.exception("a request failed", command=request.command)
                failure = internal_failure(request.command)
            return error_frame(request.id, failure)


def is_lookup(request: CommandRequest) -> bool:
    """Return whether ``request`` only reads, and is answered without waiting."""
    entry = BY_NAME.get(request.command)
    if entry is None or entry.tells_progress or request.arguments.get("wait_s"):
        return False
    return entry.read_only or entry.name == "inbox_read"
