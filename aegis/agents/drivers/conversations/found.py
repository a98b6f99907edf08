"""The parts that the files of all agents' programs have in common. The functions block.

Their content is of other programs: it is read in bounds, and what cannot be read is left out.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import attrs

from aegis.agents.drivers.claude.frames import mapping, name
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    ToolResult,
    Usage,
    UserMessage,
)

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

UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""The ids of most agents' conversations."""

_HEADER = re.compile(r"\AYou are the agent '.{1,65536}?> from \S{1,200} · \S{1,40}\n", re.DOTALL)
"""Our primer and the header of a message, with which the first words of a session begin."""


@attrs.frozen(kw_only=True)
class TakeoverTalk:
    """The talk of a take-over: ``events``, each with its id in the agent's own file.

    The last one is the ``Usage`` of all its turns, if the file has it. ``conversation`` is the id
    under which it has ended. ``unknown`` is a conversation that was used meanwhile, of which it is
    not known whether that was in the take-over. ``left_out`` is one of another session, in which
    the person was too.
    """

    conversation: str
    events: tuple[tuple[str, AgentEvent], ...] = ()
    unknown: str = ""
    left_out: str = ""


@attrs.frozen(kw_only=True)
class FoundConversation:
    """A conversation, last changed ``at`` this moment; see ``PastConversation``."""

    id: str
    at: float = 0.0
    holder: str = ""
    begins: str = ""
    branch: str = ""


class ConversationFiles(Protocol):
    """The files in which an agent's program keeps its conversations. All methods block.

    They raise ``AegisError`` where the files as a whole cannot be read.
    """

    def after(
        self, conversation: str, since: float, printed: str, others: Collection[str] = ()
    ) -> TakeoverTalk:
        """Return what was said in a take-over of ``conversation``, of too much the newest.

        It began ``since``, in seconds since 1970, and the program has ``printed`` a text. The
        person may have begun another conversation, or changed to another. ``others`` are
        conversations of other sessions: it does not end in one of them, and their talk is left out.
        """
        ...

    def has(self, conversation: str, cwd: str) -> bool:
        """Return whether there is a conversation of this id that can continue in ``cwd``."""
        ...

    def listed(self, cwd: str) -> tuple[list[FoundConversation], bool]:
        """Return the conversations in a directory, the newest first, and whether there are more."""
        ...

    def holders(self) -> Mapping[str, Sequence[int]] | None:
        """Return the running processes that have a conversation open, for each that is.

        None: the program does not show it.
        """
        ...

    def unasked(self, conversation: str, cwd: str) -> str:
        """Return why the agent would act in a conversation without asking; empty: it asks.

        Some programs store with a conversation that a person has ended the asking.
        """
        ...


def first_words(text: str) -> str:
    """Return the beginning of a conversation's first message, on one line."""
    return " ".join(_HEADER.sub("", text).split())[:MAX_BEGINS]


def shown(holders: Sequence[int] | None) -> str:
    """Return a process that has a conversation open, as people read it."""
    return f"process {holders[0]}" if holders else ""


def bounded(event: AgentEvent) -> AgentEvent:
    """Return an event as it is imported."""
    match event:
        case UserMessage() | AssistantText() | AssistantThinking() | ToolResult():
            return attrs.evolve(event, text=event.text[:MAX_TEXT_CHARS])
        case _:
            return event


def summed(requests: Sequence[Usage]) -> Usage:
    """Return the usage of some requests, at least one, as that of one turn."""
    return Usage(
        input_tokens=sum(each.input_tokens or 0 for each in requests),
        cached_tokens=sum(each.cached_tokens or 0 for each in requests),
        output_tokens=sum(each.output_tokens or 0 for each in requests),
        context_tokens=requests[-1].context_tokens,
    )


def arguments(given: str) -> dict[str, Any]:
    """Return the input of a tool, of its JSON."""
    given = given[:MAX_TEXT_CHARS]
    try:
        return dict(mapping(json.loads(given))) or {"input": given}
    except (ValueError, RecursionError):
        return {"input": given}


def moment(value: object) -> float:
    """Return a moment in seconds since 1970; 0 if it is none."""
    try:
        return datetime.fromisoformat(name(value)).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def newest(paths: Iterator[Path], most: int) -> list[tuple[float, Path]]:
    """Return regular files with the moment of their last change, the newest first."""
    changed: list[tuple[float, Path]] = []
    try:
        for path in paths:
            if len(changed) >= most:
                break
            try:
                found = path.stat()
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode):
                changed.append((found.st_mtime, path))
    except OSError:
        pass  # a directory that cannot be read
    return sorted(changed, reverse=True)


def document(path: Path) -> dict[str, Any]:
    """Return the JSON object that is a whole file; empty if it is none."""
    try:
        with open(path, "rb", opener=_open_regular) as file:
            file.seek(0)
            return mapping(json.loads(file.read(HEAD_BYTES)))
    except (OSError, ValueError, RecursionError):
        return {}


def objects(path: Path, head_bytes: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in the lines at the end of a file, or in its head if that is given.

    Other lines are skipped.
    """
    try:
        with open(path, "rb", opener=_open_regular) as file:
            size = file.seek(0, 2)
            begin = 0 if head_bytes else max(0, size - MAX_READ_BYTES)
            file.seek(begin)
            lines = file.read(head_bytes or MAX_READ_BYTES).split(b"\n")
    except (OSError, ValueError):
        return
    for line in lines[1:] if begin else lines:
        try:
            found = mapping(json.loads(line))
        except (ValueError, RecursionError):
            continue
        if found:
            yield dict(found)


def _open_regular(path: str, flags: int) -> int:
    # A FIFO must not block: it is not read, for one cannot seek in it.
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)
