"""Events of an agent as text for people, in styled segments. Text of an agent is escaped. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

import attrs

from aegis.names import shorten
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    CommandSent,
    ConversationChanged,
    Plan,
    RateLimit,
    RequestOpened,
    RequestWithdrawn,
    Result,
    Retrying,
    StartNotice,
    SystemInit,
    TasksChanged,
    TerminalEnded,
    TerminalOutput,
    TerminalStarted,
    TooLarge,
    ToolProgress,
    ToolResult,
    ToolUse,
    Unknown,
    UserMessage,
)
from aegis.shown_text import escape_line, escape_text

Style = Literal["", "bold", "dim", "italic dim", "cyan", "green", "yellow", "red"]

MAX_CHARS = 64 * 1024
"""The longest text of one event that is shown; the rest is replaced by its length."""

MAX_RESULT_LINES = 20
MAX_INPUT_CHARS = 2000
MAX_STEPS = 50
MAX_TASKS = 10
MAX_LINE_CHARS = 300

_FROM = re.compile(r"^> from (\S+)(?: · .*)?$", re.MULTILINE)
"""The header line of a message, with its sender."""

STEPS = {"pending": "☐", "in_progress": "▶", "completed": "☑"}


@attrs.frozen
class StyledSegment:
    """A piece of escaped text, with its style."""

    text: str
    style: Style = ""


def segments_of(event: AgentEvent) -> list[StyledSegment]:
    """Return an event as escaped text; none: the event is not shown."""
    write = _WRITERS.get(type(event))
    return [] if write is None else write(event)


def messages_in(text: str) -> list[tuple[str, str]]:
    """Return the sender and the body of each message in the text of a turn; none: no sender."""
    found = [*_FROM.finditer(text)]
    ends = [*(each.start() for each in found[1:]), len(text)]
    return [(head[1], text[head.end() : end]) for head, end in zip(found, ends, strict=False)]


def _init(event: SystemInit) -> list[StyledSegment]:
    facts = [each for each in (event.version, event.model, event.mode) if each]
    broken = [f"{name}: {status}" for name, status in event.mcp_servers.items()]
    lost = [each for each in broken if not each.endswith(": connected")]
    segments = [StyledSegment(_line(f"started: {', '.join(facts) or 'no details'}"), "dim")]
    return [*segments, *(StyledSegment(f"\nMCP server {_line(each)}", "yellow") for each in lost)]


def _text(event: AssistantText) -> list[StyledSegment]:
    if not event.text and not event.aborted:
        return []
    aborted = [StyledSegment(" [interrupted]", "yellow")] if event.aborted else []
    return [StyledSegment(_block(event.text)), *aborted]


def _thinking(event: AssistantThinking) -> list[StyledSegment]:
    return [StyledSegment(_block(event.text), "italic dim")] if event.text else []


def _tool_use(event: ToolUse) -> list[StyledSegment]:
    name, title = _line(event.name), _line(event.title)
    segments = [StyledSegment("● ", "cyan"), StyledSegment(title or name or "a tool", "bold")]
    if event.parent:
        segments.insert(0, StyledSegment("│ ", "dim"))
    if title and name and name != title:
        segments.append(StyledSegment(f" ({name})", "dim"))
    return [*segments, *_input(event.input)]


def _tool_progress(event: ToolProgress) -> list[StyledSegment]:
    return [StyledSegment(_tail(event.text), "dim")] if event.text else []


def _tool_result(event: ToolResult) -> list[StyledSegment]:
    style: Style = "red" if event.is_error else "dim"
    return [StyledSegment(_head(event.text) or "(no output)", style)]


def _terminal_started(event: TerminalStarted) -> list[StyledSegment]:
    return [StyledSegment(f"$ {_line(event.command)}", "bold")]


def _terminal_output(event: TerminalOutput) -> list[StyledSegment]:
    return [StyledSegment(_tail(event.output), "dim")] if event.output else []


def _terminal(event: TerminalEnded) -> list[StyledSegment]:
    is_good = event.exit_code == 0
    ended = "its end was not seen" if event.exit_code is None else f"exit {event.exit_code}"
    code = ended if event.signal is None else _line(event.signal)
    segments = [StyledSegment(f"$ {_line(event.command)}", "bold")]
    if event.output:
        cut = "…\n" if event.truncated else ""
        segments.append(StyledSegment(f"\n{cut}{_tail(event.output)}", "dim"))
    return [*segments, StyledSegment(f"\n[{code}]", "dim" if is_good else "red")]


def _plan(event: Plan) -> list[StyledSegment]:
    lines = [
        f"{STEPS.get(step.status, '☐')} {_line(step.text)}" for step in event.steps[:MAX_STEPS]
    ]
    more = len(event.steps) - MAX_STEPS
    lines += [f"[{more} steps more]"] if more > 0 else []
    return [StyledSegment("\n".join(lines), "cyan")] if lines else []


def _rate_limit(event: RateLimit) -> list[StyledSegment]:
    if event.status == "allowed":
        return []
    kind = f" ({_line(event.kind)})" if event.kind else ""
    until = "" if event.resets_at is None else f" until {_time(event.resets_at)}"
    if event.status == "rejected":
        return [StyledSegment(f"usage limit reached{kind}{until}", "red")]
    return [StyledSegment(f"usage limit is near{kind}{until}", "yellow")]


def _retrying(event: Retrying) -> list[StyledSegment]:
    status = "" if event.status is None else f" with {event.status}"
    return [
        StyledSegment(
            f"a request to the model failed{status}: attempt {event.attempt} of "
            f"{event.attempts} in {event.delay_s:.0f} s",
            "yellow",
        )
    ]


def _result(event: Result) -> list[StyledSegment]:
    if event.ok:
        return []
    text = f": {_block(event.text)}" if event.text else ""
    return [StyledSegment(f"the turn ended with {_line(event.reason) or 'an error'}{text}", "red")]


def _user_message(event: UserMessage) -> list[StyledSegment]:
    origin = f" ({_line(event.origin)})" if event.origin not in ("", "turn") else ""
    return [StyledSegment(f"→{origin} ", "green"), StyledSegment(_block(event.text), "bold")]


def _tasks(event: TasksChanged) -> list[StyledSegment]:
    names = ", ".join(map(_line, event.tasks[:MAX_TASKS]))
    more = len(event.tasks) - MAX_TASKS
    rest = f" and {more} more" if more > 0 else ""
    return [StyledSegment(f"in the background: {names}{rest}", "dim")] if names else []


def _request(event: RequestOpened) -> list[StyledSegment]:
    about = _line(event.title) or _line(event.tool) or "no title"
    reason = [StyledSegment(f"\n{_line(event.reason)}", "dim")] if event.reason else []
    head = StyledSegment(f"{event.kind} asked: ", "yellow")
    return [head, StyledSegment(about, "bold"), *reason, *_input(event.input)]


def _withdrawn(event: RequestWithdrawn) -> list[StyledSegment]:
    reason = f": {_line(event.reason)}" if event.reason else ""
    return [StyledSegment(f"a request was withdrawn{reason}", "dim")]


def _command(event: CommandSent) -> list[StyledSegment]:
    what = "it has no such command: sent as text" if event.as_text else "its own command"
    what = "the text of the project's command was sent" if event.of_project else what
    return [StyledSegment(f"/{_line(event.name)}: {what}", "yellow" if event.as_text else "dim")]


def _conversation(event: ConversationChanged) -> list[StyledSegment]:
    by = " by the agent itself" if event.by_agent else ""
    known = event.before is not None and event.after is not None
    tokens = f", {event.before} → {event.after} tokens" if known else ""
    name = _line(event.conversation)
    return [StyledSegment(f"the conversation was {event.how}{by}{tokens}: {name}", "yellow")]


def _notice(event: StartNotice) -> list[StyledSegment]:
    # It is ours, and can name a command with a long path.
    return [StyledSegment(_line(event.text, MAX_INPUT_CHARS), "yellow")]


def _too_large(event: TooLarge) -> list[StyledSegment]:
    kind, size = _line(event.kind) or "an item", event.size / 2**20
    return [
        StyledSegment(f"{kind} is too large, {size:.1f} MiB: only a part of it is kept", "yellow")
    ]


def _unknown(event: Unknown) -> list[StyledSegment]:
    return [
        StyledSegment(
            f"an event of an unknown type, {_line(event.kind) or 'without a name'}", "dim"
        )
    ]


_WRITERS: Mapping[type, Callable[[Any], list[StyledSegment]]] = {
    SystemInit: _init,
    AssistantText: _text,
    AssistantThinking: _thinking,
    ToolUse: _tool_use,
    ToolProgress: _tool_progress,
    ToolResult: _tool_result,
    TerminalStarted: _terminal_started,
    TerminalOutput: _terminal_output,
    TerminalEnded: _terminal,
    Plan: _plan,
    RateLimit: _rate_limit,
    Retrying: _retrying,
    Result: _result,
    UserMessage: _user_message,
    TasksChanged: _tasks,
    RequestOpened: _request,
    RequestWithdrawn: _withdrawn,
    CommandSent: _command,
    ConversationChanged: _conversation,
    StartNotice: _notice,
    TooLarge: _too_large,
    Unknown: _unknown,
}


def _input(document: Mapping[str, Any]) -> list[StyledSegment]:
    """Return the raw input of a tool as JSON on one line."""
    if not document:
        return []
    try:
        shown = json.dumps(document, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        shown = "(an input that is no JSON)"
    return [StyledSegment(f"\n{shorten(escape_line(shown), MAX_INPUT_CHARS)}", "dim")]


def _line(text: str, most: int = MAX_LINE_CHARS) -> str:
    return shorten(escape_line(text[: most + 1]), most)


def _block(text: str) -> str:
    more = len(text) - MAX_CHARS
    end = f"… [{more} characters more]" if more > 0 else ""
    return escape_text(text[:MAX_CHARS]) + end


def _head(text: str) -> str:
    """Return the first lines of a text, and the number of the others."""
    lines = text.rstrip("\n").split("\n")
    more = len(lines) - MAX_RESULT_LINES
    shown = _block("\n".join(lines[:MAX_RESULT_LINES]))
    return f"{shown}\n[{more} lines more]" if more > 0 else shown


def _tail(text: str) -> str:
    """Return the last lines of a text."""
    lines = text[-MAX_CHARS:].rstrip("\n").split("\n")
    return escape_text("\n".join(lines[-MAX_RESULT_LINES:]))


def _time(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return "an unknown time"
