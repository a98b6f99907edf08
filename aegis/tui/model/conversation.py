"""The transcript of a session as parts to show, in order. Pure.

Chunks of one message become one part, a tool call has its newest description and result, the output
of a terminal its newest state. A message that arrived in the inbox is a part of its own.
"""

from __future__ import annotations

from typing import Any, Literal

import attrs

from aegis.agents.render import StyledSegment, messages_in, segments_of
from aegis.client.agent_kinds import SessionEvent
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    Plan,
    RequestOpened,
    SystemInit,
    TerminalEnded,
    TerminalOutput,
    TerminalStarted,
    ToolProgress,
    ToolResult,
    ToolUse,
    UserMessage,
)
from aegis.shown_text import escape_line, escape_text
from aegis.tui.model.states import OWN_PREFIX
from aegis.tui.model.times import clock, duration, moment

Kind = Literal["mail", "text", "thinking", "tool", "result", "note", "turn", "ask"]

MAX_PARTS = 5_000
"""Parts that are kept; older ones are in the transcript."""


@attrs.define(eq=False)
class Part:
    """One part: its segments, and the text that a click copies."""

    kind: Kind
    segments: list[StyledSegment]
    copied: str
    at: str = ""
    title: str = ""
    event: AgentEvent | None = None


class Conversation:
    """The parts of one session. ``changed`` is the index of the first part that changed."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._of: dict[tuple[str, str], Part] = {}
        self._turn_began: float | None = None
        self._last: tuple[str, Part] | None = None

    @property
    def turn_began(self) -> float | None:
        """When the turn in progress began, in seconds since 1970; None: no turn."""
        return self._turn_began

    def add(self, entry: SessionEvent) -> Part | None:
        """Take an entry; return the part that is new or has changed."""
        if entry.event is not None:
            return self._event(entry.event, entry)
        self._last = None
        return self._entry(entry.kind, entry.fields, entry)

    def note(self, text: str) -> Part:
        """Add a remark of the interface itself."""
        return self._append(Part("note", [StyledSegment(text, "dim")], text))

    def clear(self) -> None:
        """Drop everything."""
        self.__init__()  # type: ignore[misc]

    # Entries of the session itself.

    def _entry(self, kind: str, fields: dict[str, Any], entry: SessionEvent) -> Part | None:
        match kind:
            case "turn_opened":
                self._turn_began = moment(entry.at)
                return self._mail(str(fields.get("text", "")), entry)
            case "turn_ended":
                return self._turn_ended(fields, entry)
            case "started":
                again = "" if fields.get("rung") == 1 else ", again"
                return self._remark(f"agent started{again}", entry)
            case "ended":
                return self._remark(str(fields.get("reason", "")), entry)
            case "closed" | "interrupt":
                word = "interrupted" if kind == "interrupt" else "closed"
                return self._remark(f"{word} by {fields.get('by')}", entry)
            case "decided":
                return self._decided(fields, entry)
        return None

    def _mail(self, text: str, entry: SessionEvent) -> Part | None:
        """Add a part for each message that opened the turn."""
        part = None
        for sender, body in messages_in(text) or [("a turn", text)]:
            part = self._append(self._mail_part(sender, body, entry))
        return part

    def _mail_part(self, sender: str, text: str, entry: SessionEvent) -> Part:
        body = text.strip("\n")
        return Part(
            "mail",
            [StyledSegment(escape_text(body))],
            body,
            at=clock(entry.at),
            title=escape_line(sender),
        )

    def _turn_ended(self, fields: dict[str, Any], entry: SessionEvent) -> Part:
        began, self._turn_began = self._turn_began, None
        outcome, reason = str(fields.get("outcome")), str(fields.get("reason") or "")
        words = [f"turn {fields.get('turn')} {outcome}"]
        if reason and reason != outcome and outcome != "completed":
            words.append(escape_line(reason))
        ended = moment(entry.at)
        if began is not None and ended is not None:
            words.append(duration(max(0.0, ended - began)))
        style: Any = "dim" if outcome == "completed" else "yellow"
        text = " · ".join(words)
        return self._append(Part("turn", [StyledSegment(text, style)], text, at=clock(entry.at)))

    def _decided(self, fields: dict[str, Any], entry: SessionEvent) -> Part | None:
        answer = fields.get("answer")
        kind = str(answer.get("kind", "")) if isinstance(answer, dict) else ""
        self._of.pop(("ask", str(fields.get("request"))), None)
        if kind.startswith("allow"):
            return None
        return self._remark(f"refused by the profile: {fields.get('why')}", entry)

    def _remark(self, text: str, entry: SessionEvent) -> Part | None:
        if not text:
            return None
        shown = escape_text(text)
        return self._append(Part("note", [StyledSegment(shown, "dim")], shown, at=clock(entry.at)))

    # Events of the agent.

    def _event(self, event: AgentEvent, entry: SessionEvent) -> Part | None:
        match event:
            case AssistantText():
                return self._text("text", event, entry)
            case AssistantThinking():
                return self._text("thinking", event, entry)
            case UserMessage(origin="turn"):
                return None  # the message that opened the turn is shown already
            case ToolUse():
                named = attrs.evolve(event, name=event.name.removeprefix(OWN_PREFIX))
                return self._keyed("tool", ("tool", event.id), named, entry)
            case ToolProgress():
                return self._keyed("result", ("result", event.id), event, entry)
            case ToolResult():
                return self._keyed("result", ("result", event.id), event, entry)
            case TerminalStarted() | TerminalOutput() | TerminalEnded():
                return self._keyed("result", ("terminal", event.terminal), event, entry)
            case Plan():
                return self._keyed("note", ("plan", ""), event, entry)
            case RequestOpened():
                return self._keyed("ask", ("ask", event.id), event, entry)
        self._last = None
        return self._plain("note", event, entry)

    def _text(
        self, kind: Kind, event: AssistantText | AssistantThinking, entry: SessionEvent
    ) -> Part | None:
        """Join chunks of one message."""
        name = f"{kind}:{getattr(event, 'message', '')}"
        if self._last is not None and self._last[0] == name and name != "text:":
            part = self._last[1]
            before = part.event
            assert isinstance(before, AssistantText | AssistantThinking)
            return self._set(part, attrs.evolve(event, text=before.text + event.text))
        made = self._plain(kind, event, entry)
        self._last = None if made is None else (name, made)
        return made

    def _keyed(
        self, kind: Kind, key: tuple[str, str], event: AgentEvent, entry: SessionEvent
    ) -> Part | None:
        """Replace the part with this key, or add one."""
        self._last = None
        part = self._of.get(key)
        if part is not None:
            return self._set(part, event)
        made = self._plain(kind, event, entry)
        if made is not None:
            self._of[key] = made
        return made

    def _set(self, part: Part, event: AgentEvent) -> Part:
        segments = segments_of(event)
        if segments:  # an event without text, such as progress, leaves the earlier one
            part.event, part.segments = event, segments
            part.copied = _copied(event, segments)
        return part

    def _plain(self, kind: Kind, event: AgentEvent, entry: SessionEvent) -> Part | None:
        segments = segments_of(event)
        if not segments or _says_nothing(event):
            return None
        part = Part(kind, segments, _copied(event, segments), at=clock(entry.at), event=event)
        return self._append(part)

    def _append(self, part: Part) -> Part:
        self.parts.append(part)
        if len(self.parts) > MAX_PARTS:
            gone = self.parts[: MAX_PARTS // 10]
            del self.parts[: MAX_PARTS // 10]
            dropped = set(map(id, gone))
            self._of = {key: each for key, each in self._of.items() if id(each) not in dropped}
        return part


def _says_nothing(event: AgentEvent) -> bool:
    """Return whether it is a start of the agent without any detail: its own entry is shown."""
    match event:
        case SystemInit(version=version, model=model, mode=mode, mcp_servers=servers):
            return not (version or model or mode or servers)
    return False


def _copied(event: AgentEvent, segments: list[StyledSegment]) -> str:
    """Return the text to copy: the whole text of the event, not the part that is shown."""
    for name in ("text", "output"):
        text = getattr(event, name, "")
        if isinstance(text, str) and text:
            return text
    return "".join(each.text for each in segments)
