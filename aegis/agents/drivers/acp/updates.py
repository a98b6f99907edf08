"""One ``session/update`` as typed events. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

import attrs

from aegis.agents.drivers.acp.frames import amount, count, items, mapping, name, string
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
    Usage,
    UserMessage,
)

MAX_DEPTH = 8
"""How deep the output of a tool is searched for text."""

OUTPUT_KEYS = ("output", "error", "text", "content", "result", "stdout", "message", "contents")
"""The keys under which agents put the text of a tool's output, the best first."""


def block_text(block: object) -> str:
    """Return the text of one content block; ``""`` if it has none (an image, audio)."""
    fields = mapping(block)
    match string(fields.get("type")):
        case "text":
            return string(fields.get("text"))
        case "resource_link":
            return string(fields.get("uri"))
        case "resource":
            return string(mapping(fields.get("resource")).get("text"))
    return ""


def content_text(content: object) -> str:
    """Return the text of a tool call's content, a line or more for each part."""
    return "\n".join(filter(None, (_part_text(each) for each in items(content))))


def _part_text(part: object) -> str:
    fields = mapping(part)
    match string(fields.get("type")):
        case "content":
            return block_text(fields.get("content"))
        case "diff":
            return f"changed {string(fields.get('path'))}"
    return ""


def output_text(output: object) -> str:
    """Return the text in a ``rawOutput``, whose form each agent chooses itself."""
    return "\n".join(_texts_in(output, MAX_DEPTH))


def _texts_in(output: object, depth: int) -> Iterator[str]:
    if isinstance(output, str):
        if output:
            yield output
    elif depth and isinstance(output, list):
        for each in items(output):
            yield from _texts_in(each, depth - 1)
    elif depth and isinstance(output, dict):
        for key in OUTPUT_KEYS:
            found = list(_texts_in(output.get(key), depth - 1))
            if found:
                yield from found
                return


def terminals_in(content: object) -> list[str]:
    """Return the ids of the terminals that a tool call's content shows."""
    parts: list[dict[str, Any]] = [mapping(each) for each in items(content)]
    shown = [string(each.get("terminalId")) for each in parts if each.get("type") == "terminal"]
    return [each for each in shown if each]


MAX_EDITS = 32
"""Changes of one tool call that are shown."""

MAX_EDIT_CHARS = 64 * 1024
"""Characters of the texts of all its changes."""

CONTEXT_LINES = 3
"""Lines before and behind a change, which both texts have."""

OWN = ("old_string", "new_string", "edits", "diff", "content")
"""Keys of inputs that show their change themselves."""


