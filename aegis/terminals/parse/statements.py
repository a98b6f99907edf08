"""The sequences by which a program says what it does: titles, notifications, reports. Pure.

Bytes of the output in, evidence for the life cycle out. The scanner searches at the speed of C, and
keeps at most ``MAX_STRING_BYTES``; a longer string is ignored. The result does not depend on the
chunks.
"""

from __future__ import annotations

import re

from aegis.lifecycle.events import PromptBegun, TerminalReset
from aegis.lifecycle.notices import Notice, ProgressNotice, read_notice
from aegis.lifecycle.reports import Report, read_report
from aegis.lifecycle.titles import TitleChanged, read_title

MAX_STRING_BYTES = 8192
"""Limit of the content of an OSC, in bytes."""

Statement = Report | TitleChanged | Notice | ProgressNotice | PromptBegun | TerminalReset

_ESC = b"\x1b"
_BEGIN = re.compile(rb"\x1b(?:(?P<osc>\])|(?P<string>[PX^_])|(?P<reset>c))|\x07")
_END_OF_OSC = re.compile(rb"[\x07\x18\x1a\x1b]")
_END_OF_STRING = re.compile(rb"[\x18\x1a\x1b]")  # in other strings, BEL is text


class StatementScanner:
    """A scanner for the statements in the output of one terminal."""

    def __init__(self) -> None:
        self._escape = b""
        self._end: re.Pattern[bytes] | None = None
        self._content = bytearray()

    def feed(self, data: bytes) -> list[Statement]:
        """Return the statements that ``data`` completes."""
        data = self._escape + data
        # The byte behind an ESC decides, so an ESC at the end waits for it.
        self._escape = _ESC if data.endswith(_ESC) else b""
        data = data.removesuffix(_ESC)
        found: list[Statement] = []
        at = 0
        while at < len(data):
            at = (
                self._outside(data, at, found)
                if self._end is None
                else self._inside(data, at, found)
            )
        return found

    def _outside(self, data: bytes, at: int, found: list[Statement]) -> int:
        begin = _BEGIN.search(data, at)
        if begin is None:
            return len(data)
        if begin["osc"] is not None:
            self._end = _END_OF_OSC
        elif begin["string"] is not None:
            self._end = _END_OF_STRING
        else:
            found.append(Notice() if begin["reset"] is None else TerminalReset())
        return begin.end()

    def _inside(self, data: bytes, at: int, found: list[Statement]) -> int:
        assert self._end is not None
        end = self._end.search(data, at)
        stop = len(data) if end is None else end.start()
        if self._end is _END_OF_OSC:
            # One byte more than allowed shows that the string is too long.
            room = MAX_STRING_BYTES + 1 - len(self._content)
            self._content += data[at : min(stop, at + room)]
        if end is None:
            return stop
        ending = data[stop : stop + 2] if end.group() == _ESC else end.group()
        content, is_osc = bytes(self._content), self._end is _END_OF_OSC
        self._end = None
        self._content.clear()
        if ending not in (b"\x07", b"\x1b\\"):
            # CAN and SUB abort a string, and so does an ESC, which begins another sequence.
            return stop + (end.group() != _ESC)
        if is_osc and len(content) <= MAX_STRING_BYTES:
            statement = _statement(content, ending)
            found.extend([] if statement is None else [statement])
        return stop + len(ending)


def _statement(osc: bytes, ending: bytes) -> Statement | None:
    number, _, content = osc.partition(b";")
    match number:
        case b"7501":
            return read_report(content, ending)
        case b"0" | b"2":
            return read_title(content)
        case b"133":
            return PromptBegun() if content == b"A" or content.startswith(b"A;") else None
        case b"9" | b"99" | b"777":
            return read_notice(int(number), content)
        case _:
            return None
