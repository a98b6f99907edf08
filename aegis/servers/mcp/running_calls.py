"""The MCP calls in progress, and the presence of callers that have no session.

Calls must end before the connections that carry their answers. Without sessions, a caller counts
as connected while it keeps calling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol

import trio

from aegis.servers.calls import Caller, CallPort

END_LIMIT_S = 0.3
"""Seconds that the end of a session, or of the server, waits for the ends of its calls."""


class Cancellable(Protocol):
    """A call in progress, with the scope that it runs in."""

    scope: trio.CancelScope


class RunningCalls:
    """The calls in progress of an MCP server."""

    def __init__(self) -> None:
        self._calls: set[Cancellable] = set()
        self._ended = trio.Event()

    def call(self) -> _RunningCall:
        """Return a context manager for one call; the code after its block runs if it was ended."""
        return _RunningCall(self)

    async def end(self, limit_s: float) -> None:
        """Cancel all calls and wait at most ``limit_s`` seconds, even where this is cancelled."""
        for call in self._calls:
            call.scope.cancel()
        with trio.move_on_after(limit_s, shield=True):
            while self._calls:
                self._ended = trio.Event()
                await self._ended.wait()

    def began(self, call: Cancellable) -> None:
        """Add a call."""
        self._calls.add(call)

    def ended(self, call: Cancellable) -> None:
        """Remove a call."""
        self._calls.discard(call)
        self._ended.set()


class _RunningCall:
    """The context manager of one call."""

    def __init__(self, running_calls: RunningCalls) -> None:
        self._running_calls = running_calls
        self.scope = trio.CancelScope()

    def __enter__(self) -> None:
        self._running_calls.began(self)
        self.scope.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self._running_calls.ended(self)
        return bool(self.scope.__exit__(kind, error, traceback))


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
        if caller not in self._calls:
            self._port.opened(caller)
            self._arrived.set()
        self._calls[caller] = self._calls.get(caller, 0) + 1
        self._leaves_at[caller] = math.inf
        try:
            yield
        finally:
            self._end_call(caller)

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

    def _end_call(self, caller: Caller) -> None:
        if caller not in self._calls:
            return  # all callers were closed at the end
        self._calls[caller] -= 1
        if not self._calls[caller]:
            self._leaves_at[caller] = trio.current_time() + self._idle_s

    def _let_leave(self, now: float) -> None:
        for caller in [each for each, due in self._leaves_at.items() if due <= now]:
            del self._calls[caller], self._leaves_at[caller]
            self._port.closed(caller)
