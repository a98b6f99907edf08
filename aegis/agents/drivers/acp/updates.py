"""One ``session/update`` as typed events. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import attrs

from aegis.agents.drivers.acp.contents import (
    block_text,
    content_text,
    output_text,
    terminals_in,
)
from aegis.agents.drivers.acp.edits import edits_in, with_edits
from aegis.agents.drivers.acp.frames import items, mapping, name, string
from aegis.agents.drivers.harness import OWN_PREFIX
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    Plan,
    PlanStep,
    StateChanged,
    ToolKind,
    ToolProgress,
    ToolResult,
    ToolUse,
    Unknown,
    UserMessage,
)

MAX_CALLS = 256
"""Tool calls of one turn that are remembered."""

MAX_REMEMBERED_CHARS = 256 * 1024
"""The largest input of a tool call that is remembered."""

MAX_TERMINALS = 1000

REPLAYED = frozenset(
    {
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
    }
)
"""Updates by which session/load repeats a conversation."""

KINDS: dict[str, ToolKind] = {
    "read": "read",
    "edit": "edit",
    "delete": "delete",
    "move": "move",
    "search": "search",
    "execute": "execute",
    "think": "think",
    "fetch": "fetch",
}
"""ACP's kinds. ``switch_mode`` is left out: a tool that changes the mode is asked about."""

TODO_TITLE = "todowrite"
"""The tool of opencode that keeps its plan; it sends no update of that kind."""

NO_RESULT = "The turn ended before the agent reported a result."


@attrs.define
class _ToolCall:
    """``use`` has the input that the agent gave; events have its ``edits``, too."""

    use: ToolUse
    edits: list[dict[str, Any]]
    is_done: bool = False

    @property
    def shown(self) -> ToolUse:
        return attrs.evolve(self.use, input=with_edits(self.use.input, self.edits))


class Updates:
    """The updates of one session. Tool calls are merged per turn; see ``end_turn``.

    ``own_title``: see ``AcpOptions``.
    """

    def __init__(self, own_title: str = "") -> None:
        self._own_title = own_title
        self._calls: dict[str, _ToolCall] = {}
        self._terminals: dict[str, None] = {}

    def own_terminal(self, terminal: str) -> None:
        """Note a terminal that was created for the agent: only such ones are shown."""
        self._terminals[terminal] = None
        if len(self._terminals) > MAX_TERMINALS:
            del self._terminals[next(iter(self._terminals))]

    def take(self, update: dict[str, Any]) -> list[AgentEvent]:
        """Return the events of one update."""
        kind = string(update.get("sessionUpdate"))
        match kind:
            case "tool_call" | "tool_call_update":
                return self.call(update) or [Unknown(kind=kind, raw=update)]
            case "plan":
                return [Plan(steps=[_step(each) for each in items(update.get("entries"))])]
            case "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk":
                return [_chunk(kind, update)]
            case "session_info_update":
                return [_thread_state(update) or Unknown(kind=kind, raw=update)]
        return [Unknown(kind=kind or "session/update", raw=update)]

    def call(self, fields: dict[str, Any]) -> list[AgentEvent]:
        """Return the events of a tool call's fields; none if they name no call.

        An update can be the first that names a call (gemini), as can a permission.
        """
        id_ = string(fields.get("toolCallId"))
        if not id_:
            return []
        known = self._calls.get(id_)
        use = self._named(_merged(known.use if known else None, id_, fields), fields)
        edits = edits_in(fields.get("content")) or (known.edits if known else [])
        is_done = string(fields.get("status")) in ("completed", "failed")
        call = _ToolCall(use, edits, is_done or (known is not None and known.is_done))
        is_new = known is None or call.shown != known.shown
        events: list[AgentEvent] = [call.shown] if is_new else []
        if is_new and use.title == TODO_TITLE and "todos" in use.input:
            events.append(Plan(steps=[_step(each) for each in items(use.input["todos"])]))
        self._remember(call)
        if is_done:
            return [*events, _result(id_, fields, use.parent)]
        return [*events, *self._progress(id_, fields, is_new=is_new)]

    def _named(self, use: ToolUse, fields: dict[str, Any]) -> ToolUse:
        """Return a call with the name of our tool that its title shows, and with its input."""
        # A shell command, whose title may be any text, has another kind.
        is_nameless = not use.name and use.kind == "other" and self._own_title
        shown = re.fullmatch(self._own_title, use.title, re.DOTALL) if is_nameless else None
        if shown is None:
            return use
        given = use.input or _json_content(fields)
        return attrs.evolve(use, name=f"{OWN_PREFIX}{shown[1]}", input=given)

    def describe(self, fields: dict[str, Any]) -> list[AgentEvent]:
        """Note the tool call of a permission, unless the agent has described it before."""
        known = self.known(string(fields.get("toolCallId")))
        if known is not None and known.title and known.input:
            return []
        events = self.call({**fields, "status": "pending"})
        return [each for each in events if isinstance(each, ToolUse)]

    def _progress(self, id_: str, fields: dict[str, Any], *, is_new: bool) -> Iterator[AgentEvent]:
        # codex shows terminals of its own: their ids mean nothing here.
        shown = [each for each in terminals_in(fields.get("content")) if each in self._terminals]
        for each in shown:
            yield ToolProgress(id=id_, terminal=each)
        if not shown and not is_new:
            yield ToolProgress(id=id_, text=content_text(fields.get("content")))

    def _remember(self, call: _ToolCall) -> None:
        if _is_longer(call.use.input, MAX_REMEMBERED_CHARS):
            call.use, call.edits = attrs.evolve(call.use, input={}), []
        self._calls[call.use.id] = call
        if len(self._calls) > MAX_CALLS:
            del self._calls[next(iter(self._calls))]

    def known(self, id_: str) -> ToolUse | None:
        """Return the call ``id_`` of this turn, as far as the agent has described it.

        Its input is what the agent gave: a permission shows more than the changes in the events.
        """
        call = self._calls.get(id_)
        return call.use if call else None

    def end_turn(self) -> list[AgentEvent]:
        """Forget the calls of the turn. Calls without a result get one that is an error.

        gemini reports no result of a call that was refused.
        """
        open_ = [id_ for id_, call in self._calls.items() if not call.is_done]
        self._calls.clear()
        return [ToolResult(id=each, text=NO_RESULT, is_error=True) for each in open_]


