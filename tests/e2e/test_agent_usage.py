"""The accounting of sessions: of open and closed ones, and of trees."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team, raw_frames
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()


def accounts(team: Team, **arguments: object) -> dict[str, dict[str, Any]]:
    found = team.call("agent_usage", **arguments)["result"]
    return {each["handle"]: each for each in found}


def test_each_session_and_its_tree_is_counted_also_after_its_close_and_a_kill(team: Team) -> None:
    root = team.spawn("SAY one", handle="root")
    kid = team.spawn("SAY two\nSAY three", handle="kid", from_handle=root)
    other = team.spawn(handle="other")
    for handle in (root, kid):
        team.has_turns(handle, 1)
    team.send(kid, "SAY four")
    team.has_turns(kid, 2)
    found = accounts(team)
    assert {handle: each["root"] for handle, each in found.items()} == {
        "kid": "root",
        "root": "root",
        "other": "other",
    }
    assert [*found] == ["kid", "root", "other"], "the costliest first"
    assert found["kid"]["usage"] == team.info(kid)["usage"]
    assert (found["kid"]["usage"]["turns"], found["kid"]["usage"]["cost_usd"]) == (2, 0.02)
    assert [*accounts(team, handle=root)] == ["kid", "root"]
    listed = team.call("agent_usage")
    assert [(each["root"], each["sessions"]) for each in listed["trees"]] == [
        ("root", 2),
        ("other", 1),
    ]
    tree = listed["trees"][0]["usage"]
    assert (tree["turns"], tree["cost_usd"], tree["context_tokens"]) == (3, 0.03, None)
    assert (listed["total"]["turns"], listed["total"]["cost_usd"]) == (3, 0.03)
    shown = [line.split()[:5] for line in team.daemon.cli("agent", "usage").stdout.splitlines()]
    assert shown[-2:] == [["sum", "of", "2", "root", "3"], ["total", "-", "3", "30", "0.0"]]
    for by in ("hour", "day", "agent"):
        over_time = team.daemon.cli("agent", "usage", "--by", by)
        assert (over_time.returncode, over_time.stderr) == (0, "")
        assert over_time.stdout.splitlines()[-1].startswith("total")
    team.call("close", handle=kid)
    assert [*accounts(team)] == ["root", other]
    lasting = {"turns", "input_tokens", "cached_tokens", "output_tokens", "cost_usd", "turns_s"}
    for _ in range(2):
        closed = accounts(team, closed=True)["kid"]
        assert closed["is_closed"]
        before = found["kid"]["usage"]
        assert {name: closed["usage"][name] for name in lasting - {"turns_s"}} == {
            name: before[name] for name in lasting - {"turns_s"}
        }
        assert closed["usage"]["turns_s"] == pytest.approx(before["turns_s"], abs=0.1)
        team.daemon.kill()
        team.daemon.start("--port", "0", "--trust")


@pytest.mark.parametrize("victim", ["agent", "daemon"])
def test_the_finished_requests_of_a_killed_turn_are_counted(team: Team, victim: str) -> None:
    usage = {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 60}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    messages = [
        {"id": f"m{number}", "model": "x", "content": [call], "usage": usage}
        for number in (1, 1, 2)
    ]
    frames = [{"type": "assistant", "message": each} for each in messages]
    handle = team.spawn(f"{raw_frames(team, *frames)}\nSAY sent\nHANG")
    until(lambda: team.texts(handle) == ["sent"], "two requests are finished")
    if victim == "agent":
        os.kill(team.agent(), signal.SIGKILL)
    else:
        team.daemon.kill()
        team.daemon.start("--port", "0", "--trust")
    team.has_outcomes(handle, "interrupted")
    found = team.info(handle)["usage"]
    tokens = found["input_tokens"], found["cached_tokens"], found["output_tokens"]
    assert tokens == (2000, 1800, 120)
    team.send(handle, "SAY next")
    team.has_turns(handle, 2)
    assert team.info(handle)["usage"]["input_tokens"] == 2010


def test_the_verb_prints_a_row_for_each_and_the_total(team: Team) -> None:
    assert team.daemon.cli("agent", "usage").stdout.splitlines()[0].startswith("agent")
    for handle in ("one", "two"):
        team.spawn("SAY x", handle=handle)
        team.has_turns(handle, 1)
    head, first, second, total = team.daemon.cli("agent", "usage").stdout.splitlines()
    assert head.split() == [
        "agent",
        "tree",
        "of",
        "turns",
        "in",
        "%",
        "cached",
        "out",
        "time",
        "USD",
    ]
    assert (first.split()[:4], second.split()[:4]) == (
        ["one", "one", "1", "10"],
        ["two", "two", "1", "10"],
    )
    assert total.split()[:5] == ["total", "-", "2", "20", "0.0"]
    assert total.split()[-1] == "0.0200"
    [only] = team.daemon.json("agent", "usage", "two", "--json")["result"]
    assert only["handle"] == "two"
    missing = team.daemon.cli("agent", "usage", "nobody")
    assert (missing.returncode, "no agent 'nobody'" in missing.stderr) == (1, True)


def used(team: Team, by: str = "hour", **arguments: object) -> dict[str, Any]:
    """What was used by agent, or in all hours or days together."""
    reply = team.call("agent_usage_over_time", by=by, **arguments)
    assert sum(each["usage"]["turns"] for each in reply["result"]) == reply["total"]["turns"]
    total: dict[str, Any] = reply["total"]
    return total


def test_what_was_used_in_each_hour_is_known_after_a_kill_and_a_purge(team: Team) -> None:
    root = team.spawn("SAY one", handle="root")
    kid = team.spawn("SAY two", handle="kid", from_handle=root)
    for handle in (root, kid):
        team.has_turns(handle, 1)
    until(lambda: used(team)["turns"] == 2, "both turns are counted")
    reply = team.call("agent_usage_over_time", by="hour", split=True)
    for each in reply["result"]:
        assert each["begin"].endswith(":00:00.000Z")
    assert {each["handle"] for each in reply["result"]} == {"root", "kid"}
    [whole] = team.call("agent_usage_over_time", by="agent", handle="kid")["result"]
    lasting = ("turns", "input_tokens", "cached_tokens", "output_tokens", "cost_usd")
    expected = team.info(kid)["usage"]
    assert {name: whole["usage"][name] for name in lasting} == {
        name: expected[name] for name in lasting
    }
    rows = team.daemon.root / ".aegis" / "state" / "agents" / "usage.jsonl"
    until(lambda: rows.exists() and rows.read_text().count("kid") > 0, "the rows are written")
    team.send(kid, "SAY four")
    team.has_turns(kid, 2)
    team.daemon.kill()  # whether or not its end was written
    team.daemon.start("--port", "0", "--trust")
    until(lambda: used(team)["turns"] == 3, "what was cut off is counted")
    assert used(team, by="agent", handle="root")["turns"] == 3
    assert used(team, by="day", handle="kid")["turns"] == 2
    assert used(team)["cost_usd"] == pytest.approx(0.03)
    team.call("agent_purge", handle=kid)
    assert used(team)["turns"] == 3
    named = team.call("agent_usage_over_time", by="agent")["result"]
    assert [each["handle"] for each in named] == ["kid", "root"], "the costliest first"
    assert used(team, since="2999-01-01T00:00Z")["turns"] == 0


def test_sessions_of_an_earlier_version_begin_with_their_first_report(team: Team) -> None:
    handle = team.spawn("SAY one", handle="old")
    team.has_turns(handle, 1)
    team.daemon.stop()
    rows = team.daemon.root / ".aegis" / "state" / "agents" / "usage.jsonl"
    rows.unlink(missing_ok=True)
    team.daemon.start("--port", "0", "--trust")
    assert used(team)["turns"] == 0
    team.send(handle, "SAY two")
    team.has_turns(handle, 2)
    until(lambda: used(team)["turns"] == 1, "what came since is counted")
    assert used(team)["cost_usd"] == pytest.approx(0.01)


def test_the_verb_prints_what_was_used_by_day_hour_and_agent(team: Team) -> None:
    verb = ("agent", "usage", "--by")
    assert "nothing was used" in team.daemon.cli(*verb, "day").stderr
    for handle in ("one", "two"):
        team.spawn("SAY x", handle=handle)
        team.has_turns(handle, 1)
    until(lambda: used(team)["turns"] == 2, "both turns are counted")
    head, *rows, total = team.daemon.cli(*verb, "day").stdout.splitlines()
    assert head.split()[:2] == ["day", "turns"]
    assert sum(int(each.split()[1]) for each in rows) == 2
    assert total.split()[:2] == ["total", "2"]
    head, *rows, total = team.daemon.cli(*verb, "hour", "--split").stdout.splitlines()
    assert head.split()[:3] == ["hour", "agent", "turns"]
    assert {each.split()[1] for each in rows} == {"one", "two"}
    head, *rows, total = team.daemon.cli(*verb, "agent", "two").stdout.splitlines()
    assert [each.split()[:2] for each in (head, *rows, total)] == [
        ["agent", "turns"],
        ["two", "1"],
        ["total", "1"],
    ]
    listed = team.daemon.json(*verb, "agent", "--since", "2020-01-01T00:00Z", "--json")["result"]
    assert len(listed) == 2
    wrong = team.daemon.cli("agent", "usage", "--split")
    assert (wrong.returncode, "go with --by" in wrong.stderr) == (2, True)
