"""The app: a rail, tabs with panes, dialogs; keys by the table of ``model.keys``."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import ContentSwitcher

from aegis.tui.dialogs.asking import AskLine, Choose, Dialog
from aegis.tui.link_later import LateLink
from aegis.tui.model.keys import KEYS, shown_key
from aegis.tui.model.rail import agent_key
from aegis.tui.model.world import ChangeKind, World
from aegis.tui.tabbed import WELCOME, TabbedApp
from aegis.tui.theme import DARK_PALETTE, LIGHT_PALETTE, THEMES
from aegis.tui.window import ENDINGS, is_gone

if TYPE_CHECKING:
    from aegis.client.client import Client
    from aegis.protocol.requests import RequestInfo
    from aegis.protocol.streams import CommandItem
    from aegis.tui.link import DaemonLink
    from aegis.tui.widgets.parts_view import PartsView
    from aegis.tui.widgets.terminal import TerminalView

TICK_S = 1.0
"""How often times that pass are drawn again; a line is drawn only if its text has changed."""

FIRST_TABS = 9
"""Tabs that are opened at the start, for agents and terminals."""

LISTED_S = 5.0
"""Seconds that keys wait for the daemon's first lists; then they act as they can."""

OPENED_S = 5.0
"""Seconds that keys wait for a terminal or an agent that the person has started."""


