"""Keys for a shell that reads no start-up file of ours, typed until it shows a prompt."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

AGAIN_S = (0.5, 1.5, 4.0)
"""Seconds between repetitions: a starting shell may drop keys that were typed before."""


class Greeting:
    """Keys and their repetitions; ``look_again_after`` schedules a call of ``is_due``."""

    def __init__(
        self,
        text: bytes,
        write: Callable[[bytes], None],
        look_again_after: Callable[[float], None],
    ) -> None:
        self._text = text
        self._write = write
        self._look_again_after = look_again_after
        self._pauses_s = iter(AGAIN_S)
        self._next = math.inf

    def send(self) -> None:
        """Type the keys, if any."""
        if not self._text:
            return
        self._write(self._text)
        pause_s = next(self._pauses_s, None)
        self._next = math.inf if pause_s is None else trio.current_time() + pause_s
        if pause_s is not None:
            self._look_again_after(pause_s)

    def is_due(self) -> bool:
        """Return whether the keys must be typed again now."""
        return trio.current_time() >= self._next
