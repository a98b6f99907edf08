"""Conversations that continue: of a closed session, and as a fork in a new one."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess, command_of
from tests.e2e.test_agents import Team, agents_of
from tests.resources.waiting import until

pytestmark = pytest.mark.real

FIRST = "00000000-0000-4000-8000-000000000001"
COPY = "00000000-0000-4000-8000-000000000002"


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def arguments(team: Team, handle: str, turns: int) -> list[str]:
    """The arguments of the agent's program, as it sees them in its next turn."""
    team.send(handle, "ENVIRON")
    team.has_turns(handle, turns)
    shown: dict[str, Any] = json.loads(team.texts(handle)[-1])
    return [each for each in shown["argv"] if each.startswith(("--resume", "--fork"))]


@pytest.mark.parametrize("by", ["handle", "id"])
def test_a_closed_session_continues_its_conversation_under_its_handle(team: Team, by: str) -> None:
    handle = team.spawn("SAY before")
    team.has_outcomes(handle, "completed")
    before = team.info(handle)
    team.call("close", handle=handle)
    resumed = team.call("agent_resume", handle=before[by], prompt="SAY after")
    assert (resumed["id"], resumed["handle"]) == (before["id"], handle)
    team.has_outcomes(handle, "completed", "completed")
    assert team.texts(handle) == ["before", "after"]
    assert arguments(team, handle, 3) == [f"--resume={FIRST}"]
    kinds = [each["kind"] for each in team.call("session_read", handle=handle)["result"]]
    assert kinds.index("closed") < kinds.index("reopened")
    team.call("close", handle=handle)
    assert team.info(handle)["state"] == "closed"


def test_a_message_that_waited_at_the_close_is_the_first_turn_when_it_continues(
    team: Team,
) -> None:
    handle = team.spawn("SAY before\nHANG")
    until(lambda: team.texts(handle) == ["before"], "it works")
    team.send(handle, "SAY it waited")
    until(lambda: team.info(handle)["waiting"] == 1, "the message waits")
    team.call("close", handle=handle)
    with pytest.raises(CommandFailed, match="is closed and reads no messages"):
        team.send(handle, "SAY too late")
    done = team.daemon.cli("agent", "launch", "--resume", handle)
    assert (done.returncode, done.stdout) == (0, f"{handle}\n")
    until(lambda: team.texts(handle) == ["before", "it waited"], "the message has its turn")


def test_a_session_that_continues_survives_a_kill_of_the_daemon(team: Team) -> None:
    handle = team.spawn("SAY before")
    team.has_outcomes(handle, "completed")
    team.call("close", handle=handle)
    team.call("agent_resume", handle=handle)
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    assert team.info(handle)["state"] == "dormant"
    team.send(handle, "SAY after")
    until(lambda: team.texts(handle) == ["before", "after"], "it works")
    team.call("close", handle=handle)
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    assert team.info(handle)["state"] == "closed"


def test_a_dormant_or_idle_session_is_only_started(team: Team) -> None:
    handle = team.spawn()
    team.call("agent_resume", handle=handle)
    team.is_in(handle, "idle")
    team.call("agent_resume", handle=handle, prompt="SAY once")
    team.has_outcomes(handle, "completed")
    kinds = [each["kind"] for each in team.call("session_read", handle=handle)["result"]]
    assert "reopened" not in kinds


def test_a_fork_has_a_copy_of_the_conversation_and_later_its_own(team: Team) -> None:
    parent = team.spawn("SAY one", profile="writes")
    team.has_outcomes(parent, "completed")
    team.call("agent_set", handle=parent, budget_usd=5)
    done = team.daemon.cli("agent", "fork", parent, "SAY two", "--handle", "copy")
    assert (done.returncode, done.stdout) == (0, "copy\n")
    team.has_outcomes("copy", "completed")
    assert team.info("copy")["conversation"] == COPY
    assert arguments(team, "copy", 2) == [f"--resume={FIRST}", "--fork-session"]
    [forked] = team.entries("copy", "forked")
    assert forked["session"] == team.info(parent)["id"]
    assert (team.info("copy")["profile"], team.info("copy")["spawned_by"]) == ("writes", "human")
    [program] = [
        pid
        for pid in agents_of(team.daemon)
        if "--fork-session" in command_of(pid).split() and "guard.py" not in command_of(pid)
    ]
    os.kill(program, signal.SIGKILL)
    team.is_in("copy", "dormant")
    assert arguments(team, "copy", 3) == [f"--resume={COPY}"]
    assert team.texts(parent) == ["one"]
    assert team.info(parent)["conversation"] == FIRST


def test_what_cannot_be_forked_is_refused_in_one_sentence(team: Team) -> None:
    fresh = team.spawn()
    assert "has no conversation yet" in str(team.daemon.refusal("agent_fork", handle=fresh))
    team.call("close", handle=fresh)
    assert "resume it first" in str(team.daemon.refusal("agent_fork", handle=fresh))


def test_the_limit_of_sessions_holds_for_one_that_continues(own_daemon: DaemonProcess) -> None:
    team = Team(own_daemon, limits={"sessions": 1})
    handle = team.spawn()
    team.call("close", handle=handle)
    team.spawn()
    assert "limits.sessions" in str(own_daemon.refusal("agent_resume", handle=handle))
    assert team.info(handle)["state"] == "closed"
    own_daemon.stop()


def test_a_session_that_is_closed_reaches_no_other(team: Team) -> None:
    eve, bob = team.spawn(handle="eve"), team.spawn(handle="bob")
    team.call("close", handle=eve)
    for command, arguments in (
        ("interrupt", {"handle": bob}),
        ("close", {"handle": bob}),
        ("session_read", {"handle": bob}),
        ("spawn", {}),
    ):
        refusal = team.daemon.refusal(command, **arguments, from_handle=eve)
        assert refusal.code == "forbidden", command
