"""The events of one frame of Claude Code's stream-json. Pure.

No frame raises: a missing field or one of a wrong type is an empty value where the event still
has a meaning, and otherwise the frame (or its block) is an ``Unknown`` event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

import attrs

from aegis.agents.drivers.harness import Frame
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    BackgroundTask,
    ConversationChanged,
    MessageChanged,
    RateLimit,
    Result,
    Retrying,
    StateChanged,
    SystemInit,
    TasksChanged,
    ToolKind,
    ToolProgress,
    ToolResult,
    ToolUse,
    Unknown,
    Usage,
    UserMessage,
)

MAX_NAME = 500
"""Characters of an id or a name; a longer one counts as missing."""

MAX_COUNT = 2**53
"""The largest count; a larger one counts as missing."""


def text(value: object) -> str:
    """Return a string, or ``""``."""
    return value if isinstance(value, str) else ""


def name(value: object) -> str:
    """Return an id or a name, or ``""``."""
    return value if isinstance(value, str) and len(value) <= MAX_NAME else ""


def mapping(value: object) -> dict[str, Any]:
    """Return an object, or ``{}``."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """Return an array, or ``[]``."""
    return value if isinstance(value, list) else []


def count(value: object) -> int | None:
    """Return a whole number from 0, or None."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= MAX_COUNT else None


