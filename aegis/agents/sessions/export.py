"""A transcript as a document: Markdown for people, or one entry on each line as JSON. Pure.

Nothing is cut. What an agent wrote stays Markdown; all else is quoted, or fenced by more backquotes
than it has, so that no output of a command reads as a part of the conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from aegis.agents.render import messages_in
from aegis.protocol.agents import ExportPart, Transcript, TranscriptEntry
from aegis.shown_text import escape_line, escape_text

REPLACED = {
    "tool_use": "id",
    "terminal_output": "terminal",
    "terminal_ended": "terminal",
    "plan": "type",
}
"""The events of which a later one with the same field replaces the one before."""

STEPS = {"pending": " ", "in_progress": "/", "completed": "x"}


def part_of(
    handle: str, page: Transcript, since: int, form: Literal["markdown", "jsonl"]
) -> ExportPart:
    """Return the entries of ``page``, those after ``since``, as a part of the document."""
    entries = page.result
    if form == "markdown" and page.more:
        entries = entries[: _complete(entries)]
    if form == "jsonl":
        text = "".join(f"{json.dumps(attrs.asdict(each))}\n" for each in entries)
    else:
        head = [f"# {_words(handle)}"] if since == 0 else []
        if page.missed:
            head.append(f"*{page.missed} entries before these are no longer kept.*")
        text = "".join(f"{each}\n\n" for each in [*head, *_blocks(entries)])
    following = entries[-1].seq if page.more and entries else None
    return ExportPart(text=text, next=following, missed=page.missed)


def _complete(entries: Sequence[TranscriptEntry]) -> int:
    """Return how many entries can be shown without those of the next page.

    The last message may continue there, and an event be replaced. One that begins the page is shown
    as it is, for no page is empty.
    """
    begun: dict[tuple[str, str], int] = {}
    message = ""
    for place, entry in enumerate(entries):
        event, key = _event_of(entry), _replaced_by(entry)
        kind = event.get("type")
        said = str(event.get("message", "")) if kind == "assistant_text" else ""
        if said != message:
            begun.pop(("message", message), None)
            message = said
        if said:
            begun.setdefault(("message", said), place)
        elif kind == "tool_result":
            begun.pop(("tool", str(event.get("id"))), None)
        elif key is not None and kind == "terminal_ended":
            begun.pop(key, None)
        elif key is not None and kind != "plan":
            begun.setdefault(key, place)
    return min((each for each in begun.values() if each), default=len(entries))


def _blocks(entries: Sequence[TranscriptEntry]) -> Iterator[str]:
    last = {_replaced_by(each): each.seq for each in entries}
    said: list[str] = []
    message = ""
    for entry in entries:
        event = _event_of(entry)
        if event.get("type") == "assistant_text":
            # Chunks of one message are one text; those without an id are messages of their own.
            if said and not (message and event.get("message") == message):
                yield _text(said)
                said = []
            message = str(event.get("message", ""))
            said.append(str(event.get("text", "")))
            continue
        if said:
            yield _text(said)
            said = []
        key = _replaced_by(entry)
        if key is None or last[key] == entry.seq:
            yield from _shown(entry, event)
    if said:
        yield _text(said)


def _event_of(entry: TranscriptEntry) -> Mapping[str, Any]:
    event = entry.fields.get("event")
    return event if entry.kind == "event" and isinstance(event, dict) else {}


def _replaced_by(entry: TranscriptEntry) -> tuple[str, str] | None:
    event = _event_of(entry)
    kind = str(event.get("type"))
    field = REPLACED.get(kind)
    return None if field is None else (kind.partition("_")[0], str(event.get(field)))


def _shown(entry: TranscriptEntry, event: Mapping[str, Any]) -> Iterator[str]:
    fields = entry.fields
    match entry.kind:
        case "turn_opened":
            yield f"## Turn {fields.get('turn')} · {entry.at}"
            text = str(fields.get("text", ""))
            for sender, body in messages_in(text) or [("", text)]:
                yield from [f"**{_words(sender)}**"] if sender else []
                yield _quoted(body)
        case "turn_ended":
            outcome, reason = str(fields.get("outcome")), str(fields.get("reason") or "")
            why = f": {reason}" if reason and outcome not in ("completed", reason) else ""
            yield f"*Turn {fields.get('turn')} {_words(outcome + why)} · {entry.at}*"
        case "started" if fields.get("rung") != 1:
            yield f"*The agent was started again · {entry.at}*"
        case "ended" if fields.get("reason"):
            yield f"*{_words(str(fields['reason']))} · {entry.at}*"
        case "closed":
            yield f"*Closed by {_words(str(fields.get('by')))} · {entry.at}*"
        case "taken_over":
            yield f"## Taken over by {_words(str(fields.get('by')))} · {entry.at}"
        case "rewound":
            yield from _rewound(fields, entry.at)
        case "handed_back":
            yield f"*Handed back · {entry.at}*"
        case "interrupt":
            yield f"*Interrupted by {_words(str(fields.get('by')))} · {entry.at}*"
        case "decided":
            allows = str((fields.get("answer") or {}).get("kind", "")).startswith("allow")
            if not allows:
                yield f"*Refused by the profile: {_words(str(fields.get('why')))}*"
        case "event":
            yield from _event(event)


def _rewound(fields: Mapping[str, Any], at: str) -> Iterator[str]:
    turn, reason = fields.get("turn"), str(fields.get("reason", ""))
    if reason:
        yield f"*Files not set back to before turn {turn}: {_words(reason)} · {at}*"
    else:
        yield f"*Files set back to before turn {turn} by {_words(str(fields.get('by')))} · {at}*"
    lines = [f"- set back: {_words(str(each))}" for each in fields["files"]]
    lines += [f"- left, since changed by others: {_words(str(each))}" for each in fields["left"]]
    lines += [f"- {_words(str(each))}" for each in [*fields["unable"], *fields["kept"]]]
    if lines:
        yield "\n".join(lines)


def _event(event: Mapping[str, Any]) -> Iterator[str]:
    match event.get("type"):
        case "assistant_thinking" if event.get("text"):
            yield _quoted(f"(thinking) {event['text']}")
        case "user_message" if event.get("origin") != "turn":
            yield _quoted(str(event.get("text", "")))
        case "tool_use":
            name, title = str(event.get("name", "")), str(event.get("title", ""))
            by = " (of a subagent)" if event.get("parent") else ""
            yield f"**{_words(name or title or 'a tool')}**{by}"
            if event.get("input"):
                yield _document(event["input"])
        case "tool_result":
            if event.get("is_error"):
                yield "Failed:"
            yield _fenced(str(event.get("text", "")))
        case "terminal_output" | "terminal_ended":
            yield _fenced(f"$ {event.get('command', '')}\n{event.get('output', '')}")
            if (code := event.get("exit_code")) is not None or event.get("signal"):
                yield f"*{_words(str(event.get('signal') or f'exit {code}'))}*"
        case "plan":
            steps = [each for each in event.get("steps", []) if isinstance(each, dict)]
            lines = [
                f"- [{STEPS.get(str(each.get('status')), ' ')}] {_words(str(each.get('text')))}"
                for each in steps
            ]
            if lines:
                yield "\n".join(lines)
        case "request_opened":
            about = event.get("title") or event.get("tool") or "a request"
            yield f"**Asked: {_words(str(about))}**"
            if event.get("input") and not event.get("tool_use"):  # else it is above
                yield _document(event["input"])
        case "result" if event.get("ok") is False and event.get("text"):
            yield f"*{_words(str(event['text']))}*"


def _text(said: Sequence[str]) -> str:
    return escape_text("".join(said)).strip("\n")


def _words(text: str) -> str:
    """Return a text on one line, in which nothing is markup."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", escape_line(text))


def _quoted(text: str) -> str:
    return "\n".join(f"> {each}".rstrip() for each in escape_text(text).strip("\n").split("\n"))


def _document(fields: object) -> str:
    return _fenced(json.dumps(fields, ensure_ascii=False, indent=2), "json")


def _fenced(text: str, language: str = "") -> str:
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{escape_text(text).strip(chr(10))}\n{fence}"