def is_notice(update: dict[str, Any]) -> bool:
    """Whether a message is a notice of the program, not of the model (claude-agent-acp)."""
    claude = mapping(mapping(update.get("_meta")).get("claudeCode"))
    return claude.get("kind") == "informational"


def _chunk(kind: str, update: dict[str, Any]) -> AgentEvent:
    text = block_text(update.get("content"))
    if not text:
        return Unknown(kind=kind, raw=update)
    parent = _parent(update)
    match kind:
        case _ if parent:
            return ToolProgress(id=parent, text=text)
        case "agent_thought_chunk":
            return AssistantThinking(text=text)
        case "user_message_chunk":
            return UserMessage(text=text)
    return AssistantText(text=text, message=string(update.get("messageId")))


def is_failure(update: dict[str, Any]) -> bool:
    """Whether the agent reports that its model failed (codex, whose turn then ends in order)."""
    codex = mapping(mapping(update.get("_meta")).get("codex"))
    return string(mapping(codex.get("threadStatus")).get("type")) == "systemError"


def _thread_state(update: dict[str, Any]) -> StateChanged | None:
    """Return the state that codex adds to its session info."""
    codex = mapping(mapping(update.get("_meta")).get("codex"))
    status = mapping(codex.get("threadStatus"))
    match string(status.get("type")):
        case "idle":
            return StateChanged(state="idle")
        case "active":
            asks = bool(items(status.get("activeFlags")))
            return StateChanged(state="requires_action" if asks else "running")
    return None


def _step(entry: object) -> PlanStep:
    fields = mapping(entry)
    text = string(fields.get("content"))
    match string(fields.get("status")):
        case "completed":
            return PlanStep(text=text, status="completed")
        case "in_progress":
            return PlanStep(text=text, status="in_progress")
    return PlanStep(text=text)


def _merged(known: ToolUse | None, id_: str, fields: dict[str, Any]) -> ToolUse:
    before = known or ToolUse(id=id_, name="")
    return ToolUse(
        id=id_,
        name=_tool_name(fields) or before.name,
        title=string(fields.get("title")) or before.title,
        kind=KINDS.get(string(fields.get("kind")), before.kind),
        input=_input(fields) or before.input,
        parent=_parent(fields) or before.parent,
    )


def _parent(fields: dict[str, Any]) -> str:
    """Return the call whose subagent an update is about (claude-agent-acp)."""
    claude = mapping(mapping(fields.get("_meta")).get("claudeCode"))
    return name(claude.get("parentToolUseId"))


def _tool_name(fields: dict[str, Any]) -> str:
    """Return the tool's name, where the agent names it beside the title."""
    meta = mapping(fields.get("_meta"))
    if meta.get("is_mcp_tool_call") is True:  # codex: the name is in two parts
        raw = mapping(fields.get("rawInput"))
        server, tool = string(raw.get("server")), string(raw.get("tool"))
        if server and tool:
            return f"mcp__{server}__{tool}"
    named = string(fields.get("name"))
    return named or string(mapping(meta.get("claudeCode")).get("toolName"))


def _input(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the tool's input; kimi has it as JSON in the content of its tool_call."""
    raw = fields.get("rawInput")
    if isinstance(raw, dict):
        return raw
    if raw is not None:
        return {"value": raw}
    return _json_content(fields) if fields.get("sessionUpdate") == "tool_call" else {}


def _json_content(fields: dict[str, Any]) -> dict[str, Any]:
    content = items(fields.get("content"))
    if len(content) != 1:
        return {}
    text = content_text(content)
    if not text.startswith("{") or len(text) > MAX_REMEMBERED_CHARS:
        return {}
    try:
        return mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _result(id_: str, fields: dict[str, Any], parent: str) -> ToolResult:
    raw = fields.get("rawOutput")
    # The content repeats a plain output between fences for display (claude-agent-acp).
    text = string(raw) or content_text(fields.get("content")) or output_text(raw)
    is_error = fields.get("status") == "failed"
    return ToolResult(id=id_, text=text, is_error=is_error, parent=parent)


def _is_longer(value: object, limit: int) -> bool:
    """Whether a JSON value has more characters than ``limit``, roughly."""
    rest, open_ = limit, [value]
    while open_ and rest >= 0:
        each = open_.pop()
        rest -= len(each) if isinstance(each, str) else 8
        if isinstance(each, dict):
            open_.extend(each.keys())
            open_.extend(each.values())
        elif isinstance(each, list):
            open_.extend(each)
    return rest < 0
