"""The stand-ins for ``trio.serve_tcp`` and ``trio.open_tcp_stream``: with proof of the key.

tractor calls them to listen and to reach its parent, or the root that it joins. What they must know
(the key, where to listen) is in a context variable: tractor's tasks have the context of who started
the runtime.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any

import attrs
import trio

from actors.nodes.links.authentication import Doorkeeper, prove
from actors.nodes.links.key import NodeKey

LOOPBACK = "127.0.0.1"


def _nothing() -> None:
    """Ignore the departure."""


@attrs.frozen
class Network:
    """How this process listens and connects.

    It always listens on loopback, for its own workers, and also at ``host`` if that is another
    address. ``port`` 0: any free one. ``departed`` is
    called when a connection to this process has ended. ``opened`` are those that this process
    opened: two, of a worker to its parent or of a node to the root that it joins.
    """

    key: NodeKey
    host: str = LOOPBACK
    port: int = 0
    departed: Callable[[], None] = _nothing
    opened: list[trio.SocketStream] = attrs.field(factory=list)

    @property
    def is_open_to_others(self) -> bool:
        """Whether it listens beyond the address for its own workers."""
        return self.host != LOOPBACK


NETWORK: ContextVar[Network] = ContextVar("actors_nodes_network")
"""Set before a runtime is started; without it nothing listens and nothing connects."""

Handler = Callable[[trio.SocketStream], Awaitable[object]]


async def serve_tcp(
    handler: Handler,
    port: int,
    *,
    host: str | bytes | None = None,
    handler_nursery: trio.Nursery | None = None,
    task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED,
    **_: object,
) -> None:
    """Listen, and pass connections that proved the key to ``handler``.

    ``host`` and ``port`` are those that tractor asks for; it publishes the first listener.
    """
    network = NETWORK.get()
    door = Doorkeeper(network.key)

    async def admit(stream: trio.SocketStream) -> None:
        await door.admit(stream, handler)
        network.departed()

    listeners = await _listeners(network, host, port)
    await trio.serve_listeners(
        admit, listeners, handler_nursery=handler_nursery, task_status=task_status
    )


async def _listeners(
    network: Network, host: str | bytes | None, port: int
) -> list[trio.SocketListener]:
    if not network.is_open_to_others:
        return await trio.open_tcp_listeners(network.port or port, host=host)
    async with AsyncExitStack() as undo:
        near = await trio.open_tcp_listeners(port, host=host)
        for listener in near:
            undo.push_async_callback(listener.aclose)
        far = await trio.open_tcp_listeners(network.port, host=network.host)
        undo.pop_all()
        return near + far


async def open_tcp_stream(host: str | bytes, port: int, **_: object) -> trio.SocketStream:
    """Connect and prove the key, both ways; ``OSError`` where that fails, as tractor expects."""
    network = NETWORK.get()
    stream = await trio.open_tcp_stream(host, port)
    await prove(stream, network.key)
    network.opened.append(stream)
    return stream
