"""The text of a typed line: as the keys spell it, and as the shell tells it.

Only characters, pastes and the Enter behind them are followed: whatever else is sent (an arrow,
TAB, Ctrl-R) makes the text unknown, because the line editor's answer to it is.
"""

from __future__ import annotations

import re

from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.parse.boundaries import Ended
from aegis.terminals.typed import LOST, TypedLine, TypedText, Unknown

MAX_BYTES = 1 << 20

_PASTE, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_ENTERS = (b"\r", b"\n")
_TOKEN = re.compile(rb"\x1b\[20[01]~|[\r\n]|[^\x00-\x1f\x7f]+|[\x00-\x1f\x7f]")


class KeyedLine:
    """One line of a shell that was empty before."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._in_paste = False
        self._is_known = True
        self._is_ended = False

    def add(self, data: bytes) -> None:
        """Take in keys that are sent to the shell now."""
        for token in _TOKEN.findall(data):
            if self._is_ended or not self._is_known:
                return  # behind the Enter: for the command, or the next line
            self._take(token)

    def _take(self, token: bytes) -> None:
        if token in (_PASTE, _PASTE_END):
            self._in_paste = token == _PASTE
        elif token in _ENTERS and not self._in_paste:
            self._is_ended = True
        elif (token[0] >= 0x20 and token[0] != 0x7F) or self._in_paste:
            self._text += b"\n" if token == b"\r" else token
            self._is_known = len(self._text) <= MAX_BYTES
        else:
            self._is_known = False

    @property
    def text(self) -> str | None:
        """The text of the line that was ended; None if it is not known."""
        if not (self._is_known and self._is_ended):
            return None
        try:
            return self._text.decode()
        except UnicodeDecodeError:
            return None


class KeyedLines:
    """The lines of a shell in turn. ``text_of_command``: that of the newest command."""

    def __init__(self) -> None:
        self._line: KeyedLine | None = None
        self.text_of_command: str | None = None

    def sent(self, data: bytes, *, is_empty: bool) -> None:
        """Keys are sent now; ``is_empty``: no command would read them, and the line is empty."""
        if self._line is None and is_empty:
            self._line = KeyedLine()
        if self._line is not None:
            self._line.add(data)

    def began(self) -> None:
        """A command began: it is the line that was ended, if a line was followed."""
        self.text_of_command = None if self._line is None else self._line.text
        self._line = None

    def ended(self) -> None:
        """A line has ended: the next one is empty, except for what was typed ahead."""
        self._line = None

    def text_of(self, ended: Ended, adapter: ShellAdapter) -> TypedText:
        """Ask the hook for the text of the newest command, which has ended so."""
        if ended.lost:
            return Unknown(LOST)
        line = TypedLine(
            commands=ended.commands,
            continuations=ended.continuations,
            keyed=self.text_of_command,
        )
        return adapter.read_typed(ended.history, line)
