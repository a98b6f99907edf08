"""Which ways of the keyboard, the mouse and pasting programs have switched on. Pure.

What somebody who comes to a screen later must know beside its characters. For the hot path: it
looks at a byte only where an ESC is found, at the speed of C.
"""

from __future__ import annotations

import re

KEPT = frozenset({1, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004})
"""Private modes that matter: cursor keys, the mouse in all its ways, focus, bracketed paste."""

CURSOR_KEYS = 1

_CHANGE = re.compile(rb"\x1b(?:\[\?([0-9;]{1,60})([hl])|([=>c])|\[!p)")
_BEGINNING = re.compile(rb"\x1b(?:\[(?:!|\?[0-9;]{0,60})?)?\Z")
_LONGEST = 64


class ModeWatch:
    """Follows one stream, cut anywhere."""

    __slots__ = ("_held", "_keypad", "_on")

    def __init__(self) -> None:
        self._on: frozenset[int] = frozenset()
        self._keypad = False
        self._held = b""

    def feed(self, data: bytes) -> None:
        """More of the stream."""
        if not self._held and b"\x1b" not in data:
            return
        data = self._held + data
        for modes, letter, escape in _CHANGE.findall(data):
            if modes:
                self._switch(modes, on=letter == b"h")
            elif escape == b"c":
                self._on, self._keypad = frozenset(), False
            else:
                self._keypad = escape == b"="
                self._on = self._on if escape else self._on - {CURSOR_KEYS}
        cut = _BEGINNING.search(data, max(len(data) - _LONGEST, 0))
        self._held = b"" if cut is None else cut.group()

    def _switch(self, modes: bytes, *, on: bool) -> None:
        named = KEPT & {int(mode[:6] or 0) for mode in modes.split(b";")}
        self._on = self._on | named if on else self._on - named

    def sequences(self) -> str:
        """What switches on what is on; all else is as a terminal begins."""
        keypad = "\x1b=" if self._keypad else ""
        return keypad + "".join(f"\x1b[?{mode}h" for mode in sorted(self._on))
