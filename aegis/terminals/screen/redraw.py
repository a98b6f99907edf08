"""A screen as text that draws it on another terminal. Pure."""

from __future__ import annotations

import re

import attrs

from aegis.protocol.output_streams import DrawnMark
from aegis.terminals.screen.emulator import Screenshot
from aegis.terminals.screen.modes import KEPT

_GIVE_UP = "\x18"  # CAN aborts an incomplete sequence

_RESET = "\x1b[!p\x1b[0m\x1b(B\x0f\x1b[r\x1b[?6l\x1b[?7h\x1b[4l\x1b>" + "".join(
    f"\x1b[?{mode}l" for mode in sorted(KEPT)
)

_BLANK = f"{_RESET}\x1b[H\x1b[2J"

_OPENING = f"{_GIVE_UP}\x1b[?1049l{_BLANK}"
"""Begins a drawing. The switch comes first: leaving the alternate screen restores the saved cursor
and modes."""

_UNFINISHED = re.compile(
    rb"\x1b(?:\[[\x20-\x3f]*|[\x20-\x2f]*|[\]PX^_k][^\x07\x18\x1a\x1b]*\x1b?)?\Z"
)
_CUT_CHARACTER = re.compile(
    rb"(?:[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z"
)

UNFINISHED_BYTES = 4096
"""Limit of an incomplete sequence at the end of the output."""


@attrs.frozen(kw_only=True)
class Drawing:
    """The parts of a drawing: text that draws the screens from blank ones.

    ``main`` draws the main screen, ``alternate`` the alternate one if that is shown. ``marks`` are
    places in ``main``.
    """

    main: str
    alternate: str | None
    marks: tuple[DrawnMark, ...] = ()


def plain_drawing(shot: Screenshot) -> Drawing:
    """Return the text of the screens, each line on its row, so that nothing scrolls; no colours."""
    row, col = shot.cursor
    shown = f"{_placed(shot.lines)}\x1b[{row + 1};{col + 1}H"
    if not shot.alternate:
        return Drawing(main=shown, alternate=None)
    return Drawing(main=_placed(shot.beneath), alternate=shown)


def redrawn(drawing: Drawing, shot: Screenshot, modes: str) -> str:
    """Return text that draws ``shot`` on a terminal of its size; ``modes`` are appended."""
    text = f"{_OPENING}{drawing.main}"
    if drawing.alternate is not None:
        text += f"\x1b[?1049h{_BLANK}{drawing.alternate}"
    visible = "h" if shot.cursor_visible else "l"
    return f"{text}\x1b]2;{shot.title}\x1b\\{modes}\x1b[?25{visible}"


def marks_of(drawing: Drawing) -> list[DrawnMark]:
    """Return the marks at their places in the text of ``redrawn``."""
    return [attrs.evolve(each, at=each.at + len(_OPENING)) for each in drawing.marks]


def _placed(lines: tuple[str, ...]) -> str:
    return "".join(f"\x1b[{row};1H{line}" for row, line in enumerate(lines, 1) if line)


def unfinished_bytes(newest: bytes) -> int:
    """Return the size of an incomplete sequence or character at the end of ``newest``.

    A client must continue before it: else it would take the rest for text.
    """
    for pattern in (_UNFINISHED, _CUT_CHARACTER):
        cut = pattern.search(newest)
        if cut is not None:
            return len(cut.group())
    return 0
