"""``ClaudeFiles``: the conversations in Claude Code's own files. Its functions block."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from aegis.agents.drivers.claude.frames import events, mapping, name
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

HEAD_BYTES = 256 * 1024
"""The beginning of a conversation's file in which its first words are looked for."""

MAX_LISTED = 50
"""Conversations of one directory that are listed."""

MAX_BEGINS = 200
"""Characters of the first words of a conversation."""

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


@attrs.frozen(kw_only=True)
class FoundConversation:
    """A conversation, last changed ``at`` this moment; see ``PastConversation``."""

    id: str
    at: float = 0.0
    holder: str = ""
    begins: str = ""
    branch: str = ""


@attrs.frozen
class ClaudeFiles:
    """The files of a program with this ``environment``; ``directory`` is that of the session."""

    environment: Mapping[str, str] = attrs.field(repr=False)
    directory: Path

    def after(self, conversation: str, since: float, printed: str) -> TakeoverTalk:
        """Return what was said in a take-over of a conversation; see ``ConversationFiles``."""
        begun = [name(each.get("session_id")) for each in _objects(self.directory / STARTS)]
        # Hooks are disabled here; or the daemon was killed before the program ran, and the file is
        # of an earlier take-over, before the agent's own ``/clear``.
        if begun[:1] != [conversation]:
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

    def has(self, conversation: str) -> bool:
        """Return whether there is a conversation of this id."""
        return self._path(conversation) is not None

    def listed(self, cwd: str) -> tuple[list[FoundConversation], bool]:
        """Return the conversations in a directory, the newest first, and whether there are more."""
        directory = self._own / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd)
        changed: list[tuple[float, Path]] = []
        with contextlib.suppress(OSError):
            for each in directory.iterdir():
                if _ID.fullmatch(each.stem) and each.suffix == ".jsonl":
                    with contextlib.suppress(OSError):
                        changed.append((each.stat().st_mtime, each))
        changed.sort(reverse=True)
        holders = self.holders()
        found = [
            attrs.evolve(_head(path, cwd), at=at, holder=holders.get(path.stem, ""))
            for at, path in changed[:MAX_LISTED]
        ]
        return [each for each in found if each.begins], len(changed) > MAX_LISTED

    def holders(self) -> dict[str, str]:
        """Return the running process that has a conversation open, for each that is."""
        found: dict[str, str] = {}
        for path in self._own.glob("sessions/*.json"):
            for each in _objects(path):
                pid, began = each.get("pid"), name(each.get("procStart"))
                # A killed program leaves its file, and its pid is given to another.
                if isinstance(pid, int) and began and began == _start_of(pid):
                    found[name(each.get("sessionId"))] = f"process {pid}"
        return found

    @property
    def _own(self) -> Path:
        home = Path(self.environment.get("HOME", "/"), ".claude")
        return Path(self.environment.get("CLAUDE_CONFIG_DIR") or home)

    def _path(self, conversation: str) -> Path | None:
        if not _ID.fullmatch(conversation):
            return None
        found = self._own.glob(f"projects/*/{conversation}.jsonl")
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


def _head(path: Path, cwd: str) -> FoundConversation:
    """Return a conversation with its first words; without them if it is of another directory."""
    found = FoundConversation(id=path.stem)
    for line in _objects(path, HEAD_BYTES):
        if name(line.get("cwd")) not in ("", cwd):
            break  # the names of two directories may differ in other characters only
        for _, event in _said(line):
            if isinstance(event, UserMessage) and not event.text.startswith("/"):
                words = " ".join(event.text.split())[:MAX_BEGINS]
                return attrs.evolve(found, begins=words, branch=name(line.get("gitBranch")))
    return found


def _start_of(pid: int) -> str:
    """Return the start of a process in clock ticks since boot; empty if there is none alive."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return ""
    state, *rest = stat.rpartition(")")[2].split() + [""] * 20
    return "" if state in ("Z", "X", "") else rest[18]


def _objects(path: Path, head_bytes: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the lines at the end of a file, or in its head if that is given.

    Other lines are skipped.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            begin = 0 if head_bytes else max(0, size - MAX_READ_BYTES)
            file.seek(begin)
            lines = file.read(head_bytes or MAX_READ_BYTES).split(b"\n")
    except OSError:
        return
    for line in lines[1:] if begin else lines:
        try:
            found = mapping(json.loads(line))
        except (ValueError, RecursionError):
            continue
        if found:
            yield dict(found)
