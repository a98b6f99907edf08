"""A grid on ``pyte``: passages, token by token, as operations of a screen. Pure.

pyte's own parser is not used: it is wrong about many sequences, and slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from aegis.terminals.screen.pyte_screen import TextScreen

_TOKENS = re.compile(
    r"([^\x00-\x1f]+)|([\x00-\x1a\x1c-\x1f])|\x1b\[([!?]?[0-9;]*)([@-~])|\x1b(#?[0-~])"
)


class PyteGrid:
    """A ``Grid`` of ``rows`` by ``cols``."""

    def __init__(self, rows: int, cols: int) -> None:
        self._screen = TextScreen(cols, rows)

    def write(self, passage: str) -> None:
        """Write text, controls and sequences of a ``sequences.GridOutput``; whole characters."""
        screen = self._screen
        for text, control, body, final, escape in _TOKENS.findall(passage):
            if text:
                screen.draw(text)
            elif control:
                _act(_CONTROLS, control, screen)
            elif escape:
                _act(_ESCAPES, escape, screen)
            elif body.startswith("?"):
                screen.private_mode(int(body[1:]), on=final == "h")
            elif body == "!":
                screen.soft_reset()
            else:
                _carry_out(screen, body, final)

    def cursor(self) -> tuple[int, int]:
        """Return row and column, from 0."""
        cursor = self._screen.cursor
        return cursor.y, min(cursor.x, self._screen.columns - 1)

    def wraps_next(self) -> bool:
        """Return whether the cursor is behind a full line, so that the next character wraps."""
        return self._screen.cursor.x == self._screen.columns

    def let_wrap(self) -> None:
        """Move the cursor from the last column to behind the full line."""
        self._screen.cursor.x = self._screen.columns

    def lines(self) -> list[str]:
        """Return the text of each row."""
        screen = self._screen
        return [screen.text_of(row) for row in range(screen.lines)]


_Action = Callable[[TextScreen], None]


def _act(actions: Mapping[str, _Action], what: str, screen: TextScreen) -> None:
    action = actions.get(what)
    if action is not None:
        action(screen)


def _carry_out(screen: TextScreen, body: str, final: str) -> None:
    """Apply a CSI sequence with the parameters ``body``."""
    if final in _SEQUENCES:
        _SEQUENCES[final](screen, [int(number or 0) for number in body.split(";")])
    elif final in _COUNTED:
        _COUNTED[final](screen, int(body.partition(";")[0] or 0))


def _modes_on(screen: TextScreen, numbers: list[int]) -> None:
    screen.set_modes(numbers, on=True)


def _modes_off(screen: TextScreen, numbers: list[int]) -> None:
    screen.set_modes(numbers, on=False)


def _down_to_start(screen: TextScreen, count: int) -> None:
    screen.down(count)
    screen.to_start()


def _up_to_start(screen: TextScreen, count: int) -> None:
    screen.up(count)
    screen.to_start()


_CONTROLS: dict[str, _Action] = {
    "\b": lambda screen: screen.left(1),
    "\t": TextScreen.to_tab,
    "\n": TextScreen.line_feed,
    "\v": TextScreen.line_feed,
    "\f": TextScreen.line_feed,
    "\r": TextScreen.to_start,
}

_ESCAPES: dict[str, _Action] = {
    "7": TextScreen.save,
    "8": TextScreen.restore,
    "D": TextScreen.line_feed,
    "E": TextScreen.next_line,
    "H": TextScreen.set_tab,
    "M": TextScreen.reverse_index,
    "#8": TextScreen.align,
}

_SEQUENCES: dict[str, Callable[[TextScreen, list[int]], None]] = {
    "H": TextScreen.go_to,
    "f": TextScreen.go_to,
    "r": TextScreen.set_region,
    "g": TextScreen.clear_tabs,
    "h": _modes_on,
    "l": _modes_off,
}

_COUNTED: dict[str, Callable[[TextScreen, int], None]] = {
    "@": TextScreen.insert_characters,
    "A": TextScreen.up,
    "B": TextScreen.down,
    "C": TextScreen.right,
    "D": TextScreen.left,
    "E": _down_to_start,
    "F": _up_to_start,
    "G": lambda screen, count: screen.to_column(count - 1),
    "I": TextScreen.to_tab,
    "J": TextScreen.erase_screen,
    "K": TextScreen.erase_row,
    "L": TextScreen.insert_rows,
    "M": TextScreen.delete_rows,
    "P": TextScreen.delete_characters,
    "S": TextScreen.scroll_up,
    "T": TextScreen.scroll_down,
    "X": TextScreen.erase_characters,
    "Z": TextScreen.tab_back,
    "`": lambda screen, count: screen.to_column(count - 1),
    "a": TextScreen.right,
    "d": TextScreen.go_to_row,
    "e": TextScreen.down,
    "s": lambda screen, _: screen.save(),
    "u": lambda screen, _: screen.restore(),
}
