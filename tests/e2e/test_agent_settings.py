"""Changes of sessions by a person: settings, ``up --resume-agents``, deleted workspaces."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, open_request
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()


def ask(team: Team, handle: str, text: str) -> None:
    """Send as a person, from whom each session takes messages."""
    team.call("handoff", target_handle=handle, context=text)


def test_a_permission_holds_for_the_agents_calls_and_requests_from_now_on(team: Team) -> None:
    handle = team.spawn("SAY ready", profile="asks")
    team.has_outcomes(handle, "completed")
    ask(team, handle, "ASK rm x")
    request = open_request(team)
    team.call("request_answer", id=request["id"], digest=request["digest"], answer="allow")
    team.has_turns(handle, 2)
    team.call("agent_set", handle=handle, permission="full")
    ask(team, handle, "ASK rm x")
    team.has_turns(handle, 3)
    assert len(team.entries(handle, "decided")) == 1


def test_a_refused_change_changes_nothing(team: Team) -> None:
    handle = team.spawn("SAY ready", profile="asks")
    team.has_outcomes(handle, "completed")
    with pytest.raises(CommandFailed, match="nothing is changed"):
        team.call("agent_set", handle=handle, model="none", permission="write")
    team.daemon.stop()
    team.daemon.start("--port", "0", "--trust")
    ask(team, handle, "ASK rm x")
    open_request(team)  # the permission is the profile's again


def test_a_change_is_kept_over_a_restart(team: Team) -> None:
    handle = team.spawn("SAY ready", profile="asks")
    team.has_outcomes(handle, "completed")
    team.call("agent_set", handle=handle, permission="full", model="small")
    team.daemon.stop()
    team.daemon.start("--port", "0", "--trust")
    ask(team, handle, "ASK rm x")
    team.has_turns(handle, 2)
    assert len(team.entries(handle, "decided")) == 1
    ask(team, handle, "ENVIRON")
    team.has_turns(handle, 3)
    assert "small" in team.texts(handle)[-1]


def test_only_an_open_session_is_changed(team: Team) -> None:
    handle = team.spawn("SAY ready", profile="asks")
    with pytest.raises(CommandFailed, match="no agent 'nobody'"):
        team.call("agent_set", handle="nobody", permission="full")
    team.call("close", handle=handle)
    with pytest.raises(CommandFailed, match="is closed"):
        team.call("agent_set", handle=handle, permission="full")


def test_a_session_goes_on_once_its_spent_budget_is_raised(own_daemon: DaemonProcess) -> None:
    command = [sys.executable, str(STAND_IN), "claude"]
    profile = {"provider": "claude", "command": command, "budget_usd": 0.02}
    team = Team(own_daemon, more={"poor": profile})
    handle = team.spawn("SAY one", profile="poor")
    team.has_outcomes(handle, "completed")
    ask(team, handle, "SAY two")
    team.has_outcomes(handle, "completed", "completed")
    ask(team, handle, "SAY three")
    team.is_in(handle, "blocked")
    assert "agent set --budget" in team.info(handle)["blocked"]["title"]
    raised = own_daemon.cli("agent", "set", handle, "--budget", "1", "--permission", "write")
    assert raised.returncode == 0, raised.stderr
    team.has_outcomes(handle, *["completed"] * 3)
    assert team.texts(handle) == ["one", "two", "three"]
    assert len(team.entries(handle, "started")) == 2
    assert team.entries(handle, "started")[1]["conversation"] is not None
    ask(team, handle, "ENVIRON")
    team.has_turns(handle, 4)
    assert "--max-budget-usd=1.0000" in team.texts(handle)[-1]


def test_a_raise_during_a_turn_interrupts_nothing(own_daemon: DaemonProcess) -> None:
    command = [sys.executable, str(STAND_IN), "claude"]
    profile = {"provider": "claude", "command": command, "budget_usd": 0.02}
    team = Team(own_daemon, more={"poor": profile})
    handle = team.spawn("ASK x\nSAY one", profile="poor")
    request = open_request(team)
    team.call("agent_set", handle=handle, budget_usd=2)
    team.call("request_answer", id=request["id"], digest=request["digest"], answer="allow")
    team.has_outcomes(handle, "completed")
    until(lambda: len(team.entries(handle, "started")) == 2, "it is started with the new budget")
    team.is_in(handle, "idle")


def test_the_verb_shows_the_session(team: Team) -> None:
    handle = team.spawn("SAY ready", profile="asks")
    team.has_outcomes(handle, "completed")
    done = team.daemon.cli("agent", "set", handle, "--permission", "write", "--budget", "2.5")
    assert done.returncode == 0, done.stderr
    assert handle in done.stdout
    shown = team.daemon.cli("agent", "show", handle).stdout
    lines = [line.split() for line in shown.splitlines()]
    assert ["permission", "write"] in lines
    assert ["budget", "2.5", "USD"] in lines
    wrong = team.daemon.cli("agent", "set", handle, "--permission", "root")
    assert wrong.returncode == 2
    assert "root" in wrong.stderr


def test_up_resumes_the_agents_of_all_open_sessions(team: Team) -> None:
    first, second = (team.spawn("SAY ready", profile="asks") for _ in range(2))
    for handle in (first, second):
        team.has_outcomes(handle, "completed")
    team.daemon.stop()
    team.daemon.start("--port", "0", "--trust", "--resume-agents")
    for handle in (first, second):
        team.is_in(handle, "idle")
        assert team.outcomes(handle) == ["completed"]


def test_the_sessions_of_a_workspace_end_with_it(team: Team) -> None:
    (team.daemon.root / "shop").mkdir()
    team.call("workspace_create", workspace="shop", directory="shop")
    inside = team.spawn("SAY ready", profile="asks", workspace="shop")
    outside = team.spawn("SAY ready", profile="asks")
    with pytest.raises(CommandFailed, match="you did not spawn it"):
        team.call("workspace_delete", workspace="shop", from_handle=outside)
    assert team.info(inside)["state"] != "closed"
    assert team.call("workspace_delete", workspace="Shop")["agents"] == [inside]
    assert team.info(inside)["state"] == "closed"
    assert team.info(outside)["state"] != "closed"
    team.daemon.stop()
    team.daemon.start("--port", "0", "--trust")
    assert team.info(inside)["state"] == "closed"
