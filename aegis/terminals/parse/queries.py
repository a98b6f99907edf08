"""The sequences by which programs query the terminal or report their directory. Pure.

Bytes of the output in, sequences out. An ESC inside a string ends that string, so a sequence is
found after any bytes: the only state is an incomplete sequence at the end of a chunk, and the
result does not depend on the chunks. The scanner searches for ESC at the speed of C, and keeps at
most ``MAX_STRING_BYTES``; a longer string is ignored.
"""

from __future__ import annotations

import re

import attrs

MAX_STRING_BYTES = 8192
"""Limit of the content of a string (OSC, DCS), in bytes."""

# Possessive: a sequence that only begins like a query, as colours do, fails at its first odd byte.
_CSI = rb"\[([<=>?]?+)([0-9;]{0,64}+)([!$]?+[cnpqtuhl])"
_OSC = rb"\](4|7|10|11|12|7501);([^\x07\x18\x1a\x1b]{0,%d}+)(\x07|\x1b\\)" % MAX_STRING_BYTES
_DCS = rb"P([+$]q)([^\x07\x18\x1a\x1b]{0,%d}+)\x1b\\" % MAX_STRING_BYTES
_WHOLE = re.compile(rb"\x1b(?:%b|%b|%b|(c))" % (_CSI, _OSC, _DCS))

_STRING = rb"[^\x07\x18\x1a\x1b]{0,%d}\x1b?" % MAX_STRING_BYTES
_CUT_OFF = re.compile(
    rb"\x1b(?:\[[<=>?]?[0-9;]{0,64}[!$]?|\][0-9]{0,4}(?:;%b)?|P(?:[+$](?:q%b)?)?)?\Z"
    % (_STRING, _STRING)
)
_LONGEST = MAX_STRING_BYTES + 16


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
class FullReset:
    """``ESC c``: a full reset of the terminal."""

    end: int


Sequence = Csi | Osc | Dcs | FullReset


class SequenceScanner:
    """A scanner for the sequences of one stream."""

    def __init__(self) -> None:
        self._incomplete = b""

    @property
    def is_within_sequence(self) -> bool:
        """Whether the stream so far ends within a sequence."""
        return self._incomplete != b""

    def feed(self, data: bytes, start: int) -> list[Sequence]:
        """Return the sequences that ``data`` completes; ``start`` is its offset in the output."""
        if self._incomplete:
            start -= len(self._incomplete)
            data, self._incomplete = self._incomplete + data, b""
        elif b"\x1b" not in data:
            return []
        found, done = [], 0
        for match in _WHOLE.finditer(data):
            done = match.end()
            found.append(_sequence(match, start + done))
        self._incomplete = _unfinished(data, max(done, len(data) - _LONGEST))
        return found


def _unfinished(data: bytes, start: int) -> bytes:
    """Return an incomplete sequence at the end of ``data``, not before ``start``; or nothing."""
    # A sequence holds no ESC but that of its end. So it begins with the last ESC, or with the one
    # before it, if the last ESC is the last byte.
    last = data.rfind(b"\x1b", start)
    if last < 0:
        return b""
    before = data.rfind(b"\x1b", start, last) if last == len(data) - 1 else -1
    if before >= 0 and _CUT_OFF.match(data, before):
        return data[before:]
    return data[last:] if _CUT_OFF.match(data, last) else b""


def _sequence(match: re.Match[bytes], end: int) -> Sequence:
    marker, parameters, final, number, content, ending, kind, asked, _ = match.groups()
    if final is not None:
        return Csi(marker, parameters, final, end)
    if number is not None:
        return Osc(int(number), content, ending, end)
    if kind is not None:
        return Dcs(kind, asked, end)
    return FullReset(end)
