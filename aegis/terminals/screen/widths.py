"""How many columns a character takes, and lines cut by columns. Pure.

Widths are those of ``wcwidth``, one character at a time, as line editors and editors count them. A
regional indicator has one column, as for the C library and for tmux, so that a pair of them, which
is a flag, has two. ``wcwidth`` gives two to each.
"""

from __future__ import annotations

import re
from functools import lru_cache

from wcwidth import wcwidth

MAX_MARKS = 8
"""How many marks a character on a screen may carry; more are dropped."""


@lru_cache(maxsize=4096)
def width_of(char: str) -> int:
    """Columns of a character that is no control: 0 (it joins the one before), 1 or 2."""
    if "\U0001f1e6" <= char <= "\U0001f1ff":
        return 1
    return max(wcwidth(char), 0)


def width_of_text(text: str) -> int:
    """Columns of a text without controls."""
    return len(text) if text.isascii() else sum(map(width_of, text))


def cut_to_width(line: str, cols: int) -> str:
    """What of ``line`` fits ``cols`` columns; a wide character that does not is left out."""
    if len(line) <= cols and line.isascii():
        return line
    column = 0
    for index, char in enumerate(line):
        column += width_of(char)
        if column > cols:
            return line[:index]
    return line


def clusters_of(text: str) -> list[str]:
    """``text`` as characters, each with the marks that join it; marks before any come first."""
    clusters: list[str] = []
    for char in text:
        if width_of(char) or not clusters:
            clusters.append(char)
        elif len(clusters[-1]) <= MAX_MARKS:
            clusters[-1] += char
    return clusters


BEYOND_LATIN = re.compile("[^\x00-\u02ff]")
"""Finds a character that may take another width than one."""
