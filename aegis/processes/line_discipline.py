"""The line discipline of a tty: its modes, and the longest line that it passes on. Pure.

A tty in canonical mode holds one line of at most 4,095 bytes until its end comes, and silently
drops the rest of a longer one (termios(3)). It holds whole lines without a limit of their number: a
writer waits until the program has read some.
"""

from __future__ import annotations

import re

import attrs

MAX_LINE_BYTES = 4095


@attrs.frozen(kw_only=True)
class LineEnds:
    """The characters that end a line, and those that drop the collected one."""

    end: bytes
    drop: bytes


@attrs.frozen(kw_only=True)
class LineDiscipline:
    """The state of the tty ``name``; ``line_ends`` applies in canonical mode."""

    name: str
    is_canonical: bool
    echoes: bool
    line_ends: LineEnds


class CollectedLine:
    """The line that a tty is collecting for a program; ``length`` is in bytes."""

    def __init__(self) -> None:
        self.length = 0

    def longest(self, keys: bytes, ends: LineEnds) -> int:
        """Return the length of the longest line that ``keys`` would make."""
        return max(self._lengths(keys, ends))

    def sent(self, keys: bytes, ends: LineEnds) -> None:
        """Note that ``keys`` went to the tty."""
        self.length = self._lengths(keys, ends)[-1]

    def reset(self) -> None:
        """Start anew: another program reads, or the mode changed."""
        self.length = 0

    def _lengths(self, keys: bytes, ends: LineEnds) -> list[int]:
        lines = re.split(b"[" + re.escape(ends.end + ends.drop) + b"]", keys)
        return [self.length + len(lines[0]), *map(len, lines[1:])]
