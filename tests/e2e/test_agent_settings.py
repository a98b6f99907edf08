"""Changes of sessions by a person: settings, ``up --resume-agents``, deleted workspaces."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, acp_profile, open_request
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
        team.call("agent_set", handle=handle, model="none", permission="plan")
    info = team.info(handle)
    assert (info["permission"], info["mode"]) == ("ask", "default"), "nor does the agent plan"
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
    assert f"agent set {handle} --budget" in team.info(handle)["blocked"]["title"]
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


def test_up_resumes_the_agents_of_all_open_sessions(own_daemon: DaemonProcess) -> None:
    team = Team(own_daemon, more={"acp": acp_profile("ask")})
    # Two of one kind of stand-in would have the same conversation.
    first, second = (team.spawn("SAY ready", profile=each) for each in ("asks", "acp"))
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


def test_a_session_is_launched_with_settings_of_its_own(own_daemon: DaemonProcess) -> None:
    team = Team(own_daemon)
    settings = ("--model", "big", "--effort", "high", "--permission", "write", "--budget", "2")
    launched = own_daemon.cli("agent", "launch", "asks", "ENVIRON", "--handle", "ann", *settings)
    assert launched.returncode == 0, launched.stderr
    team.has_turns("ann", 1)
    said = team.texts("ann")[-1]
    for argument in ("--model=big", "--effort=high", "--max-budget-usd=2.0000"):
        assert argument in said
    info = team.info("ann")
    assert (info["permission"], info["budget_usd"]) == ("write", 2.0)
    own_daemon.kill()
    own_daemon.start("--port", "0", "--trust")
    info = team.info("ann")
    assert (info["permission"], info["budget_usd"]) == ("write", 2.0)
    other = own_daemon.cli("agent", "set", "ann", "--effort", "low")
    assert other.returncode == 0, other.stderr
    again = own_daemon.cli("agent", "send", "ann", "--wait", "ENVIRON")
    assert ("--effort=low" in again.stdout, "--model=big" in again.stdout) == (True, True)


def test_another_effort_holds_from_the_next_turn_on_in_the_same_conversation(
    own_daemon: DaemonProcess,
) -> None:
    team = Team(own_daemon)
    handle = team.spawn("SAY one", effort="low")
    team.has_turns(handle, 1)
    team.call("agent_set", handle=handle, effort="high")
    ask(team, handle, "ENVIRON")
    team.has_turns(handle, 2)
    assert "--effort=high" in team.texts(handle)[-1]
    started = team.entries(handle, "started")
    assert [each["conversation"] is not None for each in started] == [False, True]


def test_a_session_chooses_settings_within_its_rights_alone(own_daemon: DaemonProcess) -> None:
    chosen: dict[str, dict[str, Any]] = {
        "chief": {"permission": "write", "may_spawn": ["strong"]},
        "strong": {"permission": "full"},
        "poor": {"permission": "read", "budget_usd": 1.0},
    }
    able = {
        name: {
            "provider": "claude",
            "command": [sys.executable, str(STAND_IN), "claude"],
            **settings,
        }
        for name, settings in chosen.items()
    }
    team = Team(own_daemon, more=able)
    chief = team.spawn(profile="chief")
    child = team.spawn(profile="poor", permission="write", budget_usd=0.5, from_handle=chief)
    assert (team.info(child)["permission"], team.info(child)["budget_usd"]) == ("write", 0.5)
    team.spawn(profile="strong", from_handle=chief)
    for refused in (
        {"profile": "poor", "permission": "full"},
        {"profile": "poor", "budget_usd": 1.5},
        {"profile": "chief", "permission": "full"},
    ):
        with pytest.raises(CommandFailed) as caught:
            team.spawn(from_handle=chief, **refused)
        assert caught.value.code == "forbidden"


def test_an_agent_works_in_a_directory_below_the_root(own_daemon: DaemonProcess) -> None:
    team = Team(own_daemon)
    inside = own_daemon.root / "src" / "part"
    inside.mkdir(parents=True)
    (own_daemon.root / "out").symlink_to(own_daemon.root.parent)
    handle = team.spawn("SAY one", directory="src/part")
    assert team.info(handle)["cwd"] == str(inside)
    launched = own_daemon.cli("agent", "launch", "--directory", str(inside), "--handle", "ann")
    assert launched.returncode == 0, launched.stderr
    assert team.info("ann")["cwd"] == str(inside)
    for directory, why in (
        ("..", "not below the root"),
        ("out", "not below the root"),
        ("src/no", "is no directory"),
    ):
        assert why in str(own_daemon.refusal("spawn", directory=directory))
    both = own_daemon.refusal("spawn", directory="src", workspace="w")
    assert "not both" in str(both)


def test_the_effort_of_an_agent_is_shown(own_daemon: DaemonProcess) -> None:
    team = Team(own_daemon)
    handle = team.spawn("SAY one", effort="low")
    assert team.info(handle)["effort"] == "low"
    team.call("agent_set", handle=handle, effort="high")
    assert team.info(handle)["effort"] == "high"


def test_thinking_is_set_from_the_next_turn_on_and_refused_where_it_cannot_be(
    own_daemon: DaemonProcess,
) -> None:
    acp = {
        "provider": "acp",
        "command": [sys.executable, str(STAND_IN), "acp"],
        "asking_mode": "default",
    }
    team = Team(own_daemon, more={"acp": acp})
    words = ("agent", "launch", "asks", "SAY one", "--handle", "ann", "--thinking", "off")
    assert own_daemon.cli(*words).returncode == 0
    team.has_turns("ann", 1)
    assert team.info("ann")["thinking"] == "off"
    assert own_daemon.cli("agent", "set", "ann", "--thinking", "4000").returncode == 0
    ask(team, "ann", "SAY two")
    team.has_turns("ann", 2)
    assert team.info("ann")["thinking"] == "4000"
    started = team.entries("ann", "started")
    assert [each["conversation"] is not None for each in started] == [False, True]
    other = team.spawn("SAY one", profile="acp")
    team.has_turns(other, 1)
    refused = own_daemon.cli("agent", "set", other, "--thinking", "off")
    assert "Stand-in has no setting for thinking" in refused.stderr
    assert team.info(other)["thinking"] == ""
    never = team.spawn("SAY one", profile="acp", thinking="off")
    team.is_in(never, "error")
    assert "has no setting for thinking" in team.info(never)["reason"]
