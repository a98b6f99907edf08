"""The part of the app that has tabs: their panes, which one is shown, and raw mode."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import Key, Paste
from textual.message import Message
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Input

from aegis.tui.dialogs.asking import Dialog
from aegis.tui.held_keys import Hold, PatientApp
from aegis.tui.link_later import LateLink
from aegis.tui.model.rail import rail_rows
from aegis.tui.model.tabs import Tabs
from aegis.tui.model.world import World
from aegis.tui.panes.pane import Pane
from aegis.tui.panes.welcome import WelcomePane
from aegis.tui.raw_keys import RawKeys, RawMode, RawPaste, RawSwitched
from aegis.tui.widgets.input_bar import PasteInput, lines_of_paste
from aegis.tui.widgets.lean_screen import LeanScreen
from aegis.tui.widgets.rail import Rail
from aegis.tui.widgets.tab_bar import TabBar

NARROW_COLUMNS = 100
"""In a narrower window the rail is hidden until it is asked for."""

FOLLOWED = 6
"""Panes whose streams stay open when another is shown; of others the stream is closed."""

DRAW_S = 0.03
"""Changes that come together within this time are drawn once."""

WELCOME = "view:welcome"

PANES = {
    "term": "terminal.TerminalPane",
    "agent": "conversation.ConversationPane",
    "queues": "queues.QueuesPane",
    "tree": "lists.TreePane",
    "inbox": "lists.InboxPane",
    "canvases": "canvases.CanvasesPane",
    "workflows": "workflows.WorkflowsPane",
    "groups": "groups.GroupsPane",
}
"""The panes by the kind of a tab, or the name of a view: a module of ``panes`` and its class.

