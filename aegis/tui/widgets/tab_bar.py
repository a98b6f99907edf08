"""The bar of tabs: a number, a dot, a name, and a star for news that was not seen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from textual import events
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from aegis.tui.model.tabs import TabLabel
from aegis.tui.widgets.line_view import strip_of

MAX_TITLE = 24


class TabBar(Widget):
    """One line of tabs, scrolled so that the active one is visible."""

    DEFAULT_CSS = "TabBar { height: 1; background: $panel; }"

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name
        super().__init__(id=id)
        self._tabs: list[TabLabel] = []
        self._active = ""
        self._right = ""
        self._spans: list[tuple[int, int, str]] = []

    def show(self, tabs: Sequence[TabLabel], active: str, right: str) -> None:
        """Show tabs, and a text at the right end."""
        if ([*tabs], active, right) != (self._tabs, self._active, self._right):
            self._tabs, self._active, self._right = [*tabs], active, right
            self.refresh()

    def render_lines(self, crop: Region) -> list[Strip]:
        style = self.rich_style
        return [
            self._bar().apply_style(style).crop_extend(crop.x, crop.right, style)
            for _ in crop.line_range
        ]

    def render_line(self, y: int) -> Strip:
        del y
        return self._bar().apply_style(self.rich_style)

    def _bar(self) -> Strip:
        parts: list[tuple[str, str]] = []
        spans: list[tuple[int, int, str]] = []
        at = 0
        for number, tab in enumerate(self._tabs, 1):
            begin = at
            for text, style in self._label(number, tab):
                parts.append((text, style))
                at += cell_len(text)
            spans.append((begin, at, tab.key))
        room = max(0, self.size.width - cell_len(self._right) - 1)
        offset = self._offset(spans, room)
        self._spans = [(begin - offset, end - offset, key) for begin, end, key in spans]
        bar = strip_of(*parts).crop(offset, offset + room)
        if offset:
            bar = Strip([*strip_of(("◂", "bold")), *bar.crop(1)])
        if spans and spans[-1][1] - offset > room > 1:
            bar = Strip([*bar.crop(0, room - 1), *strip_of(("▸", "bold"))])
        gap = max(0, room - bar.cell_length)
        return Strip([*bar, *strip_of((" " * gap, ""), (self._right, ""), (" ", ""))])

    def _label(self, number: int, tab: TabLabel) -> list[tuple[str, str]]:
        style = "bold reverse" if tab.key == self._active else ""
        title = tab.title if len(tab.title) <= MAX_TITLE else f"{tab.title[: MAX_TITLE - 1]}…"
        numbered = f" {number}" if number <= 9 else ""
        dot = f" {tab.dot}" if tab.dot else ""
        return [
            (f"{numbered}{dot} {title}", style or "dim" if not tab.has_news else style),
            ("*" if tab.has_news else "", f"bold yellow {style}".strip()),
            (" ", style),
            (" ", ""),
        ]

    def _offset(self, spans: list[tuple[int, int, str]], room: int) -> int:
        """Return by how many columns the tabs are scrolled."""
        for begin, end, key in spans:
            if key == self._active:
                return max(0, min(begin, end - room)) if end > room else 0
        return 0

    def on_click(self, event: events.Click) -> None:
        for begin, end, key in self._spans:
            if begin <= event.x < end:
                self.post_message(self.Chosen(key))
