"""``ClaudeFiles``: the conversations in Claude Code's own files. Its functions block."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from aegis.agents.drivers.claude.fields import mapping, name
from aegis.agents.drivers.claude.frames import events
from aegis.agents.drivers.tui import TakeoverTalk
from aegis.protocol.agent_events import AgentEvent, AssistantText, ToolResult, UserMessage

STARTS = "takeover.starts"
"""The file in a session's directory to which a hook writes each start of a conversation."""

MAX_READ_BYTES = 16 * 1024 * 1024
"""The end of a conversation's file that is read."""

MAX_SAID = 1_000
"""Events of a take-over that are imported."""

MAX_TEXT_CHARS = 65_536
"""The longest text of an imported event."""

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PRINTED = re.compile(rf"--resume ({_ID.pattern})")
_COMMAND = re.compile(
    r"\s*<command-name>(?P<name>[^<]*)</command-name>(?:.*?<command-args>(?P<args>.*?)"
    r"</command-args>)?",
    re.DOTALL,
)


def hook_settings(directory: Path) -> str:
    """Return settings whose hook writes each conversation that begins to ``STARTS``.

    After ``/clear`` the program continues under another id, which it prints only when it ends.
    """
    quoted = str(directory / STARTS).replace("'", "'\"'\"'")
    hook = {"type": "command", "command": f"{{ cat; echo; }} >>'{quoted}'", "timeout": 5}
    return json.dumps({"hooks": {"SessionStart": [{"matcher": "", "hooks": [hook]}]}})


@attrs.frozen
class ClaudeFiles:
    """The files of a program with this ``environment``; ``directory`` is that of the session."""

    environment: Mapping[str, str] = attrs.field(repr=False)
    directory: Path

    def after(self, conversation: str, since: float, printed: str) -> TakeoverTalk:
        """Return what was said in a take-over of a conversation; see ``ConversationFiles``."""
        begun = [name(each.get("session_id")) for each in _objects(self.directory / STARTS)]
        if not begun:  # hooks are disabled here, or it had none yet
            begun = _PRINTED.findall(printed)[-1:]
        # One that was begun and never used has no file.
        paths = {each: path for each in [conversation, *begun] if (path := self._path(each))}
        found = [
            event
            for path in paths.values()
            for line in _objects(path)
            if _moment(line) >= since
            for event in _said(line)
        ]
        return TakeoverTalk(
            conversation=next((each for each in reversed(begun) if each in paths), conversation),
            events=tuple(found[-MAX_SAID:]),
        )

    def _path(self, conversation: str) -> Path | None:
        if not _ID.fullmatch(conversation):
            return None
        home = Path(self.environment.get("HOME", "/"), ".claude")
        own = Path(self.environment.get("CLAUDE_CONFIG_DIR") or home)
        found = own.glob(f"projects/*/{conversation}.jsonl")
        return next((each for each in found if each.is_file()), None)


def _said(line: dict[str, Any]) -> list[tuple[str, AgentEvent]]:
    if name(line.get("type")) not in ("user", "assistant"):
        return []
    if any(line.get(each) is True for each in ("isMeta", "isSidechain", "isCompactSummary")):
        return []
    id_ = name(line.get("uuid"))
    return [
        (f"{id_}/{number}", bounded)
        for number, event in enumerate(events(line))
        if (bounded := _bounded(event)) is not None
    ]


def _bounded(event: AgentEvent) -> AgentEvent | None:
    """Return an event as it is imported; None if it is not."""
    match event:
        case UserMessage(text=text):
            command = _COMMAND.match(text)
            if command is not None:
                text = f"{command['name']} {command['args'] or ''}".strip()
            elif text.lstrip().startswith("<local-command-"):
                return None
            return UserMessage(text=text[:MAX_TEXT_CHARS], origin="takeover")
        case AssistantText() | ToolResult():
            return attrs.evolve(event, text=event.text[:MAX_TEXT_CHARS])
        case _:
            return event if event.tag in ("tool_use", "assistant_thinking") else None


def _moment(line: dict[str, Any]) -> float:
    try:
        return datetime.fromisoformat(name(line.get("timestamp"))).timestamp()
    except ValueError:
        return 0.0


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the lines at the end of a file; other lines are skipped."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - MAX_READ_BYTES))
            lines = file.read(MAX_READ_BYTES).split(b"\n")
    except OSError:
        return
    for line in lines[1:] if size > MAX_READ_BYTES else lines:
        try:
            found = mapping(json.loads(line))
        except (ValueError, RecursionError):
            continue
        if found:
            yield dict(found)
