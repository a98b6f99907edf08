"""The keys on a shell's line and their writers, followed through the bytes sent to the PTY. Pure.

The effect of a key on the shell is not known, only the marks that follow. So this is bookkeeping: a
line end (Enter or Ctrl-C) waits for the mark that answers it, keys after it are an unfinished line,
and keys that were sent while a command ran are either its input or type-ahead. An Enter inside a
bracketed paste ends no line.
"""

from __future__ import annotations

import re

import attrs

from aegis.terminals.parse.line_keys import LineKeys

MAX_LINE_ENDS = 64
"""Limit of unanswered line ends that are remembered with their writers."""

_FOCUS = (b"\x1b[I", b"\x1b[O")
_LEAVES_EMPTY = (b"\x0c", *_FOCUS)
"""Ctrl-L, which people use to clear the screen, and the reports that a terminal got or lost the
focus: they come late if the program that wanted them was killed. Unless they are bound to something
else, an empty line stays empty: alone they begin no line, but are a reason to probe the shell."""

_HALF_PASTE_MARK = re.compile(rb"\x1b(?:\[(?:2(?:0[01]?)?)?)?\Z")
"""An incomplete sequence at the end of a write that may begin or end a paste."""

_TOKEN = re.compile(
    rb"\x1b\[200~|\x1b\[201~|\x1b\[[IO]|[\r\n]|\x03|\x0c+|[^\r\n\x03\x0c\x1b]+|\x1b"
)


@attrs.frozen
class _LineEnd:
    writer: str
    interrupt: bool
    is_empty: bool


class Keystrokes:
    """The keys sent to one shell that no mark has answered.

    ``text`` is that of the line of the newest command, by its keys; None if it is not known.
    """

    def __init__(self) -> None:
        self._ends: list[_LineEnd] = []
        self._tail: str | None = None
        self._ahead: str | None = None
        self._enters_ahead: list[str] = []
        self._in_paste = False
        self._half = b""
        self._line = LineKeys()
        self.text: str | None = None

    @property
    def may_be_empty(self) -> bool:
        """Whether a line is being typed, may be empty, and the editor may be asked for it."""
        return self.typing is not None and self._line.may_be_empty

    @property
    def has_completed(self) -> bool:
        """Whether TAB is among the keys of the line."""
        return self._line.has_completed

    def fresh_line(self) -> None:
        """Note a new prompt: keys sent while a command ran count as read by it."""
        if self._tail is None:
            self._line.reset()

    @property
    def typing(self) -> str | None:
        """The writer of an unfinished line, or of an unanswered Enter."""
        if self._tail is not None:
            return self._tail
        if self._ends and not self._ends[-1].interrupt:
            return self._ends[-1].writer
        return None

    @property
    def uncertain(self) -> str | None:
        """The writer of keys that may be on the line unnoticed, or of an unanswered Ctrl-C."""
        if self._ahead is not None:
            return self._ahead
        if self._tail is None and self._ends and self._ends[-1].interrupt:
            return self._ends[-1].writer
        return None

    def has_enter(self) -> bool:
        """Return whether an Enter waits for its mark."""
        return bool(self._enters_ahead) or any(not end.interrupt for end in self._ends)

    def sent(self, writer: str, data: bytes, *, at_prompt: bool, begins_line: bool = False) -> None:
        """Note that ``writer`` sends ``data``; ``at_prompt``: no command runs that may read it.

        ``begins_line``: the line before it is empty.
        """
        if begins_line:
            self._line.begin()
        self._line.sent(data)
        data = self._half + data
        half = _HALF_PASTE_MARK.search(data)
        self._half = b"" if half is None else half.group()
        for token in _TOKEN.findall(data):
            self._take(writer, token, at_prompt)

    def _take(self, writer: str, token: bytes, at_prompt: bool) -> None:
        if token in (b"\x1b[200~", b"\x1b[201~"):
            self._in_paste = token == b"\x1b[200~"
        is_enter = token in (b"\r", b"\n") and not self._in_paste
        if not at_prompt:
            self._ahead = writer
            if is_enter:
                self._enters_ahead = [*self._enters_ahead, writer][-MAX_LINE_ENDS:]
        elif is_enter or token == b"\x03":
            self._in_paste = False
            end = _LineEnd(writer, interrupt=not is_enter, is_empty=self._tail is None)
            self._ends = [*self._ends, end][-MAX_LINE_ENDS:]
            self._tail = None
        elif token.startswith(_LEAVES_EMPTY) and self._tail is None and not self._in_paste:
            self._ahead = writer
        elif token not in _FOCUS or self._tail is None:
            self._tail = writer

    def take_enter(self) -> str | None:
        """Remove the Enter of a line that was read; return its writer, None if unknown."""
        # An Enter sent at the prompt comes before one sent to a program. Without any, a key was
        # bound to accept the line, and the last writer is taken.
        while self._ends:
            end = self._ends.pop(0)
            if not end.interrupt:
                return end.writer
        if self._enters_ahead:
            return self._enters_ahead.pop(0)
        writer, self._tail = self._tail, None
        return writer

    def take_line(self) -> str | None:
        """Remove the next line if an Enter ended it and it is not empty; return its writer."""
        if not self._ends or self._ends[0].interrupt or self._ends[0].is_empty:
            return None
        return self._ends.pop(0).writer

    def take_line_end(self) -> None:
        """Remove the end of a line that was dropped or ran nothing."""
        if self._ends:
            self._ends.pop(0)
        elif self._enters_ahead:
            self._enters_ahead.pop(0)

    def take_interrupt(self) -> bool:
        """Remove the oldest line end if it is a Ctrl-C. Return whether it was."""
        if not self._ends or not self._ends[0].interrupt:
            return False
        self._ends.pop(0)
        return True

    def command_began(self) -> None:
        """Note the start of a command, which may read all unanswered keys."""
        self.text = self._line.take_text()
        behind = self._tail or (self._ends[-1].writer if self._ends else None)
        if behind is not None:
            self._ahead = behind
        self._enters_ahead += [end.writer for end in self._ends if not end.interrupt]
        del self._enters_ahead[:-MAX_LINE_ENDS]
        self._ends.clear()
        self._tail = None

    def line_ended(self) -> None:
        """Note the end of a line: the next one is empty, except for keys typed ahead."""
        self._line.take_text()

    def line_continues(self, writer: str | None) -> None:
        """Note a secondary prompt: the line of ``writer`` is unfinished."""
        if self._tail is None:
            self._tail = writer

    def line_reported(self, length: int, *, covers_all: bool) -> None:
        """Take a report that the line holds ``length`` characters.

        ``covers_all``: the editor had read all keys before it reported; otherwise the report says
        nothing about later keys.
        """
        if not covers_all:
            return
        writer = self.typing or self.uncertain
        self._ahead = None
        if length:
            self._line.is_not_empty()
        else:
            self._line.reset()
        self._ends.clear()
        self._enters_ahead.clear()
        self._tail = (writer or "human") if length else None
