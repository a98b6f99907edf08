r"""The raw bytes of a PTY as clean text (``stdout`` of a record). Pure.

- Escape sequences are removed: CSI, OSC, other strings (DCS, SOS, PM, APC), charsets, single ones.
  A string without an end is dropped up to the end of the stream, as a terminal does. Other control
  characters except TAB and LF are removed too, and any number of CR before LF.
- A line redrawn with CR, BS, ``CSI C D G a` K X P @`` is kept as it looks in the end (``line``).
  Movement between lines and clearing the screen are ignored: printed text is never lost.
- Text on the alternate screen is dropped. So is text drawn on another row between a saved and a
  restored cursor (``ESC 7``, ``CSI H``, a status line, ``ESC 8``: the bar of apt), at most up to
  the end of that line.
- Invalid UTF-8 is replaced by U+FFFD; a character split between chunks is whole.

The result does not depend on the chunks. Memory is bounded: the unfinished line (see ``line``) and
at most ``MAX_PARAMETERS`` characters of an incomplete sequence.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping

from aegis.processes.line import UnfinishedLine

MAX_PARAMETERS = 128
"""Characters of a CSI before its final one. A longer one is no sequence, and its rest is text."""

_STEP_BYTES = 65_536
_PARAMETERS = rf"[ -?]{{0,{MAX_PARAMETERS}}}"

_CONTROL_BYTES = bytes({*range(32), 127} - {*b"\t\n"})
_LONE_RETURN = re.compile("\r[^\n\r]")
_LONE_RETURN_BYTE = re.compile(rb"\r[^\n\r]")
_C1 = re.compile(rb"\xc2[\x80-\x9f]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# Sequences that never change the text of a line that only grows: the cursor is at its end, so that
# "erase to the right" erases nothing. Text with other sequences takes the slow path.
_HARMLESS = re.compile(
    r"\x1b(?:"
    r"\[(?:[0-9;:]{0,64}m|0?K|\?(?:1|7|12|25|1004|2004|2026)[hl])"
    r"|\][^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)"
    r"|[()][0-9A-Z]"
    r")"
)

# Bytes and sequences that never change anything, any number in a row: otherwise a flood of them
# would take one pass of the loop below for each.
_IGNORED = (
    r"(?:[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]++"
    r"|\x1b(?:"
    rf"\[{_PARAMETERS}+(?:[ABEFIJL-OQ-WYZ\[-_bcegi-kmn-rtv-~]|(?![@-~]))"
    r"|\][^\x07\x18\x1a\x1b]*+(?:[\x07\x18\x1a]|(?=\x1b))"
    r"|[PX^_][^\x18\x1a\x1b]*+(?:[\x18\x1a]|(?=\x1b))"
    r"|[ -/]{1,2}[0-~]?"
    r"|[0-69-OQ-WYZ\\`abd-~]"
    r"|(?![ -~])"
    # Not possessive: before Python 3.11.5 a possessive group forgets where an alternative that has
    # failed began (gh-106052). Nothing follows it, so nothing is tried twice, and the bound is for
    # the memory that a group takes each time that it fits.
    r")){1,1000}"
)

_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x08\x0a-\x1f\x7f-\x9f]+)"
    r"|(?P<line_feed>\n)"
    r"|(?P<carriage_return>\r+)"
    r"|(?P<backspace>\x08+)"
    r"|(?P<save>\x1b(?:7|\[s))"
    r"|(?P<restore>\x1b(?:8|\[u))"
    rf"|(?P<csi>\x1b\[{_PARAMETERS}[@CDGHKPX`adfhlsu])"
    rf"|(?P<ignored>{_IGNORED})"
    r"|(?P<osc>\x1b\])"
    r"|(?P<string>\x1b[PX^_])"
    r"|(?P<reset>\x1bc)"
)
_CUT_OFF = re.compile(rf"\x1b(?:\[{_PARAMETERS}|[ -/]{{0,2}})\Z")

# ESC ends a string and begins the next sequence: the ``ESC \`` of a proper end is dropped like any
# other escape sequence of two characters.
_OSC_END = re.compile(r"[\x07\x18\x1a]|(?=\x1b)")
_STRING_END = re.compile(r"[\x18\x1a]|(?=\x1b)")

_ALTERNATE_SCREEN = frozenset({"47", "1047", "1049"})

_JUMPS = frozenset("Hfd")
"""Final characters of the sequences that move the cursor to a given row."""

_EDITS: Mapping[str, Callable[[UnfinishedLine, int], None]] = {
    "C": lambda line, count: line.move_by(max(1, count)),
    "a": lambda line, count: line.move_by(max(1, count)),
    "D": lambda line, count: line.move_by(-max(1, count)),
    "G": lambda line, column: line.move_to(max(1, column) - 1),
    "`": lambda line, column: line.move_to(max(1, column) - 1),
    "K": lambda line, mode: line.erase(mode),
    "X": lambda line, count: line.blank(max(1, count)),
    "P": lambda line, count: line.delete(max(1, count)),
    "@": lambda line, count: line.insert(max(1, count)),
}


class TextCleaner:
    """An incremental cleaner; ``sink`` gets the clean text in pieces as soon as they are final."""

    def __init__(self, sink: Callable[[str], None]) -> None:
        self._line = UnfinishedLine(sink)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._incomplete = ""
        self._string_end: re.Pattern[str] | None = None
        self._returned = False
        self._alternate = False
        self._on_other_row = False

    @property
    def pending(self) -> str:
        """The unfinished line as it looks now, without the text that the sink has."""
        return self._line.shown()

    def feed(self, data: bytes) -> None:
        """Clean a chunk of the stream."""
        for start in range(0, len(data), _STEP_BYTES):
            piece = data[start : start + _STEP_BYTES]
            lines = self._bare_lines(piece)
            if lines is None:
                self._feed_text(self._decoder.decode(piece))
            else:
                self._add_lines(lines)

    def finish(self) -> None:
        """End the stream: the unfinished line is final as it looks now."""
        rest = self._decoder.decode(b"", True)
        if rest:  # the beginning of a character
            self._feed_text(rest)
        self._line.end("")

    def _bare_lines(self, data: bytes) -> str | None:
        """Return ``data`` as text if it is plain lines without sequences, else None."""
        # The fast path for floods: each test is one call on bytes, at the speed of C.
        if b"\x1b" in data or not self._only_grows():
            return None
        if self._incomplete or self._decoder.getstate()[0]:
            return None  # the last chunk ended within a sequence or a character
        if self._returned and not data.startswith(b"\n"):
            return None
        lines = data.replace(b"\r", b"")
        if len(lines) < len(data) and _LONE_RETURN_BYTE.search(data):
            return None
        if len(lines.translate(None, _CONTROL_BYTES)) < len(lines):
            return None
        ends_in_return = data.endswith(b"\r")
        if not lines.isascii() and (ends_in_return or _C1.search(lines)):
            return None
        self._returned = ends_in_return
        return self._decoder.decode(lines)

    def _only_grows(self) -> bool:
        """Return whether the next text is appended to a line that was only appended to."""
        return not self._alternate and self._string_end is None and self._line.is_plain

    def _feed_text(self, text: str) -> None:
        text = self._take_complete(self._incomplete + text)
        lines = self._plain_lines(text)
        if lines is None:
            self._feed_tokens(text)
        else:
            self._add_lines(lines)

    def _take_complete(self, text: str) -> str:
        """Return ``text`` without an incomplete sequence at its end, kept for the next chunk."""
        self._incomplete = ""
        last = text.rfind("\x1b", -MAX_PARAMETERS - 2)
        if last >= 0 and _CUT_OFF.match(text, last):
            self._incomplete = text[last:]
            return text[:last]
        return text

    def _plain_lines(self, text: str) -> str | None:
        """Return plain lines without their harmless sequences; None for other text."""
        # Most output: no need to look at single characters.
        if not self._only_grows():
            return None
        if self._returned and not text.startswith("\n"):
            return None
        lines = text.replace("\r", "")
        if len(lines) < len(text) and _LONE_RETURN.search(text):
            return None
        if "\x1b" in lines:
            lines = _HARMLESS.sub("", lines)
        if _has_control(lines):
            return None
        self._returned = text.endswith("\r")
        return lines

    def _add_lines(self, lines: str) -> None:
        end = lines.rfind("\n") + 1
        if end:
            self._line.end(lines[:end])
        if end < len(lines):
            self._line.write(lines[end:])

    def _feed_tokens(self, text: str) -> None:
        position = 0
        while position < len(text):
            if self._string_end is None:
                position = self._read_tokens(text, position)
            else:
                position = self._skip_string(text, position, self._string_end)

    def _skip_string(self, text: str, start: int, string_end: re.Pattern[str]) -> int:
        found = string_end.search(text, start)
        if found is None:
            return len(text)
        self._string_end = None
        return found.end()

    def _read_tokens(self, text: str, start: int) -> int:
        """Apply ``text`` from ``start`` up to a string or the end; return that position."""
        for found in _TOKEN.finditer(text, start):
            match found.lastgroup:
                case "osc":
                    self._string_end = _OSC_END
                    return found.end()
                case "string":
                    self._string_end = _STRING_END
                    return found.end()
                case "csi":
                    self._control_sequence(found.group())
                case "reset":
                    self._alternate = self._on_other_row = False
                case "ignored":
                    pass
                case kind if not self._alternate:
                    self._draw(kind, found.group())
        return len(text)

    def _draw(self, kind: str | None, token: str) -> None:
        if kind == "line_feed":
            self._returned = self._on_other_row = False
            self._line.end("\n")
        elif kind == "restore":
            self._restore()
        elif self._on_other_row:
            return
        elif kind == "carriage_return":
            self._returned = True
        else:
            self._return_if_due()
            self._draw_on_line(kind, token)

    def _draw_on_line(self, kind: str | None, token: str) -> None:
        if kind == "text":
            self._line.write(token)
        elif kind == "save":
            self._line.save()
        else:
            self._line.move_by(-len(token))

    def _restore(self) -> None:
        """Move the cursor to its saved position, if that is on this line."""
        if self._line.is_saved:
            self._returned = self._on_other_row = False
            self._line.restore()

    def _return_if_due(self) -> None:
        """Apply a CR, now that it is known not to belong to a line's end."""
        if self._returned:
            self._returned = False
            self._line.move_to(0)

    def _control_sequence(self, sequence: str) -> None:
        final, parameters = sequence[-1], sequence[2:-1]
        if final in "hl" and parameters.startswith("?"):
            if not _ALTERNATE_SCREEN.isdisjoint(parameters[1:].split(";")):
                self._alternate = final == "h"
            return
        if not self._alternate and not self._on_other_row:
            self._edit(final, parameters)

    def _edit(self, final: str, parameters: str) -> None:
        first = parameters.partition(";")[0]
        if not first.isdigit() and parameters:
            return
        if final in _JUMPS:
            self._on_other_row = self._line.is_saved
        elif final in _EDITS:
            self._return_if_due()
            _EDITS[final](self._line, int(first or "0"))


def _has_control(text: str) -> bool:
    """Return whether ``text`` holds a control character other than TAB and LF."""
    if not text.isascii():
        return _CONTROL.search(text) is not None
    encoded = text.encode("ascii")
    return len(encoded.translate(None, _CONTROL_BYTES)) != len(encoded)
