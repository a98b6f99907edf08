"""``LineView``: a scrollable list of lines, of which only those that are visible are drawn.

Textual's own widgets divide and style all of their content again at each change: half a second for
64 KiB. Here a subclass says how many lines there are and draws one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class LineView(ScrollView):
    """Shows ``count`` lines, each drawn by ``draw``; follows the end unless scrolled away."""

    DEFAULT_CSS = """
    LineView {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
    }
    """
    follows = True
    """Whether the end is shown when lines are added."""

    def count(self) -> int:
        """Return the number of lines."""
        raise NotImplementedError

    def draw(self, number: int) -> Strip:
        """Return a line; styles are added to the widget's own."""
        raise NotImplementedError

    def update_lines(self, changed: set[int] | None = None) -> None:
        """Take a new number of lines, and draw ``changed`` again; None: all of them."""
        size = Size(self.scrollable_content_region.width, self.count())
        moved = False
        if self.virtual_size != size:
            self.virtual_size = size
        if self.follows:
            moved = self._show_end()
        if moved or changed is None:
            self.refresh()
            return
        top, (width, height) = self.scroll_offset.y, self.size
        rows = sorted(number - top for number in changed if top <= number < top + height)
        # One region for rows that follow each other: each one takes as long as a row to draw.
        regions = [Region(0, rows[begin], width, end - begin) for begin, end in _runs(rows)]
        if regions:
            self.refresh(*regions)

    def _show_end(self) -> bool:
        end = max(self.count() - self.size.height, 0)
        if self.scroll_offset.y == end:
            return False
        # scroll_end lags behind, and lines would stay unpainted.
        self.set_reactive(LineView.scroll_y, end)
        self.set_reactive(LineView.scroll_target_y, end)
        self.vertical_scrollbar.position = end
        return True

    def keep_place(self, moved: int) -> None:
        """Show the same lines after ``moved`` lines were added above them."""
        self.virtual_size = Size(self.scrollable_content_region.width, self.count())
        self.set_reactive(LineView.scroll_y, self.scroll_offset.y + moved)
        self.set_reactive(LineView.scroll_target_y, self.scroll_offset.y)
        self.vertical_scrollbar.position = self.scroll_offset.y
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self.follows = new_value >= self.max_scroll_y
        if new_value < 1 and old_value >= 1:
            self.on_top()

    def on_top(self) -> None:
        """Take that the first line is shown; more may be loaded."""

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw the lines of a region.

        Textual's cache of styles is passed by: it costs more than everything else, and there is no
        border and no padding.
        """
        style, columns = self.rich_style, crop.column_span
        top, count = self.scroll_offset.y, self.count()
        return [
            self.drawn(top + y, columns, style)
            if 0 <= top + y < count
            else _NOTHING.crop_extend(*columns, style)
            for y in crop.line_range
        ]

    def drawn(self, number: int, columns: tuple[int, int], style: Style) -> Strip:
        """Return these columns of a line, with ``style`` below its own styles."""
        return self.draw(number).apply_style(style).crop_extend(*columns, style)

    def render_line(self, y: int) -> Strip:
        return self.render_lines(Region(0, y, self.size.width, 1))[0]


_NOTHING = Strip([], 0)


def _runs(rows: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each run of numbers that follow each other, as indices."""
    begin = 0
    for index in range(1, len(rows) + 1):
        if index == len(rows) or rows[index] != rows[index - 1] + 1:
            yield begin, index
            begin = index


@lru_cache(maxsize=512)
def style_of(text: str) -> Style:
    """Return a style by its description; colours are the 16 of the terminal."""
    return Style.parse(text)


def strip_of(*parts: tuple[str, str], width: int | None = None) -> Strip:
    """Return a line of ``(text, style)`` parts, cut to ``width`` columns."""
    strip = Strip([Segment(text, style_of(style)) for text, style in parts if text])
    return strip if width is None else strip.crop(0, width)
