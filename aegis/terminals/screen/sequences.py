"""A terminal's byte stream as parts for a screen: bytes in, parts out. Pure.

An emulator gets only whole characters and whole known escape sequences, with any chunks. Rules, in
the order in which a terminal applies them:

- Bytes are UTF-8, replaced where they are not. DEL, NUL and the C1 controls (U+0080 to U+009F) are
  dropped: they occur inside characters and in binary data, never on purpose.
- ESC always begins a new sequence, CAN and SUB abort. A control inside a CSI sequence is applied
  before it; an ESC before a control is dropped.
- Strings (OSC, DCS, APC, PM, SOS, and the title of GNU screen, ESC k) are dropped, except the title
  of the window. ESC \\ ends them, BEL only OSC and ESC k. They may be of any length.
- Colours and other attributes are dropped: a screen is text. So are sequences with a private
  prefix or with intermediates, except those that have a part of their own.
- Line graphics (the charset of DEC) become the characters that they show.
- A repetition (REP) becomes the repeated character.
"""

from __future__ import annotations

import codecs
import re
from typing import TypeAlias

import attrs

MAX_TITLE_CHARS = 1024
MAX_STRING_CHARS = 4096
"""A longer string is no title."""

MAX_SEQUENCE_CHARS = 256
"""A longer CSI sequence is dropped to its end."""

MAX_PARAMETER = 9999

SEQUENCE = r"\x1b(?:\[[0-9;]*[@-~]|\[!p|#?[0-~])"
"""The sequences that a passage may hold."""

_DROPPED = re.compile("[\x00\x7f-\x9f]")
_SGR = re.compile(r"\x1b\[[0-9;:]*m")
# No possessive group: before Python 3.11.5 it forgets where an alternative that has failed began
# (gh-106052). What follows a group is bounded, or nothing.
_KNOWN_CSI = r"(?:[0-9]{0,4}+;){0,31}[0-9]{0,4}+[@A-MPSTXZ`ad-hlrsu]"
_PASSAGE = re.compile(
    rf"(?:[^\x0e\x0f\x1b]++|\x1b(?:\[(?:[0-9;:]{{0,250}}+m|{_KNOWN_CSI})|[78DEHM])){{1,1000}}"
)
_KNOWN = re.compile(_KNOWN_CSI)
_CSI = re.compile(r"\x1b\[([\x00-\x17\x19\x1c-\x3f]{0,254}+)([@-~])")
_ESCAPE = re.compile(r"\x1b(?!\[)([ -/]{0,255}+)([0-~])")
_UNFINISHED = re.compile(r"\x1b(?:\[[\x00-\x17\x19\x1c-\x3f]*+|[ -/]*+)")
_PRIVATE_MODES = re.compile(r"\?([0-9;]*)")
_LAST_SEQUENCE = re.compile(SEQUENCE + r"\Z", re.DOTALL)
_TITLE = re.compile(r"[02];(.*)", re.DOTALL)
_CONTROLS = re.compile(r"[\x00-\x1f]")
_STRINGS = "]PX^_k"
_ENDED_BY_BEL = "]k"
_END_OF_STRING = re.compile(r"[\x18\x1a\x1b]")
_END_OF_OSC = re.compile(r"[\x07\x18\x1a\x1b]")
_END_OF_CSI = re.compile(r"[\x18\x1a\x1b@-~]")
_LINES = {0x60 + index: char for index, char in enumerate("◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")}
"""The special graphics of DEC, from ` to ~."""
_SHIFTS = {"\x0f": 0, "\x0e": 1}
_SEQUENCE_OR_TEXT = re.compile(rf"({SEQUENCE})|([^\x1b]+)")
_ALIGNMENT = "\x1b[r\x1b#8\x1b[H"


@attrs.frozen
class GridOutput:
    """Text, controls, and whole sequences of those in ``SEQUENCE``."""

    text: str


@attrs.frozen
class Title:
    """The window's title is now this."""

    text: str


@attrs.frozen
class TitleStack:
    """The title is pushed on a stack (``push``), or popped from it."""

    push: bool


@attrs.frozen
class PrivateModes:
    """DEC private modes are set (``on``) or reset."""

    modes: tuple[int, ...]
    on: bool


@attrs.frozen
class SoftReset:
    """DECSTR: modes are reset; the text stays."""


@attrs.frozen
class Reset:
    """RIS: the terminal is reset."""


Part: TypeAlias = GridOutput | Title | TitleStack | PrivateModes | SoftReset | Reset


