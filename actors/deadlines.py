"""The time limits of all asks of a system: one heap and one task, not a cancel scope for each ask.

A cancel scope costs half of an ask. Most asks are answered long before their time is over, so their
limits are only entered, and swept out later.
"""

from __future__ import annotations

import heapq
import itertools
import math
from typing import Any, NamedTuple

import trio

from actors.errors import AskDeadline
from actors.reply import Reply

SWEEP_AT = 64
"""Limits of asks that have ended are looked for when there are at least so many."""


class _Limit(NamedTuple):
    at: float
    order: int
    reply: Reply[Any]
    timeout: float
    path: str
    request: str


class Deadlines:
    """When replies must have come, on Trio's clock."""

    def __init__(self) -> None:
        self._heap: list[_Limit] = []
        self._order = itertools.count()
        self._sweep_at = SWEEP_AT
        self._alarm = trio.CancelScope()

    def __len__(self) -> int:
        """How many limits are kept, also of asks that have ended and are not yet swept out."""
        return len(self._heap)

    def add(
        self, reply: Reply[Any], timeout: float, path: str, request: object, left: float
    ) -> None:
        """``path`` must answer ``request`` while the ``left`` of ``timeout`` seconds last."""
        at = trio.current_time() + left
        limit = _Limit(at, next(self._order), reply, timeout, path, type(request).__name__)
        if left <= 0:
            _expire(limit)
            return
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        heapq.heappush(self._heap, limit)
        if at < self._alarm.deadline:
            self._alarm.deadline = at

    async def ring_for_ever(self) -> None:
        """Let what is due fail."""
        while True:
            with trio.CancelScope(deadline=self._next()) as self._alarm:
                await trio.sleep_forever()
            while self._next() <= trio.current_time():
                _expire(heapq.heappop(self._heap))

    def _next(self) -> float:
        heap = self._heap
        while heap and heap[0].reply.is_settled:
            heapq.heappop(heap)
        return heap[0].at if heap else math.inf

    def _sweep(self) -> None:
        self._heap = [limit for limit in self._heap if not limit.reply.is_settled]
        heapq.heapify(self._heap)
        self._sweep_at = max(SWEEP_AT, 2 * len(self._heap))


def _expire(limit: _Limit) -> None:
    limit.reply.expire(late(limit.path, limit.request, limit.timeout))


def late(path: str, request: str, timeout: float) -> AskDeadline:
    """What an asker gets whose time is over."""
    return AskDeadline(f"{path} did not answer {request} within {timeout:g} s", path=path)
