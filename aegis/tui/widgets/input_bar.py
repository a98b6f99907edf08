"""The line at the bottom of a pane: a mode, and what is typed."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Static

MAX_HISTORY = 500


class Recall(Suggester):
    """Suggests the newest earlier line that begins with what is typed."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self.lines: list[str] = []

    async def get_suggestion(self, value: str) -> str | None:
        if not value:
            return None
        return next((each for each in reversed(self.lines) if each.startswith(value)), None)

    def add(self, line: str) -> None:
        """Remember a line as the newest one."""
        if line in self.lines:
            self.lines.remove(line)
        self.lines.append(line)
        del self.lines[:-MAX_HISTORY]


class LineInput(Input):
    """The input: earlier lines by the arrow keys, pasted lines as one."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "earlier", show=False),
        Binding("down", "later", show=False),
    ]

    def __init__(self, recall: Recall, placeholder: str) -> None:
        super().__init__(placeholder=placeholder, suggester=recall, compact=True)
        self._recall = recall
        self._at = 0
        self._draft = ""
        self._pasted: dict[str, str] = {}

    def _on_paste(self, event: events.Paste) -> None:
        text = event.text.rstrip("\n")
        if "\n" not in text:
            super()._on_paste(event)
            return
        # A line cannot show them: a word represents them until the line is entered.
        count = text.count("\n") + 1
        word = f"[{count} lines pasted]"
        while word in self._pasted:
            word = f"{word[:-1]} too]"
        self._pasted[word] = text
        self.insert_text_at_cursor(word)
        event.stop()
        event.prevent_default()

    def whole(self) -> str:
        """Return what was typed, with the pasted lines."""
        text = self.value
        for word, lines in self._pasted.items():
            text = text.replace(word, lines)
        return text

    def action_earlier(self) -> None:
        self._go(1)

    def action_later(self) -> None:
        self._go(-1)

    def _go(self, by: int) -> None:
        lines = self._recall.lines
        at = max(0, min(len(lines), self._at + by))
        if at == self._at:
            return
        if self._at == 0:
            self._draft = self.value
        self._at = at
        self.value = self._draft if at == 0 else lines[-at]
        self.cursor_position = len(self.value)

    def taken(self) -> None:
        """Clear the input after its line was taken."""
        self._at, self._draft = 0, ""
        self._pasted.clear()
        self.value = ""


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
        """A line was entered."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, chip: str, placeholder: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._chip = chip
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
        self.set_class(is_raw, "raw")
        self.query_one(".chip", Static).update(" RAW " if is_raw else f" {self._chip} ")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = self.line.whole()
        self.line.taken()
        if text.strip():
            if "\n" not in text:
                self.recall.add(text)
            self.post_message(self.Submitted(text))
