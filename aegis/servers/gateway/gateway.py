"""The accept loop for HTTP, WebSocket and JSON lines, over TCP and a Unix socket.

The first bytes of a connection decide which server gets it. An error of one connection never ends
the gateway, and no client can delay its stop.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial

import attrs
import structlog
import trio

from aegis.errors import AegisError
from aegis.servers import faults
from aegis.servers.access.admission import may_connect
from aegis.servers.calls import OPERATOR, Failure, Identity, one_sentence
from aegis.servers.gateway.client_stream import SEND_LIMIT_S, ClientStream
from aegis.servers.gateway.http1 import (
    MAX_HEAD_BYTES,
    RequestHead,
    parse_head,
    plain_answer,
    size_of_head,
)
from aegis.servers.gateway.http_server import App, serve_http
from aegis.servers.gateway.open_connections import OpenConnections
from aegis.servers.gateway.sockets import (
    RetryingListener,
    keep_named,
    notice_loss,
    path_of,
    peer_of,
    unix_listener,
)
from aegis.servers.requests import error_frame

HEAD_LIMIT_S = 10.0
DEFAULT_GRACE_S = 0.5
HTTP_UNAUTHENTICATED_BYTES = 5 * 1024 * 1024
"""Bytes that an HTTP connection may send before it authenticates: the largest body, and a head."""

_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n"
"""The first bytes of HTTP/2 with prior knowledge (RFC 9113, 3.4)."""

_NO_HTTP2 = plain_answer(505, "use HTTP/1.1")
_NOT_HTTP = plain_answer(
    400, "use HTTP or WebSocket here; JSON lines are served on the Unix socket"
)

log = structlog.get_logger("aegis.servers.gateway")


Identify = Callable[[int], Awaitable[Identity]]
"""Returns the identity of the process with this pid. Raises ``AegisError``."""


async def _operator(pid: int) -> Identity:
    """Take every process of this user for the operator: the default without agents."""
    return OPERATOR


async def _no_sessions(voided: frozenset[Identity]) -> None:
    """End no sessions: the default where none outlives its connection."""


@attrs.frozen(kw_only=True)
class Routes:
    """The server of each protocol. ``websocket`` and ``lines`` return when the connection ends.

    Both get an event that is set when the daemon stops or the client's key was voided: they finish
    the requests in progress and accept no new ones. ``identify`` returns the identity of a process
    of this user at the Unix socket, or raises ``AegisError``. ``end_sessions`` ends the sessions of
    identities whose keys were voided; sessions outlive connections.
    """

    http: App
    websocket: Callable[[ClientStream, RequestHead, trio.Event], Awaitable[None]]
    lines: Callable[[ClientStream, trio.Event], Awaitable[None]]
    end_sessions: Callable[[frozenset[Identity]], Awaitable[None]] = _no_sessions
    identify: Identify = _operator


async def serve_gateway(
    listeners: list[trio.SocketListener],
    routes: Routes,
    *,
    stop: trio.Event,
    listen_again: Callable[[], trio.SocketListener] | None = None,
    grace_s: float = DEFAULT_GRACE_S,
    open_connections: OpenConnections | None = None,
    send_limit_s: float = SEND_LIMIT_S,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve connections until ``stop``, then give the open ones ``grace_s`` seconds to finish.

    ``listen_again`` makes a new Unix socket when the name of the socket was removed.
    ``open_connections`` has the limits. A client that does not read what is sent within
    ``send_limit_s`` seconds is disconnected. The listeners are closed at the end, and the name of
    the Unix socket is removed. Cancellation ends all at once. No connection outlives this call.
    """
    gateway = _Gateway(routes, open_connections or OpenConnections(), send_limit_s)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(gateway.abort_when_cancelled)
            nursery.start_soon(gateway.close_revoked)
            async with trio.open_nursery() as accepting:
                await accepting.start(_accept, listeners, gateway, nursery, listen_again)
                task_status.started()
                await stop.wait()
                accepting.cancel_scope.cancel()
            await gateway.drain(grace_s)
            nursery.cancel_scope.cancel()
    finally:
        for listener in listeners:
            listener.socket.close()


async def _accept(
    listeners: list[trio.SocketListener],
    gateway: _Gateway,
    connections: trio.Nursery,
    listen_again: Callable[[], trio.SocketListener] | None,
    *,
    task_status: trio.TaskStatus[list[RetryingListener]],
) -> None:
    accepting = [RetryingListener(listener) for listener in listeners]
    async with trio.open_nursery() as keepers:
        for listener, each in zip(listeners, accepting, strict=True):
            path = path_of(listener)
            if path is not None:
                again = listen_again or partial(unix_listener, path)
                keepers.start_soon(keep_named, listener, each, again)
        await trio.serve_listeners(
            gateway.take, accepting, handler_nursery=connections, task_status=task_status
        )