def number(value: object) -> float | None:
    """Return a finite number from 0, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int) and value > MAX_COUNT:
        return None
    return float(value) if math.isfinite(value) and value >= 0 else None


PLAN_TOOL = "ExitPlanMode"
"""The tool by which the agent has its plan approved."""

QUESTION_TOOL = "AskUserQuestion"
"""The tool by which the agent asks a person questions."""

KINDS: Mapping[str, ToolKind] = {
    "Read": "read",
    "NotebookRead": "read",
    "ListMcpResourcesTool": "read",
    "ReadMcpResourceTool": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "Write": "edit",
    "NotebookEdit": "edit",
    "Glob": "search",
    "Grep": "search",
    "LS": "search",
    "ToolSearch": "search",
    "Bash": "execute",
    "PowerShell": "execute",
    "Monitor": "execute",
    "KillShell": "execute",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
    # A subagent: each of its own calls is asked for.
    "Task": "think",
    "Agent": "think",
    "TodoWrite": "plan",
    "TaskCreate": "plan",
    "TaskUpdate": "plan",
    "TaskList": "plan",
    "TaskGet": "plan",
    "EnterPlanMode": "plan",
    "ExitPlanMode": "plan",
}
"""The category of each tool; tools of MCP servers and unknown ones are "other"."""


def kind_of(tool: str) -> ToolKind:
    """Return the category of a tool."""
    return KINDS.get(tool, "other")


MAX_BLOCKS = 1000
"""Blocks of one message, and entries of one list, that become events of their own."""

SYNTHETIC = "<synthetic>"
"""The model of messages that the program wrote itself, after a failed request."""


def events(frame: Frame) -> list[AgentEvent]:
    """Return the events of a frame that is neither a control frame nor a sign of life."""
    kind = name(frame.get("type"))
    parse = _SYSTEM.get(name(frame.get("subtype"))) if kind == "system" else _FRAMES.get(kind)
    found = parse(frame) if parse is not None else None
    return [unknown(frame)] if found is None else found


def unknown(frame: Frame) -> Unknown:
    """Return the event of a frame that nothing describes."""
    kind, subtype = name(frame.get("type")), name(frame.get("subtype"))
    return Unknown(kind=f"{kind}/{subtype}" if subtype else kind, raw=frame)


# Messages.


@attrs.frozen(kw_only=True)
class _MessageFields:
    """The fields of a message that its blocks need; ``parent``: the tool call of a subagent."""

    assistant: bool
    id: str
    parent: str
    aborted: bool
    origin: str
    titles: Mapping[str, str]


def _message(frame: Frame) -> list[AgentEvent] | None:
    message = mapping(frame.get("message"))
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    if not isinstance(content, list):
        return None
    about = _MessageFields(
        assistant=frame["type"] == "assistant",
        id=name(message.get("id")),
        parent=name(frame.get("parent_tool_use_id")),
        aborted=frame.get("aborted") is True,
        origin=_origin(frame) or ("replay" if frame.get("isReplay") is True else ""),
        titles=_titles(frame),
    )
    found = [event for block in content[:MAX_BLOCKS] for event in _block(block, about)]
    if len(content) > MAX_BLOCKS:
        found.append(Unknown(kind=f"{frame['type']}/blocks", raw={"blocks": content[MAX_BLOCKS:]}))
    return found


def _titles(frame: Frame) -> dict[str, str]:
    """Return the display names of the tool calls of a message, by id."""
    about = [mapping(each) for each in items(frame.get("tool_use_meta"))[:MAX_BLOCKS]]
    return {name(each.get("id")): name(each.get("display_name")) for each in about}


def _block(block: object, about: _MessageFields) -> list[AgentEvent]:
    fields = mapping(block)
    kind = name(fields.get("type"))
    parse = _BLOCKS.get(kind)
    found = parse(fields, about) if parse is not None else None
    if found is None:
        role = "assistant" if about.assistant else "user"
        raw = fields if isinstance(block, dict) else {"block": block}
        return [Unknown(kind=f"{role}/{kind}", raw=raw)]
    return found


def _text(block: Frame, about: _MessageFields) -> list[AgentEvent] | None:
    written = block.get("text")
    if not isinstance(written, str):
        return None
    if not written:
        return []
    if about.parent:
        return [ToolProgress(id=about.parent, text=written)]
    if about.assistant:
        return [AssistantText(text=written, message=about.id, aborted=about.aborted)]
    return [UserMessage(text=written, origin=about.origin)]


def _thinking(block: Frame, about: _MessageFields) -> list[AgentEvent] | None:
    written = block.get("thinking")
    if not isinstance(written, str):
        return None
    if not written:
        return []
    if about.parent:
        return [ToolProgress(id=about.parent, text=written)]
    return [AssistantThinking(text=written)]


def _tool_use(block: Frame, about: _MessageFields) -> list[AgentEvent] | None:
    call, tool, given = name(block.get("id")), name(block.get("name")), block.get("input")
    if not call or not tool or not isinstance(given, dict):
        return None
    title = about.titles.get(call) or tool
    kind = kind_of(tool)
    return [ToolUse(id=call, name=tool, title=title, kind=kind, input=given, parent=about.parent)]


def _tool_result(block: Frame, about: _MessageFields) -> list[AgentEvent] | None:
    call = name(block.get("tool_use_id"))
    if not call:
        return None
    written = result_text(block.get("content"))
    is_error = block.get("is_error") is True
    return [ToolResult(id=call, text=written, is_error=is_error, parent=about.parent)]


def result_text(content: object) -> str:
    """Return a tool result as text; a block of another type is named in brackets."""
    if isinstance(content, str):
        return content
    blocks = [mapping(each) for each in items(content)]
    return "".join(
        text(each.get("text"))
        if each.get("type") == "text"
        else f"[{name(each.get('type')) or 'unknown'}]"
        for each in blocks
    )


_BLOCKS: Mapping[str, Callable[[Frame, _MessageFields], list[AgentEvent] | None]] = {
    "text": _text,
    "thinking": _thinking,
    "tool_use": _tool_use,
    "server_tool_use": _tool_use,
    "mcp_tool_use": _tool_use,
    "tool_result": _tool_result,
    "mcp_tool_result": _tool_result,
}


# The end of a turn.


def _result(frame: Frame) -> list[AgentEvent] | None:
    subtype, ended = name(frame.get("subtype")), name(frame.get("terminal_reason"))
    if "terminal_reason" not in frame and frame.get("num_turns") == 0:
        ended = "completed"  # a command such as /clear, for which no model was asked
    # Each of the three is needed: an API error has the subtype "success", and so has a turn that
    # a message of the priority "now" ended, which has no error either.
    ok = subtype == "success" and frame.get("is_error") is False and ended == "completed"
    result = Result(
        messages=answered_messages(frame),
        ok=ok,
        reason=ended or subtype or "unknown",
        text=text(frame.get("result")) or error_text(frame),
        origin=_origin(frame),
    )
    return [result]


def answered_messages(frame: Frame) -> list[str]:
    """Return the uuids of the user frames that a result names."""
    many = [name(each) for each in items(frame.get("user_message_uuids"))[:MAX_BLOCKS]]
    return [each for each in many or [name(frame.get("user_message_uuid"))] if each]


def error_text(frame: Frame) -> str:
    """Return the errors of a result in one string."""
    return "; ".join(text(each) for each in items(frame.get("errors"))[:MAX_BLOCKS])


def _origin(frame: Frame) -> str:
    return name(mapping(frame.get("origin")).get("kind"))


# Usage.


def request_usage(frame: Frame) -> Usage | None:
    """Return the usage of the request that a frame of the main conversation answers, or None."""
    message = mapping(frame.get("message"))
    if frame.get("type") != "assistant" or frame.get("parent_tool_use_id") is not None:
        return None
    usage = mapping(message.get("usage"))
    tokens = _input_tokens(usage)
    if message.get("model") == SYNTHETIC or tokens is None:
        return None
    return Usage(
        request=name(message.get("id")),
        input_tokens=tokens,
        cached_tokens=count(usage.get("cache_read_input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        context_tokens=tokens,
    )


def turn_usage(frame: Frame, model: str) -> Usage:
    """Return the usage of a result; ``model`` is the one whose context is measured."""
    usage = mapping(frame.get("usage"))
    return Usage(
        input_tokens=_input_tokens(usage),
        cached_tokens=count(usage.get("cache_read_input_tokens")),
        output_tokens=count(usage.get("output_tokens")),
        context_limit=_context_limit(mapping(frame.get("modelUsage")), model),
        process_cost_usd=number(frame.get("total_cost_usd")),
        turn_cost_usd=_turn_cost(frame.get("model_usage_since_last_result")),
    )


def _input_tokens(usage: Frame) -> int | None:
    fresh = count(usage.get("input_tokens"))
    if fresh is None:
        return None
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    return fresh + sum(count(usage.get(each)) or 0 for each in cached)


def _context_limit(by_model: Frame, model: str) -> int | None:
    models = [model] if model in by_model else list(by_model)
    # With several models and none of this name, no limit can be attributed.
    return count(mapping(by_model[models[0]]).get("contextWindow")) if len(models) == 1 else None


def _turn_cost(by_model: object) -> float | None:
    if not isinstance(by_model, dict):
        return None
    costs = [number(mapping(each).get("costUSD")) for each in by_model.values()]
    return sum(each or 0.0 for each in costs)


# Reports.


def _init(frame: Frame) -> list[AgentEvent] | None:
    conversation = name(frame.get("session_id"))
    if not conversation:
        return None
    servers = [mapping(each) for each in items(frame.get("mcp_servers"))[:MAX_BLOCKS]]
    event = SystemInit(
        conversation=conversation,
        model=name(frame.get("model")),
        mode=name(frame.get("permissionMode")),
        version=name(frame.get("claude_code_version")),
        mcp_servers={name(each.get("name")): name(each.get("status")) for each in servers},
    )
    return [event]


def _compacted(frame: Frame) -> list[AgentEvent] | None:
    about, conversation = mapping(frame.get("compact_metadata")), name(frame.get("session_id"))
    if not conversation:
        return None
    event = ConversationChanged(
        how="compacted",
        conversation=conversation,
        by_agent=about.get("trigger") == "auto",
        before=count(about.get("pre_tokens")),
        after=count(about.get("post_tokens")),
    )
    return [event]


def _state_changed(frame: Frame) -> list[AgentEvent] | None:
    state = _STATES.get(name(frame.get("state")))
    return None if state is None else [StateChanged(state=state)]


def _lifecycle(frame: Frame) -> list[AgentEvent] | None:
    uuid, state = name(frame.get("command_uuid")), _MESSAGE_STATES.get(name(frame.get("state")))
    return None if not uuid or state is None else [MessageChanged(uuid=uuid, state=state)]


_State = Literal["idle", "running", "requires_action"]
_STATES: Mapping[str, _State] = {each: each for each in get_args(_State)}

_MessageState = Literal["queued", "started", "completed", "cancelled"]
_MESSAGE_STATES: Mapping[str, _MessageState] = {each: each for each in get_args(_MessageState)}


def _rate_limit(frame: Frame) -> list[AgentEvent] | None:
    info = mapping(frame.get("rate_limit_info"))
    status = _LIMIT_STATES.get(name(info.get("status")))
    if status is None:
        return None
    kind, resets_at = name(info.get("rateLimitType")), number(info.get("resetsAt"))
    return [RateLimit(status=status, kind=kind, resets_at=resets_at)]


_LIMIT_STATES: Mapping[str, Literal["allowed", "warning", "rejected"]] = {
    "allowed": "allowed",
    "allowed_warning": "warning",
    "rejected": "rejected",
}


def _retry(frame: Frame) -> list[AgentEvent] | None:
    attempt, delay_ms = count(frame.get("attempt")), number(frame.get("retry_delay_ms"))
    if attempt is None:
        return None
    event = Retrying(
        attempt=attempt,
        attempts=count(frame.get("max_retries")) or 0,
        delay_s=(delay_ms or 0.0) / 1000,
        status=count(frame.get("error_status")),
    )
    return [event]


def _tasks_changed(frame: Frame) -> list[AgentEvent] | None:
    if not isinstance(frame.get("tasks"), list):
        return None
    tasks = [mapping(each) for each in items(frame["tasks"])[:MAX_BLOCKS]]
    running = [
        BackgroundTask(
            id=(id_ := name(each.get("task_id"))),
            title=name(each.get("description")) or id_ or "task",
        )
        for each in tasks
    ]
    titles = [each.title for each in running]
    return [TasksChanged(tasks=titles, running=[each for each in running if each.id])]


def _task(frame: Frame) -> list[AgentEvent] | None:
    """Return the progress of the tool call that a background task belongs to."""
    call = name(frame.get("tool_use_id"))
    written = text(frame.get("summary")) or text(frame.get("description"))
    return [ToolProgress(id=call, text=written)] if call else None


def _tool_progress(frame: Frame) -> list[AgentEvent] | None:
    call = name(frame.get("tool_use_id"))
    return [ToolProgress(id=call)] if call else None


_Parse = Callable[[Frame], "list[AgentEvent] | None"]

_FRAMES: Mapping[str, _Parse] = {
    "assistant": _message,
    "user": _message,
    "result": _result,
    "command_lifecycle": _lifecycle,
    "rate_limit_event": _rate_limit,
    "tool_progress": _tool_progress,
}

_SYSTEM: Mapping[str, _Parse] = {
    "init": _init,
    "compact_boundary": _compacted,
    "session_state_changed": _state_changed,
    "api_retry": _retry,
    "background_tasks_changed": _tasks_changed,
    "task_started": _task,
    "task_progress": _task,
    "task_notification": _task,
}
