"""Another process as tractor has it: a portal, and one stream of bytes.

Of a worker there is a nursery of its own as well.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import attrs
import trio

from actors.nodes.compat.loading import load
from actors.nodes.compat.messaging import Payload
from actors.nodes.compat.process import SPAWN, Spawn

_Function = TypeVar("_Function", bound=Callable[..., Awaitable[None]])


@attrs.frozen(eq=False)
class TractorStream:
    """Frames of bytes, one way and the other, on a stream of tractor."""

    _stream: Any

    async def send(self, frame: bytes) -> None:
        """Send one frame."""
        await self._stream.send(Payload(frame))

    async def receive(self) -> bytes:
        """Return the next frame. Raises ``trio.EndOfChannel`` at the end."""
        payload = await self._stream.receive()
        if not isinstance(payload, Payload):
            raise trio.BrokenResourceError("what came is no frame")
        return payload.data


class Subactor:
    """A process that is connected: a worker, or the root that this one joins."""

    def __init__(self, portal: Any) -> None:
        self._portal = portal

    @property
    def has_ended(self) -> bool:
        """Whether its connection has ended."""
        ended: bool = self._portal.channel.msgstream.ended.is_set()
        return ended

    async def wait_ended(self) -> None:
        """Return once its connection has ended."""
        await self._portal.channel.msgstream.ended.wait()

    def disconnect(self) -> None:
        """Close the connection to it, at once."""
        self._portal.channel.msgstream.stream.socket.close()

    async def hang_up(self, within_s: float) -> None:
        """End the connection once the other side has read all, or after ``within_s`` seconds."""
        await hang_up(self._portal.channel.msgstream, within_s)

    async def leave(self) -> None:
        """Ask its process to end. tractor waits half a second for the answer."""
        await self._portal.cancel_actor()

    @asynccontextmanager
    async def conversation(
        self, function: Callable[..., Awaitable[None]], **arguments: object
    ) -> AsyncIterator[tuple[Any, TractorStream]]:
        """Call ``function`` there, and yield what it begins with and a stream to it.

        When the connection ends, so does the stream, after all that has come: tractor itself would
        let the receiver wait forever.
        """
        async with (
            trio.open_nursery() as nursery,
            self._portal.open_context(function, **arguments) as (context, first),
        ):
            nursery.start_soon(self._close_with_connection, context)
            async with context.open_stream() as stream:
                yield first, TractorStream(stream)
            nursery.cancel_scope.cancel()

    async def _close_with_connection(self, context: Any) -> None:
        await self.wait_ended()
        context._send_chan.close()


@asynccontextmanager
async def open_subactor(name: str, module: str, spawn: Spawn) -> AsyncIterator[Subactor]:
    """Start a worker in a nursery of its own, which it leaves when its process has ended.

    Functions of ``module`` can be called in it.
    """
    SPAWN.set(spawn)
    async with load().api.open_nursery() as nursery:
        yield Subactor(await nursery.start_actor(name, enable_modules=[module]))


async def hang_up(transport: Any, within_s: float) -> None:
    """Shut down sending on a connection, wait for the other side to do so, and close it.

    To close it with something unread could cost the other side what it has not read.
    """
    with contextlib.suppress(OSError):
        transport.stream.socket.shutdown(socket.SHUT_WR)
    with trio.move_on_after(within_s):
        await transport.ended.wait()
    transport.stream.socket.close()


def takes_context(function: _Function) -> _Function:
    """Mark a coroutine function that others may call, and that takes a ``ctx`` from tractor."""
    function._tractor_context_function = True  # type: ignore[attr-defined]
    return function
