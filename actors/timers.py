"""Timers as messages: what is due lies in the mailbox like any other message.

One heap per life of an actor, and one task for all of them, begun with the first.
"""

from __future__ import annotations

import heapq
import itertools
import math

import trio

SWEEP_AT = 64
"""Cancelled timers are looked for when there are at least so many."""


class Timer:
    """One message to come. ``cancel`` it when it is no longer wanted."""

    __slots__ = ("_cancelled", "deadline", "message")

    def __init__(self, deadline: float, message: object) -> None:
        self.deadline = deadline
        self.message = message
        self._cancelled = False

    @property
    def is_cancelled(self) -> bool:
        """Whether the message will not come."""
        return self._cancelled

    def cancel(self) -> None:
        """The message is not wanted any more. After it came this does nothing."""
        self._cancelled = True


class Timers:
    """The timers of one life, on Trio's clock (monotonic seconds)."""

    __slots__ = ("_heap", "_order", "_sweep_at")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._sweep_at = SWEEP_AT

    def __len__(self) -> int:
        """How many timers are kept, cancelled ones not yet swept included."""
        return len(self._heap)

    def after(self, seconds: float, message: object) -> Timer:
        """A timer due in ``seconds`` (0 or more); those due at one time keep their order."""
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        timer = Timer(trio.current_time() + max(0.0, seconds), message)
        heapq.heappush(self._heap, (timer.deadline, next(self._order), timer))
        return timer

    def next_deadline(self) -> float:
        """When the earliest timer is due; infinity when there is none."""
        heap = self._heap
        while heap and heap[0][2].is_cancelled:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def take_due(self) -> list[object]:
        """Remove the messages that are due now, earliest first."""
        due: list[object] = []
        while self.next_deadline() <= trio.current_time():
            due.append(heapq.heappop(self._heap)[2].message)
        return due

    def _sweep(self) -> None:
        """Forget what was cancelled, so that long timers that never come due do not pile up."""
        self._heap = [entry for entry in self._heap if not entry[2].is_cancelled]
        heapq.heapify(self._heap)
        self._sweep_at = max(SWEEP_AT, 2 * len(self._heap))
