"""The themes: two with their own colours, and one of the 16 colours of the terminal."""

from __future__ import annotations

from rich.terminal_theme import TerminalTheme
from textual.theme import Theme

DARK = Theme(
    name="aegis-dark",
    primary="#7aa2f7",
    secondary="#7dcfff",
    accent="#7dcfff",
    warning="#e0af68",
    error="#f7768e",
    success="#9ece6a",
    foreground="#c8d0e8",
    background="#14161f",
    surface="#1a1d29",
    panel="#242838",
    dark=True,
)

LIGHT = Theme(
    name="aegis-light",
    primary="#2e5cc5",
    secondary="#00718f",
    accent="#00718f",
    warning="#9a6700",
    error="#c0283d",
    success="#3a7d1e",
    foreground="#23283a",
    background="#fbfbfd",
    surface="#f1f2f6",
    panel="#e2e5ee",
    dark=False,
)

ANSI = Theme(
    name="aegis-16",
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_cyan",
    accent="ansi_cyan",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    dark=True,
    variables={
        "ansi-background": "ansi_black",
        "ansi-foreground": "ansi_white",
        "border-blurred": "ansi_default",
        "block-cursor-foreground": "ansi_black",
        "block-cursor-background": "ansi_cyan",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
        "input-selection-background": "ansi_bright_blue",
        "input-selection-foreground": "ansi_black",
        "screen-selection-background": "ansi_bright_blue",
        "screen-selection-foreground": "ansi_black",
        "text-muted": "ansi_default",
    },
)
"""Everything in the colours of the terminal itself: right on 16 colours and on any background."""


def _palette(background: str, foreground: str, normal: str, bright: str) -> TerminalTheme:
    """Return the 16 colours of programs; each is six hexadecimal digits."""

    def parts(text: str) -> tuple[int, int, int]:
        red, green, blue = bytes.fromhex(text)
        return red, green, blue

    return TerminalTheme(
        parts(background),
        parts(foreground),
        [parts(each) for each in normal.split()],
        [parts(each) for each in bright.split()],
    )


DARK_PALETTE = _palette(
    "14161f",
    "c8d0e8",
    "20222e f7768e 9ece6a e0af68 7aa2f7 bb9af7 7dcfff a9b1d6",
    "565f89 ff8fa3 b4e384 f3c583 94b6ff cfb3ff a4dcff e6ebfa",
)
LIGHT_PALETTE = _palette(
    "fbfbfd",
    "23283a",
    "23283a c0283d 3a7d1e 9a6700 2e5cc5 7a3eb1 00718f 6b7186",
    "4a5068 d1344b 468f26 b07800 3f6fdc 8d50c6 00829f 9aa0b4",
)
"""The colours of programs, readable on the background of each theme."""

THEMES = (DARK, LIGHT, ANSI)


def theme_for(background: tuple[int, int, int] | None, colors: int) -> str:
    """Return the name of the theme for a background, and a terminal with so many colours."""
    if background is None or colors < 1 << 24:
        return ANSI.name
    red, green, blue = background
    is_light = 0.299 * red + 0.587 * green + 0.114 * blue > 127
    return LIGHT.name if is_light else DARK.name
