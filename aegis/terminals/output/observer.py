"""``OutputObserver``: who sees what a shell prints, beside the raw log and the capture."""

from __future__ import annotations

from typing import Protocol


class OutputObserver(Protocol):
    """Who sees the output as it comes, on the hot path: it must be quick."""

    def output(self, data: bytes, cursor: int) -> None:
        """``data`` was printed; its first byte has the offset ``cursor`` in the raw log.

        The bytes are those that viewers see: marks come without their secret.
        """
