"""A screen as text that draws it on another terminal. Pure."""

from __future__ import annotations

import re

from aegis.terminals.screen.emulator import Screenshot
from aegis.terminals.screen.modes import KEPT

_GIVE_UP = "\x18"  # CAN aborts an incomplete sequence

_RESET = "\x1b[!p\x1b[0m\x1b(B\x0f\x1b[r\x1b[?6l\x1b[?7h\x1b[4l\x1b>" + "".join(
    f"\x1b[?{mode}l" for mode in sorted(KEPT)
)

_UNFINISHED = re.compile(
    rb"\x1b(?:\[[\x20-\x3f]*|[\x20-\x2f]*|[\]PX^_k][^\x07\x18\x1a\x1b]*\x1b?)?\Z"
)
_CUT_CHARACTER = re.compile(
    rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z"
)

UNFINISHED_BYTES = 4096
"""Limit of an incomplete sequence at the end of the output."""


def redrawn(shot: Screenshot, modes: str) -> str:
    """Return text that draws ``shot`` on a terminal of its size; ``modes`` are appended.

    Each line is placed on its row, so nothing scrolls. The text has no colours: the emulator does
    not store them.
    """
    screen = "\x1b[?1049h" if shot.alternate else "\x1b[?1049l"
    lines = "".join(f"\x1b[{row};1H{line}" for row, line in enumerate(shot.lines, 1) if line)
    row, col = shot.cursor
    cursor = f"\x1b[{row + 1};{col + 1}H\x1b[?25{'h' if shot.cursor_visible else 'l'}"
    # The switch comes first: leaving the alternate screen restores the saved cursor and modes.
    blank = f"{_GIVE_UP}{screen}{_RESET}\x1b[H\x1b[2J"
    return f"{blank}{lines}\x1b]2;{shot.title}\x1b\\{modes}{cursor}"


def unfinished_bytes(newest: bytes) -> int:
    """Return the size of an incomplete sequence or character at the end of ``newest``.

    A client must continue before it: else it would take the rest for text.
    """
    for pattern in (_UNFINISHED, _CUT_CHARACTER):
        cut = pattern.search(newest)
        if cut is not None:
            return len(cut.group())
    return 0
