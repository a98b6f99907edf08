"""The rate of messages on one stream of output: floods are sent in large pieces. Pure."""

from __future__ import annotations

import attrs

FRAME_S = 0.016
"""The interval, in seconds, between messages of a stream while there is much output."""

QUICK_BYTES = 512
"""The number of bytes per interval that are sent at once: the echo of typed text does not wait."""

QUICK_COST = 16
"""The smallest number of bytes that a message counts for."""


@attrs.frozen
class Pace:
    """The rate of a stream's output: ``sent`` bytes since the time ``began``."""

    began: float = float("-inf")
    sent: int = 0

    def after(self, size: int, now: float) -> Pace:
        """Return the pace after a message of ``size`` bytes."""
        cost = max(size, QUICK_COST)
        return (
            Pace(now, cost) if now - self.began >= FRAME_S else Pace(self.began, self.sent + cost)
        )

    @property
    def is_flood(self) -> bool:
        """Whether much was sent recently: then more is likely to follow."""
        return self.sent > QUICK_BYTES

    @property
    def next_at(self) -> float:
        """The earliest time of the next message."""
        return self.began + FRAME_S if self.is_flood else self.began


BURST_S = 7 * FRAME_S
"""The time that a stream can save up for frames in quick succession: eight of them."""


@attrs.frozen
class FramePace:
    """The rate of a stream's frames of entries: eight at once, in the long run one in 16 ms.

    ``next_at`` is the earliest time of the next frame.
    """

    next_at: float = float("-inf")

    def after(self, now: float) -> FramePace:
        """Return the pace after a frame."""
        return FramePace(max(self.next_at, now - BURST_S) + FRAME_S)
