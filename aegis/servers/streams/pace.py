"""The rate of messages on one stream of output: little at once, much in large pieces. Pure."""

from __future__ import annotations

import attrs

FRAME_S = 0.016
"""A stream of output gets one message in so many seconds while there is much of it."""

QUICK_BYTES = 512
"""So many bytes within that time go out at once: what is typed is echoed without a wait."""

QUICK_COST = 16
"""The bytes that even a shorter message counts for."""


@attrs.frozen
class Pace:
    """How often messages of output go out: ``sent`` counts since ``began``, in seconds."""

    began: float = float("-inf")
    sent: int = 0

    def after(self, size: int, now: float) -> Pace:
        """The pace once a message of ``size`` bytes was sent."""
        cost = max(size, QUICK_COST)
        return (
            Pace(now, cost) if now - self.began >= FRAME_S else Pace(self.began, self.sent + cost)
        )

    @property
    def is_flood(self) -> bool:
        """Whether much was sent a moment ago: then there may be as much again."""
        return self.sent > QUICK_BYTES

    @property
    def next_at(self) -> float:
        """When the next message may go out."""
        return self.began + FRAME_S if self.is_flood else self.began
