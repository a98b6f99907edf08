"""The text of the lines that are typed at a shell, collected from their keys. Pure."""

from __future__ import annotations

import re

from aegis.terminals.typed import TypedLine

MAX_BYTES = 1 << 20

_PASTE, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_ENTERS = (b"\r", b"\n")
_TOKEN = re.compile(rb"\x1b\[20[01]~|[\r\n]|[^\x00-\x1f\x7f]+|[\x00-\x1f\x7f]")


class KeyedLine:
    """The text of one line, by its keys, from an empty line on.

    Only characters, pastes and the Enter after them are followed. Any other key (an arrow, TAB,
    Ctrl-R) makes the text unknown, because the answer of the line editor is unknown.
    """

    def __init__(self) -> None:
        self._text = bytearray()
        self._in_paste = False
        self._is_known = True
        self._is_ended = False

    def add(self, data: bytes) -> None:
        """Add keys that are sent to the shell."""
        for token in _TOKEN.findall(data):
            if self._is_ended or not self._is_known:
                return  # keys after the Enter are for the command, or for the next line
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
        """The text of the ended line; None if it is not known."""
        if not (self._is_known and self._is_ended):
            return None
        try:
            return self._text.decode()
        except UnicodeDecodeError:
            return None


class KeyedLines:
    """The lines of a shell, one after the other; ``text_of_command`` is the newest command's."""

    def __init__(self) -> None:
        self._line: KeyedLine | None = None
        self.text_of_command: str | None = None

    def sent(self, data: bytes, *, is_empty: bool) -> None:
        """Add keys; ``is_empty``: the shell is at its prompt with an empty line."""
        if self._line is None and is_empty:
            self._line = KeyedLine()
        if self._line is not None:
            self._line.add(data)

    def began(self) -> None:
        """Note the start of a command: the ended line is its text, if a line was followed."""
        self.text_of_command = None if self._line is None else self._line.text
        self._line = None

    def ended(self) -> None:
        """Note the end of a line: the next one is empty, except for keys typed ahead."""
        self._line = None

    def of_command(self, commands: int, continuations: int) -> TypedLine:
        """Return the facts about the line of the newest command: see ``TypedLine``."""
        return TypedLine(commands=commands, continuations=continuations, keyed=self.text_of_command)
