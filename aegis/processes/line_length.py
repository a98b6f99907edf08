"""How long a line may be that is typed to a program which reads lines. Pure.

A tty in canonical mode holds one line of at most 4,095 bytes until its end comes, and drops the
rest of a longer one without a word (termios(3)). Of whole lines it takes as many as there are: a
writer waits until the program has read some.
"""

from __future__ import annotations

import re

import attrs

MAX_LINE_BYTES = 4095


@attrs.frozen(kw_only=True)
class LineEnds:
    """Characters that a tty acts on: those that end a line, and those that drop what there is."""

    end: bytes
    drop: bytes


class LineInHand:
    """The line that a tty collects for a program: ``length`` bytes of it were sent before."""

    def __init__(self) -> None:
        self.length = 0

    def longest(self, keys: bytes, ends: LineEnds) -> int:
        """The length of the longest line that would come of ``keys``; nothing changes."""
        return max(self._lengths(keys, ends))

    def sent(self, keys: bytes, ends: LineEnds) -> None:
        """``keys`` went to the tty."""
        self.length = self._lengths(keys, ends)[-1]

    def reset(self) -> None:
        """Another program reads, or none by lines."""
        self.length = 0

    def _lengths(self, keys: bytes, ends: LineEnds) -> list[int]:
        lines = re.split(b"[" + re.escape(ends.end + ends.drop) + b"]", keys)
        return [self.length + len(lines[0]), *map(len, lines[1:])]
