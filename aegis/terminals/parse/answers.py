"""The terminal's answers to programs' queries, independent of its viewers. Pure.

The terminal is a VT220 with 256 colours on a dark background, without pixels. It reports unknown
facts as unknown, and never answers with the clipboard or the window title.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import attrs

from aegis.terminals.parse.control_sequences import ControlSequence, Csi, Dcs, Escape, Osc

_KNOWN_MODES: Mapping[tuple[bytes, int], bool] = {
    **{(b"", number): False for number in (4, 20)},
    **{(b"?", number): False for number in (1, 5, 6, 9, 12, 45, 47, 66, 1047, 1048, 1049)},
    **{(b"?", number): False for number in (1000, 1002, 1003, 1004, 1005, 1006, 1015)},
    **{(b"?", number): False for number in (2004, 2026)},
    **{(b"?", number): True for number in (7, 25)},
}
"""The known modes, with their values after a reset.

1016, mouse positions in pixels, is unknown: clicks are sent here in characters.
"""


class ReportedModes:
    """The modes that programs have set, for queries (DECRQM)."""

    def __init__(self) -> None:
        self._changed: dict[tuple[bytes, int], bool] = {}

    def follow(self, sequence: ControlSequence) -> bool:
        """Apply ``sequence``; return False if it changes no mode."""
        match sequence:
            case Escape(final=b"c") | Csi(marker=b"", parameters=b"", final=b"!p"):
                self._changed.clear()
            case Csi(marker=b"" | b"?", final=b"h" | b"l"):
                for number in sequence.parameters.split(b";"):
                    self._set(sequence.marker, number, sequence.final == b"h")
            case _:
                return False
        return True

    def _set(self, marker: bytes, number: bytes, value: bool) -> None:
        key = (marker, int(number or 0))
        if key in _KNOWN_MODES:
            self._changed[key] = value

    def report(self, marker: bytes, number: int) -> bytes:
        """Return the answer to DECRQM: 1 set, 2 reset, 0 unknown."""
        key = (marker, number)
        value = self._changed.get(key, _KNOWN_MODES.get(key))
        return b"\x1b[%b%d;%d$y" % (marker, number, 0 if value is None else 1 if value else 2)


@attrs.frozen(kw_only=True)
class Answers:
    """The terminal's answers.

    ``size`` returns its rows and columns. ``cursor_at`` returns the row and the column of the
    cursor, both from 1, at an offset of the output.
    """

    size: Callable[[], tuple[int, int]]
    cursor_at: Callable[[int], tuple[int, int]]
    modes: ReportedModes

    def answer(self, sequence: ControlSequence) -> bytes:
        """Return the answer to a query; empty for any other sequence."""
        match sequence:
            case Csi():
                return self._csi(sequence)
            case Osc(number=7501, content=b"?", ending=ending):
                return b"\x1b]7501;?" + ending
            case Osc(number=4):
                return _palette(sequence)
            case Osc(number=10 | 11 | 12):
                return _colours(sequence)
            case Dcs(kind=b"+q"):
                return _capabilities(sequence.content)
            case Dcs(kind=b"$q"):
                return _setting(sequence.content)
            case _:
                return b""

    def _csi(self, asked: Csi) -> bytes:
        # Only for these two a parameter 0 equals none: "CSI ? 0 u" is an answer.
        is_default = asked.parameters == b"0" and asked.final in (b"c", b"q")
        parameters = b"" if is_default else asked.parameters
        fixed = _FIXED.get((asked.marker, parameters, asked.final))
        if fixed is not None:
            return fixed
        match asked:
            case Csi(marker=b"" | b"?", parameters=b"6", final=b"n"):
                row, column = self.cursor_at(asked.end)
                return b"\x1b[%b%d;%dR" % (asked.marker, row, column)
            case Csi(marker=b"" | b"?", parameters=number, final=b"$p") if number.isdigit():
                return self.modes.report(asked.marker, int(number))
            case Csi(marker=b"", final=b"t"):
                return self._window(asked.parameters)
            case _:
                return b""

    def _window(self, parameters: bytes) -> bytes:
        rows, columns = self.size()
        height, width = CELL_PIXELS
        match parameters:
            case b"14" | b"14;2" | b"15":
                kind = 5 if parameters == b"15" else 4
                return b"\x1b[%d;%d;%dt" % (kind, rows * height, columns * width)
            case b"16":
                return b"\x1b[6;%d;%dt" % (height, width)
            case b"18" | b"19":
                return b"\x1b[%d;%d;%dt" % (8 if parameters == b"18" else 9, rows, columns)
            case _:
                return b""


CELL_PIXELS = (16, 8)
"""Height and width of a character in pixels, which programs ask for; the terminal has none."""

_FIXED: Mapping[tuple[bytes, bytes, bytes], bytes] = {
    (b"", b"", b"c"): b"\x1b[?62;22c",  # DA1: a VT220 with colours
    (b">", b"", b"c"): b"\x1b[>1;10;0c",  # DA2: the same, of an unknown version
    (b"=", b"", b"c"): b"\x1bP!|00000000\x1b\\",  # DA3
    (b"", b"5", b"n"): b"\x1b[0n",  # DSR: all is well
    (b"?", b"996", b"n"): b"\x1b[?997;1n",  # the colours are dark
    (b">", b"", b"q"): b"\x1bP>|aegis-actors\x1b\\",  # XTVERSION
    (b"?", b"", b"u"): b"\x1b[?0u",  # kitty's keyboard protocol: all off
}

FOREGROUND = (0xE5, 0xE5, 0xE5)
BACKGROUND = (0x00, 0x00, 0x00)
_ANSI = bytes.fromhex(
    "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5"
    "7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff"
)
_CUBE = (0x00, 0x5F, 0x87, 0xAF, 0xD7, 0xFF)


def colour(index: int) -> tuple[int, int, int]:
    """Return the colour ``index`` (0 to 255) of xterm's palette."""
    if index < 16:
        red, green, blue = _ANSI[3 * index : 3 * index + 3]
        return red, green, blue
    if index < 232:
        index -= 16
        return _CUBE[index // 36], _CUBE[index // 6 % 6], _CUBE[index % 6]
    grey = 8 + 10 * (index - 232)
    return grey, grey, grey


def _shown(rgb: tuple[int, int, int]) -> bytes:
    return b"rgb:" + b"/".join(b"%02x%02x" % (part, part) for part in rgb)


def _palette(asked: Osc) -> bytes:
    """Answer OSC 4, pairs of an index and ``?``; ignore pairs that set a colour."""
    words = asked.content.split(b";")
    replies = [
        b"\x1b]4;%b;%b%b" % (index, _shown(colour(int(index))), asked.ending)
        for index, what in zip(words[::2], words[1::2], strict=False)
        if what == b"?" and re.fullmatch(rb"[0-9]{1,3}", index) and int(index) < 256
    ]
    return b"".join(replies[:256])


def _colours(asked: Osc) -> bytes:
    """Answer OSC 10, 11 and 12; further words are for the next numbers."""
    replies = []
    for number, what in enumerate(asked.content.split(b";"), start=asked.number):
        if what == b"?" and number <= 12:
            shown = _shown(BACKGROUND if number == 11 else FOREGROUND)
            replies.append(b"\x1b]%d;%b%b" % (number, shown, asked.ending))
    return b"".join(replies)


_CAPABILITIES = {
    b"TN": b"xterm-256color",
    b"name": b"xterm-256color",
    b"Co": b"256",
    b"colors": b"256",
    b"RGB": b"8/8/8",
}
MAX_NAMES = 64
"""Limit of capabilities in one query; the rest is ignored."""


def _capabilities(content: bytes) -> bytes:
    """Answer XTGETTCAP: names in hexadecimal, each with its own answer."""
    return b"".join(_capability(name) for name in content.split(b";")[:MAX_NAMES])


def _capability(name: bytes) -> bytes:
    if re.fullmatch(rb"(?:[0-9A-Fa-f]{2}){1,32}", name) is None:
        return b"\x1bP0+r\x1b\\"
    value = _CAPABILITIES.get(bytes.fromhex(name.decode("ascii")))
    if value is None:
        return b"\x1bP0+r%b\x1b\\" % name
    return b"\x1bP1+r%b=%b\x1b\\" % (name, value.hex().upper().encode())


def _setting(what: bytes) -> bytes:
    """Answer DECRQSS: the conformance level; all other settings are "not valid"."""
    return b'\x1bP1$r62;1"p\x1b\\' if what == b'"p' else b"\x1bP0$r\x1b\\"
