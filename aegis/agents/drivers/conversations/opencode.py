"""``OpencodeFiles``: the conversations in opencode's own database. Its functions block.

All its processes share that. None locks a conversation, and nothing shows who has one open. Tried
with 1.18.33.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs

from aegis.agents.drivers.claude.frames import count, mapping, name, text
from aegis.agents.drivers.conversations import found
from aegis.agents.drivers.conversations.found import FoundConversation, TakeoverTalk
from aegis.errors import Unavailable
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    AssistantThinking,
    ToolResult,
    ToolUse,
    Usage,
    UserMessage,
)

LIMIT_S = 5.0
"""Seconds that the reads of one answer may take, with the waits for a lock."""

MAX_VALUE_BYTES = 8 * 1024 * 1024
"""The largest value that is read; a larger one ends the read with an error."""

MAX_PARTS = 5_000
"""Parts of messages that are read after a take-over, the newest."""

_ID = re.compile(r"ses_[A-Za-z0-9]{1,64}")
_PRINTED = re.compile(rf"opencode -s ({_ID.pattern})")

_LISTED = """
SELECT id, time_updated FROM session
WHERE directory IN (?, ?) AND parent_id IS NULL AND time_archived IS NULL
ORDER BY time_updated DESC LIMIT ?
"""

_BEGINS = """
SELECT part.data FROM message JOIN part ON part.message_id = message.id
WHERE message.session_id = ? AND json_valid(message.data)
  AND json_extract(message.data, '$.role') = 'user'
