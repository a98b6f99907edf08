"""The line at the bottom of a pane: a mode, and what is typed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static

MAX_HISTORY = 500

RECENT_S = 2.0
"""Text typed in these seconds before a program asks for a secret is its beginning."""


class Recall(Suggester):
    """Suggests the newest earlier line that begins with what is typed."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self.lines: list[str] = []

    async def get_suggestion(self, value: str) -> str | None:
        if not value:
            return None
        return next(
            (each for each in reversed(self.lines) if each.startswith(value) and "\n" not in each),
            None,
        )

    def add(self, line: str) -> None:
        """Remember a line as the newest one."""
        if line in self.lines:
            self.lines.remove(line)
        self.lines.append(line)
        del self.lines[:-MAX_HISTORY]

    def add_earlier(self, lines: Sequence[str]) -> None:
        """Remember lines that are older than all that are known."""
        entered = self.lines
        self.lines = []
        for line in (*lines, *entered):
            self.add(line)


def lines_of_paste(text: str) -> str:
    """Return a pasted text with line feeds: terminals paste each end of a line as Enter."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class PasteInput(Input):
    """An input of one line that takes a paste once and whole: its lines are joined by spaces."""

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()  # or Textual calls the handler of its own class too
        self.insert_pasted(lines_of_paste(event.text).rstrip("\n"))

    def insert_pasted(self, text: str) -> None:
        """Insert a text of several lines in place of the selection."""
        self.replace(text.replace("\n", " "), *self.selection)


class LineInput(PasteInput):
    """The input: earlier lines by the arrow keys, pasted lines as one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "earlier", show=False),
        Binding("down", "later", show=False),
        # Not to the next widget: what is typed there would be lost.
        Binding("tab", "cursor_right_end", show=False),
        Binding("shift+tab", "nothing", show=False),
    ]

    def __init__(self, recall: Recall, placeholder: str = "") -> None:
        super().__init__(
            placeholder=placeholder, suggester=recall, compact=True, select_on_focus=False
        )
        self._recall = recall
        self._at = 0
        self._draft = ""
        self._pasted: dict[str, str] = {}
        self._clear = ""
        self.changed_at = float("-inf")
        self.take_back: Callable[[], str] = str
        """Returns the newest line that was queued, and takes it out of the queue; empty: none."""

    def insert_pasted(self, text: str) -> None:
        if "\n" in text:
            # A line cannot show them: a word represents them until the line is entered.
            word = f"[{text.count(chr(10)) + 1} lines pasted]"
            while word in self._pasted:
                word = f"{word[:-1]} too]"
            self._pasted[word] = text
            text = word
        self.replace(text, *self.selection)

    def action_cursor_right_end(self) -> None:
        """Take the suggestion, if there is one."""
        if self.cursor_at_end:
            self.action_cursor_right()

    def action_nothing(self) -> None:
        """Keep the focus."""

    def watch_value(self) -> None:
        self.changed_at = time.monotonic()

    def whole(self) -> str:
        """Return what was typed, with the pasted lines."""
        if not self._pasted:
            return self.value
        words = "|".join(re.escape(each) for each in sorted(self._pasted, reverse=True))
        return re.sub(words, lambda found: self._pasted[found[0]], self.value)

    def show(self, text: str) -> None:
        """Show a text as if it was typed; several lines as if they were pasted."""
        self._pasted.clear()
        self.value = ""
        self.insert_pasted(text)

    def action_earlier(self) -> None:
        queued = self.take_back() if not self.value else ""
        if queued:
            self.show(queued)
        else:
            self._go(1)

    def action_later(self) -> None:
        self._go(-1)

    def _go(self, by: int) -> None:
        lines = self._recall.lines
        at = max(0, min(len(lines), self._at + by))
        if at == self._at or self.password:
            return
        if self._at == 0:
            self._draft = self.whole()
        self._at = at
        self.show(self._draft if at == 0 else lines[-at])

    def taken(self) -> None:
        """Clear the input after its line was taken."""
        self._at, self._draft = 0, ""
        self._pasted.clear()
        self.value = ""

    def set_secret(self, is_secret: bool) -> None:
        """Show no character, or show them again.

        The line that was there before is restored then, and what was typed unseen is dropped: it is
        never shown. A line that was typed just now is the beginning of the secret.
        """
        if is_secret == self.password:
            return
        if not is_secret:
            self.taken()
            self.password, self.suggester = False, self._recall
            self.show(self._clear)
            self._clear = ""
            return
        self.password, self.suggester = True, None
        if time.monotonic() - self.changed_at > RECENT_S:
            text = self.whole()
            self.taken()
            self._clear = text


class InputBar(Horizontal):
    """A chip with the mode, and the input."""

    DEFAULT_CSS = """
    InputBar { height: 1; background: $surface; }
    InputBar > .chip { width: auto; color: $accent; text-style: bold; }
    InputBar > .hint { width: 1fr; color: $text-muted; display: none; }
    InputBar > LineInput { width: 1fr; background: $surface; }
    InputBar.raw > LineInput { display: none; }
    InputBar.raw > .hint { display: block; }
    InputBar.raw > .chip { color: $warning; text-style: bold reverse; }
    """

    class Submitted(Message):
        """A line was entered; it may be empty. ``is_secret``: it was typed unseen."""

        def __init__(self, text: str, *, is_secret: bool = False) -> None:
            super().__init__()
            self.text = text
            self.is_secret = is_secret

    def __init__(self, chip: str, placeholder: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._chip = chip
        self._is_raw = False
        self.recall = Recall()
        self.line = LineInput(self.recall, placeholder)

    def compose(self) -> ComposeResult:
        yield Static(f" {self._chip} ", classes="chip", markup=False)
        yield self.line
        yield Static(
            " every key goes to the program · Ctrl-K, or Esc twice, leaves",
            classes="hint",
            markup=False,
        )

    def set_raw(self, is_raw: bool) -> None:
        """Show the raw mode, in which nothing is typed here."""
        self._is_raw = is_raw
        self.set_class(is_raw, "raw")
        self._show_chip()

    def set_mode(self, chip: str, placeholder: str, *, is_secret: bool = False) -> None:
        """Say what becomes of the next line."""
        self.line.set_secret(is_secret)
        self.line.placeholder = placeholder
        if chip != self._chip:
            self._chip = chip
            self._show_chip()

    def _show_chip(self) -> None:
        for chip in self.query(".chip").results(Static):
            chip.update(" RAW " if self._is_raw else f" {self._chip} ")

    def keep(self, text: str) -> bool:
        """Show a line again that could not be taken; return False if another is typed meanwhile."""
        if not self.line.value and not self.line.password:
            self.line.show(text)
        return self.line.whole() == text

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = self.line.whole()
        self.line.taken()
        self.post_message(self.Submitted(text, is_secret=self.line.password))
