"""WebSocket connections to a daemon over a Unix socket, TCP or TLS."""

from __future__ import annotations

import ssl
from typing import Protocol
from urllib.parse import urlsplit

import trio
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    HandshakeError,
    WebSocketConnection,
    wrap_client_stream,
)

from aegis.client.address import WEBSOCKET_PATH, Address, Local, Remote
from aegis.client.errors import (
    ClientError,
    CommandFailed,
    ConnectionLost,
    NoDaemon,
    NotServing,
)
from aegis.client.line import START_POLL_S, not_served
from aegis.state.endpoint import Endpoint
from aegis.state.root import daemon_of, how_to_start

CONNECT_LIMIT_S = 10.0
RECEIVE_BUFFER_BYTES = 65_536
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
"""Limit of memory for a faulty peer, far above the size of any answer."""

BEAT_S = 20.0
"""Seconds between pings over TCP, where a broken network is not reported otherwise."""

BEAT_LIMIT_S = 20.0

_Stream = trio.SocketStream | trio.SSLStream[trio.SocketStream]
_PORTS = {"ws": 80, "wss": 443}
_REFUSALS = {401: "forbidden", 403: "forbidden"}


class TransportClosed(Exception):
    """The connection has ended; the text is the reason."""


class Transport(Protocol):
    """A message connection. One task receives, one task sends."""

    async def receive(self) -> str | bytes:
        """Return the next message. Raises ``TransportClosed``."""
        ...

    async def send(self, message: str | bytes) -> None:
        """Send one message. Raises ``TransportClosed``."""
        ...

    async def close(self) -> None:
        """End the connection at once."""
        ...

    async def watch(self) -> None:
        """Return when the peer no longer answers; never for a Unix socket: the kernel does."""
        ...


async def dial(address: Address, nursery: trio.Nursery) -> Transport:
    """Open a connection whose tasks run in ``nursery``.

    Raises ``NoDaemon``, ``ConnectionLost``, or ``CommandFailed`` if the daemon refuses the client.
    """
    with trio.move_on_after(CONNECT_LIMIT_S):
        if isinstance(address, Local):
            return await _dial_local(address, nursery)
        return await _dial_remote(address, nursery)
    if isinstance(address, Local) and (pid := daemon_of(address.root)) is not None:
        raise not_served(address.root, pid, CONNECT_LIMIT_S)
    raise ConnectionLost(f"{place_of(address)} did not answer within {CONNECT_LIMIT_S:g} s")


def place_of(address: Address) -> str:
    """Return the name of the daemon at ``address`` in error sentences."""
    if isinstance(address, Local):
        return f"the daemon of {address.root}"
    return f"the daemon at {urlsplit(address.url).netloc}"


async def _dial_local(address: Local, nursery: trio.Nursery) -> Transport:
    while True:
        try:
            endpoint, stream = await _stream_to(address)
            break
        except NotServing:
            if daemon_of(address.root) is None:
                raise
        await trio.sleep(START_POLL_S)  # it is starting; ``dial`` has the limit
    key = [(b"authorization", f"Bearer {endpoint.token}".encode())]
    connection = await _upgrade(nursery, stream, "localhost", address, key)
    return _WebSocketTransport(connection, stream, beats=False)


async def _stream_to(address: Local) -> tuple[Endpoint, trio.SocketStream]:
    endpoint = address.endpoint()
    try:
        return endpoint, await trio.open_unix_socket(endpoint.socket_path)
    except (FileNotFoundError, ConnectionRefusedError):
        raise NotServing(
            f"{place_of(address)} (pid {endpoint.pid}) has crashed: {how_to_start(address.root)}"
        ) from None
    except (OSError, ValueError) as error:
        raise ConnectionLost(f"{place_of(address)} cannot be reached: {_reason(error)}") from None


async def _dial_remote(address: Remote, nursery: trio.Nursery) -> Transport:
    parts = urlsplit(address.url)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    try:
        plain = await trio.open_tcp_stream(host, port)
    except OSError as error:
        raise NoDaemon(f"no daemon answers at {parts.netloc}: {_reason(error)}") from None
    stream = _in_tls(plain, host) if parts.scheme == "wss" else plain
    connection = await _upgrade(nursery, stream, parts.netloc, address)
    return _WebSocketTransport(connection, stream, beats=True)


def _in_tls(plain: trio.SocketStream, host: str) -> trio.SSLStream[trio.SocketStream]:
    context = ssl.create_default_context()
    return trio.SSLStream(plain, context, server_hostname=host, https_compatible=True)


async def _upgrade(
    nursery: trio.Nursery,
    stream: _Stream,
    host: str,
    address: Address,
    key: list[tuple[bytes, bytes]] | None = None,
) -> WebSocketConnection:
    try:
        return await _handshake(nursery, stream, host, key)
    except ConnectionRejected as error:
        raise _rejected(error, address) from None
    except (HandshakeError, ConnectionClosed, OSError, trio.BrokenResourceError) as error:
        raise ConnectionLost(
            f"{place_of(address)} did not open a WebSocket: {_reason(error)}"
        ) from None


async def _handshake(
    nursery: trio.Nursery, stream: _Stream, host: str, key: list[tuple[bytes, bytes]] | None
) -> WebSocketConnection:
    try:
        return await wrap_client_stream(
            nursery,
            stream,
            host,
            WEBSOCKET_PATH,
            extra_headers=key,
            max_message_size=MAX_MESSAGE_BYTES,
            receive_buffer_size=RECEIVE_BUFFER_BYTES,
        )
    except BaseException:
        await trio.aclose_forcefully(stream)
        raise


def _rejected(error: ConnectionRejected, address: Address) -> ClientError:
    sentence = (error.body or b"").decode(errors="replace").strip() or f"HTTP {error.status_code}"
    code = _REFUSALS.get(error.status_code)
    if code is not None or error.status_code in (400, 404, 421, 426):
        return CommandFailed(code or "invalid_request", sentence)
    return ConnectionLost(f"{place_of(address)} did not open a WebSocket: {sentence}")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


class _WebSocketTransport:
    def __init__(self, connection: WebSocketConnection, stream: _Stream, *, beats: bool) -> None:
        self._connection = connection
        self._stream = stream
        self._beats = beats

    async def receive(self) -> str | bytes:
        try:
            return await self._connection.get_message()
        except ConnectionClosed:
            raise TransportClosed(self._why()) from None

    async def send(self, message: str | bytes) -> None:
        try:
            await self._connection.send_message(message)
        except ConnectionClosed:
            raise TransportClosed(self._why()) from None

    async def close(self) -> None:
        await trio.aclose_forcefully(self._stream)

    async def watch(self) -> None:
        if not self._beats:
            await trio.sleep_forever()
        while True:
            await trio.sleep(BEAT_S)
            with trio.move_on_after(BEAT_LIMIT_S) as beat:
                try:
                    await self._connection.ping()
                except ConnectionClosed:
                    return
            if beat.cancelled_caught:
                return

    def _why(self) -> str:
        closed = self._connection.closed
        return (closed.reason if closed else None) or "the daemon closed it"