ORDER BY message.time_created, part.id LIMIT 8
"""

_CREATED = """
SELECT id FROM session
WHERE directory IN (?, ?) AND parent_id IS NULL AND time_created >= ? AND id != ?
ORDER BY time_updated DESC LIMIT 64
"""

_AFTER = """
SELECT part.id, message.session_id, message.id, message.data, part.data
FROM message JOIN part ON part.message_id = message.id
WHERE message.session_id IN (?, ?) AND message.time_created >= ?
ORDER BY message.time_created DESC, part.id DESC LIMIT ?
"""


@attrs.frozen
class OpencodeFiles:
    """The database of a program with this ``environment``; a take-over works in ``cwd``."""

    environment: Mapping[str, str] = attrs.field(repr=False)
    cwd: str = ""

    def after(
        self, conversation: str, since: float, printed: str, others: Collection[str] = ()
    ) -> TakeoverTalk:
        """Return what was said in a take-over; see ``ConversationFiles``.

        The program prints the id of its last conversation when it ends. What it has printed is not
        known after a kill of the daemon.
        """
        named = _PRINTED.findall(printed)
        mine = [each for each in named if each not in others]
        last, at = next(reversed(mine), conversation), int(since * 1000)
        rows, created = [], []
        with self._opened() as database:
            if database is not None:
                values = (conversation, last, at, MAX_PARTS)
                rows = database.execute(_AFTER, values).fetchall()
                created = database.execute(
                    _CREATED, (self.cwd, os.path.realpath(self.cwd), at, conversation)
                ).fetchall()
        messages = {id_: _json(data) for _, _, id_, data, _ in reversed(rows)}
        events = [
            (f"{part}/{place}", found.bounded(event))
            for part, _, id_, _, data in reversed(rows)
            for place, event in enumerate(_said(messages[id_], _json(data)))
        ]
        used = {session for _, session, *_ in rows}
        return TakeoverTalk(
            conversation=last if last in used else conversation,
            events=(*events[-found.MAX_SAID :], *_spent(messages)),
            unknown=next((each for (each,) in created if each not in others and not named), ""),
            left_out=next((each for each in named if each in others), ""),
        )

    def has(self, conversation: str, cwd: str) -> bool:
        """Return whether there is a conversation of this id; it continues in any directory."""
        if not _ID.fullmatch(conversation):
            return False
        with self._opened() as database:
            query = "SELECT 1 FROM session WHERE id = ?"
            return database is not None and bool(
                database.execute(query, (conversation,)).fetchone()
            )

    def listed(self, cwd: str) -> tuple[list[FoundConversation], bool]:
        """Return the conversations in a directory, the newest first, and whether there are more."""
        listed: list[FoundConversation] = []
        with self._opened() as database:
            if database is None:
                return [], False
            values = (cwd, os.path.realpath(cwd), found.MAX_LISTED + 1)
            rows = database.execute(_LISTED, values).fetchall()
            for id_, at in rows[: found.MAX_LISTED]:
                if not isinstance(at, int) or not _ID.fullmatch(str(id_)):
                    continue
                parts = database.execute(_BEGINS, (id_,)).fetchall()
                said = "".join(text(_json(data).get("text")) for (data,) in parts)
                if begins := found.first_words(said):
                    listed.append(FoundConversation(id=id_, at=at / 1000, begins=begins))
        return listed, len(rows) > found.MAX_LISTED

    def holders(self) -> None:
        """Return None: nothing shows it."""
        return

    def unasked(self, conversation: str, cwd: str) -> str:
        """Return that rules of its own allow something in a conversation: they win over ours."""
        with self._opened() as database:
            if database is None:
                return ""
            database.row_factory = sqlite3.Row
            query = "SELECT * FROM session WHERE id = ?"
            row = database.execute(query, (conversation,)).fetchone()
            rules = text(dict(row or {}).get("permission"))
            return "it has rules of its own that allow" if '"allow"' in rules else ""

    @contextlib.contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection | None]:
        """Yield the database; None if there is none. Raises ``Unavailable``, also for its reads."""
        home = Path(self.environment.get("HOME", "/"), ".local", "share")
        path = Path(self.environment.get("XDG_DATA_HOME") or home, "opencode", "opencode.db")
        try:
            if not path.exists():
                yield None
                return
            if not path.is_file():  # a FIFO would block
                raise Unavailable(f"opencode's database {path} is no regular file")
            deadline = time.monotonic() + LIMIT_S
            with contextlib.closing(_connect(path)) as database:
                database.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
                yield database
        except (OSError, sqlite3.Error, UnicodeError) as error:
            raise Unavailable(f"opencode's database {path} cannot be read: {error}") from error


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode=ro", uri=True, timeout=1.0, isolation_level=None
    )
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    database.execute("PRAGMA trusted_schema = OFF")
    database.text_factory = lambda data: data.decode(errors="replace")
    return database


def _json(data: object) -> dict[str, Any]:
    try:
        return mapping(json.loads(text(data)))
    except (ValueError, RecursionError):
        return {}


def _spent(messages: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, AgentEvent]]:
    """Yield the tokens of messages by id as one usage; nothing if there are none.

    Not their cost: the program reports that of the whole conversation when it continues it.
    """
    requests = {id_: usage for id_, each in messages.items() if (usage := _usage(each))}
    if requests:
        yield f"usage/{[*requests][-1]}", found.summed([*requests.values()])


def _usage(message: Mapping[str, Any]) -> Usage | None:
    tokens = mapping(message.get("tokens"))
    fresh, output = count(tokens.get("input")), count(tokens.get("output"))
    if fresh is None or output is None:
        return None
    cache = mapping(tokens.get("cache"))
    cached = sum(count(cache.get(each)) or 0 for each in ("read", "write"))
    given = fresh + cached
    return Usage(
        input_tokens=given, cached_tokens=cached, output_tokens=output, context_tokens=given
    )


def _said(message: Mapping[str, Any], part: Mapping[str, Any]) -> list[AgentEvent]:
    said = text(part.get("text"))
    match name(message.get("role")), name(part.get("type")):
        case "user", "text" if said and part.get("synthetic") is not True:
            return [UserMessage(text=said, origin="takeover")]
        case "assistant", "text" if said:
            return [AssistantText(text=said)]
        case "assistant", "reasoning" if said:
            return [AssistantThinking(text=said)]
        case "assistant", "tool":
            return _call(part)
        case _:
            return []


def _call(part: Mapping[str, Any]) -> list[AgentEvent]:
    id_, state = name(part.get("callID")), mapping(part.get("state"))
    use = ToolUse(id=id_, name=name(part.get("tool")), input=mapping(state.get("input")))
    match name(state.get("status")):
        case "completed":
            return [use, ToolResult(id=id_, text=text(state.get("output")))]
        case "error":
            return [use, ToolResult(id=id_, text=text(state.get("error")), is_error=True)]
        case _:
            return [use]
