"""``SubjectsPane``: a list in which one subject is selected, and keys act on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

from textual.binding import Binding, BindingType

from aegis.client.client import Client
from aegis.tui.panes.lists import ListPane
from aegis.tui.panes.pane import Desk
from aegis.tui.widgets.parts_view import PartsView, Passage

CONFIRM_S = 3.0
"""Seconds within which a second press of the same key carries out what cannot be undone."""

Work = Callable[[Client], Awaitable[Any]]


class SubjectsPane(ListPane):
    """A list whose passages with a key can be selected: by arrow keys, or by a click."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # Before the view, which would scroll.
        Binding("up", "select(-1)", "select the one before", show=False, priority=True),
        Binding("down", "select(1)", "select the next one", show=False, priority=True),
    ]

    def __init__(self, desk: Desk, key: str) -> None:
        super().__init__(desk, key)
        self._keys: list[str] = []
        self._armed = ("", "", 0.0)

    @property
    def selected(self) -> str:
        """The key of the selected passage; empty: there is none."""
        return self.view.selected

    def show(self, passages: Sequence[Passage], *, follows: bool = False) -> None:
        self._keys = [each.key for each in passages if each.key]
        if self.view.selected not in self._keys:
            self.view.selected = self._keys[0] if self._keys else ""
        super().show(passages, follows=follows)

    def action_select(self, by: int) -> None:
        if not self._keys:
            self.view.scroll_relative(y=by, animate=False)
            return
        at = self._keys.index(self.selected) + by if self.selected in self._keys else 0
        self.view.select(self._keys[max(0, min(len(self._keys) - 1, at))])

    def on_parts_view_chosen(self, message: PartsView.Chosen) -> None:
        message.stop()
        self.view.select(message.key)

    def act(self, name: str, work: Work, *, confirms: str = "") -> None:
        """Run ``work`` on the subject ``name``; with ``confirms``, at the second press only."""
        now = self.desk.now()
        what, subject, at = self._armed
        if confirms and ((what, subject) != (confirms, name) or now - at > CONFIRM_S):
            self._armed = confirms, name, now
            self.desk.show_remark(f"press it again to {confirms} {name}")
            return
        self._armed = "", "", 0.0
        self.desk.link.call(work, what=f"{name}: ")
