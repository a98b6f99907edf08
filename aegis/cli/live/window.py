"""The state of the window that shows an attached terminal. Pure."""

from __future__ import annotations

import re

_SCREEN = re.compile(rb"\x1b(?:\[\?([0-9;]{1,64})([hl])|c)")
_ALTERNATE = {b"47", b"1047", b"1049"}
_MOUSE_AND_PASTE = (9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004)

_MODES_OFF = (
    "\x18"  # cancels an unfinished sequence
    "\x1b[?2026l"  # ends a synchronised update
    "\x1b[0m\x1b(B\x0f"  # colours, character set
    "\x1b[r\x1b[?6l\x1b[?7h\x1b[4l"  # margins, origin, wrapping, insertion
    "\x1b>\x1b[?1l"  # keypad and cursor keys
    + "".join(f"\x1b[?{mode}l" for mode in _MOUSE_AND_PASTE)
    + "\x1b[?25h\x1b[0 q"  # the cursor, and its shape
)


_KEYBOARD = re.compile(rb"\x1b\[[>=][0-9;]*[um]")
_KEYBOARD_OFF = b"\x1b[>m\x1b[=0u\x1b[<99u"  # XTMODKEYS, and the stack of kitty's protocol


class WindowModes:
    """A window, followed by the whole sequences that are written to it."""

    def __init__(self) -> None:
        self.is_alternate = False
        self._has_keyboard = False

    def feed(self, data: bytes) -> None:
        """Follow the output ``data``."""
        if b"\x1b" not in data:
            return
        self._has_keyboard = self._has_keyboard or _KEYBOARD.search(data) is not None
        for modes, letter in _SCREEN.findall(data):
            if not letter:
                self.is_alternate = False
            elif not _ALTERNATE.isdisjoint(modes.split(b";")):
                self.is_alternate = letter == b"h"

    def leaving(self) -> bytes:
        """Return the output that resets all modes and moves the cursor to a new last line."""
        back = "\x1b[?1049l\r\n" if self.is_alternate else "\x1b[999;1H\r\n"
        # Only where it was switched: an old terminal would print what it does not know. Each screen
        # has a keyboard of its own.
        keyboard = _KEYBOARD_OFF if self._has_keyboard else b""
        self.is_alternate = self._has_keyboard = False
        return keyboard + f"{_MODES_OFF}{back}".encode() + keyboard

    def cleared(self, rows: int) -> bytes:
        """Return the output that scrolls all lines out of the window."""
        if self.is_alternate:
            return b""
        return b"\x18\x1b[r\x1b[999;1H" + b"\n" * rows

    def notice(self, line: str) -> bytes:
        """Return the output that shows ``line``: on a new line, or over a program's last line."""
        if self.is_alternate:
            return f"\x18\x1b7\x1b[999;1H\x1b[0;7m{line}\x1b[0m\x1b[K\x1b8".encode()
        return f"\x18\x1b[0m\r\n{line}\x1b[K\r\n".encode()
