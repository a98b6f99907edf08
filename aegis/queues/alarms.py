"""``Alarms``: moments at which something is due, each under a key. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Alarms(Generic[K]):
    """Keys with their moments; a key has one moment, the one that was set last."""

    def __init__(self) -> None:
        self._moments: dict[K, float] = {}
        self._heap: list[tuple[float, int, K]] = []
        self._count = 0
        self._armed: float | None = None

    def set(self, key: K, moment: float) -> None:
        """Set the moment of a key."""
        self._moments[key] = moment
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, key))

    def clear(self, key: K) -> None:
        """Forget the moment of a key, if it has one."""
        self._moments.pop(key, None)

    def moment(self, key: K) -> float | None:
        """Return the moment of a key; None without one."""
        return self._moments.get(key)

    def due(self, now: float) -> Iterator[K]:
        """Yield and forget the keys whose moment has come."""
        self._armed = None
        while self._heap and self._heap[0][0] <= now:
            moment, _, key = heapq.heappop(self._heap)
            if self._moments.get(key) == moment:
                del self._moments[key]
                yield key

    def next(self) -> float | None:
        """Return the next moment, unless it or an earlier one was returned before."""
        while self._heap and self._moments.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        if not self._heap or (self._armed is not None and self._armed <= self._heap[0][0]):
            return None
        self._armed = self._heap[0][0]
        return self._armed
