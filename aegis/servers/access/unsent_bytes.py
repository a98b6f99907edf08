"""What waits to be sent, counted over all clients: beyond a bound whoever owes most is cut off.

Each answer is small and each client may have some; a crowd of clients that do not read would make
the daemon hold all of them. A client that reads owes nothing for long.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog

MAX_UNSENT_BYTES = 64 * 1024 * 1024

log = structlog.get_logger("aegis.servers")


class SlowClient(Protocol):
    """Whom something is to be sent to."""

    def abort(self) -> None:
        """End it now: whatever waits for it is dropped."""
        ...


class UnsentBytes:
    """The bytes that wait for each client, and for all of them together."""

    def __init__(self, most: int = MAX_UNSENT_BYTES) -> None:
        self._most = most
        self._owed: dict[SlowClient, int] = {}
        self._cut_off: set[SlowClient] = set()
        self.total = 0

    @contextmanager
    def holding(self, debtor: SlowClient, size: int) -> Iterator[None]:
        """Count ``size`` bytes that wait for ``debtor`` during the block.

        If that is too much for all together, the client that most waits for is aborted: the block
        fails then, or another one does.
        """
        self._change(debtor, size)
        try:
            if self.total > self._most:
                self._cut_off_the_worst()
            yield
        finally:
            self._change(debtor, -size)

    def _change(self, debtor: SlowClient, size: int) -> None:
        self.total += size
        owed = self._owed.get(debtor, 0) + size
        if owed:
            self._owed[debtor] = owed
        else:
            self._owed.pop(debtor, None)
            self._cut_off.discard(debtor)

    def _cut_off_the_worst(self) -> None:
        # What it owes stays counted until its tasks have noticed, so nobody else is cut off for it.
        worst = max(self._owed, key=lambda each: self._owed[each])
        if worst in self._cut_off:
            return
        self._cut_off.add(worst)
        log.warning("cut off a client that does not read", unsent=self._owed[worst], all=self.total)
        worst.abort()
