"""The wakes of a terminal's records: the newest from memory, older ones from the ledger.

The few newest wakes are kept in memory so that the usual case reads no file.
"""

from __future__ import annotations

import attrs

from aegis.protocol.terminals import CommandRecord
from aegis.terminals.history import History
from aegis.terminals.wakes.notification import RecordNotification, wake_of, wake_of_deleted

MAX_RECENT = 64
"""Limit of wakes in memory: at most three thousand characters each, and their commands."""

MAX_RECENT_CHARS = 262_144
"""Limit of characters of their commands."""

PAGE_BYTES = 128 * 1024
"""Bytes of the ledger that are in memory for one subscriber that lags behind."""


@attrs.frozen(kw_only=True)
class WakeBatch:
    """Consecutive wakes, the oldest first; they cover all records up to ``reached``.

    ``has_older``: it is from the ledger, as is the next one.
    """

    wakes: tuple[RecordNotification, ...]
    reached: int
    has_older: bool = False


class WakeFeed:
    """The finished commands of one terminal. ``last`` is the number of the newest record."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._recent: list[RecordNotification] = []
        self._chars = 0
        self._floor = -1  # every later record is among the recent
        self.last = -1

    def begin(self, last_seq: int) -> None:
        """Start a life: all records up to ``last_seq`` are in the ledger."""
        self.last = self._floor = last_seq

    def add(self, record: CommandRecord, *, is_wanted: bool) -> RecordNotification | None:
        """Take a record that is synced in the ledger; ``is_wanted``: there are subscribers.

        Return its wake if it follows the record before it and is wanted.
        """
        wake = wake_of(record) if is_wanted and record.seq == self.last + 1 else None
        if wake is not None:
            self._keep(wake)
        else:  # the ledger may have records that were not added here
            self._recent.clear()
            self._chars = 0
            self._floor = max(self.last, record.seq)
        self.last = max(self.last, record.seq)
        return wake

    def _keep(self, wake: RecordNotification) -> None:
        self._recent.append(wake)
        self._chars += len(wake.cmd or "")
        while len(self._recent) > MAX_RECENT or self._chars > MAX_RECENT_CHARS:
            oldest = self._recent.pop(0)
            self._chars -= len(oldest.cmd or "")
            self._floor = oldest.seq

    async def page_after(self, seq: int) -> WakeBatch:
        """Return the wakes after ``seq``. Raises ``StorageError``."""
        last = self.last
        if seq >= self._floor:
            return WakeBatch(
                wakes=tuple(wake for wake in self._recent if wake.seq > seq), reached=last
            )
        stretch = await self._history.stretch(seq, PAGE_BYTES)
        records = [record for record in stretch.records if record.seq <= last]
        wakes = tuple(wake_of(record) for record in records)
        if records and stretch.oldest > seq + 1:
            wakes = (wake_of_deleted(seq + 1, stretch.oldest - 1, wakes[0].timestamp), *wakes)
        if not stretch.more or len(records) < len(stretch.records):
            return WakeBatch(wakes=wakes, reached=last)
        return WakeBatch(wakes=wakes, reached=stretch.reached, has_older=True)
