"""``PartsView``: passages of text below each other, wrapped once for each width."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import attrs
from rich.console import Console
from rich.segment import Segment as RichSegment
from rich.text import Text
from textual import events
from textual.message import Message
from textual.strip import Strip

from aegis.tui.widgets.line_view import LineView, strip_of, style_of

if TYPE_CHECKING:
    from aegis.agents.render import StyledSegment


SELECTED = style_of("bold reverse")


@attrs.frozen
class Passage:
    """A passage: a heading, its text, and the text that a click copies.

    ``edge`` is drawn left of every line, with its style. ``key`` identifies what is selected.
    """

    segments: Sequence[StyledSegment]
    edge: tuple[str, str] = ("  ", "")
    heading: Sequence[tuple[str, str]] = ()
    right: str = ""
    copied: str = ""
    gap: int = 1
    key: str = ""


class PartsView(LineView, can_focus=True):
    """Shows passages; ``footer`` is one more line below them."""

    DEFAULT_CSS = "PartsView { height: 1fr; }"

    class Copied(Message):
        """A passage was clicked."""

        def __init__(self, text: str, what: str) -> None:
            super().__init__()
            self.text = text
            self.what = what

    class LaidOut(Message):
        """The passages take another number of lines."""

    class Chosen(Message):
        """A passage with a key was clicked."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 -- Textual's name
        super().__init__(id=id)
        self._passages: list[Passage] = []
        self._lines: list[list[Strip]] = []
        self._ends: list[int] = []
        self._width = 80
        self.selected = ""
        """The key of the passages whose first line is highlighted."""
        self._footer: Strip | None = None
        self._paper = Console(width=80, force_terminal=True, legacy_windows=False)

    def replace(self, passages: Sequence[Passage]) -> None:
        """Show other passages; those that are equal are not laid out again."""
        known = {id(each): lines for each, lines in zip(self._passages, self._lines, strict=True)}
        self._passages = [*passages]
        self._lines = [known.get(id(each)) or self._laid_out(each) for each in self._passages]
        self._count()

    def append(self, passage: Passage) -> None:
        """Add a passage at the end."""
        lines = self._laid_out(passage)
        self._passages.append(passage)
        self._lines.append(lines)
        self._ends.append((self._ends[-1] if self._ends else 0) + len(lines))
        self.update_lines(None if self.follows else set())

    def change(self, index: int, passage: Passage) -> None:
        """Replace one passage."""
        self._passages[index] = passage
        self._lines[index] = self._laid_out(passage)
        self._count()

    def select(self, key: str) -> None:
        """Select the passages with this key, and show the first of them."""
        self.selected = key
        index = next((at for at, each in enumerate(self._passages) if each.key == key), None)
        if index is not None:
            begin, end = self._ends[index] - len(self._lines[index]), self._ends[index]
            top, height = self.scroll_offset.y, self.size.height
            if not top <= begin < top + height or end > top + height:
                self.scroll_to(y=max(0, min(begin, end - height)), animate=False)
        self.update_lines()

    def set_footer(self, *parts: tuple[str, str]) -> None:
        """Show a line below all passages; without parts, none."""
        had = self._footer is not None
        self._footer = strip_of(*parts) if parts else None
        if had == (self._footer is not None):
            self.update_lines({self.count() - 1})
        else:
            self.update_lines()

    def _count(self) -> None:
        self._ends = list(accumulate(map(len, self._lines)))
        self.update_lines()

    def count(self) -> int:
        return (self._ends[-1] if self._ends else 0) + (self._footer is not None)

    def draw(self, number: int) -> Strip:
        index = bisect_right(self._ends, number)
        if index >= len(self._lines):
            return (self._footer or strip_of()).crop(0, self._width)
        begin = self._ends[index - 1] if index else 0
        line = self._lines[index][number - begin]
        if number == begin and self.selected and self._passages[index].key == self.selected:
            shown = line.extend_cell_length(self._width)
            return Strip([RichSegment(each.text, SELECTED) for each in shown])
        return line

    def _laid_out(self, passage: Passage) -> list[Strip]:
        edge, edge_style = passage.edge
        prefix = RichSegment(edge, style_of(edge_style))
        width = max(8, self._width - len(edge))
        strips = []
        if passage.heading:
            strips.append(self._heading(passage))
        text = Text()
        for segment in passage.segments:
            text.append(segment.text, style_of(segment.style) if segment.style else None)
        if text.plain:
            text.expand_tabs(8)
            text.rstrip()
            for line in text.wrap(self._paper, width):
                line.rstrip()
                drawn = [each for each in line.render(self._paper) if each.text]
                strips.append(Strip([prefix, *drawn]))
        return [*strips, *[Strip([], 0)] * passage.gap]

    def _heading(self, passage: Passage) -> Strip:
        left = strip_of(passage.edge, *passage.heading)
        room = self._width - left.cell_length - len(passage.right) - 1
        if not passage.right or room < 1:
            return left.crop(0, self._width)
        return strip_of(
            passage.edge, *passage.heading, (" " * room, ""), (f"{passage.right} ", "dim")
        )

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        if width != self._width:
            self._width = width
            self._lines = [self._laid_out(each) for each in self._passages]
            self._count()
            self.post_message(self.LaidOut())
        else:
            self.update_lines()

    def on_click(self, event: events.Click) -> None:
        number = self.scroll_offset.y + event.y
        index = bisect_right(self._ends, number)
        if index >= len(self._passages):
            return
        passage = self._passages[index]
        if passage.key:
            self.post_message(self.Chosen(passage.key))
        if passage.copied:
            lines = len(passage.copied.splitlines())
            self.post_message(self.Copied(passage.copied, f"{lines} lines"))
