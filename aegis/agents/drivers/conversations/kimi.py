"""``KimiFiles``: the conversations in Kimi's own files. Its functions block.

Each is a directory ``sessions/MD5 OF THE WORKING DIRECTORY/ID``: ``context.jsonl`` has its messages
without their times, and ``wire.jsonl`` what its own interface has shown, with them. Kimi loads a
conversation only in its own directory, locks none, and shows nobody who has one open. Tried with
1.44.0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from hashlib import md5
from pathlib import Path
from typing import Any

import attrs

from aegis.agents.drivers.claude.frames import items, mapping, name, number, text
from aegis.agents.drivers.conversations import found
from aegis.agents.drivers.conversations.found import FoundConversation, TakeoverTalk
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    ToolResult,
    ToolUse,
    UserMessage,
)

MAX_FILES = 5_000
"""Conversations of a directory that are looked at for the newest."""

_ID = re.compile(found.UUID)
_PRINTED = re.compile(rf"^[ \t│|]*Session: +({found.UUID})[ \t│|]*$", re.MULTILINE)


@attrs.frozen
class KimiFiles:
    """The files of a program with this ``environment``; a take-over works in ``cwd``."""

    environment: Mapping[str, str] = attrs.field(repr=False)
    cwd: str = ""

    def after(
        self, conversation: str, since: float, printed: str, others: Collection[str] = ()
    ) -> TakeoverTalk:
        """Return what was said in a take-over; see ``ConversationFiles``.

        Its interface prints the id of each conversation that it opens, in a frame. What it has
        printed is not known after a kill of the daemon, and nothing else says in which process
        something was said.
        """
        opened = _PRINTED.findall(printed)
        ids = {conversation, *opened}.difference(others)
        events: list[tuple[float, str, tuple[str, AgentEvent]]] = []
        for id_ in sorted(ids):
            for place, line in enumerate(found.objects(self._of(self.cwd) / id_ / "wire.jsonl")):
                at = number(line.get("timestamp")) or 0.0
                event = _said(mapping(line.get("message"))) if at >= since else None
                if event is not None:
                    source = f"{id_}/{at}/{place}"
                    events.append((at, id_, (source, found.bounded(event))))
        events.sort(key=lambda each: each[0])
        files = found.newest(self._of(self.cwd).glob("*/wire.jsonl"), MAX_FILES)
        used = [path.parent.name for at, path in files if at >= since]
        return TakeoverTalk(
            conversation=events[-1][1] if events else conversation,
            events=tuple(event for *_, event in events[-found.MAX_SAID :]),
            unknown=next((each for each in used if each not in {*ids, *others}), ""),
            left_out=next((each for each in opened if each in others), ""),
        )

    def has(self, conversation: str, cwd: str) -> bool:
        """Return whether a directory has a conversation of this id."""
        is_id = _ID.fullmatch(conversation) is not None
        return is_id and (self._of(cwd) / conversation / "context.jsonl").is_file()

    def listed(self, cwd: str) -> tuple[list[FoundConversation], bool]:
        """Return the conversations in a directory, the newest first, and whether there are more."""
        files = found.newest(self._of(cwd).glob("*/context.jsonl"), MAX_FILES)
        listed: list[FoundConversation] = []
        for at, path in files:
            begins = _begins(path) if _ID.fullmatch(path.parent.name) else ""
            if not begins:
                continue
            if len(listed) == found.MAX_LISTED:
                return listed, True
            listed.append(FoundConversation(id=path.parent.name, at=at, begins=begins))
        return listed, False

    def holders(self) -> None:
        """Return None: nothing shows it."""
        return

    def unasked(self, conversation: str, cwd: str) -> str:
        """Return the mode without asking that is stored with a conversation."""
        approval = mapping(
            found.document(self._of(cwd) / conversation / "state.json").get("approval")
        )
        modes = [f"/{each}" for each in ("yolo", "afk") if approval.get(each) is True]
        return f"{' and '.join(modes)} was entered in it" if modes else ""

    def _of(self, cwd: str) -> Path:
        home = Path(self.environment.get("HOME", "/"), ".kimi")
        own = Path(self.environment.get("KIMI_SHARE_DIR") or home)
        digest = md5(os.path.realpath(cwd).encode(errors="surrogateescape"), usedforsecurity=False)
        return own / "sessions" / digest.hexdigest()


def _begins(path: Path) -> str:
    for line in found.objects(path, found.HEAD_BYTES):
        if line.get("role") == "user" and (begins := found.first_words(_text(line.get("content")))):
            return begins
    return ""


def _text(content: object) -> str:
    return text(content) or "".join(text(mapping(each).get("text")) for each in items(content))


def _said(message: Mapping[str, Any]) -> AgentEvent | None:
    payload = mapping(message.get("payload"))
    event: AgentEvent | None = None
    match name(message.get("type")), name(payload.get("type")):
        case "TurnBegin", _:
            event = UserMessage(text=_text(payload.get("user_input")), origin="takeover")
        case "ContentPart", "text":
            event = AssistantText(text=text(payload.get("text")))
        case "ContentPart", "think":
            event = AssistantThinking(text=text(payload.get("think")))
        case "ToolCall", _:
            called = mapping(payload.get("function"))
            given = found.arguments(text(called.get("arguments")))
            id_ = name(payload.get("id"))
            event = ToolUse(id=id_, name=name(called.get("name")), input=given)
        case "ToolResult", _:
            returned = mapping(payload.get("return_value"))
            output = _text(returned.get("output")) or text(returned.get("message"))
            id_, failed = name(payload.get("tool_call_id")), returned.get("is_error") is True
            event = ToolResult(id=id_, text=output, is_error=failed)
    return event if event is not None and getattr(event, "text", True) else None
