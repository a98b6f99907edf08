"""Conversations that began in the own programs of agents: lists of their files, also odd ones.

Those of Claude Code: tests/e2e/test_agent_takeovers.py. The real programs:
tests/agents_real/test_elsewhere.py.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from hashlib import md5
from pathlib import Path
from typing import Any

import attrs
import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team
from tests.resources.waiting import until

pytestmark = pytest.mark.real

KINDS = ("codex", "opencode", "kimi", "claude-agent-acp")
EVIL = "\x1b[2J first\n words\x07"
PRIMER = (
    "You are the agent 'ann' in a group …\nline `> from SENDER`. > from human · 2026-11-28T22\n"
)


@attrs.frozen
class Outside:
    """A team with a profile of each kind, and the home of the agents' own programs."""

    team: Team
    home: Path

    def listed(self, kind: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.reply(kind)["result"]
        return found

    def reply(self, kind: str) -> dict[str, Any]:
        return self.team.call("agent_conversations", profile=f"own-{kind}")

    def refusal(self, kind: str, id_: str, **arguments: object) -> str:
        arguments = {"profile": f"own-{kind}", "conversation": id_, **arguments}
        return str(self.team.daemon.refusal("agent_continue", **arguments))

    def write(self, kind: str, number: int, words: str, cwd: str = "") -> str:
        """Write a conversation; return its id."""
        cwd = cwd or str(self.team.daemon.root)
        id_ = f"0000000{number}-0000-4000-8000-000000000000"
        id_ = f"ses_{number}" if kind == "opencode" else id_
        WRITERS[kind](self.home, id_, cwd, words)
        return id_


def of_codex(home: Path, id_: str, cwd: str, words: str) -> None:
    directory = home / ".codex/sessions/2026/11/28"
    meta = {"cwd": cwd, "source": "cli", "git": {"branch": "b"}}
    message = {"type": "UserMessage", "content": [{"type": "text", "text": words}]}
    lines = [
        {"type": "session_meta", "payload": meta},
        {"type": "event_msg", "payload": {"type": "item_completed", "item": message}},
    ]
    append(directory / f"rollout-2026-11-28T22-52-57-{id_}.jsonl", lines)


def of_kimi(home: Path, id_: str, cwd: str, words: str) -> None:
    lines = [{"role": "_system_prompt", "content": "x"}, {"role": "user", "content": words}]
    append(kimi_directory(home, cwd) / id_ / "context.jsonl", lines)


def kimi_directory(home: Path, cwd: str) -> Path:
    return home / ".kimi/sessions" / md5(cwd.encode(), usedforsecurity=False).hexdigest()


def of_claude(home: Path, id_: str, cwd: str, words: str) -> None:
    name = "".join(each if each.isalnum() else "-" for each in cwd)
    message = {"role": "user", "content": words}
    line = {"type": "user", "message": message, "uuid": "u", "cwd": cwd}
    append(home / ".claude/projects" / name / f"{id_}.jsonl", [line])


def append(file: Path, lines: list[dict[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join([*map(json.dumps, lines), "no json"]))


def of_opencode(home: Path, id_: str, cwd: str, words: str) -> None:
    file = home / ".local/share/opencode/opencode.db"
    file.parent.mkdir(parents=True, exist_ok=True)
    at = 1_795_906_000_000 + int(id_.removeprefix("ses_"))
    user, text = json.dumps({"role": "user"}), json.dumps({"type": "text", "text": words})
    with closing(sqlite3.connect(file)) as database, database:
        for table, columns in TABLES.items():
            database.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        database.execute(
            "INSERT INTO session VALUES (?, ?, NULL, NULL, ?, NULL, ?)", (id_, cwd, at, at)
        )
        database.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (f"m{id_}", id_, at, user))
        for place, data in enumerate((text, "no json")):
            database.execute(
                "INSERT INTO part VALUES (?, ?, ?)", (f"p{place}{id_}", f"m{id_}", data)
            )


TABLES = {
    "session": "id, directory, parent_id, time_archived, time_updated, permission, time_created",
    "message": "id, session_id, time_created, data",
    "part": "id, message_id, data",
}

WRITERS: dict[str, Callable[[Path, str, str, str], None]] = {
    "codex": of_codex,
    "opencode": of_opencode,
    "kimi": of_kimi,
    "claude-agent-acp": of_claude,
}


@pytest.fixture
def outside(own_daemon: DaemonProcess) -> Iterator[Outside]:
    home = own_daemon.root.parent / f"{own_daemon.root.name}.home"
    profiles = {
        f"own-{kind}": {
            "provider": kind,
            "command": [sys.executable, str(STAND_IN), "acp"],
            "env": {"HOME": str(home)},
        }
        for kind in (*KINDS, "gemini")
    }
    yield Outside(Team(own_daemon, more=profiles), home)
    own_daemon.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_those_of_the_directory_are_listed_with_their_first_words(
    outside: Outside, kind: str
) -> None:
    assert outside.listed(kind) == []
    outside.write(kind, 1, "elsewhere", "/another/directory")
    old, new = outside.write(kind, 2, EVIL), outside.write(kind, 3, f"{PRIMER}own words")
    found = {each["id"]: each for each in outside.listed(kind)}
    assert {*found} == {old, new}
    assert found[old]["begins"] == "\x1b[2J first words\x07"
    assert found[new]["begins"] == "own words"
    assert found[old]["at"].startswith("20")
    assert [each["holder"] for each in found.values()] == ["", ""]
    shown = outside.team.daemon.cli("agent", "conversations", "--profile", f"own-{kind}")
    assert (shown.returncode, "\x1b" in shown.stdout) == (0, False)
    is_seen = kind in ("codex", "claude-agent-acp")
    assert ("does not show whether another" in outside.reply(kind).get("notice", "")) != is_seen
    assert ("does not show whether another" in shown.stderr) != is_seen
    for id_ in ("../../x", "00000009-0000-4000-8000-000000000000", "ses_9", "'; --", "*"):
        assert "has no conversation" in outside.refusal(kind, id_)


def test_a_locked_conversation_of_codex_names_its_process(outside: Outside) -> None:
    id_ = outside.write("codex", 1, "open")
    lock = outside.home / ".codex/thread-writer-locks" / f"{id_}.lock"
    lock.parent.mkdir()
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        [found] = outside.listed("codex")
        assert found["holder"] == f"process {os.getpid()}"
        assert f"is open in process {os.getpid()}: end that" in outside.refusal("codex", id_)
    [found] = outside.listed("codex")
    assert found["holder"] == ""


def test_one_of_kimi_continues_and_what_it_cannot_is_refused(outside: Outside) -> None:
    id_ = outside.write("kimi", 1, "words")
    assert "kimi cannot copy a conversation" in outside.refusal("kimi", id_, fork=True)
    other = outside.write("kimi", 2, "words", "/another/directory")
    assert "has no conversation" in outside.refusal("kimi", other)
    team = outside.team
    team.call("agent_continue", profile="own-kimi", conversation=id_, handle="ann", prompt="SAY on")
    team.has_outcomes("ann", "completed")
    assert team.info("ann")["conversation"] == id_
    [found] = outside.listed("kimi")
    assert found["holder"] == "session ann"
    team.call("close", handle="ann")
    refusal = team.daemon.refusal("agent_conversations", profile="own-gemini")
    assert "the files of gemini are not read" in str(refusal)


def test_one_is_continued_by_one_session_also_before_its_agent_was_started(
    outside: Outside,
) -> None:
    id_ = outside.write("kimi", 1, "words")
    team = outside.team

    def go_on(handle: str) -> str:
        try:
            team.call("agent_continue", profile="own-kimi", conversation=id_, handle=handle)
        except CommandFailed as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(4) as threads:
        refusals = [*threads.map(go_on, ("ann", "bob", "cat", "dan"))]
    [owner] = [each["handle"] for each in team.call("list_sessions")["result"]]
    assert refusals.count("") == 1
    assert all(f"is that of the session {owner!r}" in each for each in refusals if each)
    for _ in range(2):
        assert team.info(owner)["conversation"] is None
        assert f"is that of the session {owner!r}" in outside.refusal("kimi", id_)
        assert outside.listed("kimi")[0]["holder"] == f"session {owner}"
        team.daemon.kill()
        team.daemon.start("--port", "0", "--trust")
    team.call("close", handle=owner)
    assert go_on("eve") == ""


def test_one_that_another_session_continued_is_not_continued_by_one_that_is_resumed(
    outside: Outside,
) -> None:
    id_ = outside.write("kimi", 1, "words")
    team = outside.team
    for handle in ("ann", "bob"):
        team.call(
            "agent_continue", profile="own-kimi", conversation=id_, handle=handle, prompt="SAY on"
        )
        team.has_outcomes(handle, "completed")
        team.call("close", handle=handle)
    team.call("agent_resume", handle="bob")
    team.is_in("bob", "idle")
    team.call("agent_resume", handle="ann", prompt="SAY later")
    team.is_in("ann", "error")
    assert "its conversation is that of the session 'bob': close" in team.info("ann")["reason"]
    team.call("agent_restart", handle="bob")
    team.is_in("bob", "idle")
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    team.is_in("ann", "error")
    team.call("close", handle="bob")
    team.call("agent_restart", handle="ann")
    team.has_outcomes("ann", "completed", "completed")
    assert team.info("ann")["conversation"] == id_


def test_one_in_which_the_agent_would_ask_nobody_is_refused(outside: Outside) -> None:
    id_ = outside.write("kimi", 1, "words")
    state = kimi_directory(outside.home, str(outside.team.daemon.root)) / id_ / "state.json"
    state.write_text(json.dumps({"approval": {"yolo": False, "afk": True}}))
    assert "without asking, for /afk was entered in it" in outside.refusal("kimi", id_)
    state.write_text(json.dumps({"approval": {"yolo": False}}))
    team = outside.team
    team.call("agent_continue", profile="own-kimi", conversation=id_, handle="ann", prompt="SAY on")
    team.has_outcomes("ann", "completed")
    state.write_text(json.dumps({"approval": {"yolo": True}}))
    team.call("agent_restart", handle="ann")
    team.is_in("ann", "error")
    assert "without asking, for /yolo was entered in it" in team.info("ann")["reason"]
    team.send("ann", "SAY later")
    taken = team.call("agent_takeover", handle="ann")  # where a person sees it, and can end it
    team.call("agent_handback", handle="ann")
    until(lambda: team.info("ann")["taken_over"] is None, "it is handed back")
    team.is_in("ann", "error")
    assert taken["handle"] == "ann"
    state.unlink()
    team.call("agent_restart", handle="ann")
    team.has_outcomes("ann", "completed", "completed")
    team.call("close", handle="ann")
    id_ = outside.write("opencode", 1, "words")
    database = outside.home / ".local/share/opencode/opencode.db"
    with closing(sqlite3.connect(database)) as opened, opened:
        rules = '[{"permission":"bash","action":"allow","pattern":"*"}]'
        opened.execute("UPDATE session SET permission = ?", (rules,))
    assert "rules of its own that allow" in outside.refusal("opencode", id_)


def odd_files(directory: Path, name: str) -> None:
    """Write files that no agent has written, in the place of conversations."""
    directory.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate((b"\xff\0\n" * 1000, b"[" * 200_000, b'{"payload": 1}\n')):
        file = directory / name.format(f"1000000{number}-0000-4000-8000-000000000000")
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    for number, target in enumerate(("/dev/zero", "/etc/shadow", "itself", "/proc/self/mem"), 4):
        file = directory / name.format(f"1000000{number}-0000-4000-8000-000000000000")
        file.parent.mkdir(exist_ok=True)
        file.symlink_to(file if target == "itself" else target)
    fifo = directory / name.format("10000009-0000-4000-8000-000000000000")
    fifo.parent.mkdir(exist_ok=True)
    os.mkfifo(fifo)
    folder = directory / name.format("20000000-0000-4000-8000-000000000000")
    folder.mkdir(parents=True)
    huge = directory / name.format("20000001-0000-4000-8000-000000000000")
    huge.parent.mkdir(exist_ok=True)
    huge.touch()
    os.truncate(huge, 1 << 40)


@pytest.mark.parametrize("kind", ["codex", "kimi", "claude-agent-acp"])
def test_odd_files_are_left_out(outside: Outside, kind: str) -> None:
    id_ = outside.write(kind, 1, "words")
    root = str(outside.team.daemon.root)
    place = "".join(each if each.isalnum() else "-" for each in root)
    directory, name = {
        "codex": (outside.home / ".codex/sessions/2026/11/28", "rollout-x-{}.jsonl"),
        "kimi": (kimi_directory(outside.home, root), "{}/context.jsonl"),
        "claude-agent-acp": (outside.home / ".claude/projects" / place, "{}.jsonl"),
    }[kind]
    odd_files(directory, name)
    began = time.monotonic()
    assert [each["id"] for each in outside.listed(kind)] == [id_]
    assert time.monotonic() < began + 30


def test_a_database_that_cannot_be_read_is_named(outside: Outside) -> None:
    file = outside.home / ".local/share/opencode/opencode.db"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"SQLite format 3\0" + b"\xff" * 8192)

    def refusal() -> str:
        return str(outside.team.daemon.refusal("agent_conversations", profile="own-opencode"))

    assert f"opencode's database {file} cannot be read" in refusal()
    assert "cannot be read" in outside.refusal("opencode", "ses_1")
    file.unlink()
    os.mkfifo(file)
    assert f"opencode's database {file} is no regular file" in refusal()
    file.unlink()
    outside.write("opencode", 1, "words")
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        assert "cannot be read: database is locked" in refusal()
        database.execute("ROLLBACK")
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE part SET data = ?", ("x" * (16 << 20),))
    assert "cannot be read" in refusal()
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DROP TABLE part")
    assert "no such table: part" in refusal()
