"""``CodexFiles``: the conversations in Codex's own files. Its functions block.

Each is a file ``sessions/YYYY/MM/DD/rollout-MOMENT-ID.jsonl``. A process that has one open holds a
lock (flock) on the file ``thread-writer-locks/ID.lock``. Tried with 0.166.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from aegis.agents.drivers.claude.frames import count, items, mapping, name, text
from aegis.agents.drivers.conversations import found
from aegis.agents.drivers.conversations.found import FoundConversation, TakeoverTalk
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    ToolResult,
    ToolUse,
    Usage,
    UserMessage,
)

MAX_FILES = 20_000
"""Files of conversations that are looked at for the newest."""

MAX_HEADS = 1_000
"""Files whose beginning is read for the conversations of one directory."""

_ID = re.compile(found.UUID)
_FILE = re.compile(rf"rollout-.*-({found.UUID})\.jsonl")
_FIGURES = ("input_tokens", "cached_input_tokens", "output_tokens")
_LOCK = re.compile(r"FLOCK +\w+ +WRITE +(\d+) +([0-9a-f]+):([0-9a-f]+):(\d+) ")


@attrs.frozen
class CodexFiles:
    """The files of a program with this ``environment``.

    A program of a take-over has written ``originator`` into the conversations that it began.
    """

    environment: Mapping[str, str] = attrs.field(repr=False)
    originator: str = ""

    def after(
        self, conversation: str, since: float, printed: str, others: Collection[str] = ()
    ) -> TakeoverTalk:
        """Return what was said in a take-over; see ``ConversationFiles``."""
        events: list[tuple[float, str, tuple[str, AgentEvent]]] = []
        spent: list[tuple[str, AgentEvent]] = []
        for changed, path in self._files():
            if changed < since - 1.0:  # the clock of a file system can be behind
                break
            id_ = _id_of(path)
            if id_ in others:
                continue
            if id_ == conversation or self.originator == _meta(path).get("originator"):
                lines = [
                    (found.moment(each.get("timestamp")), each) for each in found.objects(path)
                ]
                events += [
                    (at, id_, event)
                    for at, line in lines
                    if at >= since
                    for event in _said(id_, line)
                ]
                spent += _spent(id_, lines, since)
        events.sort(key=lambda each: each[0])
        return TakeoverTalk(
            conversation=events[-1][1] if events else conversation,
            events=(*(event for *_, event in events[-found.MAX_SAID :]), *reversed(spent)),
        )

    def has(self, conversation: str, cwd: str) -> bool:
        """Return whether there is a conversation of this id; it continues in any directory."""
        if not _ID.fullmatch(conversation):
            return False
        pattern = f"sessions/*/*/*/rollout-*-{conversation}.jsonl"
        return any(each.is_file() for each in self._own.glob(pattern))

    def listed(self, cwd: str) -> tuple[list[FoundConversation], bool]:
        """Return the conversations in a directory, the newest first, and whether there are more."""
        holders = self.holders()
        listed: list[FoundConversation] = []
        for at, path in self._files()[:MAX_HEADS]:
            begins, branch = _head(path, {cwd, os.path.realpath(cwd)})
            if not begins:
                continue
            if len(listed) == found.MAX_LISTED:
                return listed, True
            id_ = _id_of(path)
            listed.append(
                FoundConversation(
                    id=id_,
                    at=at,
                    begins=begins,
                    branch=branch,
                    holder=found.shown(holders.get(id_)),
                )
            )
        return listed, False

    def holders(self) -> dict[str, list[int]]:
        """Return the running processes that have a conversation open, for each that is."""
        files: dict[tuple[int, int, int], str] = {}
        with contextlib.suppress(OSError):
            for path in self._own.glob("thread-writer-locks/*.lock"):
                if _ID.fullmatch(path.stem):
                    status = path.lstat()
                    device = status.st_dev
                    files[os.major(device), os.minor(device), status.st_ino] = path.stem
        try:
            locks = Path("/proc/locks").read_text()
        except OSError:
            return {}
        held: dict[str, list[int]] = {}
        for pid, major, minor, inode in _LOCK.findall(locks):
            id_ = files.get((int(major, 16), int(minor, 16), int(inode)))
            if id_ is not None:
                held.setdefault(id_, []).append(int(pid))
        return held

    def unasked(self, conversation: str, cwd: str) -> str:
        """Return nothing: the mode is set at each start."""
        return ""

    @property
    def _own(self) -> Path:
        home = Path(self.environment.get("HOME", "/"), ".codex")
        return Path(self.environment.get("CODEX_HOME") or home)

    def _files(self) -> list[tuple[float, Path]]:
        paths = self._own.glob("sessions/*/*/*/rollout-*.jsonl")
        return found.newest((each for each in paths if _id_of(each)), MAX_FILES)


def _id_of(path: Path) -> str:
    named = _FILE.fullmatch(path.name)
    return named[1] if named else ""


def _meta(path: Path) -> dict[str, Any]:
    first = next(found.objects(path, found.HEAD_BYTES), {})
    return dict(mapping(first.get("payload"))) if first.get("type") == "session_meta" else {}


def _head(path: Path, directories: set[str]) -> tuple[str, str]:
    """Return the first words and the branch; none if it is of another directory or a subagent."""
    lines = found.objects(path, found.HEAD_BYTES)
    meta = mapping(next(lines, {}).get("payload"))
    if name(meta.get("cwd")) not in directories or not isinstance(meta.get("source"), str):
        return "", ""
    for line in lines:
        for _, event in _said("", line):
            if isinstance(event, UserMessage):
                branch = name(mapping(meta.get("git")).get("branch"))
                return found.first_words(event.text), branch
    return "", ""


def _spent(
    id_: str, lines: Iterable[tuple[float, Mapping[str, Any]]], since: float
) -> Iterator[tuple[str, AgentEvent]]:
    """Yield the tokens that a conversation has used since a moment, if it has used any."""
    before, after, last = [0, 0, 0], [0, 0, 0], Usage()
    for at, line in lines:
        payload = mapping(line.get("payload"))
        if payload.get("type") != "token_count" or not (info := mapping(payload.get("info"))):
            continue  # also without figures, when only a limit has changed
        total = mapping(info.get("total_token_usage"))
        after = [count(total.get(each)) or 0 for each in _FIGURES]
        if at < since:
            before = after
        request = mapping(info.get("last_token_usage"))
        last = Usage(
            context_tokens=count(request.get("input_tokens")),
            context_limit=count(info.get("model_context_window")),
        )
    spent = [max(0, now - then) for now, then in zip(after, before, strict=True)]
    if any(spent):
        given, cached, output = spent
        usage = attrs.evolve(last, input_tokens=given, cached_tokens=cached, output_tokens=output)
        yield f"usage/{id_}/{sum(after)}", usage


def _said(id_: str, line: Mapping[str, Any]) -> Iterator[tuple[str, AgentEvent]]:
    """Yield what a line says, each with its id in the file."""
    payload, of = mapping(line.get("payload")), name(line.get("type"))
    kind = name(payload.get("type"))
    source = f"{id_}/{line.get('ordinal', line.get('timestamp'))}/{kind}"
    event: AgentEvent | None = None
    match of, kind:
        case "event_msg", "item_completed":
            event = _item(mapping(payload.get("item")))
        case "event_msg", "user_message":  # of older versions
            event = UserMessage(text=text(payload.get("message")), origin="takeover")
        case "event_msg", "agent_message":
            event = AssistantText(text=text(payload.get("message")))
        case "event_msg", "agent_reasoning":
            event = AssistantThinking(text=text(payload.get("text")))
        case "response_item", "function_call" | "custom_tool_call":
            given = text(payload.get("arguments")) or text(payload.get("input"))
            event = ToolUse(
                id=name(payload.get("call_id")),
                name=name(payload.get("name")),
                input=found.arguments(given),
            )
        case "response_item", "function_call_output" | "custom_tool_call_output":
            output = text(payload.get("output"))
            event = ToolResult(id=name(payload.get("call_id")), text=output)
    if event is not None and getattr(event, "text", True):
        yield source, found.bounded(event)


def _item(item: Mapping[str, Any]) -> AgentEvent | None:
    said = "".join(text(mapping(each).get("text")) for each in items(item.get("content")))
    match name(item.get("type")):
        case "UserMessage":
            return UserMessage(text=said, origin="takeover")
        case "AgentMessage":
            return AssistantText(text=said)
        case _:
            return None
