"""The control sequences in a terminal's output that the daemon follows, each found once. Pure.

Bytes of the output in, sequences out: switches of modes, queries, titles, reports, notifications,
bells. The result does not depend on the chunks, and an ESC inside a string ends that string. The
scanner searches at the speed of C. It keeps at most ``MAX_STRING_BYTES`` of a string; a longer one
is ignored, to its end.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import attrs

MAX_STRING_BYTES = 8192
"""Limit of the content of a string (OSC, DCS), in bytes."""

_NUMBERS = frozenset({b"0", b"2", b"4", b"7", b"9", b"10", b"11", b"12", b"99", b"777", b"7501"})
"""The OSC that are followed: titles, colours, directories, notifications, reports.

And 133, which begins a prompt; the other marks are those of ``osc133``.
"""

_MAX_PREFIX_BYTES = 16
"""More than the number of an OSC, or the kind of a DCS, before the content."""

# Possessive: a sequence that only begins like one of these, as colours do, fails at its first odd
# byte.
_BEGIN = re.compile(
    rb"\x1b(?:\[(?:([<=>?]?+)([0-9;]{0,64}+)([!$]?+[chlnpqrtu])|>([0-9;]{0,64}+)m)"
    rb"|([\]PX^_])|(c|=|>|\([0-9A-Z]))|\x07"
)
_CUT_OFF = re.compile(rb"\x1b(?:\(|\[[<=>?]?[0-9;]{0,64}[!$]?)?\Z")
_LONGEST = 68

_ESC, _BEL, _ST = b"\x1b", b"\x07", b"\x1b\\"
_END_OF_OSC = re.compile(rb"[\x07\x18\x1a\x1b]")
_END_OF_STRING = re.compile(rb"[\x18\x1a\x1b]")  # in other strings, BEL is text


@attrs.frozen
class Csi:
    """``ESC [ <marker> <parameters> <final>``; ``final`` has an intermediate before its letter.

    ``end`` is the offset in the output behind the sequence, in each of these classes.
    """

    marker: bytes
    parameters: bytes
    final: bytes
    end: int


@attrs.frozen
class Osc:
    """``ESC ] <number> ; <content> <ending>``; ``ending`` is BEL or ``ESC \\``."""

    number: int
    content: bytes
    ending: bytes
    end: int


@attrs.frozen
class Dcs:
    """``ESC P <kind> <content> ESC \\``; ``kind`` is ``+q`` or ``$q``."""

    kind: bytes
    content: bytes
    end: int


@attrs.frozen
class Escape:
    """``ESC <final>``: a reset (``c``), the keypad's mode (``=``, ``>``), a charset (``(0``)."""

    final: bytes
    end: int


@attrs.frozen
class Bell:
    """BEL outside a string."""

    end: int


ControlSequence: TypeAlias = Csi | Osc | Dcs | Escape | Bell


class SequenceScanner:
    """A scanner for the sequences of one stream."""

    def __init__(self) -> None:
        self._incomplete = b""
        self._string = b""  # the introducer of the current string
        self._content = bytearray()

    @property
    def is_within_sequence(self) -> bool:
        """Whether the stream so far ends within a sequence."""
        return bool(self._incomplete or self._string)

    def feed(self, data: bytes, start: int) -> list[ControlSequence]:
        """Return the sequences that ``data`` completes; ``start`` is its offset in the output."""
        if self._incomplete:
            start -= len(self._incomplete)
            data, self._incomplete = self._incomplete + data, b""
        elif not self._string and b"\x1b" not in data and b"\x07" not in data:
            return []
        found: list[ControlSequence] = []
        at = 0
        while at < len(data):
            if self._string:
                at = self._in_string(data, at, start, found)
                continue
            begin = _BEGIN.search(data, at)
            if begin is None:
                self._incomplete = _unfinished(data, max(at, len(data) - _LONGEST))
                break
            at = begin.end()
            if begin[5] is None:
                found.append(_sequence(begin, start + at))
            else:
                self._string = begin[5]
        return found

    def _in_string(self, data: bytes, at: int, start: int, found: list[ControlSequence]) -> int:
        """Take the string's bytes from ``at`` on; return the position behind them."""
        end = (_END_OF_OSC if self._string == b"]" else _END_OF_STRING).search(data, at)
        stop = len(data) if end is None else end.start()
        if self._string in b"]P":
            room = MAX_STRING_BYTES + _MAX_PREFIX_BYTES - len(self._content)
            self._content += data[at : min(stop, at + room)]
        if end is None:
            return stop
        ending = data[stop : stop + 2] if end.group() == _ESC else end.group()
        if ending == _ESC:
            self._incomplete = _ESC  # the byte behind it decides
            return len(data)
        string, content = self._string, bytes(self._content)
        self._string = b""
        self._content.clear()
        if ending not in (_BEL, _ST):
            # CAN and SUB abort a string, and so does an ESC, which begins another sequence.
            return stop + (end.group() != _ESC)
        at = stop + len(ending)
        sequence = _of_string(string, content, ending, start + at)
        if sequence is not None and len(sequence.content) <= MAX_STRING_BYTES:
            found.append(sequence)
        return at


def _unfinished(data: bytes, start: int) -> bytes:
    """Return an incomplete sequence at the end of ``data``, not before ``start``; or nothing."""
    last = data.rfind(_ESC, start)
    return data[last:] if last >= 0 and _CUT_OFF.match(data, last) else b""


def _sequence(match: re.Match[bytes], end: int) -> ControlSequence:
    marker, parameters, final, keys, _, escape = match.groups()
    if final is not None:
        return Csi(marker, parameters, final, end)
    if keys is not None:
        return Csi(b">", keys, b"m", end)
    return Bell(end) if escape is None else Escape(escape, end)


def _of_string(string: bytes, content: bytes, ending: bytes, end: int) -> Osc | Dcs | None:
    if string == b"]":
        number, _, content = content.partition(b";")
        is_followed = number in _NUMBERS or (number == b"133" and content[:1] == b"A")
        return Osc(int(number), content, ending, end) if is_followed else None
    is_query = string == b"P" and content[:2] in (b"+q", b"$q") and _BEL not in content
    return Dcs(content[:2], content[2:], end) if is_query else None
