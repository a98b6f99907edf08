"""``PendingRequests``: the requests in progress of one connection, each a task of it."""

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
from aegis.servers.requests import Cancel, CommandRequest, error_frame, reply_frame

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
