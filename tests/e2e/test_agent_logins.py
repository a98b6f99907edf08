"""An agent that needs a login, in a session of a real daemon: a request, a terminal, a new try."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, open_request
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    own_daemon.variables = {"STAND_IN_LOGIN": str(Path(own_daemon.root) / "logged-in")}
    yield Team(own_daemon)
    own_daemon.stop()


def answer(team: Team, request: dict[str, Any], word: str) -> dict[str, Any]:
    named = {"id": request["id"], "digest": request["digest"]}
    return team.call("request_answer", **named, answer=word)


def blocked_by_login(team: Team, profile: str = "asks") -> tuple[str, dict[str, Any]]:
    handle = team.spawn("SAY hello", profile=profile)
    team.has_outcomes(handle, "failed")
    team.is_in(handle, "blocked")
    request = open_request(team)
    assert (request["kind"], request["handle"]) == ("login", handle)
    assert team.info(handle)["blocked"]["kind"] == "auth"
    assert "no valid login" in team.info(handle)["reason"]
    return handle, request


@pytest.mark.long
def test_an_approved_login_runs_in_a_terminal_and_then_the_agent_is_started_again(
    team: Team,
) -> None:
    handle, request = blocked_by_login(team)
    terminal = f"login-{handle}"
    command = f"{sys.executable} {STAND_IN} claude auth login"
    assert request["input"] == {"command": command, "terminal": terminal}
    assert answer(team, request, "allow")["outcome"] == "applied"
    until(lambda: "code:" in screen(team, terminal), "the login asks")
    assert team.info(handle)["state"] == "error"
    team.call("term_keys", name=terminal, keys="1234\r")
    team.is_in(handle, "idle")
    team.send(handle, "SAY it works")
    until(lambda: "it works" in team.texts(handle), "the agent answers")
    assert team.call("request_list")["requests"] == []


@pytest.mark.long
def test_a_login_has_the_variables_of_the_profile_and_shows_no_value_of_the_daemons(
    own_daemon: DaemonProcess,
) -> None:
    """They say where the agent keeps its account: without them the login is another one's."""
    place = str(own_daemon.root / "work account")
    own_daemon.variables = {"WORK_ACCOUNT": place}
    profile = {
        "provider": "claude",
        "command": [sys.executable, str(STAND_IN), "claude"],
        "env": {"STAND_IN_LOGIN": "$WORK_ACCOUNT", "CLAUDE_CONFIG_DIR": "/srv/an account"},
    }
    team = Team(own_daemon, more={"work": profile})
    handle, request = blocked_by_login(team, "work")
    command = f"{sys.executable} {STAND_IN} claude auth login"
    variables = """CLAUDE_CONFIG_DIR='/srv/an account' STAND_IN_LOGIN="$WORK_ACCOUNT" """
    assert request["input"]["command"] == variables + command
    answer(team, request, "allow")
    terminal = f"login-{handle}"
    until(lambda: "code:" in screen(team, terminal), "the login asks")
    team.call("term_keys", name=terminal, keys="1234\r")
    team.is_in(handle, "idle")
    assert (own_daemon.root / "work account").exists()
    own_daemon.stop()


@pytest.mark.long
def test_a_login_that_failed_is_asked_for_again(team: Team) -> None:
    handle, request = blocked_by_login(team)
    answer(team, request, "allow")
    terminal = f"login-{handle}"
    until(lambda: "code:" in screen(team, terminal), "the login asks")
    team.call("term_keys", name=terminal, keys="wrong\r")
    team.is_in(handle, "idle")
    team.send(handle, "SAY hello")
    team.is_in(handle, "blocked")
    assert open_request(team)["id"] != request["id"]


@pytest.mark.long
def test_a_message_tries_again_and_withdraws_the_request(team: Team) -> None:
    handle, request = blocked_by_login(team)
    (Path(team.daemon.root) / "logged-in").touch()
    team.send(handle, "SAY it works")
    until(lambda: "it works" in team.texts(handle), "the agent answers")
    assert answer(team, request, "allow")["outcome"] == "withdrawn"


@pytest.mark.long
def test_a_refused_login_leaves_the_session_in_error(team: Team) -> None:
    handle, request = blocked_by_login(team)
    assert answer(team, request, "deny")["outcome"] == "applied"
    team.is_in(handle, "error")
    assert team.call("term_list")["result"] == []


def screen(team: Team, terminal: str) -> str:
    listed = [each["name"] for each in team.call("term_list")["result"]]
    return str(team.call("term_screen", name=terminal)) if terminal in listed else ""


