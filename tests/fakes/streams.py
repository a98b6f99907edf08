"""A ``StreamPort`` that does what a test says, and a wire whose other end is the test."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import trio
import trio.testing

from aegis.protocol.stream_table import StreamEntry
from aegis.servers.access.unsent_bytes import UnsentBytes
from aegis.servers.calls import Caller, Identity
from aegis.servers.streams.outlet import StreamOut
from aegis.servers.wires.port import Binary, WireClosed

Source = Callable[[StreamOut, Mapping[str, object]], Awaitable[str]]


class ScriptedStreams:
    """Each stream runs ``sources[name]``; one that is not there opens and waits for ever."""

    def __init__(self, **sources: Source) -> None:
        self.sources = sources
        self.callers: list[Caller] = []

    async def stream(
        self,
        caller: Caller,
        entry: StreamEntry,
        arguments: Mapping[str, object],
        out: StreamOut,
    ) -> str:
        self.callers.append(caller)
        return await self.sources.get(entry.name, _idle)(out, arguments)


async def _idle(out: StreamOut, _: Mapping[str, object]) -> str:
    await out.opened(None)
    await trio.sleep_forever()
    raise AssertionError


class TestWire:
    """The client's end: ``say`` sends a message, ``heard`` is what came, in order.

    ``deaf_to`` is the type of frames that it never takes.
    """

    __test__ = False

    def __init__(self) -> None:
        self._to_server, self._incoming = trio.open_memory_channel[str | bytes](1000)
        self.heard: list[Any] = []
        self.heard_at: list[float] = []
        self.deaf_to = ""
        self.unsent = UnsentBytes()
        self._hung_up = trio.Event()

    async def receive(self) -> str | bytes | Binary:
        try:
            message = await self._incoming.receive()
        except trio.EndOfChannel:
            raise WireClosed from None
        return Binary(message) if isinstance(message, bytes) else message

    async def send(self, message: str | bytes) -> None:
        heard = json.loads(message) if isinstance(message, str) else message
        if isinstance(heard, dict) and heard["type"] == self.deaf_to:
            await self._hung_up.wait()
            raise WireClosed
        self.heard.append(heard)
        self.heard_at.append(trio.current_time())

    def trust(self, identity: Identity | None) -> None:
        pass

    def holding(self, size: int) -> AbstractContextManager[None]:
        return self.unsent.holding(self, size)

    def abort(self) -> None:
        self.hang_up()

    async def say(self, message: bytes | None = None, **frame: object) -> None:
        """Send a binary message or a frame, and let the server do all it does about it."""
        await self._to_server.send(json.dumps(frame) if message is None else message)
        await trio.testing.wait_all_tasks_blocked()

    def hang_up(self) -> None:
        self._to_server.close()
        self._hung_up.set()

    def take(self) -> list[Any]:
        """What was heard since the last time."""
        heard, self.heard = self.heard, []
        return heard
