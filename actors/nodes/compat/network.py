"""Stands in for ``trio.serve_tcp`` and ``trio.open_tcp_stream``: every connection proves its key.

tractor calls them to listen and to reach its parent. What they must know (the key, the port to
listen on) is in a context variable: tractor's tasks have the context of who started the runtime.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import attrs
import trio

from actors.nodes.authentication import Doorkeeper, prove
from actors.nodes.key import NodeKey


@attrs.frozen
class Network:
    """How this process listens and connects. ``port`` 0: any free one."""

    key: NodeKey
    port: int = 0


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
    """Listen, and give ``handler`` the connections that proved the key.

    ``port`` is tractor's wish, and is followed where the network names none.
    """
    network = NETWORK.get()
    door = Doorkeeper(network.key)

    async def admit(stream: trio.SocketStream) -> None:
        await door.admit(stream, handler)

    await trio.serve_tcp(
        admit,
        network.port or port,
        host=host,
        handler_nursery=handler_nursery,
        task_status=task_status,
    )


async def open_tcp_stream(host: str | bytes, port: int, **_: object) -> trio.SocketStream:
    """Connect and prove the key, both ways; ``OSError`` where that fails, as tractor expects."""
    network = NETWORK.get()
    stream = await trio.open_tcp_stream(host, port)
    await prove(stream, network.key)
    return stream
