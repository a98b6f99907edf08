"""When each side of a link sends a beat, and after which silence the other is lost. Pure.

Times are seconds of one monotonic clock. Whatever comes counts as a sign of life, not beats alone.
"""

from __future__ import annotations

import attrs

from actors.errors import MisuseError


def _has_room_for_beats(instance: Beat, attribute: object, value: float) -> None:
    if not 0 < instance.every_s <= value / 2:
        raise MisuseError("A link must be lost after at least two beats: every_s, lost_after_s.")


@attrs.frozen
class Beat:
    """A beat every ``every_s`` seconds; who is silent for ``lost_after_s`` is lost."""

    every_s: float = 1.0
    lost_after_s: float = attrs.field(default=5.0, validator=_has_room_for_beats)


class Pulse:
    """What one side knows of the other."""

    def __init__(self, beat: Beat, now: float) -> None:
        self._beat = beat
        self._heard = now
        self.next_at = now
        """When ``tick`` is due."""
        self._plan(now)

    def heard(self, now: float) -> None:
        """Note a sign of life."""
        self._heard = now

    def tick(self, now: float) -> bool:
        """Whether the other side is still there; when it is, a beat is to be sent.

        Time by which the tick itself is late does not count: whoever was held up, or stopped,
        could not hear.
        """
        late = now - self.next_at
        if late > self._beat.every_s:
            self._heard = min(now, self._heard + late)
        self._plan(now)
        return now - self._heard < self._beat.lost_after_s

    def _plan(self, now: float) -> None:
        self.next_at = min(now + self._beat.every_s, self._heard + self._beat.lost_after_s)
