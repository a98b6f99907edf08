"""A grid on ``avt``, asciinema's emulator written in Rust (the package ``pyavt``).

It is some twenty times faster than pyte, but wrong about width: a combining mark gets a column of
its own, and some characters another width than by ``wcwidth``. So such a character is replaced by a
stand-in of the right width on its way in, and restored on its way out.
"""

from __future__ import annotations

import re
from functools import lru_cache

from aegis.terminals.screen.widths import BEYOND_LATIN, MAX_MARKS, clusters_of, width_of

_TEXTS = re.compile(r"(\x1b(?:\[[!?]?[0-9;]*[@-~]|#?[0-~])|[\x00-\x1a\x1c-\x1f]+)")
_TABS = re.compile(r"(\t+|\x1b\[[0-9;]*I)")
_MOVES_ROWS = re.compile(r"(\x1b\[[0-9;]*[LM])")
_NARROW, _WIDE = 0x100000, 0x3E000
"""The first stand-ins: private characters of one column, unassigned ideographs of two."""
MAX_STAND_INS = 4096
"""Limit of stand-ins on one grid; later characters become question marks."""


class AvtGrid:
    """A ``Grid`` of ``rows`` by ``cols``."""

    def __init__(self, rows: int, cols: int) -> None:
        from avt import Vt  # type: ignore[attr-defined]

        self._vt = Vt(cols, rows, 0)
        self._cols = cols
        self._wraps = True
        self._stand_ins: dict[str, str] = {}
        self._meanings: dict[int, str] = {}

    def write(self, passage: str) -> None:
        """Write text, controls and sequences of a ``sequences.GridOutput``; whole characters."""
        for piece in _TABS.split(passage):
            # avt would put the cursor back into the last column.
            if piece and not (self.wraps_next() and _TABS.fullmatch(piece)):
                self._write(piece)

    def _write(self, passage: str) -> None:
        if "L" in passage or "M" in passage:
            passage = _MOVES_ROWS.sub("\\1\r", passage)
        if "\x1b[?7" in passage:
            self._wraps = passage.rpartition("\x1b[?7")[2].startswith("h")
        if BEYOND_LATIN.search(passage) is None:
            self._vt.feed_str(passage)
            return
        for piece in _TEXTS.split(passage):
            self._write_text(piece)

    def wraps_next(self) -> bool:
        """Return whether the cursor is behind a full line, so that the next character wraps."""
        return bool(self._wraps and self._vt.cursor.col == self._cols)

    def let_wrap(self) -> None:
        """Move the cursor from the last column to behind the full line."""
        # avt does so only behind a character that is written.
        line = self._vt[self._vt.cursor.row]
        start = self._cols - (1 if line[self._cols - 1].width else 2)
        self._vt.feed_str(f"\x1b[{start + 1}G{line[start].char}")

    def cursor(self) -> tuple[int, int]:
        """Return row and column, from 0."""
        cursor = self._vt.cursor
        return cursor.row, min(cursor.col, self._cols - 1)

    def lines(self) -> list[str]:
        """Return the text of each row."""
        lines = [line.text for line in self._vt.view()]
        return [line.translate(self._meanings) for line in lines] if self._meanings else lines

    def _write_text(self, piece: str) -> None:
        """Write a run of text, a control or a sequence."""
        if piece.isascii():
            self._vt.feed_str(piece)
            return
        first, *clusters = clusters_of(piece)
        if width_of(first[0]) == 0:
            self._join(first)
        else:
            clusters.insert(0, first)
        if clusters:
            self._make_room(clusters[0])
        if self._wraps:
            self._vt.feed_str("".join(map(self._as_fed, clusters)))
            return
        for cluster in clusters:
            if min(self._vt.cursor.col, self._cols - 1) + width_of(cluster[0]) <= self._cols:
                self._vt.feed_str(self._as_fed(cluster))

    def _make_room(self, cluster: str) -> None:
        """Blank the half of a wide character that ``cluster`` overwrites at the end of a line."""
        # avt wraps a wide character that begins there, though the last two columns have room for
        # it: xterm and pyte overwrite both halves.
        column = self._vt.cursor.col
        if (
            0 < column == self._cols - 2
            and width_of(cluster[0]) == 2
            and not self._vt[self._vt.cursor.row][column].width
        ):
            self._vt.feed_str(" \b")

    def _join(self, marks: str) -> None:
        """Add combining marks to the character before the cursor, if any."""
        column = self._vt.cursor.col
        if column == 0:
            return
        line = self._vt[self._vt.cursor.row]
        start = column - 1 if line[column - 1].width or column == 1 else column - 2
        before = line[start]
        joined = (before.char.translate(self._meanings) + marks)[: MAX_MARKS + 1]
        self._vt.feed_str(f"\x1b[{start + 1}G{self._stand_in(joined, before.width)}")
        if start + before.width != column:  # the cursor was on the second half
            self._vt.feed_str(f"\x1b[{column + 1}G")

    def _as_fed(self, cluster: str) -> str:
        if len(cluster) == 1 and _is_judged_right(cluster):
            return cluster
        return self._stand_in(cluster, width_of(cluster[0]))

    def _stand_in(self, cluster: str, width: int) -> str:
        known = self._stand_ins.get(cluster)
        if known is None:
            count = len(self._stand_ins)
            if count >= MAX_STAND_INS:
                return "??"[:width]
            code = (_WIDE if width == 2 else _NARROW) + count
            known = self._stand_ins[cluster] = chr(code)
            self._meanings[code] = cluster
        return known


@lru_cache(maxsize=4096)
def _is_judged_right(char: str) -> bool:
    """Return whether avt gives ``char`` its width; False for the stand-ins themselves."""
    from avt import Vt  # type: ignore[attr-defined]

    code = ord(char)
    if any(0 <= code - first < MAX_STAND_INS for first in (_NARROW, _WIDE)):
        return False
    scratch = Vt(8, 1, 0)
    scratch.feed_str(char)
    return bool(scratch.cursor.col == width_of(char))
