"""What is sent to a shell while it reads a submission waits: keys would join the text or cut it.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

READING_S = 1.0
READING_BYTES_PER_S = 50_000
"""How long the shell may take to read a submission before keys are no longer held back for it.

Readline on a slow machine takes a fifth of that.
"""


def reading_s(size: int) -> float:
    """How long the shell may take to read so many bytes, in seconds."""
    return READING_S + size / READING_BYTES_PER_S


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
