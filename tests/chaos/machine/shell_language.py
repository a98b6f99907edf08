"""The small language of the simulated shell: a part of bash's, read as bash reads it. Pure.

Words are parted by blanks; ``'…'`` quotes, ``#`` begins a comment. Commands are parted by ``;`` and
line ends, ``&`` leaves one in the background, ``&&`` and ``||`` hang one on the end of the one
before it. There are no expansions but of ``$NAME``, no redirections, no compound commands.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import attrs

Operator: TypeAlias = Literal[";", "&", "&&", "||"]

_TOKEN = re.compile(
    r"(?P<blank>[ \t]+)|(?P<comment>#[^\n]*)|(?P<end>\n)|(?P<operator>&&|\|\||;|&|\)|\()"
    r"|(?P<word>(?:[^\s;&|()']|'[^']*')+)|(?P<open>(?:[^\s;&|()']|'[^']*')*'[^']*\Z)",
    re.DOTALL,
)


class Incomplete(Exception):
    """The text is incomplete: a quote is open, or a command must follow."""


class SyntaxFault(Exception):
    """A syntax error; ``near`` is the first word that does not fit."""

    def __init__(self, near: str) -> None:
        super().__init__(f"syntax error near unexpected token `{near}'")


@attrs.frozen
class Command:
    """Words to run; ``after`` is the operator behind them."""

    words: tuple[str, ...]
    after: Operator = ";"

    def __str__(self) -> str:
        return " ".join(self.words)


Line: TypeAlias = tuple[Command, ...]
"""The commands of one line: the shell reads the whole line before it runs any of them."""


def read_text(text: str) -> list[Line | SyntaxFault]:
    """Return the lines of a text. The rest of a line with an error is not read.

    Raises ``Incomplete``.
    """
    reader, position = _Reader(), 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or found.lastgroup == "open":
            raise Incomplete
        position = found.end()
        try:
            reader.take(found.lastgroup, found.group())
        except SyntaxFault as fault:
            reader.drop_line(fault)
            position = text.find("\n", position) + 1 or len(text)
    return reader.close()


class _Reader:
    """The state of a reader: whole lines, the commands of the current one, the last words."""

    def __init__(self) -> None:
        self._lines: list[Line | SyntaxFault] = []
        self._commands: list[Command] = []
        self._words: list[str] = []

    def take(self, kind: str | None, piece: str) -> None:
        """Take the next piece. Raises ``SyntaxFault``."""
        match kind:
            case "word":
                self._words.append(_unquoted(piece))
            case "operator" if not self._words or piece in "()":
                raise SyntaxFault(piece)
            case "operator":
                self._end_command(_operator(piece))
            case "end":
                self._end_line()

    def drop_line(self, fault: SyntaxFault) -> None:
        """Drop the line, because it has an error."""
        self._lines.append(fault)
        self._commands, self._words = [], []

    def close(self) -> list[Line | SyntaxFault]:
        """Return all lines. Raises ``Incomplete`` if a command must follow."""
        self._end_line()
        if self._commands:
            raise Incomplete
        return self._lines

    def _end_command(self, after: Operator) -> None:
        self._commands.append(Command(tuple(self._words), after))
        self._words = []

    def _end_line(self) -> None:
        if self._words:
            self._end_command(";")
        if self._commands and self._commands[-1].after not in ("&&", "||"):
            self._lines.append(tuple(self._commands))
            self._commands = []


def _operator(token: str) -> Operator:
    match token:
        case "&" | "&&" | "||":
            return token
        case _:
            return ";"


def _unquoted(word: str) -> str:
    return re.sub(r"'([^']*)'", r"\1", word)
