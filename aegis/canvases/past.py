"""The changes of a canvas, the newest first, from its ledger and from the archive. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from aegis.canvases.revisions import Revision
from aegis.protocol.canvases import CanvasChange, CanvasHistory
from aegis.protocol.command import MAX_REPLY_BYTES, json_size

HISTORY_BYTES = MAX_REPLY_BYTES - 8 * 1024
MAX_LONE_CHARS = 1_000
"""The size of a history, and of a text in it that alone is larger."""

LOOKAHEAD = 64
"""The lines of the archive that are read for a number that is missing.

The archive may have rows twice, so that older ones come before newer ones.
"""


class NewestFirst:
    """The changes before the number ``before``, of which ``rows`` are in the ledger."""

    def __init__(self, before: int, rows: Iterable[Revision]) -> None:
        self._taken = before
        self._found = {each.number: each for each in rows if each.number < before}
        self._waited = 0
        self.is_complete = False
        """Whether all that the archive has was added."""

    def add(self, rows: Iterable[Revision]) -> None:
        """Add rows of the archive, about the newest first."""
        for each in rows:
            self._waited += 1
            if each.number < self._taken:
                self._found.setdefault(each.number, each)

    def take(self) -> Iterator[Revision]:
        """Yield the next changes, as far as they are known without more rows."""
        while self._found:
            if self._taken - 1 in self._found:
                self._taken -= 1
            elif self.is_complete or self._waited >= LOOKAHEAD:
                self._taken = max(self._found)
            else:
                return
            self._waited = 0
            yield self._found.pop(self._taken)


@attrs.define
class ChangesReply:
    """The reply to a request for changes: at most ``limit``, and what fits.

    All changes from the number ``looked`` on were looked at.
    """

    canvas: str
    limit: int
    looked: int
    found: list[CanvasChange] = attrs.field(factory=list)
    room: int = HISTORY_BYTES

    @property
    def is_full(self) -> bool:
        """Whether it has as many changes as it may have."""
        return len(self.found) >= self.limit

    def take(self, change: CanvasChange) -> bool:
        """Add a change with its text; return False if there is no room for it."""
        size = json_size(attrs.asdict(change)) + 2
        if size > HISTORY_BYTES and change.text is not None:
            change, size = attrs.evolve(change, text=change.text[:MAX_LONE_CHARS]), 8_000
        self.room -= size
        if self.room < 0:
            return False
        self.found.append(change)
        return True

    def reply(self, *, more: bool, gone: bool = False) -> CanvasHistory:
        """Return the reply; ``more``: there may be older ones, ``gone``: they were deleted."""
        before = self.looked if more else None
        return CanvasHistory(
            canvas=self.canvas, result=self.found, more=more, before=before, gone=gone
        )
