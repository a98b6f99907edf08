"""The handshake of nodes over connections, with a time limit and a limit of connections.

Any process that reaches the port can connect. Until a connection has proved the key it costs a
socket, a task and less than 200 bytes; it has ``HANDSHAKE_S`` seconds, and beyond
``MOST_UNPROVED`` of them the oldest is dropped. Each refusal is one log line, which contains no
received data.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import trio

from actors.errors import HandshakeRefused
from actors.nodes.links.handshake import NONCE_BYTES, Connector, Listener
from actors.nodes.links.key import NodeKey

HANDSHAKE_S = 5.0
"""The time limit of a handshake, in seconds."""

MOST_UNPROVED = 64
"""The number of connections in the handshake at once, per port."""

Handler = Callable[[trio.SocketStream], Awaitable[object]]

_log = logging.getLogger("actors.nodes")


class Doorkeeper:
    """The admission control of one port: a connection must prove the key."""

    def __init__(
        self, key: NodeKey, *, within_s: float = HANDSHAKE_S, most: int = MOST_UNPROVED
    ) -> None:
        self._key = key
        self._within_s = within_s
        self._most = most
        self._unproved: dict[trio.CancelScope, None] = {}

    @property
    def unproved(self) -> int:
        """The number of connections that have not proved the key yet."""
        return len(self._unproved)

    async def admit(self, stream: trio.SocketStream, handler: Handler) -> None:
        """Pass ``stream`` to ``handler`` if it proves the key, and close it afterwards.

        An exception of the handler ends only this connection.
        """
        peer = _peer(stream)
        async with _closing(stream):
            try:
                await self._prove_in_time(stream)
            except (HandshakeRefused, OSError, trio.BrokenResourceError) as error:
                _log.warning("refused a connection from %s: %s", peer, error or "it broke")
                return
            try:
                await handler(stream)
            except (trio.ClosedResourceError, trio.BrokenResourceError):
                return  # The connection ended during a send, which is normal.
            except Exception as error:
                _log.warning("a connection from %s failed: %s", peer, type(error).__name__)

    async def _prove_in_time(self, stream: trio.SocketStream) -> None:
        with trio.move_on_after(self._within_s) as scope:
            self._make_room()
            self._unproved[scope] = None
            try:
                await _listen(stream, self._key)
            finally:
                self._unproved.pop(scope, None)
        if scope.cancelled_caught:
            in_time = trio.current_time() < scope.deadline
            raise HandshakeRefused(
                "It was dropped for newer connections."
                if in_time
                else "It took too long to prove the key."
            )

    def _make_room(self) -> None:
        while len(self._unproved) >= self._most:
            oldest = next(iter(self._unproved))
            del self._unproved[oldest]
            oldest.cancel()


class ProofRefused(ConnectionRefusedError):
    """The listener has another key, or is not a node; ``__cause__`` says which.

    It is an ``OSError`` because tractor handles no other error of a connection.
    """


async def prove(stream: trio.SocketStream, key: NodeKey, *, within_s: float = HANDSHAKE_S) -> None:
    """Prove the key to the listener, and check that the listener has it.

    On failure closes the connection and raises ``ConnectionRefusedError``, or its subclass
    ``ProofRefused`` if the listener broke the handshake or closed the connection.
    """
    try:
        with trio.fail_after(within_s):
            await _connect(stream, key)
    except (OSError, trio.BrokenResourceError) as error:
        await trio.aclose_forcefully(stream)
        raise ConnectionRefusedError(f"The handshake of nodes failed. {error}") from None
    except HandshakeRefused as error:
        await trio.aclose_forcefully(stream)
        raise ProofRefused(f"The handshake of nodes failed. {error}") from error
    except trio.TooSlowError:
        await trio.aclose_forcefully(stream)
        raise ConnectionRefusedError("The handshake of nodes took too long.") from None
    except trio.Cancelled:
        stream.socket.close()
        raise
    _keep_alive(stream)


async def _listen(stream: trio.SocketStream, key: NodeKey) -> None:
    rules = Listener(key.secret, secrets.token_bytes(NONCE_BYTES))
    await stream.send_all(rules.greeting)
    answer = b""
    while rules.wanted:
        answer = rules.feed(await _some(stream, rules.wanted))
    await stream.send_all(answer)
    _keep_alive(stream)


async def _connect(stream: trio.SocketStream, key: NodeKey) -> None:
    rules = Connector(key.secret, secrets.token_bytes(NONCE_BYTES))
    while not rules.is_proved:
        answer = rules.feed(await _some(stream, rules.wanted))
        if answer:
            await stream.send_all(answer)


async def _some(stream: trio.SocketStream, most: int) -> bytes:
    data = await stream.receive_some(most)
    if not data:
        raise HandshakeRefused("It closed the connection amid the handshake: another key?")
    return data


def _peer(stream: trio.SocketStream) -> str:
    try:
        host, port = stream.socket.getpeername()[:2]
    except OSError:
        return "a peer that has disconnected"
    return f"{host} port {port}"


def _keep_alive(stream: trio.SocketStream) -> None:
    # The kernel detects a host that is gone; heartbeats detect a process that hangs.
    with contextlib.suppress(OSError):
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@contextlib.asynccontextmanager
async def _closing(stream: trio.SocketStream) -> AsyncIterator[None]:
    try:
        yield
    finally:
        with trio.CancelScope(shield=True):
            await trio.aclose_forcefully(stream)
