"""The transcript of an agent session as text for people. Standard library only."""

from __future__ import annotations

import json

from aegis.cli.printing.formatting import escaped, escaped_line

# A type checker takes this for true.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

OWN_PREFIX = "mcp__aegis__"
"""The beginning of the names that agents give to our tools."""

OUTPUTS = ("terminal_output", "terminal_ended")
"""The events with the output of an ACP terminal so far, and at its end."""

MAX_DEPTH = 8
"""Subagents of subagents that are indented."""

RESULT_LINES = 12
LINE_CHARS = 160
INDENT = " " * 6


def tool_name(name: str) -> str:
    """Return the name of a tool; of our own ones without the agent's prefix."""
    return name.removeprefix(OWN_PREFIX)


def transcript_lines(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the entries as lines, with the seq of each; some entries are nothing for people.

    The calls of a subagent are indented. A request that the profile answered is left out. A tool
    call is shown once, as the agent described it last, and the output of a terminal once, as it was
    last.
    """
    settled = {
        each["fields"].get("request")
        for each in entries
        if each["kind"] == "decided" and _is_allowed(each["fields"])
    }
    calls = {
        event.get("id"): event for event in map(_event, entries) if event.get("type") == "tool_use"
    }
    outputs = _last_outputs(entries)
    known = {**calls}
    lines = []
    for entry in entries:
        event = _event(entry)
        if event.get("type") in OUTPUTS and outputs[event.get("terminal")] is not event:
            continue
        if event.get("type") == "request_opened" and event.get("id") in settled:
            continue
        if event.get("type") == "tool_use":
            event = calls.pop(event.get("id"), {})
        if text := escaped(_text(entry["kind"], entry["fields"], event)):
            first, *rest = _below(text.rstrip("\n"), event, known).split("\n")
            lines += [f"{entry['seq']:>5} {first}", *(f"{INDENT}{each}" for each in rest)]
    return "\n".join(lines)


def _below(text: str, event: Mapping[str, Any], calls: Mapping[Any, Mapping[str, Any]]) -> str:
    """Return the text of a subagent's call or result, indented below the call that began it."""
    depth, parent = 0, event.get("parent")
    while parent and depth < MAX_DEPTH:
        depth += 1
        parent = calls.get(parent, {}).get("parent")
    mark = "│ " * depth
    return "\n".join(f"{mark}{each}" for each in text.split("\n"))


def _event(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    event: Mapping[str, Any] = entry["fields"].get("event") or {}
    return event if entry["kind"] == "event" else {}


def _last_outputs(entries: Sequence[Mapping[str, Any]]) -> Mapping[Any, Mapping[str, Any]]:
    """Return the last event with the output of each terminal."""
    shown = [event for event in map(_event, entries) if event.get("type") in OUTPUTS]
    return {event.get("terminal"): event for event in shown}


def _is_allowed(fields: Mapping[str, Any]) -> bool:
    return str((fields.get("answer") or {}).get("kind", "")).startswith("allow")


def _text(kind: str, fields: Mapping[str, Any], event: Mapping[str, Any]) -> str:
    match kind:
        case "turn_opened":
            return f"── turn {fields.get('turn')}\n{fields.get('text', '')}"
        case "turn_ended":
            return _end(fields)
        case "event":
            return _event_text(event)
        case "started":
            return "agent started" + ("" if fields.get("rung") == 1 else ", again")
        case "ended":
            return str(fields.get("reason", ""))
        case "decided" if not _is_allowed(fields):
            return f"✗ refused by the profile: {fields.get('why')}"
        case "expired":
            return "✗ nobody answered the request in time"
        case "login_refused":
            return "✗ the login was refused"
        case "taken_over":
            return f"── taken over by {fields.get('by')}"
        case "rewound":
            return _rewound(fields)
        case "handed_back":
            reason = fields.get("reason")
            return f"── handed back{f': {reason}' if reason else ''}"
        case "closed" | "interrupt":
            return f"{kind} by {fields.get('by')}"
    return ""


def _rewound(fields: Mapping[str, Any]) -> str:
    head = f"── files set back to before turn {fields.get('turn')} by {fields.get('by')}"
    if reason := fields.get("reason"):
        head = f"── files not set back to before turn {fields.get('turn')}: {reason}"
    lines = [f"set back: {each}" for each in fields.get("files", ())]
    lines += [f"left, since changed by others: {each}" for each in fields.get("left", ())]
    lines += [*fields.get("unable", ()), *fields.get("kept", ())]
    return "\n".join([head, *map(escaped_line, lines)])


def _end(fields: Mapping[str, Any]) -> str:
    outcome, reason = fields.get("outcome"), fields.get("reason")
    is_plain = outcome == "completed" or outcome == reason or not reason
    return f"── turn {fields.get('turn')} {outcome}{'' if is_plain else f': {reason}'}"


def _event_text(event: Mapping[str, Any]) -> str:
    match event.get("type"):
        case "assistant_text":
            return str(event.get("text", ""))
        case "user_message" if event.get("origin") == "takeover":
            return f"> {event.get('text', '')}"
        case "tool_use":
            return f"⚙ {_call(event)}"
        case "tool_result":
            failed = "failed: " if event.get("is_error") else ""
            return f"↳ {failed}{_truncated(event.get('text', ''))}"
        case "terminal_started":
            return _line(f"$ {event.get('command')}")
        case "terminal_output" | "terminal_ended":
            return "\n".join(filter(None, (_tail(event), status_of(event))))
        case "request_opened":
            return f"? {event.get('kind')}: {_call(event)}"
        case "retrying":
            return f"retrying ({event.get('attempt')} of {event.get('attempts')})"
        case "too_large":
            size = f"{int(event.get('size') or 0) / 2**20:.1f} MiB"
            kind = event.get("kind") or "an item"
            return f"{kind} is too large, {size}: only a part of it is kept"
        case "rate_limit" if event.get("status") != "allowed":
            return f"usage limit: {event.get('status')}"
    return ""


def _call(event: Mapping[str, Any]) -> str:
    name = tool_name(str(event.get("name") or event.get("tool") or ""))
    given = event.get("input")
    shown = name or str(event.get("title") or "a tool")
    return _line(f"{shown} {json.dumps(given, ensure_ascii=False)}" if given else shown)


def _truncated(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    more = len(lines) - RESULT_LINES
    shown = [_line(each) for each in lines[:RESULT_LINES]]
    return "\n".join([*shown, f"[{more} lines more: --json]"] if more > 0 else shown)


def _tail(event: Mapping[str, Any]) -> str:
    lines = str(event.get("output", "")).rstrip("\n").split("\n")
    more = len(lines) - RESULT_LINES
    shown = [_line(each) for each in lines[-RESULT_LINES:]]
    hint = f"[{more} lines before: agent output AGENT {event.get('terminal')}]"
    return "\n".join([hint, *shown] if more > 0 else shown)


def status_of(event: Mapping[str, Any]) -> str:
    """Return how a command of an agent ended; empty while it runs."""
    if event.get("type") == "terminal_output":
        return ""
    code = event.get("exit_code")
    ended = "its end was not seen" if code is None else f"exit {code}"
    return f"[{event.get('signal') or ended}]"


def _line(text: str) -> str:
    return text if len(text) <= LINE_CHARS else f"{text[: LINE_CHARS - 1]}…"
