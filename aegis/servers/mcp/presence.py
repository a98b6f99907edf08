"""Who is here when the wire has no connections: a caller stays present while it keeps calling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from aegis.servers.calls import Caller, CallPort


class Presence:
    """Tells the port when a caller appears, and when it has been idle for ``idle_s`` seconds.

    ``run`` must be running for callers to leave.
    """

    def __init__(self, port: CallPort, idle_s: float) -> None:
        self._port = port
        self._idle_s = idle_s
        self._calls: dict[Caller, int] = {}
        self._leaves_at: dict[Caller, float] = {}
        self._arrived = trio.Event()

    @contextmanager
    def during(self, caller: Caller) -> Iterator[None]:
        """Hold the caller present during a call."""
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
        """Let idle callers leave; when cancelled, all of them."""
        try:
            while True:
                # Nobody can leave earlier than this, whatever is called meanwhile.
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
            return  # everybody was made to leave at the end
        self._calls[caller] -= 1
        if not self._calls[caller]:
            self._leaves_at[caller] = trio.current_time() + self._idle_s

    def _let_leave(self, now: float) -> None:
        for caller in [each for each, due in self._leaves_at.items() if due <= now]:
            del self._calls[caller], self._leaves_at[caller]
            self._port.closed(caller)
