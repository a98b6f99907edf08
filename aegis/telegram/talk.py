"""The turns of a session as texts for the chat. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aegis.protocol.agents import TranscriptEntry
from aegis.shown_text import escape_line

OWN_PREFIX = "mcp__aegis__"
MAX_TURN_CHARS = 64 * 1024
"""The beginning of a turn's text beyond this is dropped: the chat shows its end."""

MAX_PROGRESS_CHARS = 300


class TurnProgress:
    """The turn in progress; ``message`` is the one of the chat that shows its progress."""

    def __init__(self) -> None:
        self.message: int | None = None
        self.progress = ""
        """Its newest text or tool; empty if there is nothing to show."""
        self._text = ""
        self._last = ""

    def take(self, entry: TranscriptEntry) -> str | None:
        """Take an entry; return the text of the turn if it ends with it."""
        match entry.kind:
            case "turn_opened":
                self._text = self._last = self.progress = ""
            case "turn_ended":
                return self._end(entry.fields)
            case "event":
                event = entry.fields.get("event")
                self._event(event if isinstance(event, Mapping) else {})
        return None

    def _event(self, event: Mapping[str, Any]) -> None:
        match event.get("type"):
            case "assistant_text":
                text, message = str(event.get("text", "")), str(event.get("message", ""))
                joined = bool(message) and message == self._last
                gap = "" if joined or not self._text else "\n\n"
                self._text = f"{self._text}{gap}{text}"[-MAX_TURN_CHARS:]
                self._last = message
                self.progress = self._text[-MAX_PROGRESS_CHARS:]
            case "tool_use":
                name = str(event.get("title") or event.get("name") or "a tool")
                self.progress = escape_line(name.removeprefix(OWN_PREFIX))[:MAX_PROGRESS_CHARS]
                self._last = ""

    def _end(self, fields: Mapping[str, Any]) -> str:
        text, outcome = self._text.strip(), str(fields.get("outcome"))
        self._text = self._last = self.progress = ""
        if outcome == "completed":
            return text or "(the turn ended without a text)"
        reason = fields.get("reason")
        ending = f"[{outcome}{f': {reason}' if reason and reason != outcome else ''}]"
        return f"{text}\n{ending}" if text else ending
