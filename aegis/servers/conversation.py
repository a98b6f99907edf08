"""One client's requests over a connection of messages: the WebSocket and the lines share it.

Several requests may be in flight; each is a task of the connection, and all end with it. A client
is known by how it connected or by a hello as its first message.
"""

from __future__ import annotations

import enum
import math
import secrets
from contextlib import AbstractContextManager, AsyncExitStack
from typing import Protocol

import attrs
import structlog
import trio

from aegis.errors import AegisError, Forbidden, InvalidRequest
from aegis.protocol.table import BY_NAME
from aegis.protocol.wire import to_plain
from aegis.servers.auth import Keys
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
)
from aegis.servers.requests import (
    Cancel,
    Frame,
    Hello,
    Request,
    RequestId,
    error_frame,
    hello_frame,
    parse_frame,
    reply_frame,
)

MAX_IN_FLIGHT = 64
MAX_ANSWERS = 2 * MAX_IN_FLIGHT
"""Requests in flight and answers that the client has not taken yet, together."""

MAX_LOOKUPS = 8
"""Requests that only look something up, together with their answers: these can be a thousand times
as large as what asks for them. More wait their turn."""

MAX_UNREAD_CHARS = 4 * 1024 * 1024
"""Of answers that the client has not taken yet: beyond it no request is begun."""

MAX_STRIKES = 8
HELLO_LIMIT_S = 10.0

CANCELLED = Failure("cancelled", "cancelled by the client")
TOO_MANY = Failure(
    "busy", f"{MAX_IN_FLIGHT} requests of this connection are in flight; wait for an answer first"
)

UNREAD = Failure("busy", "answers of this connection wait to be read; read them first")

log = structlog.get_logger("aegis.servers.conversation")


class WireClosed(Exception):
    """The connection is over."""


class Wire(Protocol):
    """A connection of messages."""

    async def receive(self) -> str | bytes:
        """The next message. Raises ``WireClosed``, or ``InvalidRequest`` for one of a bad kind."""
        ...

    async def send(self, text: str) -> None:
        """Send one message; several tasks may call it. Raises ``WireClosed``."""
        ...

    def trust(self, identity: Identity | None) -> None:
        """The client has shown who it is: lift the limits meant for strangers.

        ``identity`` is whose key it showed; None: it is known by its connection.
        """
        ...

    def holding(self, size: int) -> AbstractContextManager[None]:
        """So many bytes wait for the client during the block; too many end the connection."""
        ...


@attrs.frozen
class Desk:
    """What every conversation needs: the port, the keys, and the server's name and version."""

    port: CallPort
    keys: Keys
    server: str


class End(enum.Enum):
    """Why a conversation is over."""

    CLIENT_GONE = "the client went away"
    STOPPING = "the daemon stops"
    NO_HELLO = f"no hello came within {HELLO_LIMIT_S:g} seconds"
    FORBIDDEN = "not a valid key"
    ABUSE = f"{MAX_STRIKES} malformed messages in a row"


async def converse(
    wire: Wire, desk: Desk, face: Face, identity: Identity | None, stopping: trio.Event
) -> End:
    """Serve a client until it goes, is sent away, or ``stopping``.

    ``identity`` is who it is by its connection alone; None: it must say hello first. What is in
    flight when the client goes is cancelled; at ``stopping`` it is still answered.
    """
    conversation = _Conversation(wire, desk, face, identity)
    try:
        return await conversation.run(stopping)
    finally:
        conversation.close()


