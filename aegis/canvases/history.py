"""``History``: the changes in the lines of a ledger. Pure."""

from __future__ import annotations

import json
from collections import deque

import attrs

from aegis.canvases.state import CanvasState
from aegis.protocol.canvases import CanvasChange
from aegis.protocol.command import MAX_REPLY_BYTES

HISTORY_BYTES = 4 * 1024 * 1024
"""The size at which a new file of the ledger begins; the one before it is kept."""

_ROOM = MAX_REPLY_BYTES - 8 * 1024


@attrs.define(kw_only=True)
class History(CanvasState):
    """The state of a canvas, with its newest ``limit`` changes and one more.

    ``keys`` are the sections that are wanted, none for all.
    """

    keys: frozenset[str]
    found: deque[CanvasChange]
    limit: int

    def record(self, changes: list[CanvasChange]) -> None:
        """Keep the wanted changes with their whole texts."""
        super().record(changes)
        self.found.extend(each for each in changes if not self.keys or each.section in self.keys)

    @property
    def newest_first(self) -> list[CanvasChange]:
        """The changes that fit into a reply; the text of one that alone does not is left out."""
        room, fitting = _ROOM, list[CanvasChange]()
        for change in [*reversed(self.found)][: self.limit]:
            size = _size(change)
            if size > _ROOM:
                change, size = attrs.evolve(change, text=change.text and change.text[:1_000]), 8_000
            room -= size
            if room < 0:
                break
            fitting.append(change)
        return fitting

    @property
    def has_more(self) -> bool:
        """Whether there are older changes than those that are returned."""
        return len(self.newest_first) < len(self.found)


def _size(change: CanvasChange) -> int:
    document = attrs.asdict(change)
    return len(json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace")) + 2
