"""The progress of a long run: one rewritten line on a terminal, else a line now and then."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from typing import TextIO

REWRITE_S = 0.1
LINE_EVERY_S = 10.0

CLEAR = "\r\x1b[2K"
"""The sequence that moves to the first column and clears the line."""


def fitted(parts: Sequence[str], columns: int) -> str:
    """Return as many ``parts`` as fit into ``columns``; the first one always, truncated."""
    text = parts[0]
    for part in parts[1:]:
        if len(text) + len(part) + 3 > columns:
            break
        text = f"{text} · {part}"
    return text[:columns]


class Progress:
    """The progress on ``stream``, a terminal or a file, rewritten at a limited rate."""

    def __init__(self, stream: TextIO, *, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._rewrites = stream.isatty()
        self._shown_at = float("-inf") if self._rewrites else now()
        self._is_shown = False

    def show(self, *parts: str) -> None:
        """Show the progress, the most important part first; quick repetitions have no effect."""
        now, pause = self._now(), REWRITE_S if self._rewrites else LINE_EVERY_S
        if now < self._shown_at + pause:
            return
        self._shown_at = now
        if self._rewrites:
            columns = shutil.get_terminal_size().columns
            self._stream.write(f"{CLEAR}{fitted(parts, columns - 1)}")
            self._is_shown = True
        else:
            self._stream.write(f"{' · '.join(parts)}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Clear the line for other output."""
        if self._is_shown:
            self._stream.write(CLEAR)
            self._stream.flush()
            self._is_shown = False
