"""Closed requests as a search of the history shows them. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from actors.codec import structure
from actors.errors import CodecError
from aegis.protocol.agent_events import RequestAnswer
from aegis.protocol.history import MAX_TEXT_CHARS, HistoryEntry
from aegis.protocol.requests import Answerer
from aegis.requests.answers import answer_text, words_of
from aegis.requests.records import Record
from aegis.shown_text import escape_text

MAX_INPUT_BYTES = 4 * 1024
"""The size of an input that is searched; a larger one is left out."""


def history_entry(record: Record) -> HistoryEntry:
    """Return a closed request."""
    return HistoryEntry(
        kind="request",
        at=record.ended,
        name=record.handle,
        id=record.id,
        text=_text(record.tool, record.title, record.excerpt, record.input, record.input_bytes),
        by=record.by or "",
        outcome="withdrawn" if record.phase == "withdrawn" else answer_text(record),
        began=record.created,
    )


def archived_entry(line: Mapping[str, Any], by: Answerer | None) -> HistoryEntry | None:
    """Return the request of a line of the archive; None if it is none that ``by`` may see."""
    match line:
        case {"id": str(request_id), "set": {"handle": str(handle)} as fields}:
            if by is not None and not by.may_see(fields.get("session"), handle):
                return None
            return HistoryEntry(
                kind="request",
                at=str(_ended(fields)),
                name=handle,
                id=request_id,
                text=_text(
                    str(fields.get("tool", "")),
                    str(fields.get("title", "")),
                    str(fields.get("excerpt", "")),
                    fields.get("input"),
                    fields.get("input_bytes", 0),
                ),
                by=str(fields.get("by") or ""),
                outcome=_outcome(fields),
                archived=True,
                began=fields.get("created"),
            )
    return None


def _ended(fields: Mapping[str, Any]) -> Any:
    moments = map(fields.get, ("applied", "withdrawn_at", "answered", "created"))
    return next((each for each in moments if each), "")


def _outcome(fields: Mapping[str, Any]) -> str:
    if fields.get("phase") == "withdrawn":
        return "withdrawn"
    try:
        return words_of(structure(RequestAnswer | None, fields.get("answer")))
    except CodecError:
        return "answered"


def _text(tool: str, title: str, excerpt: str, given: Any, size: int) -> str:
    """Return the question in one line, as every face shows it."""
    if given is not None and size <= MAX_INPUT_BYTES:
        excerpt = escape_text(json.dumps(given, ensure_ascii=False))
    what = title if title.startswith(tool) else f"{tool}: {title}"
    return f"{what} {excerpt}".strip()[:MAX_TEXT_CHARS]
