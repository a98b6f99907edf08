"""The base of the panes of lists, the supervision tree, and the inbox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import trio
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from aegis.agents.render import StyledSegment
from aegis.client.client import Client
from aegis.client.errors import ClientError
from aegis.client.stream_kinds import Gap
from aegis.protocol.daemon import TreeNode
from aegis.protocol.inboxes import Message
from aegis.shown_text import escape_line, escape_text
from aegis.tui.model.times import clock, counted
from aegis.tui.panes.followed import FollowedPane
from aegis.tui.panes.pane import Desk
from aegis.tui.widgets.parts_view import PartsView, Passage
from aegis.tui.widgets.strip_bar import StripBar


class ListPane(FollowedPane):
    """A pane with passages and a status line. Its stream is open while it is shown."""

    retry_s = 1.0

    name_ = ""
    hint = ""

    def __init__(self, desk: Desk, key: str) -> None:
        super().__init__(desk, key)
        self.view = PartsView()
        self.view.follows = False
        self.strip = StripBar()
        self._is_shown = False

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.strip

    @property
    def title(self) -> str:
        return self.name_

    def shown(self) -> None:
        self._is_shown = True
        self.follow()
        self.changed()
        self.view.focus()

    def hidden(self) -> None:
        self._is_shown = False
        self.unfollow()

    async def is_lost(self, client: Client) -> bool:
        try:
            await self.show_stream(client)
        except ClientError as error:
            self.show([Passage([StyledSegment(str(error), "red")])])
        return True

    def show(self, passages: Sequence[Passage], *, follows: bool = False) -> None:
        """Show passages; keep the place."""
        self.view.follows = follows
        self.view.replace(passages)
        self.view.follows = follows

    def set_status(self, text: str) -> None:
        """Show the status line."""
        self.strip.show(((f" {text}", "bold"),), ((f"{self.hint} ", "dim"),))


class TreePane(ListPane):
    """The live supervision tree."""

    name_ = "tree"
    hint = "the actors of the daemon, with restarts as they happen"

    async def show_stream(self, client: Client) -> None:
        async with client.tree.watch() as tree:
            nodes: dict[str, tuple[str, str, int, int]] = {}
            async for value in tree:
                match value:
                    case Gap():
                        continue
                    case TreeNode():
                        nodes.clear()
                        _collect(value, nodes)
                    case _:
                        if value.state == "stopped":
                            nodes.pop(value.path, None)
                        else:
                            nodes[value.path] = (
                                value.kind,
                                value.state,
                                value.restarts,
                                value.mailbox,
                            )
                if not tree.unread:
                    self._draw(nodes)

    def _draw(self, nodes: dict[str, tuple[str, str, int, int]]) -> None:
        passages = []
        for path in sorted(nodes):
            kind, state, restarts, mailbox = nodes[path]
            depth = path.count("/")
            style = {"running": "green", "down": "red", "starting": "yellow"}.get(state, "dim")
            name = path.rpartition("/")[2]
            agent = self.desk.world.agents.get(name)
            shown = name if agent is None else f"{escape_line(agent.handle)} {name[:6]}…"
            heading = [("  " * depth, ""), (f"{shown} ", "bold"), (kind, "dim")]
            heading.append((f"  {state}", style))
            if restarts:
                heading.append((f"  {counted(restarts, 'restart')}", "yellow"))
            if mailbox:
                heading.append((f"  {mailbox} queued", "dim"))
            passages.append(Passage([], edge=(" ", ""), heading=heading, gap=0))
        self.show(passages)
        restarted = sum(each[2] for each in nodes.values())
        self.set_status(f"{counted(len(nodes), 'actor')} · {counted(restarted, 'restart')}")


def _collect(node: TreeNode, nodes: dict[str, tuple[str, str, int, int]]) -> None:
    nodes[node.path] = (node.kind, node.state, node.restarts, node.mailbox)
    for child in node.children:
        _collect(child, nodes)


class InboxPane(ListPane):
    """The messages of the person's inbox."""

    name_ = "inbox"
    hint = "a acknowledges all · click copies"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "acknowledge", "acknowledge all", show=False)
    ]

    async def show_stream(self, client: Client) -> None:
        del client  # the feeds keep the inbox up to date
        await trio.sleep_forever()

    def changed(self) -> None:
        if self._is_shown:
            messages = self.desk.world.messages
            self.show([_message_passage(each) for each in messages], follows=True)
            self.set_status(counted(len(messages), "message"))

    def action_acknowledge(self) -> None:
        messages = self.desk.world.messages
        if not messages:
            return
        last = messages[-1].id

        async def acknowledge(client: Client) -> None:
            await client.inboxes.read(after=last, limit=1)
            messages.clear()
            self.changed()

        self.desk.link.call(acknowledge, what="inbox: ")


def _message_passage(message: Message) -> Passage:
    style = "bold red" if message.status == "error" else "bold cyan"
    return Passage(
        [StyledSegment(escape_text(message.body))],
        edge=("▎ ", style),
        heading=(("✉ ", style), (escape_line(message.sender), "bold")),
        right=clock(message.timestamp),
        copied=message.body,
    )
