"""``Settling``: the readers that an inbox still has to answer, and the waiters for the last answer.

An inbox answers its requests before it is stopped. Otherwise the sender of a durable message would
get the error that the message may have been delivered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from actors import Reply, Request
from aegis.inboxes.unsynced import Unsynced


@attrs.frozen(kw_only=True)
class Settle(Request[None]):
    """Reply once every earlier request but a wait for the next message is answered."""


class Settling:
    """The answers that an inbox owes; ``unsynced`` has those that wait for a sync."""

    def __init__(self, unsynced: Unsynced) -> None:
        self._unsynced = unsynced
        self._reads = 0
        self._waiters: list[Reply[None]] = []

    async def run(self, read: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run ``read``, which answers a reader. ``reading`` was called when it was started."""
        try:
            await read(*args)
        finally:
            self._reads -= 1
            self.check()

    def reading(self) -> None:
        """Note that a read is started."""
        self._reads += 1

    def wait(self, reply: Reply[None]) -> None:
        """Answer ``reply`` once nothing is owed."""
        self._waiters.append(reply)
        self.check()

    def check(self) -> None:
        """Answer the waiters if nothing is owed any more."""
        while self._waiters and not (self._unsynced or self._reads):
            self._waiters.pop().send(None)