def acp_with(**variables: object) -> dict[str, Any]:
    given = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in variables.items()
    }
    return {
        "provider": "acp",
        "permission": "ask",
        "asking_mode": "default",
        "command": [sys.executable, str(STAND_IN), "acp"],
        "env": given,
    }


ONE = [{"id": "cached_token", "name": "Cached token"}]
TWO = [*ONE, {"id": "oauth", "name": "Log in with browser"}]


def test_the_only_method_of_an_acp_agent_is_used_without_asking(own_daemon: DaemonProcess) -> None:
    team = Team(own_daemon, more={"one": acp_with(STAND_IN_LOGINS=ONE)})
    handle = team.spawn("LOGIN", profile="one")
    team.has_outcomes(handle, "completed")
    assert team.texts(handle) == ["logged in by cached_token"]
    assert team.call("request_list", state="all")["requests"] == []


def test_a_person_chooses_between_several_methods(own_daemon: DaemonProcess) -> None:
    team, handle = Team(own_daemon, more={"two": acp_with(STAND_IN_LOGINS=TWO)}), "ann"
    words = ("agent", "launch", "two", "LOGIN", "--handle", handle, "--wait", "--timeout", "30")
    waited = own_daemon.cli(*words)
    assert (waited.returncode, "ann needs you: log in" in waited.stderr) == (3, True), waited.stderr
    request = open_request(team)
    assert (request["kind"], "'oauth' (Log in with browser)" in request["reason"]) == (
        "login",
        True,
    )
    shown = own_daemon.cli("request", "show", request["id"])
    assert f"request answer {request['id']} allow --set method=VALUE" in shown.stderr
    wrong = own_daemon.cli("request", "answer", request["id"], "allow", "--set", "method=x")
    assert (wrong.returncode != 0, "oauth" in wrong.stderr) == (True, True)
    done = own_daemon.cli("request", "answer", request["id"], "allow", "--set", "method=oauth")
    assert done.returncode == 0, done.stderr
    team.has_outcomes(handle, "completed")
    assert team.texts(handle) == ["logged in by oauth"]


def test_a_task_is_tried_again_later_when_the_login_of_its_worker_is_refused(
    own_daemon: DaemonProcess,
) -> None:
    settings = {
        "agents": {"two": acp_with(STAND_IN_LOGINS=TWO)},
        "queues": {"build": {"agent": "two"}},
    }
    (own_daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(settings))
    own_daemon.start("--port", "0", "--trust")
    task = own_daemon.call("enqueue", queue="build", payload="LOGIN")["task_id"]
    until(lambda: own_daemon.call("request_list")["requests"] != [], "a login is needed")
    assert own_daemon.call("task_status", task_id=task)["status"] == "running"
    [request] = own_daemon.call("request_list")["requests"]
    assert own_daemon.cli("request", "answer", request["id"], "deny").returncode == 0
    until(
        lambda: own_daemon.call("task_status", task_id=task)["status"] == "waiting",
        "the worker is given up",
    )
    assert "needs a login" in own_daemon.call("task_status", task_id=task)["error"]
    assert "✗ the login was refused" in own_daemon.cli("agent", "read", request["handle"]).stdout


class Patient(DaemonProcess):
    """A daemon that takes no pause below a second for the end of what an agent repeats.

    The stand-in pauses for a tenth, or for longer on a busy machine.
    """

    patch = "from aegis.agents.drivers import driver; driver.REPLAY_S = 1.0"


@pytest.mark.long
def test_what_an_agent_repeats_after_it_has_loaded_its_conversation_is_no_news(
    tmp_path: Path,
) -> None:
    daemon = Patient(tmp_path)
    try:
        what_is_repeated_is_no_news(Team(daemon, more={"late": acp_with(STAND_IN_LOADS="late")}))
    finally:
        code = daemon.stop()
    assert code == 0


def what_is_repeated_is_no_news(team: Team) -> None:
    handle = team.spawn("SAY one", profile="late")
    team.has_outcomes(handle, "completed")
    team.daemon.stop()
    team.daemon.start("--port", "0", "--trust")
    team.send(handle, "SAY two")
    team.has_outcomes(handle, "completed", "completed")
    assert team.texts(handle) == ["one", "two"]
    events = [each["event"]["type"] for each in team.entries(handle, "event")]
    assert "user_message" not in events
    team.call("agent_restart", handle=handle)
    until(lambda: len(team.entries(handle, "started")) == 3, "it is started again")
    team.send(handle, "SAY three")
    team.has_turns(handle, 3)
    assert team.texts(handle) == ["one", "two", "three"]
