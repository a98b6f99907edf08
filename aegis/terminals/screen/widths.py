"""The columns of characters, and truncating lines by columns. Pure.

Widths are those of ``wcwidth``, one character at a time, as line editors and editors count them. A
regional indicator has one column, as for the C library and for tmux, so that a pair of them, which
is a flag, has two. ``wcwidth`` gives two to each.
"""

from __future__ import annotations

import re
from functools import lru_cache

from wcwidth import wcwidth

MAX_MARKS = 8
"""Limit of combining marks of a character on a screen; more are dropped."""


@lru_cache(maxsize=4096)
def width_of(char: str) -> int:
    """Return the columns of a character: 0 (it joins the one before), 1 or 2."""
    if "\U0001f1e6" <= char <= "\U0001f1ff":
        return 1
    return max(wcwidth(char), 0)


def truncate_to_width(line: str, cols: int) -> str:
    """Truncate ``line`` to ``cols`` columns; a wide character across the edge is dropped."""
    if len(line) <= cols and line.isascii():
        return line
    column = 0
    for index, char in enumerate(line):
        column += width_of(char)
        if column > cols:
            return line[:index]
    return line


def clusters_of(text: str) -> list[str]:
    """Split ``text`` into characters, each with its combining marks; leading marks come first."""
    clusters: list[str] = []
    for char in text:
        if width_of(char) or not clusters:
            clusters.append(char)
        elif len(clusters[-1]) <= MAX_MARKS:
            clusters[-1] += char
    return clusters


BEYOND_LATIN = re.compile("[^\x00-\u02ff]")
"""Matches a character whose width may differ from one."""
