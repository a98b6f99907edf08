"""The left rail: workspaces, agents and terminals with their dots, reasons and ages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from aegis.tui.model.rail import RailRow
from aegis.tui.widgets.line_view import LineView, strip_of


class Rail(LineView, can_focus=True):
    """Rows of the rail: a row is two lines, its name with the dot, and why and since when."""

    DEFAULT_CSS = """
    Rail { width: 30; background: $surface; border-right: vkey $panel; }
    Rail:focus { border-right: vkey $accent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("enter", "open", show=False),
        Binding("escape", "leave", show=False),
    ]
    follows = False

    class Chosen(Message):
        """A row was chosen."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    class Left(Message):
        """The rail was left by Escape."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name
        super().__init__(id=id)
        self._lines: list[tuple[RailRow, int]] = []
        self._rows: list[RailRow] = []
        self._selected = ""
        self._active = ""

    def show(self, rows: Sequence[RailRow], active: str) -> None:
        """Show rows; ``active`` is the key of the active tab."""
        if [*rows] == self._rows and active == self._active:
            return
        before = self._lines
        self._rows, was_active, self._active = [*rows], self._active, active
        self._lines = []
        for row in rows:
            if not row.key and self._lines:
                self._lines.append((RailRow(""), 0))
            self._lines += [(row, 0)] if not row.key else [(row, 0), (row, 1)]
        if len(before) == len(self._lines) and was_active == active:
            changed = {
                number
                for number, (one, other) in enumerate(zip(before, self._lines, strict=True))
                if one != other
            }
            self.update_lines(changed)
        else:
            self.update_lines()
            self.follows = False

    def count(self) -> int:
        return len(self._lines)

    def draw(self, number: int) -> Strip:
        row, part = self._lines[number]
        width = self.scrollable_content_region.width
        if not row.key or row.status is None:
            return strip_of((f" {row.title}", "bold dim"), width=width)
        indent = " " * (1 + 2 * row.depth)
        is_marked = self.has_focus and row.key == self._selected
        mark = "reverse" if is_marked else ""
        if part == 1:
            room = width - len(indent) - 4 - len(row.status.age)
            why = _shortened(row.status.why, room)
            gap = " " * max(1, width - len(indent) - 4 - cell_len(why) - len(row.status.age))
            return strip_of((f"{indent}   {why}{gap}{row.status.age} ", "dim"), width=width)
        name = _shortened(row.title, width - len(indent) - 4)
        style = "bold cyan" if row.key == self._active else "bold"
        return strip_of(
            (indent, ""),
            (row.status.dot, ""),
            (" ", ""),
            (name, f"{style} {mark}".strip()),
            width=width,
        )

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        if 0 <= number < len(self._lines) and (key := self._lines[number][0].key):
            self.post_message(self.Chosen(key))

    def on_focus(self) -> None:
        keys = self._keys()
        if self._selected not in keys:
            self._selected = self._active if self._active in keys else next(iter(keys), "")
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def action_move(self, by: int) -> None:
        keys = self._keys()
        if not keys:
            return
        at = keys.index(self._selected) if self._selected in keys else 0
        self._selected = keys[max(0, min(len(keys) - 1, at + by))]
        line = next(n for n, (row, _) in enumerate(self._lines) if row.key == self._selected)
        if not self.scroll_offset.y <= line < self.scroll_offset.y + self.size.height - 1:
            self.scroll_to(y=max(0, line - self.size.height // 2), animate=False)
        self.refresh()

    def action_open(self) -> None:
        if self._selected in self._keys():
            self.post_message(self.Chosen(self._selected))

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def _keys(self) -> list[str]:
        return [row.key for row in self._rows if row.key]


def _shortened(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    kept = text[: max(0, width - 1)]
    while cell_len(kept) > width - 1 and kept:
        kept = kept[:-1]
    return f"{kept}…"
