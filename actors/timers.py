"""Timers as messages: a due timer puts its message into the actor's mailbox.

Each incarnation has one heap of timers, and one task for all of them, started with the first.
"""

from __future__ import annotations

import heapq
import itertools
import math

import trio

SWEEP_AT = 64
"""The number of timers from which the cancelled ones are removed."""


class Timer:
    """A message that is due later; ``cancel`` it if it is no longer needed."""

    __slots__ = ("_cancelled", "deadline", "message")

    def __init__(self, deadline: float, message: object) -> None:
        self.deadline = deadline
        self.message = message
        self._cancelled = False

    @property
    def is_cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._cancelled

    def cancel(self) -> None:
        """Do not send the message. No effect once it is in the mailbox."""
        self._cancelled = True


class Timers:
    """The timers of one incarnation, on Trio's clock (monotonic seconds)."""

    __slots__ = ("_heap", "_order", "_sweep_at")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._sweep_at = SWEEP_AT

    def __len__(self) -> int:
        """Return the number of timers, cancelled ones that are not yet swept included."""
        return len(self._heap)

    def after(self, seconds: float, message: object) -> Timer:
        """Add a timer due in ``seconds``; timers due at the same time keep their order."""
        if len(self._heap) >= self._sweep_at:
            self._sweep()
        timer = Timer(trio.current_time() + max(0.0, seconds), message)
        heapq.heappush(self._heap, (timer.deadline, next(self._order), timer))
        return timer

    def next_deadline(self) -> float:
        """Return the time of the earliest timer; infinity if there is none."""
        heap = self._heap
        while heap and heap[0][2].is_cancelled:
            heapq.heappop(heap)
        return heap[0][0] if heap else math.inf

    def take_due(self) -> list[object]:
        """Remove and return the messages that are due, earliest first."""
        due: list[object] = []
        while self.next_deadline() <= trio.current_time():
            due.append(heapq.heappop(self._heap)[2].message)
        return due

    def _sweep(self) -> None:
        # Cancelled timers with a distant deadline would otherwise accumulate.
        self._heap = [entry for entry in self._heap if not entry[2].is_cancelled]
        heapq.heapify(self._heap)
        self._sweep_at = max(SWEEP_AT, 2 * len(self._heap))
