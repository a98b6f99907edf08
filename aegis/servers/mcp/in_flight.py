"""Calls under way, so that they can be ended before what carries their answers."""

from __future__ import annotations

from types import TracebackType

import trio


class InFlight:
    """The calls of one face."""

    def __init__(self) -> None:
        self._calls: set[_Call] = set()
        self._ended = trio.Event()

    def call(self) -> _Call:
        """``with in_flight.call():`` what is behind the block runs when the call was ended."""
        return _Call(self)

    async def end(self, limit_s: float) -> None:
        """End all of them, also where the caller is cancelled; wait at most ``limit_s`` seconds."""
        for call in self._calls:
            call.scope.cancel()
        with trio.move_on_after(limit_s, shield=True):
            while self._calls:
                self._ended = trio.Event()
                await self._ended.wait()

    def began(self, call: _Call) -> None:
        """For ``_Call`` alone."""
        self._calls.add(call)

    def ended(self, call: _Call) -> None:
        """Likewise."""
        self._calls.discard(call)
        self._ended.set()


class _Call:
    """One of them, as a block."""

    def __init__(self, in_flight: InFlight) -> None:
        self._in_flight = in_flight
        self.scope = trio.CancelScope()

    def __enter__(self) -> None:
        self._in_flight.began(self)
        self.scope.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        self._in_flight.ended(self)
        return bool(self.scope.__exit__(kind, error, traceback))
