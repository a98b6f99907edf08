"""The base of the panes of tabs, and the app as they see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from textual.containers import Vertical

from aegis.tui.model.world import World

if TYPE_CHECKING:
    from aegis.protocol.streams import CommandItem
    from aegis.tui.link_later import LateLink


class Desk(Protocol):
    """The app, as its panes see it."""

    world: World
    link: LateLink
    answering: set[str]
    """Ids of the requests that are answered here."""

    def report(self, sentence: str) -> None:
        """Show a failure as one sentence."""

    def show_remark(self, sentence: str) -> None:
        """Show a remark for a moment."""

    def open_tab(self, key: str, *, shows: bool = True) -> None:
        """Open the tab with this key."""

    def ring_bell(self, key: str) -> None:
        """Ring the bell for a program."""

    def now(self) -> float:
        """Return the time in seconds since 1970."""


class Pane(Vertical):
    """The content of a tab. ``key`` identifies its subject."""

    DEFAULT_CSS = "Pane { height: 1fr; width: 1fr; }"

    def __init__(self, desk: Desk, key: str) -> None:
        super().__init__()
        self.desk = desk
        self.key = key

    @property
    def title(self) -> str:
        """The title of the tab."""
        return self.key.partition(":")[2]

    # A terminal has a raw mode; a terminal and a session have a stream. Other panes have neither.

    takes_keys = False
    """Whether it has a raw mode."""

    is_raw = False
    """Whether every key goes to the program."""

    is_followed = False
    """Whether its stream is open."""

    def set_raw(self, is_raw: bool) -> None:
        """Switch between the two modes of the input."""

    def type_raw(self, keys: bytes) -> None:
        """Take keys as the own terminal sent them."""

    def paste(self, text: str) -> None:
        """Take a paste in raw mode."""

    def unfollow(self) -> None:
        """Close the stream; the pane keeps what it shows."""

    def disconnected(self) -> None:
        """Take that the connection to the daemon is lost."""

    def on_command(self, item: CommandItem) -> None:
        """Take the start or the end of a command of the terminal."""

    def interrupt(self) -> bool:
        """Interrupt the command or the turn; return whether there was one."""
        return False

    def shown(self) -> None:
        """Take that the pane is shown now: its tab was chosen."""

    def hidden(self) -> None:
        """Take that another tab is shown."""

    def changed(self) -> None:
        """Take that the world has changed."""

    def ticked(self) -> None:
        """Take that some time has passed; called only while the pane is shown."""
