"""``PendingRequests``: the requests of one connection that are in flight, each a task of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import structlog
import trio

from aegis.protocol.derived.wire import to_plain
from aegis.protocol.streams import RequestId
from aegis.protocol.table import BY_NAME
from aegis.servers.calls import (
    Caller,
    CallPort,
    Failure,
    failure_of,
    find_entry,
    internal_failure,
)
from aegis.servers.requests import Cancel, Request, error_frame, reply_frame

MAX_IN_FLIGHT = 64
MAX_ANSWERS = 2 * MAX_IN_FLIGHT
"""Requests in flight and answers that the client has not taken yet, together."""

MAX_LOOKUPS = 8
"""Requests that only look something up, together with their answers: these can be a thousand times
as large as what asks for them. More wait their turn."""

MAX_UNREAD_CHARS = 4 * 1024 * 1024
"""Of answers that the client has not taken yet: beyond it no request is begun."""

CANCELLED = Failure("cancelled", "cancelled by the client")
TOO_MANY = Failure(
    "busy", f"{MAX_IN_FLIGHT} requests of this connection are in flight; wait for an answer first"
)

UNREAD = Failure("busy", "this connection has too many unread answers; read them first")

log = structlog.get_logger("aegis.servers.conversation")


class PendingRequests:
    """Those to ``caller``, of ``port``; ``send`` sends one message. Tasks go to ``nursery``."""

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
        """Whether a request of this id is in flight."""
        return number in self._in_flight

    async def start(self, request: Request) -> None:
        """Begin a request, unless there are too many already: then that is its answer."""
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
        """Give one up. One that is not in flight was answered a moment ago: nothing to do."""
        scope = self._in_flight.get(cancel.id)
        if scope is not None:
            scope.cancel()

    async def _answer(self, request: Request, scope: trio.CancelScope) -> None:
        answer = error_frame(request.id, CANCELLED)
        async with AsyncExitStack() as turn:
            try:
                # Only the call is cancelled, never a send: half a message would end the connection.
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

    async def _outcome(self, request: Request) -> str:
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


def is_lookup(request: Request) -> bool:
    """Whether ``request`` is answered at once from what is there, and changes nothing."""
    entry = BY_NAME.get(request.command)
    if entry is None or entry.tells_progress or request.arguments.get("wait_s"):
        return False
    return entry.read_only or entry.name == "inbox_read"
