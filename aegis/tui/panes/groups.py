"""The pane of groups: their members with states, and the replies to the newest broadcast."""

from __future__ import annotations

from typing import ClassVar

import trio
from textual.binding import Binding, BindingType

from aegis.agents.render import StyledSegment
from aegis.client.client import Client
from aegis.client.stream_kinds import Gap
from aegis.protocol.group_streams import GroupsItem
from aegis.protocol.groups import BroadcastInfo, GroupInfo, GroupMember
from aegis.shown_text import escape_line
from aegis.tui.model.rail import agent_key
from aegis.tui.model.states import GOOD, RESTS, agent_status
from aegis.tui.model.times import counted
from aegis.tui.model.world import World
from aegis.tui.panes.pane import Desk
from aegis.tui.panes.subjects import SubjectsPane
from aegis.tui.widgets.parts_view import Passage

REPLY_SIGNS = {
    "pending": ("…", "cyan"),
    "replied": ("✓", "green"),
    "failed": ("✗", "red"),
    "interrupted": ("✗", "red"),
    "cancelled": ("-", "dim"),
    "limited": ("!", "yellow"),
    "lost": ("✗", "red"),
}


class GroupsPane(SubjectsPane):
    """The groups; keys act on the selected group or member."""

    name_ = "groups"
    hint = "↑↓ Enter opens · x dissolve"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "open the member", show=False, priority=True),
        Binding("x", "dissolve", "dissolve the group", show=False),
    ]

    def __init__(self, desk: Desk, key: str) -> None:
        super().__init__(desk, key)
        self._groups: dict[str, GroupInfo] = {}

    async def show_stream(self, client: Client) -> None:
        async with client.groups.follow() as changes:
            async for value in changes:
                match value:
                    case Gap():
                        continue  # all of them are sent again
                    case GroupsItem():
                        self._groups = {each.id: each for each in value.groups}
                    case _ if value.group.state == "dissolved":
                        self._groups.pop(value.group.id, None)
                    case _:
                        self._groups[value.group.id] = value.group
                if not changes.unread:
                    self._draw()
                await trio.lowlevel.checkpoint()

    def changed(self) -> None:
        if self._is_shown:
            self._draw()  # the states of members are those of the agents

    def ticked(self) -> None:
        self._draw()

    def _draw(self) -> None:
        passages = []
        groups = sorted(self._groups.values(), key=lambda each: each.group)
        for group in groups:
            passages.append(_group_passage(group))
            passages += [self._member_passage(group, each) for each in group.members]
        if not groups:
            note = "no group: aegis-actors group spawn NAME PROFILE… makes one"
            passages.append(Passage([StyledSegment(note, "dim")]))
        self.show(passages)
        members = sum(len(each.members) for each in groups)
        self.set_status(f"{counted(len(groups), 'group')} · {counted(members, 'member')}")

    def _member_passage(self, group: GroupInfo, member: GroupMember) -> Passage:
        dot, text = _status(self.desk.world, member, self.desk.now())
        heading = [(f"{dot} ", ""), (f"{escape_line(member.handle):<16}", "bold")]
        status = None if group.broadcast is None else group.broadcast.replies.get(member.handle)
        if status is not None:
            sign, style = REPLY_SIGNS[status]
            heading.append((f" {sign} {status:<11}", style))
        heading.append((f" {escape_line(member.profile)} · {text}", "dim"))
        return Passage(
            [], edge=("   ", ""), heading=heading, gap=0, key=f"{group.id}/{member.handle}"
        )

    def _selected_group(self) -> GroupInfo | None:
        return self._groups.get(self.selected.partition("/")[0])

    def action_open(self) -> None:
        agent = self.desk.world.agent(self.selected.partition("/")[2])
        if agent is not None:
            self.desk.open_tab(agent_key(agent))

    def action_dissolve(self) -> None:
        group = self._selected_group()
        if group is None:
            return
        name = group.group

        async def dissolve(client: Client) -> None:
            await client.groups.dissolve(name)

        self.act(f"{name} with {len(group.members)} sessions", dissolve, confirms="dissolve")


def _status(world: World, member: GroupMember, now: float) -> tuple[str, str]:
    agent = world.agent(member.handle)
    if agent is None:
        return (RESTS, escape_line(member.needs)) if member.needs else (GOOD, "closed")
    status = agent_status(agent, now)
    return status.dot, status.text


def _group_passage(group: GroupInfo) -> Passage:
    words = [counted(len(group.members), "member"), f"by {escape_line(group.owner)}"]
    words += [f"{group.forming} starting"] if group.forming else []
    words += [group.state] if group.state != "open" else []
    heading = [("▣ ", "cyan"), (escape_line(group.group), "bold")]
    heading.append((f"  {' · '.join(words)}", "dim"))
    segments = [] if group.broadcast is None else [StyledSegment(_broadcast_text(group.broadcast))]
    if group.problem:
        segments.append(StyledSegment(f"\n{escape_line(group.problem)}", "red"))
    return Passage(segments, edge=(" ", ""), heading=heading, gap=0, key=group.id)


def _broadcast_text(broadcast: BroadcastInfo) -> str:
    counts = list(broadcast.replies.values())
    ended = sum(each != "pending" for each in counts)
    state = "over" if broadcast.is_over else f"{ended} of {len(counts)} replied"
    objective = escape_line(broadcast.objective.split("\n")[0][:160])
    return f"  ❓ {objective} · by {escape_line(broadcast.sender)} · {state}"
