"""The line at a shell's prompt by the keys sent to it: if it may be empty, and its text. Pure.

The line editor decides the effect of a key, and users bind keys. So the text is known only as long
as the keys are characters, pastes and the Enter after them, and ``may_be_empty`` only decides when
asking the editor is useful and safe:

- After plain characters only, the line is not empty: nothing is asked.
- Keys that move or erase leave the editor waiting for the next key, its line perhaps empty: it may
  be asked.
- Any other key (Ctrl-R, Ctrl-V, Escape, a prefix, an unknown sequence) may open a search, a quoted
  insert, vi's command mode or a menu, in which one more key would do something else. Nothing is
  asked until the line ends, or Ctrl-G leaves a search. The same holds for half a paste, half a
  sequence and half a character.
"""

from __future__ import annotations

import re
import unicodedata

_PASTE_BEGIN, _PASTE_END = b"\x1b[200~", b"\x1b[201~"

_MOVES = frozenset({b"\x1b[C", b"\x1b[D", b"\x1b[H", b"\x1b[F", b"\x1bOC", b"\x1bOD"}) | {
    b"\x1bOH",
    b"\x1bOF",
    b"\x1b[I",
    b"\x1b[O",
    *(bytes([code]) for code in b"\x01\x02\x05\x06\x0c\x19"),
}
"""Arrows, Home, End, Ctrl-A, -B, -E, -F, -L and -Y, and the reports of a terminal's
focus: they erase nothing."""

_EDITS = frozenset({b"\x1b[A", b"\x1b[B", b"\x1bOA", b"\x1bOB", b"\x1b[3~"}) | {
    bytes([code]) for code in b"\x04\x0b\x0e\x10\x15\x17\x1f"
}
"""Up, Down, Delete, Ctrl-D, -K, -N, -P, -U, -W and -_: they may leave an empty line."""

_ERASES = frozenset({b"\x7f", b"\x08"})
_TAB, _ABORT = b"\t", b"\x07"
_QUOTES = frozenset({b"\x16", b"\x11"})
_SEARCHES = frozenset({b"\x12", b"\x13"})
_ANSWERS = frozenset(bytes([code]) for code in b"ynYNqQ ")
"""After TAB these may answer the question whether to list all completions: no text."""

_LINE_ENDS = frozenset({b"\r", b"\n", b"\x03"})

_HALF = (
    rb"\x1b(?:\[[0-?]*[ -/]*|O)?\Z"
    rb"|[\xc2-\xdf]\Z|[\xe0-\xef][\x80-\xbf]?\Z|[\xf0-\xf4][\x80-\xbf]{0,2}\Z"
)
_IS_HALF = re.compile(_HALF)
_KEY = (
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[ -~]|"
    rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|"
    rb"" + _HALF + rb"|."
)
_UNIT = re.compile(_KEY, re.DOTALL)
_UNIT_OF_TEXT = re.compile(rb"[ -~]+|" + _KEY, re.DOTALL)
_UNIT_OF_PASTE = re.compile(rb"[\x00-\x1a\x1c-\x7f]+|" + _KEY, re.DOTALL)
"""Keys that mean the same one by one are taken at once: text and pastes can be large."""

_MAX_HALF_BYTES = 64
"""Limit of a keyboard's sequences."""

MAX_SPELLED_BYTES = 1 << 20
"""The text of a longer line is not known."""


class _SpelledLine:
    """The text of one line, from an empty line on; None once it is not known."""

    def __init__(self) -> None:
        self._text: bytearray | None = bytearray()
        self._is_ended = False

    def take(self, unit: bytes, *, in_paste: bool) -> None:
        """Add a key. Those after the Enter are for the command, or for the next line."""
        if self._is_ended or self._text is None or unit in (_PASTE_BEGIN, _PASTE_END):
            return
        if unit in (b"\r", b"\n") and not in_paste:
            self._is_ended = True
        elif in_paste or (unit[0] >= 0x20 and unit[0] != 0x7F):
            self._text += unit.replace(b"\r", b"\n")
            if len(self._text) > MAX_SPELLED_BYTES:
                self._text = None
        else:
            self._text = None

    def text(self) -> str | None:
        """Return the text of the ended line; None if it is not known."""
        if self._text is None or not self._is_ended:
            return None
        try:
            return self._text.decode()
        except UnicodeDecodeError:
            return None


