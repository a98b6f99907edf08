"""Heartbeats: when each side of a link sends one, and when the other side is lost. Pure.

Times are seconds of one monotonic clock. Every frame counts as a sign of life, not only heartbeats.
"""

from __future__ import annotations

import attrs

from actors.errors import MisuseError


def _has_room_for_beats(instance: Beat, attribute: object, value: float) -> None:
    if not 0 < instance.every_s <= value / 2:
        raise MisuseError("A link must be lost after at least two beats: every_s, lost_after_s.")


@attrs.frozen
class Beat:
    """A heartbeat every ``every_s`` seconds; a side that is silent for ``lost_after_s`` is lost."""

    every_s: float = 1.0
    lost_after_s: float = attrs.field(default=5.0, validator=_has_room_for_beats)


class Pulse:
    """The liveness of the other side."""

    def __init__(self, beat: Beat, now: float) -> None:
        self._beat = beat
        self._seen_at = now
        self.next_at = now
        """The time of the next ``tick``."""
        self._plan(now)

    def seen(self, now: float) -> None:
        """Note a sign of life."""
        self._seen_at = now

    def tick(self, now: float) -> bool:
        """Return whether the other side is alive; if so, send it a heartbeat.

        The time by which this tick is late does not count as silence: a process that was suspended
        or blocked could not receive.
        """
        late = now - self.next_at
        if late > self._beat.every_s:
            self._seen_at = min(now, self._seen_at + late)
        self._plan(now)
        return now - self._seen_at < self._beat.lost_after_s

    def _plan(self, now: float) -> None:
        self.next_at = min(now + self._beat.every_s, self._seen_at + self._beat.lost_after_s)
