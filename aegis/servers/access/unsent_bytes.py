"""A limit on the bytes that all clients together have not read yet.

Each answer is small, but the answers to many clients that do not read would fill the daemon's
memory. Beyond the limit the client with the most unread bytes is disconnected.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog

MAX_UNSENT_BYTES = 64 * 1024 * 1024

log = structlog.get_logger("aegis.servers")


class SlowClient(Protocol):
    """A client that may be disconnected because it does not read."""

    def abort(self) -> None:
        """Close the connection now and drop what was not sent."""
        ...


class UnsentBytes:
    """The number of unread bytes of each client, and of all clients together."""

    def __init__(self, most: int = MAX_UNSENT_BYTES) -> None:
        self._most = most
        self._owed: dict[SlowClient, int] = {}
        self._aborted: set[SlowClient] = set()
        self.total = 0

    @contextmanager
    def holding(self, debtor: SlowClient, size: int) -> Iterator[None]:
        """Count ``size`` unread bytes of ``debtor`` during the block.

        Beyond the limit the client with the most unread bytes is aborted, which may be this one.
        """
        self._change(debtor, size)
        try:
            if self.total > self._most:
                self._abort_the_worst()
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
            self._aborted.discard(debtor)

    def _abort_the_worst(self) -> None:
        # Its bytes stay counted until its tasks end, so no second client is aborted for them.
        worst = max(self._owed, key=lambda each: self._owed[each])
        if worst in self._aborted:
            return
        self._aborted.add(worst)
        log.warning("cut off a client that does not read", unsent=self._owed[worst], all=self.total)
        worst.abort()
