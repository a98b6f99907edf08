"""Take-overs of codex, opencode and kimi, with stand-ins.

Those of Claude Code: tests/e2e/test_agent_takeovers.py.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import DaemonProcess, command_of
from tests.e2e.test_agent_takeovers import START, Shared
from tests.e2e.test_agents import STAND_IN, Team, agents_of

pytestmark = pytest.mark.real

GIVEN = {"codex": "read-only and 3 settings", "opencode": "600 ask", "kimi": "600"}
"""What each program is started with."""

UUIDS = "0000000{}-0000-4000-8000-000000000000"

kinds = pytest.mark.parametrize("kind", [*GIVEN])


@pytest.fixture
def shared(own_daemon: DaemonProcess) -> Iterator[Shared]:
    base = own_daemon.root.parent / own_daemon.root.name
    programs = Path(f"{base}.programs")
    programs.mkdir()
    codex = programs / "codex"
    codex.write_text(f'#!/bin/sh\nexec {sys.executable} {STAND_IN} "$@"\n')
    codex.chmod(0o755)
    log = Path(f"{base}.witness")
    path = f"{programs}:{own_daemon.environment['PATH']}"
    profiles: dict[str, dict[str, Any]] = {
        kind: {
            "provider": kind,
            "permission": "ask",
            "command": [sys.executable, str(STAND_IN), "acp"],
            "env": {
                "HOME": f"{base}.home",
                "AGENT_WITNESS": str(log),
                "PATH": path,
                "STAND_IN_IDS": "ses_{}" if kind == "opencode" else UUIDS,
                "STAND_IN_MODES": "default,build,read-only",
            },
        }
        for kind in (*GIVEN, "gemini", "claude-agent-acp")
    }
    for kind in GIVEN:
        ids = {"STAND_IN_IDS": "ses_b{}" if kind == "opencode" else f"b{UUIDS[1:]}"}
        profiles[f"{kind}-b"] = copy.deepcopy(profiles[kind])
        profiles[f"{kind}-b"]["env"] |= ids
    yield Shared(Team(own_daemon, more=profiles), log)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def spawn(shared: Shared, kind: str) -> str:
    handle = shared.team.spawn("SAY before", handle="ann", profile=kind)
    shared.team.has_outcomes(handle, "completed")
    return handle


@kinds
def test_a_person_takes_over_and_hands_back(shared: Shared, kind: str) -> None:
    team, handle = shared.team, spawn(shared, kind)
    before = team.info(handle)["conversation"]
    terminal = shared.take(handle)
    shared.shows(terminal, f"resumed {before} with {GIVEN[kind]}")
    commands = [command_of(pid) for pid in agents_of(team.daemon)]
    assert any(str(before) in each for each in commands)
    assert [each for each in commands if "/mcp/" in each] == []
    for pid in agents_of(team.daemon):
        assert "/mcp/" not in Path(f"/proc/{pid}/environ").read_text()
    shared.types(terminal, "hello", "heard hello")
    team.send(handle, "SAY later")
    shared.types(terminal, "/exit")
    team.has_outcomes(handle, "completed", "completed")
    assert [each["reason"] for each in team.entries(handle, "handed_back")] == [""]
    assert team.info(handle)["conversation"] == before
    assert shared.said(handle) == ["hello", "heard hello"]
    files = team.daemon.root / ".aegis" / "state" / "agents"
    assert [*files.glob("*/takeover.mcp.json"), *files.glob("*/takeover.sh")] == []


@kinds
def test_another_conversation_is_the_agents_from_then_on(shared: Shared, kind: str) -> None:
    team, handle = shared.team, spawn(shared, kind)
    before = team.info(handle)["conversation"]
    terminal = shared.take(handle)
    shared.types(terminal, "first", "heard first")
    shared.types(terminal, "/new", "is new")
    shared.types(terminal, "second", "heard second")
    info = team.call("agent_handback", handle=handle)
    assert info["taken_over"] is None
    assert info["conversation"] not in (None, before)
    assert shared.said(handle) == ["first", "heard first", "second", "heard second"]
    shared.take(handle)  # on the new one
    assert team.call("agent_handback", handle=handle)["conversation"] == info["conversation"]
    assert len(shared.said(handle)) == 4
    for number, seen in ((2, "2 texts"), (3, "1 texts")):  # the primer, once
        team.send(handle, "BLOCKS")
        team.has_turns(handle, number)
        assert team.texts(handle)[-1] == seen


@kinds
def test_it_does_not_end_in_the_conversation_of_another_session(shared: Shared, kind: str) -> None:
    team, handle = shared.team, spawn(shared, kind)
    before = team.info(handle)["conversation"]
    team.has_outcomes(team.spawn("SAY before", handle="bob", profile=f"{kind}-b"), "completed")
    others = team.info("bob")["conversation"]
    terminal, terminal_of_bob = shared.take(handle), shared.take("bob")
    shared.types(terminal, f"look at {others}", f"heard look at {others}")
    shared.types(terminal_of_bob, "mine", "heard mine")
    assert team.call("agent_handback", handle=handle)["conversation"] == before
    said = [f"look at {others}", f"heard look at {others}"]
    assert shared.said(handle) == said
    terminal = shared.take(handle)
    shared.types(terminal, f"/open {others}", "is open")
    shared.types(terminal, "hello bob", "heard hello bob")
    assert team.call("agent_handback", handle=handle)["conversation"] == before
    assert shared.said(handle) == said
    reasons = [each["reason"] for each in team.entries(handle, "handed_back")]
    left_out = f"the conversation {others} is that of the session 'bob'"
    assert reasons[0] == ""
    assert left_out in reasons[1] or (kind, reasons[1]) == ("codex", "")


@pytest.mark.parametrize("kind", ["codex", "opencode"])
def test_the_tokens_of_a_take_over_count(shared: Shared, kind: str) -> None:
    team, handle = shared.team, spawn(shared, kind)
    before = shared.tokens(handle)
    for text in ("one", "two"):
        shared.types(shared.take(handle), text, f"heard {text}")
        team.call("agent_handback", handle=handle)
    terminal = shared.take(handle)
    shared.types(terminal, "/new", "is new")
    shared.types(terminal, "three", "heard three")
    team.call("agent_handback", handle=handle)
    spent = zip(shared.tokens(handle), before, strict=True)
    assert [now - then for now, then in spent] == [360, 60, 27]


@kinds
def test_a_kill_of_the_daemon_loses_nothing_silently(shared: Shared, kind: str) -> None:
    team, handle = shared.team, spawn(shared, kind)
    before = team.info(handle)["conversation"]
    terminal = shared.take(handle)
    shared.types(terminal, "hello", "heard hello")
    shared.types(terminal, "/new", "is new")
    shared.types(terminal, "second", "heard second")
    team.daemon.kill()
    team.daemon.start(*START)
    shared.is_handed_back(handle)
    [back] = team.entries(handle, "handed_back")
    if kind == "codex":
        assert shared.said(handle) == ["hello", "heard hello", "second", "heard second"]
        assert team.info(handle)["conversation"] != before
        assert back["reason"] == ""
    else:
        assert shared.said(handle) == ["hello", "heard hello"]
        assert team.info(handle)["conversation"] == before
        assert "was used meanwhile: if that was in the take-over" in back["reason"]


def test_what_cannot_be_taken_over_is_one_sentence(shared: Shared) -> None:
    team = shared.team
    handle = spawn(shared, "gemini")
    refusal = str(team.daemon.refusal("agent_takeover", handle=handle))
    assert "a conversation of gemini cannot continue in its own terminal interface" in refusal
    assert team.info(handle)["state"] == "idle"
    team.spawn("SAY before", handle="bob", profile="claude-agent-acp")
    team.has_outcomes("bob", "completed")
    refusal = str(team.daemon.refusal("agent_takeover", handle="bob"))
    assert "the program 'claude' with the own interface of claude-agent-acp is not in" in refusal
