"""What is sent to a shell while it reads a submission waits: keys would join the text or cut it.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs


@attrs.frozen
class _Held:
    size: int
    release: Callable[[], None]


class HeldBack:
    """What waits, in order; ``until`` is the moment at which it waits no longer."""

    def __init__(self) -> None:
        self._waiting: list[_Held] = []
        self.until = 0.0

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def size(self) -> int:
        """How many bytes of keys wait."""
        return sum(held.size for held in self._waiting)

    def add(self, size: int, release: Callable[[], None]) -> None:
        """Let something wait: ``size`` bytes of keys, or a signal (0)."""
        self._waiting.append(_Held(size, release))

    def release(self) -> None:
        """Let everything go."""
        waiting, self._waiting = self._waiting, []
        for held in waiting:
            held.release()
