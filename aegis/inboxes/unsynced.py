"""The lines of an inbox that are written but not known to be synced, and their waiters."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import attrs

from actors import Reply, Timer
from aegis.inboxes.state import Arriving
from aegis.journal.appender import Position
from aegis.protocol.feeds import FollowInbox
from aegis.protocol.inboxes import Deliver, ReadInbox, Receipt, WaitInbox
from aegis.protocol.wakes import parse_wake_id

Reader = ReadInbox | WaitInbox | FollowInbox
"""A request that is answered with messages."""


@attrs.define(eq=False)
class Arrival:
    """A message whose line of ``size`` bytes begins ``at``; its senders wait for the sync.

    ``is_deferred``: the senders leave the sync to the next one of the inbox.
    """

    position: Position
    at: int
    size: int
    message_id: str
    chars: int
    is_wake: bool
    is_deferred: bool
    senders: list[Reply[Receipt]]

    @classmethod
    def of(
        cls, delivery: Deliver, position: Position, size: int, sender: Reply[Receipt]
    ) -> Arrival:
        """Return the arrival of ``delivery``, whose line ends at ``position``."""
        return cls(
            position=position,
            at=position.end - size,
            size=size,
            message_id=delivery.id,
            chars=len(delivery.body),
            is_wake=parse_wake_id(delivery.id) is not None,
            is_deferred=delivery.defer_sync,
            senders=[sender],
        )


@attrs.define(eq=False, kw_only=True)
class Reading:
    """A reader that waits for the sync of everything up to ``position``.

    ``up_to`` is the message that the reader's line acknowledges; without it the reader wrote no
    line, and ``timer`` limits its wait.
    """

    number: int
    position: Position
    up_to: str | None
    request: Reader
    reader: Reply[Any]
    timer: Timer | None = None


class Unsynced:
    """The arrivals and readings of one inbox, in the order of their lines."""

    def __init__(self) -> None:
        self._queue: deque[Arrival | Reading] = deque()
        self._arrivals: dict[str, Arrival] = {}
        self.arriving = Arriving()
        self.deferred = 0
        """The number of deferred arrivals: their sync may not have been requested."""

    def __len__(self) -> int:
        return len(self._queue)

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._arrivals

    def arrival(self, message_id: str) -> Arrival | None:
        """Return the arrival of this message; None if there is none."""
        return self._arrivals.get(message_id)

    @property
    def newest(self) -> Position:
        """The end of the last line. Requires at least one line."""
        return self._queue[-1].position

    def add_arrival(self, arrival: Arrival) -> None:
        """Add a message whose line was written."""
        self._queue.append(arrival)
        self._arrivals[arrival.message_id] = arrival
        self._count(arrival, 1)

    def add_reading(self, reading: Reading) -> None:
        """Add a waiting reader."""
        self._queue.append(reading)

    def take(self, is_synced: Callable[[Position], bool]) -> Arrival | Reading | None:
        """Remove and return the oldest entry whose lines are synced; None if there is none.

        Raises the errors of ``is_synced``.
        """
        if not self._queue or not is_synced(self._queue[0].position):
            return None
        taken = self._queue.popleft()
        if isinstance(taken, Arrival):
            del self._arrivals[taken.message_id]
            self._count(taken, -1)
        return taken

    def take_reading(self, number: int) -> Reading | None:
        """Remove and return the reading of this number, if it still waits."""
        for each in self._queue:
            if isinstance(each, Reading) and each.number == number:
                self._queue.remove(each)
                return each
        return None

    def clear(self) -> list[Arrival | Reading]:
        """Remove and return all entries, whose lines are not in the ledger any more."""
        cleared = list(self._queue)
        self._queue.clear()
        self._arrivals.clear()
        self.arriving = Arriving()
        self.deferred = 0
        return cleared

    def _count(self, arrival: Arrival, sign: int) -> None:
        self.arriving.messages += sign
        self.arriving.chars += sign * arrival.chars
        self.arriving.wakes += sign * arrival.is_wake
        self.deferred += sign * arrival.is_deferred
