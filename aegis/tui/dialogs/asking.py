"""Small dialogs: a line of text, and a choice from a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from aegis.tui.held_keys import Hold
from aegis.tui.widgets.input_bar import PasteInput

DIALOG_CSS = """
{name} {{ align: center middle; background: $background 60%; }}
{name} > Vertical {{
    width: 64; max-width: 95%; height: auto; max-height: 90%;
    background: $surface; border: round $accent; padding: 0 1;
}}
{name} .title {{ text-style: bold; color: $accent; }}
{name} .note {{ color: $text-muted; }}
"""


T = TypeVar("T")


class Dialog(ModalScreen[T]):
    """A dialog that is closed once: a second key that closes it may be on its way already."""

    shows_requests = False
    """Whether it shows the open requests."""

    hold: Hold | None = None
    """The hold of the keys that are pressed before the dialog takes them."""

    _is_closed = False

    class Shown(Message):
        """The dialog is there, and has given the focus to one of its widgets."""

        def __init__(self, dialog: Dialog[Any]) -> None:
            super().__init__()
            self.dialog = dialog

    def on_mount(self) -> None:
        # Textual calls the methods of this name of all classes, the one of the dialog itself first.
        self.post_message(self.Shown(self))

    def refresh_requests(self) -> None:
        """Take that the open requests changed."""

    def close(self, result: T | None = None) -> None:
        """Close it with a result."""
        if not self._is_closed:
            self._is_closed = True
            self.dismiss(result)


class AskLine(Dialog[str]):
    """Asks for one line; Escape dismisses with None."""

    DEFAULT_CSS = DIALOG_CSS.format(name="AskLine")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss_none", show=False)]

    def __init__(self, title: str, placeholder: str, note: str = "") -> None:
        super().__init__()
        self._title = title
        self._placeholder = placeholder
        self._note = note

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(self._title, classes="title", markup=False)
            yield PasteInput(placeholder=self._placeholder, compact=True)
            if self._note:
                yield Static(self._note, classes="note", markup=False)

    def on_input_submitted(self, event: PasteInput.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.close(event.value.strip())

    def action_dismiss_none(self) -> None:
        self.close()


class Choose(Dialog[str]):
    """Asks to choose one of ``(key, text, note)``; Escape dismisses with None."""

    DEFAULT_CSS = DIALOG_CSS.format(name="Choose") + "Choose OptionList { height: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss_none", show=False)]

    def __init__(self, title: str, choices: Sequence[tuple[str, str, str]]) -> None:
        super().__init__()
        self._title = title
        self._choices = choices

    def compose(self) -> ComposeResult:
        from rich.text import Text

        options = [
            Option(Text.assemble((text, "bold"), (f"  {note}", "dim")), id=f"choice-{number}")
            for number, (_, text, note) in enumerate(self._choices)
        ]
        with Vertical():
            yield Static(self._title, classes="title", markup=False)
            yield OptionList(*options, compact=True)

    def on_mount(self) -> None:
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.close(self._choices[event.option_index][0])

    def action_dismiss_none(self) -> None:
        self.close()
