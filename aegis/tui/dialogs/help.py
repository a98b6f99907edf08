"""The help: every key on one screen of 80 by 24."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from aegis.tui.dialogs.asking import Dialog
from aegis.tui.model.keys import AGENT, APP, TABS, TERMINAL, VIEWS, key_table

COLUMNS = ((TERMINAL, AGENT, TABS), (VIEWS, APP))
KEY_WIDTH = 10


class HelpDialog(Dialog[None]):
    """Shows the table of keys; any key closes it."""

    DEFAULT_CSS = """
    HelpDialog { align: center middle; background: $background 60%; }
    HelpDialog > Vertical {
        width: 84; max-width: 100%; height: auto; max-height: 100%;
        background: $surface; border: round $accent; padding: 0 1;
    }
    HelpDialog Horizontal { height: auto; }
    HelpDialog Horizontal > Static { width: 1fr; height: auto; }
    HelpDialog .legend { color: $text-muted; }
    """

    def compose(self) -> ComposeResult:
        table = key_table()
        with Vertical():
            with Horizontal():
                for groups in COLUMNS:
                    yield Static(_column(groups, table))
            yield Static(
                "🟢 works  🟡 needs you  🟠 stale  ✅ ended well  🔴 failed  ⚪ rests  * news",
                classes="legend",
                markup=False,
            )

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        self.close()

    def on_click(self) -> None:
        self.close()


def _column(groups: tuple[str, ...], table: dict[str, list[tuple[str, str]]]) -> Text:
    text = Text()
    for group in groups:
        text.append(f"{group}\n", "bold cyan")
        for shown, what in table[group]:
            text.append(f"{shown:<{KEY_WIDTH}}", "bold")
            text.append(f"{what}\n")
    return text
