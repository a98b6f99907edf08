"""One line of output while it is written and redrawn. Pure.

A line that is only appended to is stored as pieces of text. When the cursor first leaves its end,
it becomes cells: one per column, a wide character followed by an empty one. Rules:

- A line has no right margin, but a jump ends at ``MAX_COLUMNS`` or at the line's end.
- At ``MAX_LINE`` characters (or cells) the first ``BLOCK`` becomes final, and the cursor cannot
  move back into it.
- In a line of cells TABs are blanks, as on a screen, and trailing blanks are removed: they are what
  a redraw erased.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

BLOCK = 2_048
MAX_LINE = 2 * BLOCK

MAX_COLUMNS = 1_000
"""Limit of cursor jumps: no program that knows the terminal's width moves further."""

MAX_CELL_CHARS = 32
"""A character and its combining marks; more marks on one cell are dropped."""

_TAB_STOP = 8
_FILLER = ""


class UnfinishedLine:
    """The unfinished line and its cursor; ``sink`` gets text as soon as it is final."""

    __slots__ = ("_cells", "_column", "_length", "_pieces", "_saved", "_sink")

    def __init__(self, sink: Callable[[str], None]) -> None:
        self._sink = sink
        self._pieces: list[str] = []
        self._length = 0
        self._cells: list[str] | None = None
        self._column = 0
        self._saved: int | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the line was only appended to: the cursor is at its end."""
        return self._cells is None

    def shown(self) -> str:
        """Return the line as it looks now, without its final part."""
        if self._cells is None:
            return "".join(self._pieces)
        return "".join(self._cells).rstrip(" ")

    def end(self, ending: str) -> None:
        """End the line as it looks now, with ``ending`` after it, and begin an empty one."""
        text = self.shown() + ending
        self._pieces.clear()
        self._length = 0
        self._cells = None
        self._saved = None
        if text:
            self._sink(text)

    def write(self, text: str) -> None:
        """Put ``text``, which holds no control character but TAB, at the cursor."""
        if self._cells is not None:
            self._put(text, self._cells)
            self._commit_cells(self._cells)
            return
        self._pieces.append(text)
        self._length += len(text)
        if self._length >= MAX_LINE:
            self._commit_pieces()

    def move_to(self, column: int) -> None:
        """Put the cursor on ``column``, counted from 0."""
        if column <= 0 and self._cells is None and not self._length:
            return  # already there: a line that begins with CR is still plain
        cells = self._as_cells()
        # After an erasure the cursor may be beyond the end; it may stay there or move back.
        furthest = max(len(cells), MAX_COLUMNS - 1, self._column)
        self._column = max(0, min(column, furthest))

    def move_by(self, columns: int) -> None:
        """Move the cursor to the right, or to the left if ``columns`` is negative."""
        self._as_cells()
        self.move_to(self._column + columns)

    @property
    def is_saved(self) -> bool:
        """Whether the cursor was saved on this line."""
        return self._saved is not None

    def save(self) -> None:
        """Remember where the cursor is, until the line ends."""
        self._as_cells()
        self._saved = self._column

    def restore(self) -> None:
        """Move the cursor to the position saved on this line, if any."""
        if self._saved is not None:
            self.move_to(self._saved)

    def erase(self, mode: int) -> None:
        """Blank the line from the cursor on (0), up to and with it (1), or all of it (2)."""
        if mode == 0:
            self.blank(MAX_LINE)
        elif mode == 1:
            cells = self._as_cells()
            self._blank(0, self._column + 1, cells)
        elif mode == 2:
            self._as_cells().clear()

    def blank(self, count: int) -> None:
        """Blank ``count`` cells from the cursor on."""
        if self._cells is not None:
            self._blank(self._column, self._column + count, self._cells)

    def delete(self, count: int) -> None:
        """Remove ``count`` cells at the cursor; the rest moves to the left."""
        if self._cells is not None:
            _split(self._cells, self._column)
            _split(self._cells, self._column + count)
            del self._cells[self._column : self._column + count]

    def insert(self, count: int) -> None:
        """Insert ``count`` blanks at the cursor; cells beyond ``MAX_LINE`` are lost."""
        cells = self._cells
        if cells is not None and self._column < len(cells):
            _split(cells, self._column)
            cells[self._column : self._column] = [" "] * min(count, MAX_LINE)
            _split(cells, MAX_LINE - 1)
            del cells[MAX_LINE - 1 :]

    def _commit_pieces(self) -> None:
        text = "".join(self._pieces)
        end = (len(text) // BLOCK - 1) * BLOCK
        self._pieces = [text[end:]]
        self._length = len(text) - end
        self._sink(text[:end])

    def _commit_cells(self, cells: list[str]) -> None:
        """Make the first cells final if there are too many."""
        # A line grows at its end only, and there the cursor is. Of a wide character across the edge
        # the empty cell stays, so that columns stay right.
        if self._column != len(cells) or len(cells) < MAX_LINE:
            return
        end = (len(cells) // BLOCK - 1) * BLOCK
        self._sink("".join(cells[:end]))
        del cells[:end]
        self._column -= end
        if self._saved is not None:
            self._saved = max(0, self._saved - end)

    def _as_cells(self) -> list[str]:
        if self._cells is None:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._length = 0
            self._cells = []
            self._column = 0
            self._put(text, self._cells)
            self._commit_cells(self._cells)
        return self._cells

    def _put(self, text: str, cells: list[str]) -> None:
        if text.isascii() and "\t" not in text:
            self._overwrite(list(text), cells)
            return
        for character in text:
            if character == "\t":
                self._put_tab(cells)
            else:
                self._put_character(character, cells)

    def _put_character(self, character: str, cells: list[str]) -> None:
        width = _width(character)
        if width == 0 and 0 < self._column <= len(cells):
            _combine(cells, self._column - 1, character)
        else:
            self._overwrite([character] + [_FILLER] * (width - 1), cells)

    def _put_tab(self, cells: list[str]) -> None:
        """Move the cursor over existing cells; beyond the line's end a TAB adds blanks."""
        stop = (self._column // _TAB_STOP + 1) * _TAB_STOP
        if self._column < len(cells):
            self._column = stop
        else:
            self._overwrite([" "] * (stop - self._column), cells)

    def _overwrite(self, new: list[str], cells: list[str]) -> None:
        start, end = self._column, self._column + len(new)
        if start > len(cells):
            cells.extend([" "] * (start - len(cells)))
        else:
            _split(cells, start)
            _split(cells, end)
        cells[start:end] = new
        self._column = end

    def _blank(self, start: int, end: int, cells: list[str]) -> None:
        _split(cells, start)
        _split(cells, end)
        if end >= len(cells):
            del cells[start:]
        else:
            cells[start:end] = [" "] * (end - start)


def _split(cells: list[str], column: int) -> None:
    """Replace a wide character across the left edge of ``column`` by two blanks."""
    if 0 < column < len(cells) and cells[column] == _FILLER:
        cells[column - 1 : column + 1] = [" ", " "]


def _combine(cells: list[str], column: int, mark: str) -> None:
    if column > 0 and cells[column] == _FILLER:
        column -= 1
    if len(cells[column]) < MAX_CELL_CHARS:
        cells[column] += mark


def _width(character: str) -> int:
    """Return the cells of ``character``: 0 (it joins the one before), 1 or 2."""
    if character.isascii() or character == "\xad":
        return 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
