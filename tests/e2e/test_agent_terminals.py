"""Commands that an ACP agent has its client run, in sessions of a real daemon."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import DaemonProcess, is_alive
from tests.e2e.test_agents import STAND_IN, Team, agents_of, command_of, open_request
from tests.e2e.test_peer_identity import program
from tests.resources.waiting import until

pytestmark = pytest.mark.real

PERMISSIONS = ("read", "ask", "full")

ESCAPE = "(trap '' HUP TERM; env -i setsid sleep 1000 & echo $! > pid.new; mv pid.new pid); sleep 9"


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    profiles = {
        f"acp-{permission}": {
            "provider": "acp",
            "permission": permission,
            "command": [sys.executable, str(STAND_IN), "acp"],
            "asking_mode": "default",
            "env": {"A_KEY": "$HOME", "PLAIN": "plain"},
        }
        for permission in PERMISSIONS
    }
    yield Team(own_daemon, more=profiles)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def says(team: Team, handle: str, text: str) -> None:
    until(lambda: text in "\n".join(team.texts(handle)), f"{handle} says {text!r}")


def events(team: Team, handle: str, tag: str) -> list[dict[str, Any]]:
    found = [each["event"] for each in team.entries(handle, "event")]
    return [each for each in found if each["type"] == tag]


def names_in(node: dict[str, Any]) -> Iterator[str]:
    yield node["name"]
    for each in node.get("children", []):
        yield from names_in(each)


def test_a_command_is_asked_for_run_and_shown_after_its_release(team: Team) -> None:
    handle = team.spawn("TERM echo a; exit 3", profile="acp-ask")
    request = open_request(team)
    assert (request["handle"], request["tool"]) == (handle, "terminal/create")
    assert request["input"] == {"command": "echo a; exit 3"}
    team.call("request_answer", id=request["id"], digest=request["digest"], answer="allow")
    says(team, handle, "ended 3 None: a")
    (end,) = events(team, handle, "terminal_ended")
    assert (end["command"], end["output"], end["exit_code"]) == ("echo a; exit 3", "a\n", 3)
    (shown,) = [each for each in events(team, handle, "tool_progress") if each["terminal"]]
    assert shown["terminal"] == end["terminal"]
    read = team.daemon.cli("agent", "read", handle).stdout
    assert "$ echo a; exit 3\n" in read
    assert " a\n      [exit 3]\n" in read


def test_a_profile_that_only_reads_runs_nothing_and_nobody_is_asked(team: Team) -> None:
    handle = team.spawn("TERM touch made", profile="acp-read")
    says(team, handle, "not run: ")
    says(team, handle, "the permission of the profile 'read'")
    assert not (Path(team.daemon.root) / "made").exists()
    assert team.call("request_list")["requests"] == []


def test_a_command_has_the_environment_of_the_agent_without_its_keys(team: Team) -> None:
    handle = team.spawn('TERM echo "[$PLAIN][$A_KEY][${HOME:+home}]"', profile="acp-full")
    says(team, handle, "ended 0 None: [plain][][home]")


@pytest.mark.parametrize("escape", ["", "setsid --wait env -u AEGIS_TERMINAL "])
def test_a_command_acts_as_the_agent(team: Team, escape: str) -> None:
    handle = team.spawn(f"TERM {escape}{program(team.daemon, 'down')} 2>&1", profile="acp-full")
    says(team, handle, "for the operator only")


def test_a_hostile_agent_gets_an_error_for_each_bad_call_and_goes_on(team: Team) -> None:
    calls = [
        ("terminal/output", {"terminalId": "term_1_9"}, -32002, "there is no terminal 'term_1_9'"),
        ("terminal/release", {}, -32002, "there is no terminal"),
        ("terminal/create", {"command": ["ls"]}, -32602, "command must be a text"),
        ("terminal/create", {"command": "ls", "cwd": "/etc"}, -32602, "is outside"),
        ("terminal/create", {"command": "ls", "sessionId": "x"}, -32602, "sessionId is unknown"),
        ("terminal/open", {}, -32601, "Method not found"),
    ]
    orders = [f"CLIENT {method} {json.dumps(given)}" for method, given, *_ in calls]
    handle = team.spawn("\n".join(orders), profile="acp-full")
    team.has_outcomes(handle, "completed")
    for (_, _, code, words), text in zip(calls, team.texts(handle), strict=True):
        error = json.loads(text)
        assert error["code"] == code
        assert words in error["message"]


def test_a_terminal_is_in_the_tree_until_its_session_is_closed(team: Team) -> None:
    handle = team.spawn("OPEN echo begun; sleep 1000", profile="acp-full")
    says(team, handle, "opened term_1_1")
    assert "term_1_1" in set(names_in(team.call("tree")))
    listed = [{"id": "term_1_1", "command": "echo begun; sleep 1000"}]
    until(lambda: team.info(handle)["terminals"] == listed, "the terminal is listed")
    shown = team.daemon.cli("agent", "show", handle).stdout
    assert "term_1_1: echo begun; sleep 1000" in shown
    until(lambda: events(team, handle, "terminal_output") != [], "the output is shown")
    assert events(team, handle, "terminal_output")[0]["output"] == "begun\n"
    assert any("sleep 1000" in command_of(each) for each in agents_of(team.daemon))
    team.call("close", handle=handle)
    until(lambda: agents_of(team.daemon) == [], "no process is left")
    (end,) = events(team, handle, "terminal_ended")
    assert (end["output"], end["signal"]) == ("begun\n", "SIGKILL")
    assert team.info(handle)["terminals"] == []
    assert "term_1_1" not in set(names_in(team.call("tree")))


@pytest.mark.parametrize("victim", ["agent", "daemon"])
def test_no_process_of_a_terminal_outlives_the_agent_or_the_daemon(team: Team, victim: str) -> None:
    handle = team.spawn(f"OPEN {ESCAPE}\nHANG", profile="acp-full")
    says(team, handle, "opened")
    file = Path(team.daemon.root) / "pid"
    until(file.exists, "the process has left its session")
    pids = [int(file.read_text()), *agents_of(team.daemon)]
    assert all(is_alive(each) for each in pids)
    if victim == "agent":
        (agent,) = [
            each
            for each in pids
            if STAND_IN.name in command_of(each) and "guard.py" not in command_of(each)
        ]
        os.kill(agent, signal.SIGKILL)
    else:
        team.daemon.kill()
    until(lambda: not any(is_alive(each) for each in pids), "no process is left")
    if victim == "daemon":
        team.daemon.start("--port", "0", "--trust")
    team.has_outcomes(handle, "interrupted")
