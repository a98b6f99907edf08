"""``Waiters``: the callers that wait for the replies to broadcasts. Pure."""

from __future__ import annotations

import attrs

from aegis.groups.group import Broadcast
from aegis.protocol.groups import Reducer, WaitForAll, WaitForAny


@attrs.frozen
class Waiter:
    """A caller, which is a number, and its request for the replies to one broadcast of a group."""

    caller: int
    group: str
    broadcast: str
    request: WaitForAll | WaitForAny

    @property
    def reducer(self) -> Reducer | None:
        """The reducer of the replies; None: the first one is the result."""
        return self.request.reducer if isinstance(self.request, WaitForAll) else None

    @property
    def cancels(self) -> bool:
        """Whether the other members are not awaited any more once one has replied."""
        return isinstance(self.request, WaitForAny) and self.request.cancel_losers

    def is_served(self, broadcast: Broadcast) -> bool:
        """Return whether the replies so far are enough."""
        if broadcast.is_over:
            return True
        is_any = isinstance(self.request, WaitForAny)
        return is_any and bool(broadcast.replied) and not self.cancels


class Waiters:
    """The waiters of all groups."""

    def __init__(self) -> None:
        self._waiting: dict[int, Waiter] = {}

    def add(self, waiter: Waiter) -> None:
        """Let a caller wait."""
        self._waiting[waiter.caller] = waiter

    def leave(self, caller: int) -> Waiter | None:
        """Return the waiter of a caller, if it waits, and let it wait no more."""
        return self._waiting.pop(caller, None)

    def of(self, broadcast: str) -> list[Waiter]:
        """Return the waiters for the replies to a broadcast."""
        return [each for each in self._waiting.values() if each.broadcast == broadcast]
