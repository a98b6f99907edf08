"""The screen of a terminal: what a person would see now."""

from __future__ import annotations

import attrs

from aegis.protocol.terminals import OnTerminal


@attrs.frozen(kw_only=True)
class ScreenCursor:
    """Where the cursor stands, row and column from 0, and whether it shows."""

    row: int
    col: int
    visible: bool


@attrs.frozen(kw_only=True)
class Screen:
    """A terminal's screen at one moment.

    ``lines`` are its ``rows`` lines from the top, as plain text without blanks at their ends.
    ``title`` is what the program gave the window, or empty. ``alternate``: a full-screen program
    (an editor, a pager) shows its own screen, and the shell's comes back when it ends.
    ``partial``: after a flood of output only the newest was looked at, so lines from before it may
    be missing; once the screen is cleared it is whole again.
    """

    rows: int
    cols: int
    cursor: ScreenCursor
    title: str
    alternate: bool
    partial: bool
    lines: list[str]


@attrs.frozen(kw_only=True)
class GetScreen(OnTerminal[Screen]):
    """Look at a terminal's screen: what a person in front of it would see now.

    For programs that draw, such as editors, pagers and monitors: send keys, then look. For what a
    command printed, read its record.
    """