class _Gateway:
    """The open connections of one ``serve_gateway``."""

    def __init__(
        self, routes: Routes, open_connections: OpenConnections, send_limit_s: float
    ) -> None:
        self._routes = routes
        self._open_connections = open_connections
        self._send_limit_s = send_limit_s
        self._stopping = trio.Event()
        self._empty = trio.Event()

    async def take(self, inner: trio.SocketStream) -> None:
        """Serve one connection. No error of it leaves this method."""
        faults.ACCEPT_BEFORE.hit()
        stream = ClientStream(
            inner, send_limit_s=self._send_limit_s, unsent=self._open_connections.unsent
        )
        if not self._open_connections.admit(stream):
            return
        try:
            notice_loss(inner.socket)
            await self._serve(stream)
        except Exception as error:
            if not _is_ordinary(error):
                log.exception("a connection failed")
        finally:
            stream.abort()
            self._open_connections.leave(stream)
            if self._stopping.is_set() and self._open_connections.is_empty:
                self._empty.set()

    async def abort_when_cancelled(self) -> None:
        """Close every socket when this task is cancelled."""
        # The HTTP server waits, shielded, for a client that does not read: only a closed socket
        # wakes it.
        try:
            await trio.sleep_forever()
        finally:
            self._open_connections.abort()

    async def close_revoked(self) -> None:
        """End the connections and sessions of voided keys; run until cancelled."""
        await self._open_connections.close_revoked(self._routes.end_sessions)

    async def drain(self, grace_s: float) -> None:
        """Ask each server to finish, and wait for them, at most ``grace_s`` seconds."""
        self._stopping.set()
        self._open_connections.end()
        if not self._open_connections.is_empty:
            with trio.move_on_after(grace_s):
                await self._empty.wait()

    async def _serve(self, stream: ClientStream) -> None:
        peer = peer_of(stream.socket)
        if peer is not None and not may_connect(peer.uid, os.geteuid()):
            log.warning("refused a process of another user", pid=peer.pid, uid=peer.uid)
            return
        # Before the first bytes: a process that sends them and ends could not be identified.
        refusal = None if peer is None else await self._identify(stream, peer.pid)
        data = await self._first_bytes(stream)
        if not data:
            return
        # Other heads are parsed by the server of HTTP, request by request.
        head = parse_head(data) if b"upgrade" in data.lower() else None
        if refusal is not None:
            await stream.send_all(_refused(refusal, is_line=_is_json(data)))
            return
        if peer is not None:
            stream.trust(None)
        if peer is not None and _is_json(data):
            await self._routes.lines(stream, stream.ending)
        elif head is not None and head.wants_websocket:
            await self._routes.websocket(stream, head, stream.ending)
        elif data.startswith(_HTTP2_PREFACE):
            await stream.send_all(_NO_HTTP2)
        elif _may_be_http(data):
            if stream.is_unauthenticated:
                stream.allowance = HTTP_UNAUTHENTICATED_BYTES
            await serve_http(stream, self._routes.http)
        else:
            await stream.send_all(_NOT_HTTP)

    async def _identify(self, stream: ClientStream, pid: int) -> Failure | None:
        """Note the identity of the client's process; return why it has none."""
        try:
            stream.process = await self._routes.identify(pid)
        except AegisError as error:
            return Failure(error.code, one_sentence(str(error)))
        return None

    async def _first_bytes(self, stream: ClientStream) -> bytes:
        """Read enough to detect the protocol; return b"" if the client did not send it in time."""
        with trio.move_on_after(HEAD_LIMIT_S) as stream.idle:
            return await stream.read_ahead(_shows_protocol, MAX_HEAD_BYTES)
        return b""


def _shows_protocol(data: bytearray) -> bool:
    """Return whether ``data`` is enough to detect the protocol."""
    return bool(data) and (not _may_be_http(data) or size_of_head(data) > 0)


def _may_be_http(data: bytes | bytearray) -> bool:
    return data[:1].isalpha()


def _refused(failure: Failure, *, is_line: bool) -> bytes:
    if is_line:
        return error_frame(None, failure).encode() + b"\n"
    return plain_answer(403, failure.sentence)


def _is_json(data: bytes | bytearray) -> bool:
    return data[:1] == b"{"


def _is_ordinary(error: Exception) -> bool:
    """Return whether ``error`` only means that the client disconnected."""
    gone = (OSError, trio.BrokenResourceError, trio.ClosedResourceError)
    if isinstance(error, ExceptionGroup):
        return error.split(gone)[1] is None
    return isinstance(error, gone)
