"""The screen of a terminal, as a person would see it now."""

from __future__ import annotations

import attrs

from aegis.protocol.terminals import OnTerminal


@attrs.frozen(kw_only=True)
class ScreenCursor:
    """The cursor: row and column, counted from 0, and whether it is visible."""

    row: int
    col: int
    visible: bool


@attrs.frozen(kw_only=True)
class Screen:
    """A terminal's screen at one moment.

    ``lines`` are its ``rows`` lines from the top, as plain text without trailing blanks. ``title``
    is the window title that the program set, or empty. ``alternate``: a full-screen program (an
    editor, a pager) shows its own screen; the shell's screen returns when the program ends.
    ``partial``: after a flood of output only the newest part was drawn, so earlier lines may be
    missing until the screen is cleared.
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
    """Return a terminal's screen as a person sees it: for editors, pagers and monitors."""