class SequenceSplitter:
    """Splits one stream into parts; joined, they do not depend on the chunks."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._incomplete = ""
        self._string = ""  # the beginning of the current string; "[" for an endless CSI
        self._body: str | None = None
        self._draws_lines = [False, False]  # by G0 and G1
        self._charset = 0
        self._last = ""  # the character that REP repeats
        self._parts: list[Part] = []

    def feed(self, data: bytes) -> list[Part]:
        """Return the parts that ``data`` completes, in order."""
        text = self._incomplete + _DROPPED.sub("", self._decoder.decode(data))
        self._incomplete = ""
        position = 0
        while position < len(text):
            if self._string:
                position = self._in_string(text, position)
            else:
                position = self._in_ground(text, position)
        parts, self._parts = self._parts, []
        return parts

    def _in_ground(self, text: str, start: int) -> int:
        passage = _PASSAGE.match(text, start)
        if passage is not None:
            self._add_passage(passage.group())
            return passage.end()
        return self._at_escape(text, start)

    def _at_escape(self, text: str, start: int) -> int:
        """Take a sequence at ``start`` that is no part of a passage."""
        shift = _SHIFTS.get(text[start])
        if shift is not None:
            self._charset = shift
            return start + 1
        found = _CSI.match(text, start)
        if found is not None:
            self._control_sequence(*found.groups())
            return found.end()
        if text[start + 1 : start + 2] in _STRINGS and start + 1 < len(text):
            self._string, self._body = text[start + 1], ""
            return start + 2
        found = _ESCAPE.match(text, start)
        if found is not None:
            self._escape(*found.groups())
            return found.end()
        return self._unfinished(text, start)

    def _unfinished(self, text: str, start: int) -> int:
        """Take a sequence at ``start`` that is incomplete, aborted, or too long."""
        found = _UNFINISHED.match(text, start)
        assert found is not None
        sequence = found.group()
        if len(sequence) > MAX_SEQUENCE_CHARS:
            if sequence[1] != "[":
                return start + 1
            self._string, self._body = "[", None
            return start + 2
        if found.end() == len(text):
            self._incomplete = sequence
        else:
            self._add_passage("".join(_CONTROLS.findall(sequence[1:])))
        return found.end()

    def _control_sequence(self, body: str, final: str) -> None:
        controls = "".join(_CONTROLS.findall(body))
        if controls:
            self._add_passage(controls)
            body = _CONTROLS.sub("", body)
        modes = _PRIVATE_MODES.fullmatch(body)
        if modes is not None and final in "hl":
            self._add(PrivateModes(tuple(_numbers(modes[1])), final == "h"))
        elif body == "!" and final == "p":
            self._draws_lines, self._charset = [False, False], 0
            self._add(SoftReset())
        elif not body.strip("0123456789;"):
            self._plain_sequence(_numbers(body), final)

    def _plain_sequence(self, numbers: list[int], final: str) -> None:
        if final == "b":
            self._add_passage(self._last * max(numbers[0], 1))
        elif final == "t" and numbers[0] in (22, 23) and numbers[1:2] != [1]:
            self._add(TitleStack(push=numbers[0] == 22))
        else:
            sequence = ";".join(map(str, numbers)) + final
            if _KNOWN.fullmatch(sequence) is not None:
                self._add_passage(f"\x1b[{sequence}")

    def _escape(self, intermediates: str, final: str) -> None:
        if intermediates == "" and final == "c":
            self._draws_lines, self._charset = [False, False], 0
            self._add(Reset())
        elif intermediates in ("(", ")"):
            self._draws_lines[intermediates == ")"] = final == "0"
        elif intermediates == "#" and final == "8":
            self._add_passage(_ALIGNMENT)

    def _in_string(self, text: str, start: int) -> int:
        ends = _END_OF_OSC if self._string in _ENDED_BY_BEL else _END_OF_STRING
        found = (_END_OF_CSI if self._string == "[" else ends).search(text, start)
        end = len(text) if found is None else found.start()
        self._collect(text[start:end])
        if found is None:
            return end
        if found.group() == "\x1b":
            return self._at_end_of_string(text, end)
        self._end_string(is_whole=found.group() == "\x07")
        return end + 1

    def _at_end_of_string(self, text: str, escape: int) -> int:
        after = text[escape + 1 : escape + 2]
        if not after:
            self._incomplete = "\x1b"
            return len(text)
        self._end_string(is_whole=after == "\\")
        return escape + (2 if after == "\\" else 0)

    def _collect(self, text: str) -> None:
        if self._string == "]" and self._body is not None:
            self._body += text[: MAX_STRING_CHARS + 1]
            if len(self._body) > MAX_STRING_CHARS:
                self._body = None

    def _end_string(self, *, is_whole: bool) -> None:
        title = None
        if is_whole and self._body is not None and self._string == "]":
            title = _TITLE.fullmatch(self._body)
        if title is not None:
            self._add(Title(_CONTROLS.sub("", title[1])[:MAX_TITLE_CHARS]))
        self._string, self._body = "", None

    def _add(self, part: Part) -> None:
        self._parts.append(part)

    def _add_passage(self, text: str) -> None:
        if "m" in text:
            text = _SGR.sub("", text)
        if not text:
            return
        if self._draws_lines[self._charset]:
            text = _SEQUENCE_OR_TEXT.sub(_as_lines, text)
        escape = text.rfind("\x1b")
        is_text = escape < 0 or _LAST_SEQUENCE.match(text, escape) is None
        self._last = text[-1] if is_text and text[-1] >= " " else ""
        self._add(GridOutput(text))


def _as_lines(found: re.Match[str]) -> str:
    sequence: str | None = found[1]
    return found[2].translate(_LINES) if sequence is None else sequence


def _numbers(body: str) -> list[int]:
    """Return the parameters, at least one, each at most ``MAX_PARAMETER``; 0 for an omitted one."""
    return [min(int(number[:20] or 0), MAX_PARAMETER) for number in body.split(";")]
