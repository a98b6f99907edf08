"""What is typed to a shell that reads no file of ours, until it has shown a prompt."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

AGAIN_S = (0.5, 1.5, 4.0)
"""When it is typed again: a shell may drop what it finds typed when it starts."""


class Greeting:
    """``write`` types it; ``look_again_after`` lets somebody call ``is_due`` so much later."""

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
        """Type it, if there is anything to type."""
        if not self._text:
            return
        self._write(self._text)
        pause_s = next(self._pauses_s, None)
        self._next = math.inf if pause_s is None else trio.current_time() + pause_s
        if pause_s is not None:
            self._look_again_after(pause_s)

    def is_due(self) -> bool:
        """Whether it is time to type it once more."""
        return trio.current_time() >= self._next
