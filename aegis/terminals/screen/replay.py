"""The newest output of a terminal as text that draws it again, with its colours. Pure.

The emulator stores no colours, and no lines that have scrolled away. So a screen is drawn for
clients from the bytes that drew it first. Only text, colours and movements of the cursor are kept:
titles, bells, queries, reports and the switches of modes must not happen a second time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from aegis.protocol.output_streams import DrawnMark

MAX_REPLAY_BYTES = 262_144
"""Limit of the bytes that one drawing is made from, for each of the two screens."""

MAX_STRETCHES = 64
"""Limit of the parts of the main screen's output that are known."""

_TOKEN = re.compile(
    r"([^\x00-\x1f\x7f-\x9f]+|[\b\t\n\v\f\r\x0e\x0f]"
    r"|\x1b\[[0-9;:]{0,250}[@A-MPSTXZ`abdefhlmrsu]|\x1b\[\?[67]?[hl]|\x1b\[\?25[hl]|\x1b\[!p"
    r"|\x1b[78DEHMc]|\x1b[()][0-9A-Za-z]|\x1b#8"
    r"|\x1b\]8;[^\x00-\x1f\x7f-\x9f]{0,2048}(?:\x07|\x1b\\))"
    r"|\x1b\][^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_k][^\x18\x1a\x1b]*(?:\x1b\\)?"
    r"|\x1b\[[\x20-\x3f]*[@-~]?|\x1b[\x20-\x2f]*[0-~]?|[\x00-\x1f\x7f-\x9f]",
)
"""The first group has what is kept; the other alternatives are dropped."""


_BEGINS = re.compile(rb"\x1b\]133;C[^\x07\x18\x1a\x1b]*(?:\x07|\x1b\\)")

MAX_MARKS = 1000
"""Limit of the marks of one drawing."""


def replayed(data: bytes) -> str:
    """Return the text, colours and cursor movements of ``data``."""
    text = data.decode("utf-8", "replace")
    return "".join(kept for kept in _TOKEN.findall(text) if kept)


def marks_in(parts: Iterable[tuple[int, bytes]]) -> list[DrawnMark]:
    """Return the newest marks of beginnings in ``parts``, each with the offset of its end.

    ``at`` counts the bytes of all parts together.
    """
    found, size = [], 0
    for stop, part in parts:
        ends = [each.end() for each in _BEGINS.finditer(part)]
        found += [DrawnMark(at=size + end, cursor=stop - len(part) + end) for end in ends]
        size += len(part)
    return found[-MAX_MARKS:]


def replayed_from(
    start: int, data: bytes, marks: Iterable[DrawnMark]
) -> tuple[str, list[DrawnMark]]:
    """Return ``replayed(data[start:])``, and the marks at their places in it, in UTF-8 bytes."""
    pieces, placed, size = [], [], 0
    for mark in marks:
        if mark.at > start:
            # A mark is a sequence of its own, wherever it is: cut behind it, no other one is torn.
            pieces.append(replayed(data[start : mark.at]))
            size += len(pieces[-1].encode())
            placed.append(DrawnMark(at=size, cursor=mark.cursor))
            start = mark.at
    return "".join([*pieces, replayed(data[start:])]), placed


def start_of_lines(data: bytes, count: int) -> int:
    """Return the offset in ``data`` at which its newest ``count`` + 1 lines begin; 0: all of it."""
    at = len(data)
    for _ in range(count + 1):
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            return 0
    return at + 1


class MainStretches:
    """The parts of the output that went to the main screen, from ``origin`` on."""

    def __init__(self, origin: int) -> None:
        self._begins = [origin]
        self._ends: list[int] = []

    def switched(self, offset: int, *, alternate: bool) -> None:
        """Note a switch of the screen at ``offset``."""
        if alternate is (len(self._begins) == len(self._ends)):
            return
        (self._ends if alternate else self._begins).append(offset)
        if len(self._begins) > MAX_STRETCHES:
            del self._begins[0], self._ends[:1]

    @property
    def alternate_since(self) -> int | None:
        """The offset at which the alternate screen began; None: the main screen is shown."""
        return self._ends[-1] if len(self._ends) == len(self._begins) else None

    def before(self, end: int) -> list[tuple[int, int]]:
        """Return the newest parts before ``end``, oldest first: ``MAX_REPLAY_BYTES`` in all."""
        left, found = MAX_REPLAY_BYTES, []
        ends = [*self._ends, end][: len(self._begins)]
        for begin, stop in zip(reversed(self._begins), reversed(ends), strict=True):
            stop = min(stop, end)
            if stop > begin and left > 0:
                found.append((max(begin, stop - left), stop))
                left -= stop - begin
        return found[::-1]
