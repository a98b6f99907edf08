"""The pane of an agent session: its transcript, a status line, and the input."""

from __future__ import annotations

import random

import trio
import trio.lowlevel
from textual.app import ComposeResult

from aegis.agents.render import StyledSegment
from aegis.client.agent_kinds import SessionEvent
from aegis.client.client import Client
from aegis.client.errors import ClientError
from aegis.protocol.agents import is_at_rest
from aegis.shown_text import escape_line
from aegis.tui.model.conversation import Conversation, Part
from aegis.tui.model.rail import status_of
from aegis.tui.model.states import agent_status
from aegis.tui.model.times import elapsed
from aegis.tui.panes.followed import FollowedPane
from aegis.tui.panes.pane import Desk
from aegis.tui.widgets.input_bar import InputBar
from aegis.tui.widgets.parts_view import PartsView, Passage
from aegis.tui.widgets.strip_bar import StripBar

FIRST_ENTRIES = 400
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SPIN_S = 0.1
VERB_S = 8.0
VERBS = (
    *("Thinking", "Reading", "Weaving", "Pondering", "Sketching", "Tracing", "Sifting"),
    *("Composing", "Untangling", "Considering", "Charting", "Distilling", "Tinkering"),
)


class ConversationPane(FollowedPane):
    """The session with the id in ``key``."""

    def __init__(self, desk: Desk, key: str) -> None:
        super().__init__(desk, key)
        self.id_ = key.partition(":")[2]
        self.view = PartsView()
        self.view.can_focus = False  # what is typed is for the line, wherever a person clicks
        self.bar = InputBar("SAY", "a message to the agent · Esc interrupts its turn")
        self.strip = StripBar()
        self.conversation = Conversation()
        self._handle = self.id_
        self._is_shown = False
        self._spins = False
        self._seed = random.randrange(len(VERBS))  # noqa: S311 -- a verb, not a secret

    def compose(self) -> ComposeResult:
        yield self.view
        yield self.strip
        yield self.bar

    @property
    def title(self) -> str:
        info = self.desk.world.agents.get(self.id_)
        self._handle = self._handle if info is None else info.handle
        return self._handle

    def shown(self) -> None:
        self._is_shown = True
        self.follow()
        self.changed()
        self.screen.set_focus(self.bar.line)

    def hidden(self) -> None:
        self._is_shown = False

    # The stream of the transcript.

    async def show_stream(self, client: Client) -> None:
        async with client.agents.events(self.title, last_n=FIRST_ENTRIES) as entries:
            self.conversation = Conversation()
            self.view.replace([])
            async for value in entries:
                if isinstance(value, SessionEvent):
                    self._take(value)
                elif value.dropped is None or value.dropped:
                    self._add(self.conversation.note("entries are missing here"))
                await trio.lowlevel.checkpoint()
            self._add(self.conversation.note("the session was closed"))

    def _take(self, entry: SessionEvent) -> None:
        count = len(self.conversation.parts)
        part = self.conversation.add(entry)
        if part is None:
            return
        if not count:
            self._spin()  # it is not empty any more
        if len(self.conversation.parts) < count:  # the oldest were dropped
            self.view.replace([passage_of(each) for each in self.conversation.parts])
        elif len(self.conversation.parts) > count:
            for each in self.conversation.parts[count:]:
                self._add(each)
        else:
            # Changed parts are near the end: a tool's result, a plan, a chunk of text.
            index = next(n for n in range(count - 1, -1, -1) if self.conversation.parts[n] is part)
            self.view.change(index, passage_of(part))

    def _add(self, part: Part) -> None:
        self.view.append(passage_of(part))

    # The person's part.

    def on_input_bar_submitted(self, message: InputBar.Submitted) -> None:
        message.stop()
        handle, text = self.title, message.text
        if not text.strip():
            return
        self.bar.recall.add(text)
        if not self.desk.link.is_connected:
            self.desk.report(f"{handle}: the daemon is away; the message was not sent")
            self.bar.keep(text)
            return

        async def send(client: Client) -> None:
            try:
                receipt = await client.inboxes.handoff(handle, text)
            except ClientError:
                self.bar.keep(text)
                raise
            if receipt.notice:
                self.desk.show_remark(receipt.notice)
            elif receipt.status == "queued":
                self.desk.show_remark(f"queued: {handle} takes it after its turn")

        self.view.follows = True
        self.desk.link.call(send, what=f"{handle}: ")

    def interrupt(self) -> bool:
        """Interrupt the turn; return whether there is one."""
        info = self.desk.world.agents.get(self.id_)
        # The two streams have no common order: the turn may be shown before the state has changed.
        has_turn = self.conversation.turn_began is not None
        is_busy = info is not None and info.state in ("working", "blocked", "starting")
        if info is None or not (has_turn or (is_busy and not is_at_rest(info))):
            return False
        handle = info.handle

        async def interrupt(client: Client) -> None:
            await client.agents.interrupt(handle)

        self.desk.show_remark(f"interrupting {handle}")
        self.desk.link.call(interrupt, what=f"{handle}: ")
        return True

    # Status.

    def changed(self) -> None:
        if not self._is_shown:
            return
        info = self.desk.world.agents.get(self.id_)
        if info is None:
            dot = status_of(self.key, self.desk.world, self.desk.now()).dot
            self.strip.show(((f" {dot} {escape_line(self._handle)} is closed", "dim"),))
            self.view.set_footer()
            return
        status = agent_status(info, self.desk.now())
        left = [(f" {status.dot} ", ""), (escape_line(info.handle), "bold")]
        left += [(f" · {status.text}", "")]
        usage = info.usage
        right = [escape_line(info.model or info.profile)]
        if usage is not None:
            if usage.context_percent is not None:
                right.append(f"{usage.context_percent:.0f}% context")
            if usage.cost_usd is not None:
                right.append(f"${usage.cost_usd:.2f}")
        if info.waiting:
            right.append(f"{info.waiting} waiting")
        self.strip.show(tuple(left), ((" · ".join(right) + " ", "dim"),))
        self._spin()

    def _spin(self) -> None:
        info = self.desk.world.agents.get(self.id_)
        if info is None or info.state not in ("working", "starting", "blocked"):
            self._spins = False
            is_empty = not self.conversation.parts and self.is_followed
            self.view.set_footer(*((("  nothing was said yet", "dim"),) if is_empty else ()))
            return
        self._draw_spinner()
        if not self._spins and info.state != "blocked":
            self._spins = True
            self.set_timer(SPIN_S, self._next_spin)

    def _next_spin(self) -> None:
        info = self.desk.world.agents.get(self.id_)
        if self._spins and self._is_shown and info is not None and info.state != "blocked":
            self._draw_spinner()
            self.set_timer(SPIN_S, self._next_spin)
        else:
            self._spins = False

    def _draw_spinner(self) -> None:
        info = self.desk.world.agents.get(self.id_)
        if info is None:
            return
        if info.state == "blocked":
            why = agent_status(info, self.desk.now()).text
            self.view.set_footer(
                ("  🟡 ", ""), (f"waits for you: {why}", "yellow"), ("  F2 answers", "dim")
            )
            return
        now = self.desk.now()
        began = self.conversation.turn_began
        seconds = 0.0 if began is None else max(0.0, now - began)
        verb = VERBS[(self._seed + int(seconds / VERB_S)) % len(VERBS)]
        glyph = SPINNER[int(now / SPIN_S) % len(SPINNER)]
        self.view.set_footer(
            (f"  {glyph} ", "bold cyan"),
            (f"{verb}… ", "cyan"),
            (f"{elapsed(seconds)} · Esc interrupts", "dim"),
        )


EDGES = {
    "mail": ("▎ ", "bold cyan"),
    "text": ("  ", ""),
    "thinking": ("  ", ""),
    "tool": ("  ", ""),
    "result": ("    ", ""),
    "note": ("  ", ""),
    "turn": ("  ", ""),
    "ask": ("▎ ", "bold yellow"),
}


def passage_of(part: Part) -> Passage:
    """Return a part as it is shown."""
    segments: list[StyledSegment] = part.segments
    heading: tuple[tuple[str, str], ...] = ()
    if part.kind == "mail":
        heading = (("✉ ", "bold cyan"), (f"from {part.title}", "bold"))
    return Passage(
        segments,
        edge=EDGES[part.kind],
        heading=heading,
        right=part.at if part.kind == "mail" else "",
        copied=part.copied,
        gap=0 if part.kind == "tool" else 1,
    )
