"""A screen as text that draws it on another terminal. Pure."""

from __future__ import annotations

import re

from aegis.terminals.screen.emulator import Screenshot
from aegis.terminals.screen.modes import KEPT

_GIVE_UP = "\x18"  # whatever sequence was begun

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
"""A sequence that is cut off later than this is not looked for."""


def redrawn(shot: Screenshot, modes: str) -> str:
    """Text that makes any terminal of that size show ``shot``; ``modes`` switch on the rest.

    Every line is put at its place, so nothing scrolls. Characters have no colours: an emulator of
    text does not know them.
    """
    screen = "\x1b[?1049h" if shot.alternate else "\x1b[?1049l"
    lines = "".join(f"\x1b[{row};1H{line}" for row, line in enumerate(shot.lines, 1) if line)
    row, col = shot.cursor
    cursor = f"\x1b[{row + 1};{col + 1}H\x1b[?25{'h' if shot.cursor_visible else 'l'}"
    # The switch comes first: to leave the alternate screen brings back what was saved with it.
    blank = f"{_GIVE_UP}{screen}{_RESET}\x1b[H\x1b[2J"
    return f"{blank}{lines}\x1b]2;{shot.title}\x1b\\{modes}{cursor}"


def unfinished_bytes(newest: bytes) -> int:
    """How many bytes at the end of ``newest`` begin a sequence or character that is cut off there.

    Whoever goes on behind them would take the rest for text: it has to go on before them.
    """
    for pattern in (_UNFINISHED, _CUT_CHARACTER):
        cut = pattern.search(newest)
        if cut is not None:
            return len(cut.group())
    return 0
