"""The one function that other nodes may call in the root: the request to join.

Its receiver is in a context variable, because tractor passes no reference to it. Every caller has
proved the key, but may still send anything.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import trio

from actors.nodes.compat.subactor import TractorStream, hang_up, takes_context


class CallingNode:
    """A calling node, on a connection of its own."""

    def __init__(self, context: Any) -> None:
        self._context = context
        self._transport = context.chan.msgstream
        self.uid: tuple[str, str] = context.chan.uid
        """Tractor's identifier of the caller: its name, and a number unique to the process."""

    @property
    def address(self) -> str:
        """Host and port of its end."""
        host, port = self._transport.raddr
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def wait_ended(self) -> None:
        """Return once its connection has ended."""
        await self._transport.ended.wait()

    async def begin(self, first: object) -> None:
        """Answer the call; then frames can be received."""
        await self._context.started(first)

    @contextlib.asynccontextmanager
    async def stream(self) -> AsyncIterator[TractorStream]:
        """Exchange frames, after ``begin``. The connection ends with the block, if not before."""
        # Closed before tractor sends its farewell, which would block if the other side does not
        # read. Remaining frames are dropped: otherwise tractor would wait for a reader.
        with contextlib.suppress(trio.ClosedResourceError, trio.BrokenResourceError):
            async with self._context.open_stream() as stream:
                try:
                    yield TractorStream(stream)
                finally:
                    self.disconnect()
                    self._context._recv_chan.close()

    def end_stream(self) -> None:
        """End the stream after the received frames: tractor does not when a connection ends."""
        self._context._send_chan.close()

    async def hang_up(self, within_s: float) -> None:
        """End the connection once the other side has read all, or after ``within_s`` seconds."""
        await hang_up(self._transport, within_s)

    def disconnect(self) -> None:
        """Close the connection, at once."""
        self._transport.stream.socket.close()


Receive = Callable[[CallingNode, dict[str, object]], Awaitable[None]]
"""Receive a caller and its request; return when it has left."""

RECEIVE: ContextVar[Receive] = ContextVar("actors_nodes_receive")
"""Set before the runtime of a root is started."""


@takes_context
async def take_join(ctx: Any, **said: object) -> None:
    """Be called by a node that joins."""
    await RECEIVE.get()(CallingNode(ctx), said)
