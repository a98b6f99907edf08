"""A status line of one row, drawn only when its text changes."""

from __future__ import annotations

from rich.cells import cell_len
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from aegis.tui.widgets.line_view import strip_of

Parts = tuple[tuple[str, str], ...]


class StripBar(Widget):
    """Parts at the left and at the right; those at the right only where there is room for both."""

    DEFAULT_CSS = "StripBar { height: 1; background: $panel; }"

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name
        super().__init__(id=id)
        self._left: Parts = ()
        self._right: Parts = ()

    def show(self, left: Parts, right: Parts = ()) -> None:
        """Show parts of ``(text, style)``."""
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        style = self.rich_style
        strip = self._strip().apply_style(style).crop_extend(crop.x, crop.right, style)
        return [strip for _ in crop.line_range]

    def render_line(self, y: int) -> Strip:
        del y
        return self._strip().apply_style(self.rich_style)

    def _strip(self) -> Strip:
        width = self.size.width
        right = strip_of(*self._right)
        room = width - right.cell_length
        if parts_width(self._left) >= room:  # a space between them is needed
            right, room = strip_of(), width
        left = strip_of(*self._left, width=room)
        if parts_width(self._left) > room > 1:
            left = Strip([*left.crop(0, room - 1), *strip_of(("…", "dim"))])
        gap = strip_of((" " * max(0, room - left.cell_length), ""))
        return Strip([*left, *gap, *right])


def parts_width(parts: Parts) -> int:
    """Return the columns that parts take."""
    return sum(cell_len(text) for text, _ in parts)
