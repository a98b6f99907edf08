"""``ClaudeFiles``: the conversations in Claude Code's own files. Its functions block."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from aegis.agents.drivers.claude.frames import events, name, request_usage
from aegis.agents.drivers.conversations import found
from aegis.agents.drivers.conversations.found import FoundConversation, TakeoverTalk
from aegis.protocol.agent_events import AgentEvent, AssistantText, ToolResult, UserMessage

STARTS = "takeover.starts"
"""The file in a session's directory to which a hook writes each start of a conversation."""

MAX_FILES = 20_000
"""Conversations of a directory that are looked at for the newest."""

_ID = re.compile(found.UUID)
_PRINTED = re.compile(rf"--resume ({_ID.pattern})")


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
    directory: Path = Path()

    def after(
        self, conversation: str, since: float, printed: str, others: Collection[str] = ()
    ) -> TakeoverTalk:
        """Return what was said in a take-over of a conversation; see ``ConversationFiles``."""
        begun = [name(each.get("session_id")) for each in found.objects(self.directory / STARTS)]
        # Hooks are disabled here; or the daemon was killed before the program ran, and the file is
        # of an earlier take-over, before the agent's own ``/clear``.
        if begun[:1] != [conversation]:
            begun = _PRINTED.findall(printed)[-1:]
        left_out = [each for each in begun if each in others]
        begun = [each for each in begun if each not in others]
        # One that was begun and never used has no file.
        paths = {each: path for each in [conversation, *begun] if (path := self._path(each))}
        lines = [
            line
            for path in paths.values()
            for line in found.objects(path)
            if found.moment(line.get("timestamp")) >= since and _is_of_main(line)
        ]
        said = [event for line in lines for event in _said(line)]
        return TakeoverTalk(
            conversation=next((each for each in reversed(begun) if each in paths), conversation),
            events=(*said[-found.MAX_SAID :], *_spent(lines)),
            left_out=next(iter(left_out), ""),
        )

    def has(self, conversation: str, cwd: str) -> bool:
        """Return whether there is a conversation of this id; it continues in any directory."""
        return self._path(conversation) is not None

    def listed(self, cwd: str) -> tuple[list[FoundConversation], bool]:
        """Return the conversations in a directory, the newest first, and whether there are more."""
        directory = self._own / "projects" / re.sub(r"[^A-Za-z0-9]", "-", cwd)
        files = found.newest(directory.glob("*.jsonl"), MAX_FILES)
        changed = [(at, path) for at, path in files if _ID.fullmatch(path.stem)]
        holders = self.holders()
        listed = [
            attrs.evolve(_head(path, cwd), at=at, holder=found.shown(holders.get(path.stem)))
            for at, path in changed[: found.MAX_LISTED]
        ]
        return [each for each in listed if each.begins], len(changed) > found.MAX_LISTED

    def holders(self) -> dict[str, list[int]]:
        """Return the running processes that have a conversation open, for each that is."""
        holders: dict[str, list[int]] = {}
        for path in self._own.glob("sessions/*.json"):
            for each in found.objects(path):
                pid, began = each.get("pid"), name(each.get("procStart"))
                # A killed program leaves its file, and its pid is given to another.
                if isinstance(pid, int) and began and began == _start_of(pid):
                    holders.setdefault(name(each.get("sessionId")), []).append(pid)
        return holders

    def unasked(self, conversation: str, cwd: str) -> str:
        """Return nothing: the mode is set at each start."""
        return ""

    @property
    def _own(self) -> Path:
        home = Path(self.environment.get("HOME", "/"), ".claude")
        return Path(self.environment.get("CLAUDE_CONFIG_DIR") or home)

    def _path(self, conversation: str) -> Path | None:
        if not _ID.fullmatch(conversation):
            return None
        paths = self._own.glob(f"projects/*/{conversation}.jsonl")
        return next((each for each in paths if each.is_file()), None)


def _is_of_main(line: Mapping[str, Any]) -> bool:
    """Return whether it is a message of the main conversation, not of a subagent."""
    return line.get("isSidechain") is not True and name(line.get("type")) in ("user", "assistant")


def _spent(lines: Iterable[dict[str, Any]]) -> Iterator[tuple[str, AgentEvent]]:
    """Yield the tokens of all requests to the model as one usage; nothing if there was none."""
    # An answer has a line for each of its blocks, and the figures of the last one are final.
    requests = {each.request: each for line in lines if (each := request_usage(line))}
    requests.pop("", None)
    if requests:
        yield f"usage/{[*requests][-1]}", found.summed([*requests.values()])


def _said(line: dict[str, Any]) -> list[tuple[str, AgentEvent]]:
    if not _is_of_main(line):
        return []
    if any(line.get(each) is True for each in ("isMeta", "isCompactSummary")):
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
            text = text[: found.MAX_TEXT_CHARS]
            if text.lstrip().startswith("<local-command-"):
                return None
            return UserMessage(text=_typed(text), origin="takeover")
        case AssistantText() | ToolResult():
            return found.bounded(event)
        case _:
            return event if event.tag in ("tool_use", "assistant_thinking") else None


def _typed(text: str) -> str:
    """Return a message as the person typed it: a command is stored in tags."""
    # No pattern: one that looks for an end tag from each tag on takes minutes for a long text.
    before, tag, rest = text.partition("<command-name>")
    command, end, rest = rest.partition("</command-name>")
    if before.strip() or not tag or not end or "<" in command:
        return text
    given = rest.partition("<command-args>")[2].partition("</command-args>")[0]
    return f"{command} {given}".strip()


def _head(path: Path, cwd: str) -> FoundConversation:
    """Return a conversation with its first words; without them if it is of another directory."""
    head = FoundConversation(id=path.stem)
    for line in found.objects(path, found.HEAD_BYTES):
        if name(line.get("cwd")) not in ("", cwd):
            break  # the names of two directories may differ in other characters only
        for _, event in _said(line):
            if isinstance(event, UserMessage) and not event.text.startswith("/"):
                words = found.first_words(event.text)
                return attrs.evolve(head, begins=words, branch=name(line.get("gitBranch")))
    return head


def _start_of(pid: int) -> str:
    """Return the start of a process in clock ticks since boot; empty if there is none alive."""
    try:
        stat = Path("/proc", str(pid), "stat").read_text()
    except OSError:
        return ""
    state, *rest = stat.rpartition(")")[2].split() + [""] * 20
    return "" if state in ("Z", "X", "") else rest[18]
