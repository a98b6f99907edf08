"""The pane that is shown when no tab is open: what there is to do."""

from __future__ import annotations

from rich.text import Text
from textual.app import ComposeResult
from textual.widgets import Static

from aegis.tui.panes.pane import Pane

LINES = (
    ("Ctrl-E", "open a terminal by its name"),
    ("Ctrl-T", "start an agent"),
    ("Ctrl-B", "go to the rail: Enter opens what is selected"),
    ("F2", "answer the open requests"),
    ("F1", "all keys"),
)


class WelcomePane(Pane):
    """A few lines in the middle."""

    DEFAULT_CSS = """
    WelcomePane { align: center middle; }
    WelcomePane > Static { width: auto; height: auto; }
    """

    can_focus = True

    def compose(self) -> ComposeResult:
        text = Text("aegis-actors\n\n", style="bold cyan")
        for key, what in LINES:
            text.append(f"{key:<8}", "bold")
            text.append(f"{what}\n", "not bold default")
        yield Static(text)

    @property
    def title(self) -> str:
        return "welcome"

    def shown(self) -> None:
        self.focus()
