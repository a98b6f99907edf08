"""The modes of keyboard, mouse and pasting that programs have switched on. Pure.

A client that joins later needs them beside the characters. For the hot path: only bytes after an
ESC are examined; the search for it runs at the speed of C.
"""

from __future__ import annotations

import re

KEPT = frozenset({1, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004})
"""The followed private modes: cursor keys, all mouse modes, focus, bracketed paste."""

CURSOR_KEYS = 1

_CHANGE = re.compile(rb"\x1b(?:\[\?([0-9;]{1,60})([hl])|([=>c])|\[!p)")
_BEGINNING = re.compile(rb"\x1b(?:\[(?:!|\?[0-9;]{0,60})?)?\Z")
_LONGEST = 64


class ModeWatch:
    """The modes of one stream, by its chunks."""

    __slots__ = ("_incomplete", "_keypad", "_on")

    def __init__(self) -> None:
        self._on: frozenset[int] = frozenset()
        self._keypad = False
        self._incomplete = b""

    def feed(self, data: bytes) -> None:
        """Take the next chunk of the stream."""
        if not self._incomplete and b"\x1b" not in data:
            return
        data = self._incomplete + data
        for modes, letter, escape in _CHANGE.findall(data):
            if modes:
                self._switch(modes, on=letter == b"h")
            elif escape == b"c":
                self._on, self._keypad = frozenset(), False
            else:
                self._keypad = escape == b"="
                self._on = self._on if escape else self._on - {CURSOR_KEYS}
        cut = _BEGINNING.search(data, max(len(data) - _LONGEST, 0))
        self._incomplete = b"" if cut is None else cut.group()

    def _switch(self, modes: bytes, *, on: bool) -> None:
        named = KEPT & {int(mode[:6] or 0) for mode in modes.split(b";")}
        self._on = self._on | named if on else self._on - named

    def sequences(self) -> str:
        """Return the sequences that switch these modes on in a terminal after a reset."""
        keypad = "\x1b=" if self._keypad else ""
        return keypad + "".join(f"\x1b[?{mode}h" for mode in sorted(self._on))
