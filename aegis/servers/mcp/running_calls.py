"""The MCP calls in progress, and the presence of callers that have no session.

Calls must end before the connections that carry their answers. Without sessions, a caller counts
as connected while it keeps calling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import trio

from aegis.servers.calls import Caller, CallPort

END_LIMIT_S = 0.3
"""Seconds that the end of a session, or of the server, waits for the ends of its calls."""


class RunningCall:
    """A call in progress, with the scope that it runs in.

    ``error`` is the answer of a call that was cancelled, if it has one of its own.
    """

    def __init__(self, request_id: str | int = "") -> None:
        self.id = request_id
        self.scope = trio.CancelScope()
        self.error: dict[str, Any] | None = None


class RunningCalls:
    """The calls in progress of an MCP server, or of one of its sessions: ``all``."""

    def __init__(self) -> None:
        self.all: set[RunningCall] = set()
        self._ended = trio.Event()

    def call(self) -> AbstractContextManager[object, bool]:
        """Begin a call that lasts a block; the code after the block runs if it was ended."""
        stack, call = ExitStack[bool](), RunningCall()
        self.began(call)
        stack.callback(self.ended, call)
        stack.enter_context(call.scope)
        return stack

    async def end(self, limit_s: float) -> None:
        """Cancel all calls and wait at most ``limit_s`` seconds, even where this is cancelled."""
        for call in self.all:
            call.scope.cancel()
        with trio.move_on_after(limit_s, shield=True):
            while self.all:
                self._ended = trio.Event()
                await self._ended.wait()

    def began(self, call: RunningCall) -> None:
        """Add a call."""
        self.all.add(call)

    def ended(self, call: RunningCall) -> None:
        """Remove a call."""
        self.all.discard(call)
        self._ended.set()


class CallerSessions:
    """Callers without a session: the port is notified of the first call and of ``idle_s`` idle.

    ``run`` must be running for idle callers to be closed.
    """

    def __init__(self, port: CallPort, idle_s: float) -> None:
        self._port = port
        self._idle_s = idle_s
        self._calls: dict[Caller, int] = {}
        self._leaves_at: dict[Caller, float] = {}
        self._arrived = trio.Event()

    @contextmanager
    def during(self, caller: Caller) -> Iterator[None]:
        """Keep the caller open during a call."""
        self.began(caller)
        try:
            yield
        finally:
            self.ended(caller)

    def began(self, caller: Caller) -> None:
        """Keep the caller open, as a call of it has begun."""
        if caller not in self._calls:
            self._port.opened(caller)
            self._arrived.set()
        self._calls[caller] = self._calls.get(caller, 0) + 1
        self._leaves_at[caller] = math.inf

    def ended(self, caller: Caller) -> None:
        """Let the caller become idle, if this was its last call."""
        if caller not in self._calls:
            return  # all callers were closed at the end
        self._calls[caller] -= 1
        if not self._calls[caller]:
            self._leaves_at[caller] = trio.current_time() + self._idle_s

    async def run(self) -> None:
        """Close idle callers; when cancelled, close all."""
        try:
            while True:
                # No caller becomes idle earlier than this, even if a new one calls meanwhile.
                soonest = trio.current_time() + self._idle_s
                with trio.move_on_at(min([soonest, *self._leaves_at.values()])):
                    await self._sleep()
                self._let_leave(trio.current_time())
        finally:
            self._let_leave(math.inf)

    async def _sleep(self) -> None:
        if self._calls:
            await trio.sleep_forever()
        self._arrived = trio.Event()
        await self._arrived.wait()

    def _let_leave(self, now: float) -> None:
        for caller in [each for each, due in self._leaves_at.items() if due <= now]:
            del self._calls[caller], self._leaves_at[caller]
            self._port.closed(caller)
