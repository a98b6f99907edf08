"""The WebSocket at ``/ws``: the frames of ``requests`` as text messages (RFC 6455).

Bytes of terminals, and keys for them, are binary messages.

A client sends its key in the Authorization header, or in a hello as its first message: a browser
cannot set headers. On the Unix socket a peer is accepted by its uid, so it is the operator. Host,
Origin and key are checked before the handshake.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress

import trio
from trio_websocket import ConnectionClosed, WebSocketConnection, wrap_server_stream

from aegis.errors import AegisError
from aegis.servers.access.admission import (
    ErrorResponse,
    bearer_token,
    page_cookies,
    turned_away,
    values,
)
from aegis.servers.access.auth import Keys
from aegis.servers.calls import OPERATOR, Identity, within
from aegis.servers.gateway.client_stream import ClientStream
from aegis.servers.gateway.http1 import RequestHead, framing_refusal, plain_answer
from aegis.servers.requests import MAX_FRAME_BYTES
from aegis.servers.wires.conversation import EndReason, ServerContext, converse
from aegis.servers.wires.port import Binary, WireClosed

WEBSOCKET_PATH = "/ws"
RECEIVE_BUFFER_BYTES = 65_536
HANDSHAKE_LIMIT_S = 10.0
CLOSE_LIMIT_S = 1.0
UNAUTHENTICATED_BYTES = 65_536
"""The number of bytes, head included, that a client may send before it has sent a key."""

GONE = (trio.BrokenResourceError, trio.ClosedResourceError)

_CLOSE_CODES = {EndReason.CLIENT_GONE: 1000, EndReason.STOPPING: 1001, EndReason.LOGGED_OUT: 4401}
"""Scripts of a page see the code and the reason; of a refused handshake they see neither."""

_POLICY_VIOLATION = 1008
_TOO_BIG = 1009

DROP_LIMIT_S = 1.0
MAX_DROPPED_BYTES = 64 * 1024 * 1024
"""Bytes of a message over the limit that are read and dropped, so that its sender gets the reason.

Closing a socket with unread data sends a reset, and the client may lose the closing frame.
"""


async def serve_websocket(
    stream: ClientStream,
    head: RequestHead,
    stopping: trio.Event,
    *,
    context: ServerContext,
    hosts: frozenset[str],
) -> None:
    """Serve one connection whose first request is ``head``.

    ``hosts`` are the accepted values of the Host header.
    """
    admitted = admit(head, context.keys, hosts)
    if isinstance(admitted, ErrorResponse):
        await stream.send_all(plain_answer(admitted.status, admitted.sentence))
        return
    if admitted is not None:
        try:
            admitted = within(stream.process or OPERATOR, admitted)
        except AegisError as error:
            await stream.send_all(plain_answer(403, str(error)))
            return
        stream.trust(admitted)
    elif stream.process is not None:
        admitted = stream.process
    else:
        stream.allowance = UNAUTHENTICATED_BYTES
    async with trio.open_nursery() as nursery:
        connection = await _handshake(nursery, stream)
        if connection is not None:
            wire = _WebSocketWire(connection, stream)
            cookies = page_cookies(head.headers)
            end = await converse(wire, context, "websocket", admitted, stopping, cookies)
            await _close(connection, EndReason.FORBIDDEN if stream.is_voided else end)
            if connection.closed is not None and connection.closed.code == _TOO_BIG:
                await _drop_rest(stream)
        nursery.cancel_scope.cancel()


def admit(head: RequestHead, keys: Keys, hosts: frozenset[str]) -> Identity | ErrorResponse | None:
    """Return the identity in a request, None if it has no key, or an ``ErrorResponse``. Pure."""
    refused = framing_refusal(head)
    refusal = ErrorResponse(*refused) if refused else turned_away(head.headers, head.query, hosts)
    if refusal is not None:
        return refusal
    if head.path != WEBSOCKET_PATH:
        return ErrorResponse(404, f"WebSockets are served at {WEBSOCKET_PATH}")
    if values(head.headers, b"sec-websocket-version") != ["13"]:
        return ErrorResponse(426, "use version 13 of the WebSocket protocol")
    if len(values(head.headers, b"sec-websocket-key")) != 1:
        return ErrorResponse(400, "send exactly one Sec-WebSocket-Key header")
    if not values(head.headers, b"authorization"):
        return None
    token = bearer_token(head.headers)
    identity = None if token is None else keys.identity_of_token(token)
    return identity or ErrorResponse(401, "the token in the Authorization header is not valid")


async def _handshake(nursery: trio.Nursery, stream: ClientStream) -> WebSocketConnection | None:
    with trio.move_on_after(HANDSHAKE_LIMIT_S):
        request = await wrap_server_stream(
            nursery,
            stream,
            max_message_size=MAX_FRAME_BYTES,
            receive_buffer_size=RECEIVE_BUFFER_BYTES,
        )
        try:
            return await request.accept()
        except ConnectionClosed:
            return None
    return None


async def _close(connection: WebSocketConnection, end: EndReason) -> None:
    with trio.move_on_after(CLOSE_LIMIT_S):
        await connection.aclose(_CLOSE_CODES.get(end, _POLICY_VIOLATION), end.value)


async def _drop_rest(stream: ClientStream) -> None:
    """Read and drop what the client still sends, within limits."""
    left = MAX_DROPPED_BYTES
    with trio.move_on_after(DROP_LIMIT_S), suppress(*GONE):
        while left > 0:
            try:
                data = await stream.receive_some(RECEIVE_BUFFER_BYTES)
            except trio.BusyResourceError:  # the connection's own reader has not ended yet
                await trio.sleep(0.01)
                continue
            if not data:
                return
            left -= len(data)


class _WebSocketWire:
    def __init__(self, connection: WebSocketConnection, stream: ClientStream) -> None:
        self._connection = connection
        self._stream = stream

    async def receive(self) -> str | Binary:
        try:
            message = await self._connection.get_message()
        except ConnectionClosed:
            raise WireClosed from None
        return Binary(message) if isinstance(message, bytes) else message

    async def send(self, message: str | bytes) -> None:
        try:
            await self._connection.send_message(message)
        except ConnectionClosed:
            raise WireClosed from None

    def trust(self, identity: Identity | None) -> None:
        self._stream.trust(identity)

    def holding(self, size: int) -> AbstractContextManager[None]:
        return self._stream.holding(size)
