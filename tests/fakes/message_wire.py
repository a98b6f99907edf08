"""A daemon's end of WebSocket messages, in memory: for what a client does by its own rules."""

from __future__ import annotations

import json
import math
from typing import Any

import trio

from aegis.client.errors import NoDaemon
from aegis.client.transport import TransportClosed

GUARD_S = 60.0
"""On a mock clock this costs no time: it only ends a test that would hang."""


class DaemonEnd:
    """One connection, seen from the daemon. It answers the hello by itself."""

    def __init__(self) -> None:
        self._to_client: trio.MemorySendChannel[str | bytes]
        self._to_client, self.of_client = trio.open_memory_channel[str | bytes](math.inf)
        self.to_daemon, self._of_daemon = trio.open_memory_channel[str | bytes](math.inf)
        self.reason = "the daemon closed it"
        self.is_cut = False

    async def next(self) -> dict[str, Any]:
        """The next frame of the client."""
        with trio.fail_after(GUARD_S):
            message = await self._of_daemon.receive()
        frame: dict[str, Any] = json.loads(message)
        return frame

    async def next_bytes(self) -> bytes:
        """The next binary message of the client."""
        with trio.fail_after(GUARD_S):
            message = await self._of_daemon.receive()
        assert isinstance(message, bytes)
        return message

    def waiting(self) -> int:
        """How many messages of the client were not looked at."""
        return self._of_daemon.statistics().current_buffer_used

    def send(self, **frame: object) -> None:
        """Send a frame."""
        self._to_client.send_nowait(json.dumps(frame))

    def send_raw(self, message: str | bytes) -> None:
        """Send a message as it is."""
        self._to_client.send_nowait(message)

    def reply(self, request: dict[str, Any], **result: object) -> None:
        """Answer a request."""
        self.send(type="reply", id=request["id"], result=result)

    def refuse(self, request: dict[str, Any], code: str, message: str) -> None:
        """Answer a request, or an open, with an error."""
        self.send(type="error", id=request["id"], code=code, message=message)

    def cut(self, reason: str = "the daemon closed it") -> None:
        """End the connection."""
        self.reason = reason
        self.is_cut = True
        self._to_client.close()


class _ClientEnd:
    def __init__(self, end: DaemonEnd) -> None:
        self._end = end

    async def receive(self) -> str | bytes:
        try:
            return await self._end.of_client.receive()
        except trio.EndOfChannel:
            raise TransportClosed(self._end.reason) from None

    async def send(self, message: str | bytes) -> None:
        await trio.lowlevel.checkpoint()
        if self._end.is_cut:
            raise TransportClosed(self._end.reason)
        self._end.to_daemon.send_nowait(message)

    async def close(self) -> None:
        self._end.is_cut = True

    async def watch(self) -> None:
        await trio.sleep_forever()


class MemoryDaemon:
    """What a client dials. ``is_down``: nobody is there. ``dialled`` are the times of each try."""

    def __init__(self) -> None:
        self.is_down = False
        self.dialled: list[float] = []
        self.refuses_key = False
        self._ends, self._accepted = trio.open_memory_channel[DaemonEnd](math.inf)

    async def dial(self, nursery: trio.Nursery) -> _ClientEnd:
        """A connection; raises ``NoDaemon``."""
        self.dialled.append(trio.current_time())
        await trio.lowlevel.checkpoint()
        if self.is_down:
            raise NoDaemon("no daemon runs here")
        end = DaemonEnd()
        nursery.start_soon(self._welcome, end)
        return _ClientEnd(end)

    async def accept(self) -> DaemonEnd:
        """The next connection that said hello."""
        with trio.fail_after(GUARD_S):
            return await self._accepted.receive()

    async def _welcome(self, end: DaemonEnd) -> None:
        hello = await end.next()
        assert hello["type"] == "hello"
        if self.refuses_key:
            end.send(type="error", id=None, code="forbidden", message="the key is not valid")
            end.cut()
            return
        end.send(type="hello", version=1, server="test/0", instance="one", handle=None)
        self._ends.send_nowait(end)
