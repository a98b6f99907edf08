"""``Wanted``: the filter of a search. Pure."""

from __future__ import annotations

import attrs

from aegis.protocol.history import HistoryEntry
from aegis.protocol.naming import name_key

LATEST = "9"
"""A time after all others."""


@attrs.frozen
class Wanted:
    """The filter of a search; ``word`` is in lower case, times are UTC, ISO 8601."""

    name: str | None = None
    word: str | None = None
    exit: int | None = None
    since: str = ""
    until: str = LATEST

    def has(self, entry: HistoryEntry) -> bool:
        """Return whether an entry is looked for."""
        return (
            self.since <= entry.at <= self.until
            and (self.exit is None or entry.exit == self.exit)
            and (self.name is None or name_key(entry.name) == name_key(self.name))
            and (self.word is None or self.word in entry.text.lower())
        )
