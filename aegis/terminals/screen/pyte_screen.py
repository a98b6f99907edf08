"""``pyte.Screen`` for text only, with missing and wrong operations replaced. Pure.

Of pyte 0.8.2 the cells, the cursor, the margins and the tab stops are used. Its operations are
replaced where they lose text (a mark or a joiner ends a draw), leave half of a wide character, jump
over margins, save cursors without limit, or are missing. Only text is stored: all cells of one
character are the same object.
"""

from __future__ import annotations

from pyte.screens import Char, Margins, Screen

from aegis.terminals.screen.widths import MAX_MARKS, clusters_of, width_of

MAX_CELLS = 20_000
"""Limit of cached characters; then the cache is cleared."""

_INSERT, _NEW_LINE = 4, 20
_BLANK = Char(" ")
_STUB = Char("")
"""The second column of a wide character."""


class _Cells(dict[str, Char]):
    """The cell of each character, made once."""

    def __missing__(self, char: str) -> Char:
        if len(self) > MAX_CELLS:
            self.clear()
        cell = self[char] = Char(char)
        return cell


_CELL = _Cells({" ": _BLANK})


class TextScreen(Screen):
    """``pyte.Screen`` for text only, with its gaps filled.

    ``cursor.x`` equals ``columns`` behind a full line: the next character wraps.
    """

    def __init__(self, columns: int, lines: int) -> None:
        super().__init__(columns, lines)
        self._inserts = self._adds_return = self._is_relative = False
        self._wraps = True
        self._saved = (0, 0, False, True)

    # Text.

    def draw(self, data: str) -> None:
        """Print characters at the cursor."""
        if data.isascii() and not self._inserts:
            self._draw_narrow(data)
            return
        for cluster in clusters_of(data):
            width = width_of(cluster[0])
            if width:
                self._draw_one(cluster, width)
            else:
                self._draw_marks(cluster)

    def _draw_narrow(self, data: str) -> None:
        cursor, columns = self.cursor, self.columns
        while data:
            if cursor.x >= columns:
                self._wrap()
            start = cursor.x
            part = data[: columns - start]
            end = start + len(part)
            line = self.buffer[cursor.y]
            self._part_wide(line, start)
            self._part_wide(line, end)
            line.update(zip(range(start, end), map(_CELL.__getitem__, part), strict=True))
            cursor.x = end
            data = data[len(part) :]
            if not self._wraps:
                data = data[-1:]
                cursor.x = min(end, columns - 1)

    def _draw_one(self, cluster: str, width: int) -> None:
        cursor = self.cursor
        if cursor.x + width > self.columns:
            if width == 2 and not self._wraps:
                return  # it does not fit, and there is no other line
            self._wrap()
        if self._inserts:
            self.insert_characters(width)
        line = self.buffer[cursor.y]
        self._part_wide(line, cursor.x)
        self._part_wide(line, cursor.x + width)
        line[cursor.x] = _CELL[cluster]
        if width == 2:
            line[cursor.x + 1] = _STUB
        cursor.x += width
        if not self._wraps:
            cursor.x = min(cursor.x, self.columns - 1)

    def _wrap(self) -> None:
        """Wrap, or stay at the edge: the next character does not fit behind the cursor."""
        if self._wraps:
            # A wide character leaves the last column empty, unless half of another is there.
            if self.buffer[self.cursor.y].get(self.cursor.x) is not _STUB:
                self._erase(self.cursor.y, self.cursor.x, self.columns)
            self.cursor.x = 0
            self.index()
        else:
            self.cursor.x = self.columns - 1

    def _draw_marks(self, marks: str) -> None:
        """Add combining marks to the character before the cursor, if any."""
        column = self.cursor.x - 1
        line = self.buffer[self.cursor.y]
        if line.get(column) is _STUB:
            column -= 1
        if column >= 0:
            before = line.get(column, _BLANK).data
            line[column] = _CELL[(before + marks)[: MAX_MARKS + 1]]

    @staticmethod
    def _part_wide(line: dict[int, Char], column: int) -> None:
        """Replace a wide character across the left edge of ``column`` by two blanks."""
        if line.get(column) is _STUB:
            line[column - 1] = line[column] = _BLANK

    def text_of(self, row: int) -> str:
        """Return the text of a row."""
        line = self.buffer.get(row)
        if not line:
            return ""
        get = line.get
        return "".join([get(column, _BLANK).data for column in range(self.columns)])

    # Modes.

    def private_mode(self, mode: int, *, on: bool) -> None:
        """Switch origin mode or wrapping."""
        if mode == 7:
            self._wraps = on
        elif mode == 6:
            self._is_relative = on
            self._go(0, 0)

    def set_modes(self, numbers: list[int], *, on: bool) -> None:
        """Switch a known ANSI mode: insertion, new line."""
        if _INSERT in numbers:
            self._inserts = on
        if _NEW_LINE in numbers:
            self._adds_return = on

    def soft_reset(self) -> None:
        """Apply DECSTR."""
        self.margins = None
        self._inserts = self._is_relative = False
        self._saved = (0, 0, False, True)

    def align(self) -> None:
        """Fill the screen with E."""
        for row in range(self.lines):
            self.buffer[row].update(dict.fromkeys(range(self.columns), _CELL["E"]))

    def save(self) -> None:
        """Save the cursor and its modes, replacing an earlier save."""
        x = min(self.cursor.x, self.columns - 1)
        self._saved = (self.cursor.y, x, self._is_relative, self._wraps)

    def restore(self) -> None:
        """Restore the saved cursor; without one, move it home."""
        self.cursor.y, self.cursor.x, self._is_relative, self._wraps = self._saved

    # The cursor.

    @property
    def _region(self) -> Margins:
        return self.margins or Margins(0, self.lines - 1)

    def _go(self, row: int, column: int) -> None:
        """Move to a row, counted from the top margin in origin mode, and a column."""
        top, bottom = self._region if self._is_relative else (0, self.lines - 1)
        self.cursor.y = min(top + row, bottom)
        self.cursor.x = min(column, self.columns - 1)

    def to_column(self, column: int) -> None:
        """Move to a column from 0, at most the last one."""
        self.cursor.x = min(max(column, 0), self.columns - 1)

    def _to_row(self, row: int) -> None:
        self.cursor.y = row
        self.to_column(self.cursor.x)

    def go_to(self, numbers: list[int]) -> None:
        """Move to a row and a column, from 1."""
        column = numbers[1] if len(numbers) > 1 else 0
        self._go(max(numbers[0], 1) - 1, max(column, 1) - 1)

    def go_to_row(self, row: int) -> None:
        """Move to a row, from 1, in the same column."""
        self._go(max(row, 1) - 1, self.cursor.x)

    def up(self, count: int) -> None:
        """Move up, at most to the top margin; from above it, to the top."""
        top, row = self._region.top, self.cursor.y
        self._to_row(max(row - max(count, 1), 0 if row < top else top))

    def down(self, count: int) -> None:
        """Move down, at most to the bottom margin; from below it, to the bottom."""
        bottom, row = self._region.bottom, self.cursor.y
        self._to_row(min(row + max(count, 1), self.lines - 1 if row > bottom else bottom))

    def left(self, count: int) -> None:
        """Move left, at most to the edge."""
        self.to_column(min(self.cursor.x, self.columns - 1) - max(count, 1))

    def right(self, count: int) -> None:
        """Move right, at most to the edge."""
        self.to_column(self.cursor.x + max(count, 1))

    def to_start(self) -> None:
        """Move to the first column."""
        self.cursor.x = 0

    def to_tab(self, count: int = 1) -> None:
        """Move to a later tab stop, else the last column. Behind a full line, stay."""
        if self.cursor.x == self.columns:
            return
        stops = [stop for stop in sorted(self.tabstops) if stop > self.cursor.x]
        stops = stops[max(count, 1) - 1 :]
        self.to_column(stops[0] if stops else self.columns - 1)

    def tab_back(self, count: int) -> None:
        """Move to an earlier tab stop."""
        stops = [stop for stop in sorted(self.tabstops, reverse=True) if stop < self.cursor.x]
        stops = stops[max(count, 1) - 1 :]
        self.to_column(stops[0] if stops else 0)

    def set_tab(self) -> None:
        """Set a tab stop."""
        if 0 < self.cursor.x < self.columns:
            self.tabstops.add(self.cursor.x)

    def clear_tabs(self, numbers: list[int]) -> None:
        """Clear the tab stop here (0), or all (3)."""
        if numbers[0] == 0:
            self.tabstops.discard(self.cursor.x)
        elif numbers[0] == 3:
            self.tabstops.clear()

    # Rows.

    def set_region(self, numbers: list[int]) -> None:
        """Set the scroll region to the rows between two, from 1."""
        top = max(numbers[0], 1) - 1
        bottom = (numbers[1] if len(numbers) > 1 and numbers[1] else self.lines) - 1
        if top < bottom < self.lines:
            self.margins = Margins(top, bottom)
        self._go(0, 0)

    def index(self) -> None:
        """Move down one row; at the bottom margin scroll up between the margins."""
        if self.margins is None and self.cursor.y == self.lines - 1:
            self._scroll_all()
        elif self.cursor.y == self._region.bottom:
            self.scroll_up(1)
        elif self.cursor.y < self.lines - 1:
            self._to_row(self.cursor.y + 1)

    def _scroll_all(self) -> None:
        # The common case in a flood of output: no need to look at each row.
        buffer = self.buffer
        moved = {row - 1: line for row, line in buffer.items() if row}
        buffer.clear()
        buffer.update(moved)

    def line_feed(self) -> None:
        """Feed a line, with a return where that mode is on."""
        self.index()
        if self._adds_return:
            self.to_start()

    def next_line(self) -> None:
        """Move to the start of the next row."""
        self.index()
        self.to_start()

    def reverse_index(self) -> None:
        """Move up one row; at the top margin scroll down between the margins."""
        if self.cursor.y == self._region.top:
            self.scroll_down(1)
        elif self.cursor.y > 0:
            self._to_row(self.cursor.y - 1)

    def scroll_up(self, count: int) -> None:
        """Scroll up between the margins."""
        top, bottom = self._region
        self._move_rows(top, bottom, -max(count, 1))

    def scroll_down(self, count: int) -> None:
        """Scroll down between the margins."""
        top, bottom = self._region
        self._move_rows(top, bottom, max(count, 1))

    def _move_rows(self, top: int, bottom: int, by: int) -> None:
        """Scroll the rows from ``top`` to ``bottom``; new rows are empty."""
        buffer = self.buffer
        rows = [buffer.pop(row, None) for row in range(top, bottom + 1)]
        for row, line in enumerate(rows, top + by):
            if line and top <= row <= bottom:
                buffer[row] = line

    def insert_rows(self, count: int) -> None:
        """Insert empty rows at the cursor, within the margins."""
        self._shift_rows(max(count, 1))

    def delete_rows(self, count: int) -> None:
        """Delete rows at the cursor, within the margins."""
        self._shift_rows(-max(count, 1))

    def _shift_rows(self, by: int) -> None:
        bottom = self._region.bottom
        bottom = self.lines - 1 if self.cursor.y > bottom else bottom
        self._move_rows(self.cursor.y, bottom, by)
        self.to_start()

    # Characters of a row.

    def insert_characters(self, count: int | None = None) -> None:
        """Insert blanks at the cursor; characters beyond the edge are lost."""
        start, columns = min(self.cursor.x, self.columns - 1), self.columns
        self.to_column(start)
        count = min(max(count or 1, 1), columns - start)
        line = self.buffer[self.cursor.y]
        self._part_wide(line, start)
        self._part_wide(line, columns - count)
        for column in range(columns - 1, start + count - 1, -1):
            line[column] = line.get(column - count, _BLANK)
        self._blank(line, start, start + count)

    def delete_characters(self, count: int | None = None) -> None:
        """Delete characters at the cursor; the rest of the row moves left."""
        start, columns = min(self.cursor.x, self.columns - 1), self.columns
        self.to_column(start)
        count = min(max(count or 1, 1), columns - start)
        line = self.buffer[self.cursor.y]
        self._part_wide(line, start)
        self._part_wide(line, start + count)
        for column in range(start, columns - count):
            line[column] = line.get(column + count, _BLANK)
        self._blank(line, columns - count, columns)

    def erase_characters(self, count: int | None = None) -> None:
        """Erase characters at the cursor."""
        self._erase(self.cursor.y, self.cursor.x, self.cursor.x + max(count or 1, 1))

    def erase_row(self, how: int) -> None:
        """Erase behind the cursor (0), before it (1), or all of its row (2)."""
        x = self.cursor.x
        if how in (0, 1, 2):
            start, end = ((x, self.columns), (0, x + 1), (0, self.columns))[how]
            self._erase(self.cursor.y, start, end)

    def erase_screen(self, how: int) -> None:
        """Erase behind the cursor (0), before it (1), or everything (2)."""
        row = self.cursor.y
        if how in (0, 1, 2):
            rows = (range(row + 1, self.lines), range(row), range(self.lines))[how]
            for each in rows:
                self.buffer.pop(each, None)
            self.erase_row(how)

    def _erase(self, row: int, start: int, end: int) -> None:
        line = self.buffer.get(row)
        if line:
            end = min(end, self.columns)
            self._part_wide(line, start)
            self._part_wide(line, end)
            self._blank(line, start, end)

    @staticmethod
    def _blank(line: dict[int, Char], start: int, end: int) -> None:
        for column in range(start, end):
            line.pop(column, None)