They need the protocol, which is imported after the first frame.
"""


class TabbedApp(PatientApp):
    """An app with a bar of tabs, a rail, and a pane for each tab."""

    CSS = """
    ToastRack { align-horizontal: right; }
    #body { height: 1fr; }
    ContentSwitcher { width: 1fr; height: 1fr; }
    """

    world: World
    link: LateLink

    def __init__(self) -> None:
        super().__init__()
        self.tabs = Tabs()
        self._panes: dict[str, Pane] = {}
        self._is_rail_wanted: bool | None = None
        self._is_drawing = False
        self.answering: set[str] = set()

    def get_default_screen(self) -> Screen[None]:
        return LeanScreen()

    def compose(self) -> ComposeResult:
        yield TabBar()
        with Horizontal(id="body"):
            yield Rail()
            yield ContentSwitcher()

    def now(self) -> float:
        """Return the time in seconds since 1970."""
        return time.time()

    def report(self, sentence: str) -> None:
        """Show a failure as one sentence."""
        self.notify(sentence, severity="error", timeout=8, markup=False)

    def ring_bell(self, key: str) -> None:
        """Ring the bell for a program, and mark its tab unless it is shown."""
        self.bell()
        self.tabs.has_news(key)
        self.draw_soon()

    def show_remark(self, sentence: str) -> None:
        """Show a remark for a moment."""
        self.notify(sentence, timeout=3, markup=False)

    @property
    def base(self) -> Screen[object]:
        """The screen below all dialogs."""
        return self.screen_stack[0]

    @property
    def active(self) -> Pane | None:
        """The pane of the active tab."""
        return self._panes.get(self.tabs.active)

    def pane(self, key: str) -> Pane | None:
        """Return the pane of a tab that was shown."""
        return self._panes.get(key)

    # Drawing.

    def draw_soon(self) -> None:
        """Draw once for all changes that come together."""
        if not self._is_drawing:
            self._is_drawing = True
            self.set_timer(DRAW_S, self.draw)

    def tick(self) -> None:
        """Draw what changes with the time."""
        self.draw_frame()
        if self.is_running and self.active is not None:
            self.active.ticked()

    def draw(self) -> None:
        """Draw what has changed."""
        self._is_drawing = False
        self.draw_frame()
        if self.is_running and self.active is not None:
            self.active.changed()

    def draw_frame(self) -> None:
        # Textual ends an app by removing its screens, and stops the timers after that.
        if not self.is_running:
            return
        now = self.now()
        labels = self.tabs.labels(self.world, now)
        self.base.query_one(TabBar).show(labels, self.tabs.active, self._right())
        rail = self.base.query_one(Rail)
        rail.display = self._shows_rail()
        if rail.display:
            rail.show(rail_rows(self.world, now), self.tabs.active)

    def _right(self) -> str:
        words = []
        if not self.world.is_connected:
            words.append("🔴 no daemon")
        if self.world.requests:
            words.append(f"🟡 {len(self.world.requests)} F2")
        if self.world.messages:
            words.append(f"✉ {len(self.world.messages)}")
        return " ".join(words)

    def _shows_rail(self) -> bool:
        if self._is_rail_wanted is None:
            return self.size.width >= NARROW_COLUMNS
        return self._is_rail_wanted

    # Tabs.

    def open_tab(self, key: str, *, shows: bool = True) -> None:
        """Open the tab with this key; it is shown, or stays behind the one that is."""
        if shows:
            self.call_later(self._show_held, key, self.hold_keys())
        elif self.tabs.add(key):
            self.draw_soon()

    async def _show_held(self, key: str, hold: Hold) -> None:
        try:
            await self.show_tab(key)
        finally:
            self.release_keys(hold)

    async def show_tab(self, key: str) -> None:
        before = self.active
        pane = self._panes.get(key)
        if pane is None:
            pane = self._panes[key] = self._made(key)
            pane.id = f"pane-{len(self._panes)}-{id(pane)}"
            switcher = self.base.query_one(ContentSwitcher)
            await switcher.add_content(pane)
        self.tabs.show(key)
        if before is not None and before is not pane:
            self._leave_raw(before)
            before.hidden()
        self.base.query_one(ContentSwitcher).current = pane.id
        self._may_be_raw()
        pane.shown()
        self._limit_streams()
        self.draw_frame()

    def _made(self, key: str) -> Pane:
        kind, _, name = key.partition(":")
        module, _, class_name = PANES.get(name if kind == "view" else kind, "").partition(".")
        if not module:
            return WelcomePane(self, key)
        made: type[Pane] = getattr(import_module(f"aegis.tui.panes.{module}"), class_name)
        return made(self, key)

    def _limit_streams(self) -> None:
        """Close the streams of panes that were not shown for long."""
        followed = [
            pane
            for key in self.tabs.recent
            if (pane := self._panes.get(key)) is not None and pane.is_followed
        ]
        for pane in followed[FOLLOWED:]:
            pane.unfollow()

    def action_tab(self, number: int) -> None:
        if number <= len(self.tabs.keys):
            self.open_tab(self.tabs.keys[number - 1])

    def action_next_tab(self, by: int) -> None:
        key = self.tabs.beside(by)
        if key:
            self.open_tab(key)

    async def action_close_tab(self) -> None:
        key = self.tabs.active
        pane = self._panes.get(key)
        following = self.tabs.close(key)
        await self.show_tab(following or WELCOME)
        if pane is not None and key != self.tabs.active:
            del self._panes[key]
            pane.unfollow()
            await pane.remove()
        self.draw_frame()

    def action_view(self, name: str) -> None:
        self.open_tab(f"view:{name}")

    def on_tab_bar_chosen(self, message: TabBar.Chosen) -> None:
        self.open_tab(message.key)

    def on_rail_chosen(self, message: Rail.Chosen) -> None:
        if self.size.width < NARROW_COLUMNS:
            self._is_rail_wanted = None
        self.open_tab(message.key)

    def on_rail_left(self) -> None:
        if self.active is not None:
            self.active.shown()

    def action_rail(self) -> None:
        rail = self.base.query_one(Rail)
        if not self._shows_rail():
            self._is_rail_wanted = True
        elif rail.has_focus:
            self._is_rail_wanted = False
        self.draw_frame()
        if rail.display:
            rail.focus()
        elif self.active is not None:
            self.active.shown()

    # Raw mode.

    def _takes_keys(self) -> Pane | None:
        """Return the active pane if it has a raw mode."""
        return self.active if self.active is not None and self.active.takes_keys else None

    def _may_be_raw(self) -> None:
        """Say whether Ctrl-K begins raw mode now."""
        is_dialog = len(self.screen_stack) > 1
        RawMode.may_begin = not is_dialog and self._takes_keys() is not None

    def _set_raw(self, is_raw: bool) -> None:
        pane = self._takes_keys()
        if pane is not None:
            pane.set_raw(is_raw)
        RawMode.switch(is_raw and pane is not None)

    def _leave_raw(self, pane: Pane) -> None:
        if pane.is_raw:
            pane.set_raw(False)
            RawMode.switch(False)

    def action_toggle_raw(self) -> None:
        pane = self._takes_keys()
        if pane is not None:
            self._set_raw(not pane.is_raw)

    async def on_raw_switched(self, message: RawSwitched) -> None:
        await self.take(message)

    async def on_raw_keys(self, message: RawKeys) -> None:
        await self.take(message)

    async def on_raw_paste(self, message: RawPaste) -> None:
        await self.take(message)

    async def act_on(self, message: Message) -> None:
        focused = self.focused
        # An input of Textual's own dialogs, such as the palette, takes the first line only.
        is_cut = isinstance(focused, Input) and not isinstance(focused, PasteInput)
        if isinstance(message, Paste) and is_cut:
            message = Paste(lines_of_paste(message.text).replace("\n", " "))
        pane = self._takes_keys()
        if pane is None:
            await super().act_on(message)
            return
        match message:
            case RawSwitched(is_on=is_on):
                pane.set_raw(is_on)
            case RawKeys(keys=keys):
                pane.type_raw(keys)
            case RawPaste(text=text):
                pane.paste(text)
            case Key(character=str(character)) if RawMode.is_on and character:
                # It was pressed before raw mode began: Textual has parsed it.
                pane.type_raw(character.encode(errors="surrogatepass"))
            case _:
                await super().act_on(message)

    def push_screen(self, *arguments: object, **named: object) -> object:  # type: ignore[override]
        # Keys belong to the dialog.
        if self.active is not None:
            self._leave_raw(self.active)
        RawMode.may_begin = False
        if isinstance(arguments[0], Dialog):
            arguments[0].hold = self.hold_keys()
        return super().push_screen(*arguments, **named)  # type: ignore[call-overload]

    def on_dialog_shown(self, message: Dialog.Shown) -> None:
        self._release_of(message.dialog)

    def _release_of(self, screen: Screen[Any]) -> None:
        if isinstance(screen, Dialog) and screen.hold is not None:
            self.release_keys(screen.hold)

    def pop_screen(self) -> object:  # type: ignore[override]
        self._release_of(self.screen)  # it may be closed before it is shown
        popped = super().pop_screen()
        self._may_be_raw()
        return popped
