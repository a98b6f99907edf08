"""Plan mode: a plan that a person approves, with edits, in other words, or not."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import trio

from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess
from tests.e2e.mcp_client import connect_mcp_to
from tests.e2e.test_agents import STAND_IN, Team, open_request
from tests.resources.waiting import until

pytestmark = pytest.mark.real

COMMAND = [sys.executable, str(STAND_IN), "claude"]
PROFILES: dict[str, dict[str, Any]] = {
    "plans": {"provider": "claude", "command": [*COMMAND], "permission": "plan"},
    "works": {"provider": "claude", "command": [*COMMAND], "permission": "full"},
    "helps": {"provider": "claude", "command": [*COMMAND], "answers_requests": True},
    "kimi-plans": {"provider": "kimi", "command": [*COMMAND], "permission": "plan"},
}


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon, more=PROFILES)
    own_daemon.stop()


async def over_mcp(daemon: DaemonProcess, tool: str, arguments: dict[str, Any]) -> str:
    """Call a tool at the operator's URL; return the reply as text."""
    async with connect_mcp_to(daemon, "auto") as client:
        return str(await client.call_tool(tool, arguments))


def has(team: Team, handle: str, **wanted: str) -> None:
    """Wait until the state of a session has these values."""
    until(
        lambda: {name: team.info(handle)[name] for name in wanted} == wanted,
        f"{handle} has {wanted}",
    )


def cli(team: Team, *words: str, text: str = "") -> str:
    done = subprocess.run(
        [*team.daemon.program, *words],
        env=team.daemon.environment,
        cwd=team.daemon.root,
        input=text,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def has_been_in(team: Team, handle: str, mode: str) -> bool:
    events = [each["event"] for each in team.entries(handle, "event")]
    return mode in [each["mode"] for each in events if each["type"] == "system_init"]


def answer(team: Team, request: dict[str, Any], decision: str, **more: object) -> dict[str, Any]:
    given = {"id": request["id"], "digest": request["digest"], "answer": decision, **more}
    return team.call("request_answer", **given)


def test_a_session_begins_with_a_plan_and_asks_once_that_is_approved(team: Team) -> None:
    handle = team.spawn("PLAN # Do; 1. it", profile="plans", handle="ann")
    request = open_request(team)
    has(team, handle, permission="plan", mode="plan")
    shown = team.daemon.cli("request", "show", request["id"]).stdout
    assert "\nplan:\n# Do\n1. it\n" in shown
    assert "\n  " not in shown.partition("plan:\n")[2]
    assert "# Do 1. it" in team.daemon.cli("request", "list").stdout
    assert [each["kind"] for each in request["options"]] == ["allow_once", "allow_session", "deny"]
    team.daemon.cli("request", "answer", request["id"], "allow")
    team.has_outcomes(handle, "completed")
    assert team.texts(handle) == ["allow: # Do\n1. it 0"]
    has(team, handle, permission="ask", mode="default")


def test_a_plan_is_changed_by_a_comment_then_approved_with_edits_of_files(team: Team) -> None:
    handle = team.spawn("PLAN one\nPLAN two", profile="plans", handle="ann")
    first = open_request(team)
    answer(team, first, "deny", message="Add tests")
    until(lambda: open_request(team)["id"] != first["id"], "it plans on")
    has(team, handle, permission="plan", mode="plan")
    answer(team, open_request(team), "allow", scope="session")
    team.has_outcomes(handle, "completed")
    assert team.texts(handle) == ["deny: Add tests 0", "allow: two 0"]
    has(team, handle, permission="write", mode="default")


def test_an_edited_plan_is_sent_back(team: Team) -> None:
    handle = team.spawn("PLAN one", profile="plans", handle="ann")
    request = open_request(team)
    with pytest.raises(CommandFailed, match="only `plan`, its edited text"):
        answer(team, request, "allow", values={"other": "x"})
    with pytest.raises(CommandFailed, match="an edited plan is a text"):
        answer(team, request, "allow", values={"plan": " "})
    words = ("request", "answer", request["id"], "allow", "--edit", "-")
    cli(team, *words, text="# Another\n")
    team.has_outcomes(handle, "completed")
    assert team.texts(handle) == ["allow: # Another\n 0"]


def test_a_session_returns_to_the_permission_before_its_plan_also_after_a_kill(team: Team) -> None:
    handle = team.spawn("SAY ready", profile="works", handle="ann")
    team.has_outcomes(handle, "completed")
    team.call("agent_set", handle=handle, permission="plan")
    has(team, handle, permission="plan")
    team.daemon.stop(signal.SIGKILL)
    team.daemon.start("--port", "0", "--trust")
    team.call("handoff", target_handle=handle, context="PLAN it")
    request = open_request(team)
    has(team, handle, permission="plan", mode="plan")
    answer(team, request, "allow")
    has(team, handle, permission="full", mode="default")
    team.daemon.stop(signal.SIGKILL)
    team.daemon.start("--port", "0", "--trust")
    has(team, handle, permission="full")


def test_only_a_person_approves_a_plan(team: Team) -> None:
    team.spawn("PLAN it", profile="plans", handle="ann")
    request = open_request(team)
    team.spawn("SAY ready", profile="helps", handle="bob")
    given = {"id": request["id"], "digest": request["digest"], "answer": "allow"}
    with pytest.raises(CommandFailed, match="only a person approves"):
        team.call("request_answer", **given, from_handle="bob")
    tool = "aegis_request_answer"
    assert "only a person approves" in trio.run(over_mcp, team.daemon, tool, given)
    change = {"handle": "ann", "permission": "ask"}
    refused = trio.run(over_mcp, team.daemon, "aegis_agent_set", change)
    assert "which only a person ends" in refused
    with pytest.raises(CommandFailed, match="which only a person ends"):
        team.call("agent_set", **change, from_handle="pm")
    has(team, "ann", permission="plan", mode="plan")
    assert open_request(team)["id"] == request["id"]


def test_a_mode_that_asks_less_is_set_back_and_ends_the_agent_that_insists(team: Team) -> None:
    handle = team.spawn("MODE auto", profile="plans", handle="ann")
    team.has_outcomes(handle, "completed")
    for mode in ("acceptEdits", "auto"):
        has(team, handle, mode="plan")
        team.send(handle, f"MODE {mode}")
        until(partial(has_been_in, team, handle, mode), f"{mode} was reported")
    has(team, handle, mode="plan")
    team.send(handle, "MODE bypassPermissions")
    has(team, handle, state="error")
    assert "by itself, which asks less" in team.info(handle)["reason"]


def test_an_agent_without_a_plan_that_can_be_approved_is_refused(team: Team) -> None:
    with pytest.raises(CommandFailed, match="kimi has no plan that can be approved") as refused:
        team.spawn("SAY x", profile="kimi-plans")
    assert "without asking anybody" in str(refused.value)