def edits_in(content: object) -> list[dict[str, Any]]:
    """Return the changes in a tool call's content, each with ``file_path`` and its two texts.

    Agents send whole files: lines that both texts have are omitted, but for a few beside the
    change. ``truncated``: a text is longer.
    """
    parts = [each for each in map(mapping, items(content)) if each.get("type") == "diff"]
    room, found = MAX_EDIT_CHARS, []
    for part in parts[:MAX_EDITS]:
        edit = _edit(part, room // 2)
        room -= len(edit["old_string"]) + len(edit["new_string"])
        found.append(edit)
    return found


def with_edits(given: Mapping[str, Any], edits: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the input of a tool call with its changes, unless it shows them itself."""
    if not edits or any(each in given for each in OWN):
        return dict(given)
    if len(edits) == 1:
        return {**given, **edits[0]}
    return {**given, "edits": list(edits)}


def _edit(part: Mapping[str, Any], limit: int) -> dict[str, Any]:
    old, new = _difference(string(part.get("oldText")), string(part.get("newText")))
    edit: dict[str, Any] = {
        "file_path": string(part.get("path")),
        "old_string": old[:limit],
        "new_string": new[:limit],
    }
    return edit | {"truncated": True} if max(len(old), len(new)) > limit else edit


def _difference(old: str, new: str) -> tuple[str, str]:
    """Return both texts without the lines that are far from the change."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    start, rest = max(0, head - CONTEXT_LINES), max(0, tail - CONTEXT_LINES)
    return "".join(before[start : len(before) - rest]), "".join(after[start : len(after) - rest])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of lines with which both begin."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


class Accounting:
    """The cost of one process, and its part since the last result."""

    def __init__(self) -> None:
        self._cost: float | None = None
        self._at_last_result = 0.0

    def update(self, update: dict[str, Any]) -> Usage:
        """Return the usage in a ``usage_update``: the gauge, and the cost of the process."""
        cost = mapping(update.get("cost"))
        if cost.get("currency") == "USD" and (total := amount(cost.get("amount"))) is not None:
            self._note(total)
        return Usage(
            context_tokens=count(update.get("used")),
            context_limit=count(update.get("size")),
            process_cost_usd=self._cost,
        )

    def _note(self, total: float) -> None:
        if self._cost is not None and total < self._cost:
            self._at_last_result = 0.0  # the agent counts from zero again
        self._cost = total

    def result(self, result: dict[str, Any]) -> Usage | None:
        """Return the usage of the turn that a prompt's result ends; None: nothing is reported."""
        tokens = turn_tokens(result)
        if self._cost is None:
            return tokens
        turn = max(0.0, self._cost - self._at_last_result)
        self._at_last_result = self._cost
        tokens = tokens or Usage()
        return Usage(
            input_tokens=tokens.input_tokens,
            cached_tokens=tokens.cached_tokens,
            output_tokens=tokens.output_tokens,
            process_cost_usd=self._cost,
            turn_cost_usd=turn,
        )


def turn_tokens(result: dict[str, Any]) -> Usage | None:
    """Return the tokens of a turn: ``usage``, else ``_meta.quota`` (gemini)."""
    usage = mapping(result.get("usage"))
    if usage:
        read, written = count(usage.get("cachedReadTokens")), count(usage.get("cachedWriteTokens"))
        return Usage(
            input_tokens=_input_with_cache(usage),
            cached_tokens=read if written is None else (read or 0) + written,
            output_tokens=count(usage.get("outputTokens")),
        )
    quota = mapping(mapping(mapping(result.get("_meta")).get("quota")).get("token_count"))
    if not quota:
        return None
    return Usage(
        input_tokens=count(quota.get("input_tokens")),
        output_tokens=count(quota.get("output_tokens")),
    )


def _input_with_cache(usage: dict[str, Any]) -> int | None:
    """Return the whole input: some agents count cached tokens in ``inputTokens``, others beside it.

    The total is the sum of all tokens in both, and shows which of them it is.
    """
    given = count(usage.get("inputTokens"))
    total = count(usage.get("totalTokens"))
    if given is None or total is None:
        return given
    others = (count(usage.get("outputTokens")) or 0) + (count(usage.get("thoughtTokens")) or 0)
    return max(given, total - others)


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
        self._unnamed = 0  # the messages that the agent gave no id

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
                return [self._chunk(kind, update)]
            case "session_info_update":
                return [_thread_state(update) or Unknown(kind=kind, raw=update)]
        return [Unknown(kind=kind or "session/update", raw=update)]

    def _chunk(self, kind: str, update: dict[str, Any]) -> AgentEvent:
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
                self._unnamed += 1
                return UserMessage(text=text)
        return AssistantText(text=text, message=self._message(update))

    def _message(self, update: dict[str, Any]) -> str:
        """Return the id of a chunk's message. gemini and kimi give none: theirs get one here."""
        named = string(update.get("messageId"))
        if not named and is_notice(update):
            named = f"notice-{self._unnamed}"
        self._unnamed += bool(named)
        return named or f"text-{self._unnamed}"

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
        self._unnamed += is_new or is_done
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
        self._unnamed += 1
        return [ToolResult(id=each, text=NO_RESULT, is_error=True) for each in open_]


def is_notice(update: dict[str, Any]) -> bool:
    """Whether a message is a notice of the program, not of the model (claude-agent-acp)."""
    claude = mapping(mapping(update.get("_meta")).get("claudeCode"))
    return claude.get("kind") == "informational"


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
