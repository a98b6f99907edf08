"""What streams give beside the items of the protocol: output, and what is missing. Pure."""

from __future__ import annotations

from typing import Literal

import attrs

GapReason = Literal["slow", "reconnected"]


@attrs.frozen(kw_only=True)
class Chunk:
    """Bytes that a terminal printed; ``cursor`` is the offset of the first of them."""

    cursor: int
    data: bytes

    @property
    def next_cursor(self) -> int:
        """Where the next chunk begins, if nothing is missing."""
        return self.cursor + len(self.data)


@attrs.frozen(kw_only=True)
class Gap:
    """Something is missing here.

    ``dropped`` is how much: bytes of output, else items; null: nobody knows. ``cursor`` is where
    output goes on, null for items. ``reason``: the reader was too ``slow``, or the connection was
    lost meanwhile and came again (``reconnected``).
    """

    dropped: int | None
    cursor: int | None
    reason: GapReason
