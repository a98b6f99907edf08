"""What a window shows of another terminal: which of its screens, and how it is left clean. Pure."""

from __future__ import annotations

import re

_SCREEN = re.compile(rb"\x1b(?:\[\?([0-9;]{1,64})([hl])|c)")
_ALTERNATE = {b"47", b"1047", b"1049"}
_MOUSE_AND_PASTE = (9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004)

_MODES_OFF = (
    "\x18"  # whatever sequence was begun
    "\x1b[?2026l"  # an update that is held back
    "\x1b[0m\x1b(B\x0f"  # colours, character set
    "\x1b[r\x1b[?6l\x1b[?7h\x1b[4l"  # margins, origin, wrapping, insertion
    "\x1b>\x1b[?1l"  # keypad and cursor keys
    + "".join(f"\x1b[?{mode}l" for mode in _MOUSE_AND_PASTE)
    + "\x1b[?25h\x1b[0 q"  # the cursor, and its shape
)


class Window:
    """Follows what is written to a window, in whole sequences."""

    def __init__(self) -> None:
        self.is_alternate = False

    def feed(self, data: bytes) -> None:
        """This was written to it."""
        if b"\x1b" not in data:
            return
        for modes, letter in _SCREEN.findall(data):
            if not letter:
                self.is_alternate = False
            elif not _ALTERNATE.isdisjoint(modes.split(b";")):
                self.is_alternate = letter == b"h"

    def leaving(self) -> bytes:
        """What makes it a plain window again, the cursor on a line of its own below all else."""
        back = "\x1b[?1049l\r\n" if self.is_alternate else "\x1b[999;1H\r\n"
        self.is_alternate = False
        return f"{_MODES_OFF}{back}".encode()

    def cleared(self, rows: int) -> bytes:
        """What moves everything up out of sight, so that a drawing does not overwrite it."""
        if self.is_alternate:
            return b""
        return b"\x18\x1b[r\x1b[999;1H" + b"\n" * rows

    def notice(self, line: str) -> bytes:
        """What shows ``line`` now: a line of its own or, over a full-screen program, the last."""
        if self.is_alternate:
            return f"\x18\x1b7\x1b[999;1H\x1b[0;7m{line}\x1b[0m\x1b[K\x1b8".encode()
        return f"\x18\x1b[0m\r\n{line}\x1b[K\r\n".encode()
