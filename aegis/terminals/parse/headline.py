"""The title of the window and the bell in a terminal's output. Pure.

For the hot path: the scanner looks for ESC and BEL at the speed of C, and keeps at most
``MAX_TITLE_BYTES`` of an unfinished string. The result does not depend on the chunks.
"""

from __future__ import annotations

import re
import unicodedata

MAX_TITLE_BYTES = 4096
MAX_TITLE_CHARS = 256

_ESC = b"\x1b"
_BEGIN = re.compile(rb"\x1b(?:(?P<osc>\])|(?P<string>[PX^_])|(?P<reset>c))|\x07")
_END_OF_OSC = re.compile(rb"[\x07\x18\x1a\x1b]")
_END_OF_STRING = re.compile(rb"[\x18\x1a\x1b]")  # in other strings, BEL is text


class Headline:
    """The newest title, and the number of bells so far."""

    def __init__(self) -> None:
        self.title = ""
        self.bells = 0
        self._escape = b""
        self._end: re.Pattern[bytes] | None = None
        self._content = bytearray()

    def feed(self, data: bytes) -> bool:
        """Take the next chunk of the output; return whether the title or the count changed."""
        if self._end is None and not self._escape and b"\x1b" not in data and b"\x07" not in data:
            return False
        before = self.title, self.bells
        data = self._escape + data
        # The byte behind an ESC decides, so an ESC at the end waits for it.
        self._escape = _ESC if data.endswith(_ESC) else b""
        data = data.removesuffix(_ESC)
        at = 0
        while at < len(data):
            at = self._outside(data, at) if self._end is None else self._inside(data, at, self._end)
        return before != (self.title, self.bells)

    def _outside(self, data: bytes, at: int) -> int:
        begin = _BEGIN.search(data, at)
        if begin is None:
            return len(data)
        if begin["osc"] is not None:
            self._end = _END_OF_OSC
        elif begin["string"] is not None:
            self._end = _END_OF_STRING
        elif begin["reset"] is not None:
            self.title = ""
        else:
            self.bells += 1
        return begin.end()

    def _inside(self, data: bytes, at: int, ends: re.Pattern[bytes]) -> int:
        end = ends.search(data, at)
        stop = len(data) if end is None else end.start()
        if ends is _END_OF_OSC:
            # One byte more than allowed shows that the string is too long.
            room = MAX_TITLE_BYTES + 1 - len(self._content)
            self._content += data[at : min(stop, at + room)]
        if end is None:
            return stop
        ending = data[stop : stop + 2] if end.group() == _ESC else end.group()
        content, self._end = bytes(self._content), None
        self._content.clear()
        if ending not in (b"\x07", b"\x1b\\"):
            # CAN and SUB abort a string, and so does an ESC, which begins another sequence.
            return stop + (end.group() != _ESC)
        if (
            ends is _END_OF_OSC
            and content[:2] in (b"0;", b"2;")
            and len(content) <= MAX_TITLE_BYTES
        ):
            self.title = clean_title(content[2:])
        return stop + len(ending)


def clean_title(content: bytes) -> str:
    """Return the text of a title without control, format and bidi characters."""
    text = content.decode("utf-8", "replace")
    kept = (char for char in text if unicodedata.category(char)[0] != "C")
    return "".join(kept).strip()[:MAX_TITLE_CHARS]