class AegisApp(TabbedApp):
    """The interface of the daemon at ``root``, under ``handle``.

    ``link_type`` makes the link to the daemon, by the arguments of ``DaemonLink``. ``loaded`` is
    called once everything is imported.
    """

    TITLE = "aegis-actors"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(each.key, each.action, each.text, show=False, priority=each.is_priority)
        for each in KEYS
    ]
    ENABLE_COMMAND_PALETTE = True

    def __init__(
        self,
        root: str | Path,
        handle: str | None,
        *,
        theme: str = "aegis-dark",
        link_type: type[DaemonLink] | None = None,
        loaded: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        for each in THEMES:
            self.register_theme(each)
        self.ansi_theme_dark, self.ansi_theme_light = DARK_PALETTE, LIGHT_PALETTE
        self.theme = theme
        self.world = World()
        self._listed: set[str] = set()
        self.link = LateLink(root, handle, link_type, loaded)
        self._linked: asyncio.Task[None] | None = None
        self._ended_by: int | None = None
        self._unlisted = self.hold_keys()

    def on_load(self) -> None:
        if not self.is_headless:  # before the window is switched
            for number in ENDINGS:
                asyncio.get_running_loop().add_signal_handler(number, self._end_by, number)

    async def on_mount(self) -> None:
        await self.show_tab(WELCOME)
        self.set_interval(TICK_S, self.tick)
        self.set_timer(LISTED_S, lambda: self.release_keys(self._unlisted))
        self.call_after_refresh(self._connect)

    def _connect(self) -> None:
        self._linked = asyncio.create_task(self._follow())
        if self._ended_by is not None:
            self._end_by(self._ended_by)

    async def _follow(self) -> None:
        try:
            await self.link.run(self.world, self)
        except Exception as error:  # the key is not valid, or a defect: one sentence at the end
            self.exit(return_code=1, message=f"aegis-actors: {error}")

    def _end_by(self, number: int) -> None:
        """End as at Ctrl-Q, which leaves a clean window: not before everything is mounted."""
        self._ended_by = number
        if self._linked is not None:
            self._ending = asyncio.create_task(self._leave(128 + number))

    async def _leave(self, code: int) -> None:
        # The guest loop must end before its host does.
        await self.link.stop()
        self.exit(return_code=code)

    async def action_quit(self) -> None:
        await self._leave(0)

    def tick(self) -> None:
        """Draw what changes with the time, and end with the window."""
        if not self.is_headless and is_gone(sys.__stdin__.fileno()):  # type: ignore[union-attr]
            self._end_by(signal.SIGHUP)
        super().tick()

    # What the feeds report.

    def on_change(self, kind: str, key: str, change: ChangeKind) -> None:
        """Take a change of the world."""
        if kind == "requests":
            self._requests_changed(key, change)
        elif key.startswith(("term:", "agent:")):
            self._subject_changed(key, change)
        elif kind in ("terminals", "agents") and kind not in self._listed:
            self._listed.add(kind)
            if len(self._listed) == 2:
                self._open_listed()
        self.draw_soon()

    def _open_listed(self) -> None:
        """Open tabs for what was there at the start, as far as there is room for them."""
        keys = [agent_key(each) for each in self.world.agents.values()]
        keys += [f"term:{name}" for name in sorted(self.world.terminals)]
        for key in keys:
            if len(self.tabs.keys) < FIRST_TABS:
                self.tabs.add(key)
        self.release_keys(self._unlisted)

    def _requests_changed(self, key: str, change: ChangeKind) -> None:
        if change is ChangeKind.ASKS:
            request = self.world.requests[key]
            agent = self.world.agent(request.handle)
            if agent is not None:
                self.tabs.has_news(agent_key(agent))
            self.bell()
        if isinstance(self.screen, Dialog):
            self.screen.refresh_requests()

    def _subject_changed(self, key: str, change: ChangeKind) -> None:
        if key.startswith("agent:"):
            agent = self.world.agents.get(key.partition(":")[2])
            key = key if agent is None else agent_key(agent)
        if change is ChangeKind.OPENED:
            # What others open appears by itself, behind the tab that is shown.
            self.open_tab(key, shows=False)
        elif change is ChangeKind.CLOSED and self.pane(key) is None:
            self.tabs.close(key)  # opened by itself, and nobody has looked at it
        elif change in (ChangeKind.FINISHED, ChangeKind.ASKS):
            self.tabs.has_news(key)
            if change is ChangeKind.ASKS:
                self.bell()

    def on_command_item(self, item: CommandItem) -> None:
        """Take the start or the end of a command."""
        pane = self.pane(f"term:{item.command.name}")
        if pane is not None and pane.is_followed:
            pane.on_command(item)

    def on_requests(self, request: RequestInfo) -> None:
        """Remark that the request that is shown was settled by another client."""
        if request.state == "open":
            return
        if request.id in self.answering:
            self.answering.discard(request.id)
        elif isinstance(self.screen, Dialog) and self.screen.shows_requests:
            from aegis.tui.dialogs.requests import settled_note

            self.show_remark(settled_note(request))

    def on_connection(self, is_connected: bool) -> None:
        """Take the loss of the connection, or a new one."""
        if not is_connected:
            for pane in self._panes.values():
                pane.disconnected()
            self.notify("the daemon is gone; waiting for it", severity="warning", timeout=4)
        self.draw_soon()

    # Actions.

    def action_interrupt_command(self) -> None:
        if self.active is not None and self.active.takes_keys:
            self.active.interrupt()

    def action_interrupt_agent(self) -> None:
        if self.active is not None and not self.active.takes_keys:
            self.active.interrupt()

    def action_page(self, by: int) -> None:
        view = None if self.active is None else next(iter(self.active.query("LineView")), None)
        if view is not None:
            view.scroll_relative(y=by * max(1, view.size.height - 2), animate=False)

    def action_help(self) -> None:
        from aegis.tui.dialogs.help import HelpDialog

        self.push_screen(HelpDialog())

    def action_requests(self) -> None:
        from aegis.tui.dialogs.requests import RequestsDialog

        if not isinstance(self.screen, RequestsDialog):
            self.push_screen(RequestsDialog(self))

    def action_new_terminal(self) -> None:
        def opened(name: str | None) -> None:
            if name is not None:
                self._open_terminal(name)

        note = "the terminal of this name is opened, or started"
        self.push_screen(AskLine("TERMINAL", "its name, such as build", note), opened)

    def _open_terminal(self, name: str) -> None:
        if name in self.world.terminals:
            self.open_tab(f"term:{name}")
            return
        width, height = self.base.query_one(ContentSwitcher).size
        hold = self.hold_keys(OPENED_S)  # the next keys are for the new terminal

        async def spawn(client: Client) -> None:
            try:
                # The room of its view: without scroll bar, edge, status line and input.
                info = await client.terminals.spawn(
                    name, cols=max(20, width - 3), rows=max(5, height - 2)
                )
                self.world.terminals.setdefault(info.name, info)
                self.open_tab(f"term:{name}")
            finally:
                self.release_keys(hold)

        self.link.call(spawn)

    def action_new_agent(self) -> None:
        async def choose(client: Client) -> None:
            profiles = (await client.agents.profiles()).result
            choices = [
                (each.profile, each.profile, f"{each.provider} · {each.permission} {each.problem}")
                for each in sorted(profiles, key=lambda each: not each.is_default)
            ]
            if choices:
                self.push_screen(Choose("AGENT", choices), self._spawn_agent)
            else:
                self.report("there is no profile: add `agents:` to .aegis.yaml")

        self.link.call(choose)

    def _spawn_agent(self, profile: str | None) -> None:
        if profile is None:
            return

        hold = self.hold_keys(OPENED_S)

        async def spawn(client: Client) -> None:
            try:
                info = await client.agents.spawn(profile=profile)
                self.open_tab(agent_key(info))
            finally:
                self.release_keys(hold)

        self.link.call(spawn)

    def on_terminal_view_copied(self, message: TerminalView.Copied) -> None:
        self._copy(message.text, message.what)

    def on_parts_view_copied(self, message: PartsView.Copied) -> None:
        self._copy(message.text, message.what)

    def _copy(self, text: str, what: str) -> None:
        self.copy_to_clipboard(text)
        self.show_remark(f"copied {what}")

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Offer every action, every agent and terminal, and the themes."""
        del screen
        for key in KEYS:
            if not key.action.startswith(("tab(", "page", "command_palette")):
                yield SystemCommand(
                    key.text.capitalize(), shown_key(key.key), self._runs(key.action)
                )
        for info in self.world.agents.values():
            yield SystemCommand(f"Go to {info.handle}", "agent", self._opens(agent_key(info)))
        for name in sorted(self.world.terminals):
            yield SystemCommand(f"Go to {name}", "terminal", self._opens(f"term:{name}"))
        for theme in THEMES:
            yield SystemCommand(
                f"Theme {theme.name}", "colours", partial(setattr, self, "theme", theme.name)
            )

    def _runs(self, action: str) -> Callable[[], object]:
        return lambda: self.call_later(self.run_action, action)

    def _opens(self, key: str) -> Callable[[], object]:
        return lambda: self.open_tab(key)