class LineKeys:
    """The keys of one line, in the order in which they were sent."""

    def __init__(self) -> None:
        self._spelled: _SpelledLine | None = None
        self.reset()

    def begin(self) -> None:
        """Follow the text of a line from here on, where it is empty, if none is followed."""
        if self._spelled is None:
            self._spelled = _SpelledLine()

    def take_text(self) -> str | None:
        """Return the text of the line that was followed, if it is ended and known; follow none."""
        spelled, self._spelled = self._spelled, None
        return None if spelled is None else spelled.text()

    def reset(self) -> None:
        """Begin a new line."""
        self._half = b""
        self._in_paste = False
        self._is_nested = False
        self._searches = False
        self._quotes = False
        self._surplus = 0
        self._may_answer = False
        self.has_completed = False

    def is_not_empty(self) -> None:
        """Note the editor's report that there is text on the line."""
        self._surplus = 0

    @property
    def may_be_empty(self) -> bool:
        """Whether the editor waits for the next key, and its line may be empty."""
        is_sure = self._half or self._in_paste or self._is_nested or self._quotes
        return not is_sure and not self._surplus

    def sent(self, data: bytes) -> None:
        """Note that these bytes are sent to the line editor."""
        data, self._half = self._half + data, b""
        at = 0
        while at < len(data):
            found = self._pattern().match(data, at)
            assert found is not None
            unit, at = found[0], found.end()
            # Only at the end: an Escape before a letter, or the half of a character before another
            # one, matches too, and is a key of its own.
            if at == len(data) and _IS_HALF.match(unit):
                self._half = unit
                if len(unit) > _MAX_HALF_BYTES:
                    self._half, self._is_nested = b"", True
                continue
            if self._spelled is not None:
                self._spelled.take(unit, in_paste=self._in_paste)
            self._take(unit)

    def _pattern(self) -> re.Pattern[bytes]:
        if self._in_paste:
            return _UNIT_OF_PASTE
        return _UNIT if self._quotes or self._may_answer else _UNIT_OF_TEXT

    def _take(self, unit: bytes) -> None:
        if self._in_paste:
            self._in_paste = unit != _PASTE_END
            if self._in_paste:
                self._surplus += len(unit) if unit.isascii() else 1
        elif unit == _PASTE_BEGIN:
            self._in_paste = True
        elif self._quotes:
            self._quotes = False  # any key is inserted literally
            self._surplus += 1
        elif unit in _LINE_ENDS:
            self.reset()
        elif unit == _ABORT:
            self._is_nested = self._is_nested and not self._searches
            self._searches, self._surplus = False, 0
        else:
            self._press(unit)

    def _press(self, key: bytes) -> None:
        if key in _QUOTES:
            self._quotes = True
        elif key in _SEARCHES:
            self._searches = self._searches or not self._is_nested
            self._is_nested = True
        elif key in _ERASES:
            self._surplus = max(0, self._surplus - 1)
        elif key in _MOVES:
            pass
        elif key in _EDITS:
            self._surplus = 0
        elif key == _TAB:
            self.has_completed = self._may_answer = True
        elif self._may_answer and key in _ANSWERS:
            pass
        elif (width := _places(key)) is not None:
            self._surplus += width * (not self._is_nested)
            self._may_answer = False
        else:
            self._is_nested, self._searches = True, False


def _places(key: bytes) -> int | None:
    """Return the least number of Backspaces that erase ``key``; None if it is no text."""
    if key.isascii():
        return len(key) if 0x20 <= key[0] < 0x7F else None
    try:
        character = key.decode()
    except UnicodeDecodeError:
        return None
    if len(character) != 1 or unicodedata.category(character) == "Cc":
        return None
    return 0 if unicodedata.category(character) in {"Mn", "Me", "Cf"} else 1