class _Conversation:
    def __init__(self, wire: Wire, desk: Desk, face: Face, identity: Identity | None) -> None:
        self._wire = wire
        self._desk = desk
        self._face: Face = face
        self._identity = identity
        self._caller: Caller | None = None
        self._in_flight: dict[RequestId, trio.CancelScope] = {}
        self._lookups = trio.Semaphore(MAX_LOOKUPS)
        self._answers = 0
        self._unread_chars = 0
        self._strikes = 0
        self._reading = trio.CancelScope()
        stranger_s = HELLO_LIMIT_S if identity is None else math.inf
        self._hello_by = trio.current_time() + stranger_s

    async def run(self, stopping: trio.Event) -> End:
        end = End.STOPPING
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._stop_reading_at, stopping)
                with self._reading:
                    end = await self._read(nursery)
                    nursery.cancel_scope.cancel()
        except* WireClosed:
            end = End.CLIENT_GONE
        return end

    def close(self) -> None:
        if self._caller is not None:
            self._desk.port.closed(self._caller)

    async def _stop_reading_at(self, stopping: trio.Event) -> None:
        await stopping.wait()
        self._reading.cancel()

    async def _read(self, nursery: trio.Nursery) -> End:
        while self._strikes < MAX_STRIKES:
            try:
                with trio.fail_at(self._hello_by):
                    frame = parse_frame(await self._wire.receive())
                await self._take(frame, nursery)
                self._strikes = 0
            except InvalidRequest as error:
                self._strikes += 1
                await self._complain(error)
            except Forbidden as error:
                await self._complain(error)
                return End.FORBIDDEN
            except trio.TooSlowError:
                return End.NO_HELLO
        return End.ABUSE

    async def _take(self, frame: Frame, nursery: trio.Nursery) -> None:
        if self._caller is None:
            self._caller = self._introduce(frame)
            if isinstance(frame, Hello):
                handle = self._caller.identity.handle
                await self._wire.send(hello_frame(self._desk.server, handle))
                return
        match frame:
            case Hello():
                raise InvalidRequest("a hello must be the first message")
            case Cancel():
                self._cancel(frame)
            case Request():
                await self._start(frame, self._caller, nursery)

    def _introduce(self, first: Frame) -> Caller:
        shown = first if isinstance(first, Hello) else Hello(version=1)
        identity = identity_of(shown, self._desk.keys, self._identity)
        caller = Caller(identity, self._face, secrets.token_hex(8))
        self._desk.port.opened(caller)
        self._wire.trust(identity if shown.shows_key else None)
        self._hello_by = math.inf
        return caller

    async def _start(self, request: Request, caller: Caller, nursery: trio.Nursery) -> None:
        if request.id in self._in_flight:
            raise InvalidRequest(f"request {request.id!r} is still in flight; use another id")
        if len(self._in_flight) >= MAX_IN_FLIGHT or self._answers >= MAX_ANSWERS:
            await self._wire.send(error_frame(request.id, TOO_MANY))
            return
        if self._unread_chars >= MAX_UNREAD_CHARS:
            await self._wire.send(error_frame(request.id, UNREAD))
            return
        scope = self._in_flight[request.id] = trio.CancelScope()
        self._answers += 1
        nursery.start_soon(self._answer, request, caller, scope)

    def _cancel(self, cancel: Cancel) -> None:
        # One that is not in flight was answered a moment ago: nothing to do.
        scope = self._in_flight.get(cancel.id)
        if scope is not None:
            scope.cancel()

    async def _answer(self, request: Request, caller: Caller, scope: trio.CancelScope) -> None:
        answer = error_frame(request.id, CANCELLED)
        async with AsyncExitStack() as turn:
            try:
                # Only the call is cancelled, never a send: half a message would end the connection.
                with scope:
                    if is_lookup(request):
                        await turn.enter_async_context(self._lookups)
                    answer = await self._outcome(request, caller)
            finally:
                del self._in_flight[request.id]
            self._unread_chars += len(answer)
            with self._wire.holding(len(answer)):
                await self._wire.send(answer)
        self._unread_chars -= len(answer)
        self._answers -= 1

    async def _outcome(self, request: Request, caller: Caller) -> str:
        try:
            entry = find_entry(caller.identity, request.command)
            reply = await self._desk.port.call(caller, entry, request.arguments)
            return reply_frame(request.id, to_plain(reply))
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                log.exception("a request failed", command=request.command)
                failure = internal_failure(request.command)
            return error_frame(request.id, failure)

    async def _complain(self, error: AegisError) -> None:
        failure = Failure(error.code, one_sentence(str(error)))
        await self._wire.send(error_frame(None, failure))


def is_lookup(request: Request) -> bool:
    """Whether ``request`` is answered at once from what is there, and changes nothing."""
    entry = BY_NAME.get(request.command)
    if entry is None or entry.tells_progress or request.arguments.get("wait_s"):
        return False
    return entry.read_only or entry.name == "inbox_read"


def identity_of(hello: Hello, keys: Keys, known: Identity | None) -> Identity:
    """Who a client is: by the key in its hello, else as it is ``known`` by its connection.

    Raises ``Forbidden`` if the key is not valid, or there is none and the client is not known.
    """
    identity = known
    if hello.token is not None:
        identity = keys.identity_of_token(hello.token)
    elif hello.session is not None:
        identity = keys.identity_of_session(hello.session)
    if identity is not None:
        return identity
    if hello.token is None and hello.session is None:
        raise Forbidden("say hello with 'token' or 'session' first")
    raise Forbidden("the key in the hello is not valid (any more)")
