"""The keys that are written to a terminal agent, and whether they answer a prompt. Pure.

Cursor and function keys, Tab and the reports of mouse and focus move a selection at most: they
answer nothing. An Enter inside a bracketed paste ends no line.
"""

from __future__ import annotations

import re

import attrs

_TOKEN = re.compile(
    rb"\x1b\[(?P<paste>20[01])~"
    rb"|(?P<interrupt>\x03|\x1b\[27(?:;[0-9:]*)?u|\x1b\[99;5(?::[0-9]+)?u|\x1b(?![\[O]))"
    rb"|(?P<line_end>[\r\n\x04]|\x1b\[13(?:;[0-9:]*)?u)"
    rb"|\x1b\[M[\x20-\xff]{3}"  # a mouse report of X10
    rb"|\x1b\[[0-?]*[ -/]*(?P<final>[@-~])"
    rb"|\x1bO."
    rb"|\t+"
    rb"|(?P<key>[^\x1b\r\n\x03\x04\t]+)"
    rb"|.",  # of a sequence that was split between writes
    re.DOTALL,
)
_PASTE_BEGIN = b"200"


@attrs.frozen(kw_only=True)
class KeyInput:
    """Keys of a person or client were written to the program; not the terminal's own answers.

    ``is_answer``: a key is among them that may answer a prompt for a key. ``ends_line``: one that
    ends a line. ``interrupts``: Escape or Ctrl-C.
    """

    is_answer: bool
    ends_line: bool
    interrupts: bool


class KeyReader:
    """The reader of all keys that are written to one terminal."""

    def __init__(self) -> None:
        self._in_paste = False

    def read(self, data: bytes) -> KeyInput:
        """Return the meaning of the next written bytes."""
        is_answer = ends_line = interrupts = False
        for found in _TOKEN.finditer(data):
            if found["paste"] is not None:
                self._in_paste = found["paste"] == _PASTE_BEGIN
            elif self._in_paste:
                is_answer = True
            else:
                interrupts |= found["interrupt"] is not None
                ends_line |= found["line_end"] is not None or found["interrupt"] == b"\x03"
                # ``CSI ... u`` is a key of kitty's protocol; all other sequences only move.
                is_answer |= found["key"] is not None or found["final"] == b"u"
        is_answer |= ends_line or interrupts
        return KeyInput(is_answer=is_answer, ends_line=ends_line, interrupts=interrupts)
