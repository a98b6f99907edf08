"""The calls that wait to be made, in order, and when they may be. Pure.

An edit replaces an earlier edit of the same message that waits. After an answer with
``retry_after`` nothing is sent until then. Messages are spaced as Telegram wants them: one a second
in the long run, with a few at once.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import attrs

BURST = 5
"""Messages that may be sent at once after a pause."""

SPACE_S = 1.0
"""Seconds between messages in the long run."""

MAX_WAITING = 500
"""Items that wait at most; then the oldest edit is dropped, or a new one is refused."""


@attrs.frozen(kw_only=True)
class WaitingCall:
    """A call of the Bot API; ``edits`` is the message that it edits, None for another call.

    ``number`` identifies it; ``spaced`` calls are counted by Telegram's limits.
    """

    number: int
    method: str
    arguments: dict[str, Any]
    edits: int | None = None
    spaced: bool = True


class WaitingCalls:
    """The calls that wait; the time is in seconds of any clock."""

    def __init__(self) -> None:
        self._items: deque[WaitingCall] = deque()
        self._quiet_until = 0.0
        self._tokens = float(BURST)
        self._counted_at = 0.0

    def __len__(self) -> int:
        return len(self._items)

    def add(self, item: WaitingCall) -> list[int]:
        """Add a call; return the numbers of those that are not made because of it."""
        dropped = []
        if item.edits is not None:
            for index, each in enumerate(self._items):
                if each.edits == item.edits:
                    self._items[index] = item
                    return [each.number]
        if len(self._items) >= MAX_WAITING:
            edit = next((each for each in self._items if each.edits is not None), None)
            if edit is None:
                return [item.number]
            self._items.remove(edit)
            dropped.append(edit.number)
        if item.spaced:
            self._items.append(item)
        else:  # an answer to a pressed button is wanted at once
            self._items.appendleft(item)
        return dropped

    def again(self, item: WaitingCall) -> None:
        """Put a call back that failed for a moment."""
        self._items.appendleft(item)

    def be_quiet(self, until: float) -> None:
        """Send nothing before this moment."""
        self._quiet_until = max(self._quiet_until, until)

    def take(self, now: float) -> WaitingCall | float:
        """Return the next call, or the seconds after which there may be one."""
        self._count(now)
        if now < self._quiet_until:
            return self._quiet_until - now
        if not self._items:
            return float("inf")
        if not self._items[0].spaced:
            return self._items.popleft()
        if self._tokens < 1:
            return (1 - self._tokens) * SPACE_S
        self._tokens -= 1
        return self._items.popleft()

    def _count(self, now: float) -> None:
        passed, self._counted_at = max(0.0, now - self._counted_at), now
        self._tokens = min(float(BURST), self._tokens + passed / SPACE_S)
