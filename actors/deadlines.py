"""The time limits of all asks of a system: one heap and one task, not a cancel scope for each ask.

A cancel scope costs half of an ask. Most asks are answered long before their time limit, so a limit
is only added to the heap, and removed in a later sweep.
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
"""The number of limits from which those of settled replies are removed."""


class _Limit(NamedTuple):
    at: float
    order: int
    reply: Reply[Any]
    timeout: float
    path: str
    request: str


class Deadlines:
    """The time limits of replies, on Trio's clock."""

    def __init__(self) -> None:
        self._heap: list[_Limit] = []
        self._order = itertools.count()
        self._sweep_at = SWEEP_AT
        self._alarm = trio.CancelScope()

    def __len__(self) -> int:
        """Return the number of limits, those of settled replies that are not yet swept included."""
        return len(self._heap)

    def add(
        self, reply: Reply[Any], timeout: float, path: str, request: object, left: float
    ) -> None:
        """Fail ``reply`` in ``left`` seconds, unless ``path`` has answered ``request``.

        ``timeout`` is the caller's whole time limit in seconds, for the text of the error.
        """
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

    async def run(self) -> None:
        """Fail each reply when its time is over."""
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
    limit.reply.expire(deadline_error(limit.path, limit.request, limit.timeout))


def deadline_error(path: str, request: str, timeout: float) -> AskDeadline:
    """Return the error of a caller whose time limit has passed."""
    return AskDeadline(f"{path} did not answer {request} within {timeout:g} s", path=path)
