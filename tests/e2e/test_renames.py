"""Sessions of a real daemon that get other handles."""

from __future__ import annotations

import sys

import pytest

from aegis.client.line import CommandFailed, ConnectionLost
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, open_request, team
from tests.resources.waiting import until

__all__ = ["team"]

pytestmark = pytest.mark.real


def rename(team: Team, old: str, new: str, **more: str) -> str:
    handle: str = team.call("rename", old_handle=old, new_handle=new, **more)["handle"]
    return handle


def headers(team: Team, handle: str) -> list[str]:
    return [each["text"].splitlines()[0] for each in team.entries(handle, "turn_opened")]


def test_a_renamed_agent_is_shown_by_its_new_handle_and_reached_by_both(team: Team) -> None:
    team.spawn(handle="Ann", profile="writes")
    assert rename(team, "ann", "bob") == "bob"
    assert [each["handle"] for each in team.call("list_sessions")["result"]] == ["bob"]
    team.send("Ann", "SAY one")
    team.has_outcomes("bob", "completed")
    team.send("BOB", "SAY two")
    team.has_outcomes("Ann", "completed", "completed")
    assert team.texts("bob") == ["one", "two"]
    team.call("term_list", from_handle="bob")
    inboxes = team.daemon.root / ".aegis" / "state" / "inboxes"
    assert "bob.jsonl" not in {each.name for each in inboxes.iterdir()}


def test_the_sender_of_a_message_is_shown_by_its_current_handle(team: Team) -> None:
    team.spawn(handle="ann", profile="writes")
    reader = team.spawn(handle="reader", profile="writes")
    team.send(reader, "SAY before", "ann")
    team.has_outcomes(reader, "completed")
    rename(team, "ann", "bob")
    team.send(reader, "SAY after", "ann")
    team.has_outcomes(reader, "completed", "completed")
    first, second = headers(team, reader)
    assert first.startswith("> from agent:ann ")
    assert second.startswith("> from agent:bob ")


def test_a_former_handle_is_given_to_nobody_else(team: Team) -> None:
    team.spawn(handle="ann")
    team.spawn(handle="eve")
    rename(team, "ann", "bob")
    rename(team, "bob", "cid")
    for taken in ("ann", "BOB", "cid"):
        with pytest.raises(CommandFailed, match="no handle is given twice"):
            team.spawn(handle=taken)
        with pytest.raises(CommandFailed, match="no handle is given twice"):
            rename(team, "eve", taken)
    assert rename(team, "cid", "ann") == "ann"
    assert rename(team, "bob", "cid") == "cid"
    url = team.call("session_new", handle="bob")["url"]
    assert url == team.call("session_new", handle="ann")["url"]


def test_a_rename_survives_a_restart_of_the_daemon(team: Team) -> None:
    team.spawn("SAY one", handle="ann")
    team.has_outcomes("ann", "completed")
    rename(team, "ann", "bob")
    team.daemon.kill()
    team.daemon.start("--port", "0")
    assert [each["handle"] for each in team.call("list_sessions")["result"]] == ["bob"]
    team.send("ann", "SAY two")
    team.has_outcomes("bob", "completed", "completed")
    with pytest.raises(CommandFailed, match="no handle is given twice"):
        team.spawn(handle="ann")


@pytest.mark.long
@pytest.mark.parametrize(
    ("point", "shown"),
    [
        ("ledger.append.before", "ann"),
        ("ledger.append.after", "bob"),
        ("ledger.sync.before", "bob"),
        ("ledger.sync.after", "bob"),
    ],
)
def test_a_rename_is_all_or_nothing_through_a_kill(
    own_daemon: DaemonProcess, point: str, shown: str
) -> None:
    """A kill keeps what was written; tests/faults/renaming.py loses power there as well."""
    team = Team(own_daemon, faults=f"{point}[sessions.jsonl]@2=kill")
    team.spawn(handle="ann")
    with pytest.raises(ConnectionLost):
        rename(team, "ann", "bob")
    own_daemon.kill()
    own_daemon.start("--port", "0", "--trust")
    assert [each["handle"] for each in team.call("list_sessions")["result"]] == [shown]
    team.send("ann", "SAY one")
    team.has_outcomes(shown, "completed")
    assert rename(team, "ann", "bob") == "bob", "it can be done again"
    team.send("bob", "SAY two")
    team.has_outcomes("ann", "completed", "completed")
    for taken in ("ann", "bob"):
        with pytest.raises(CommandFailed, match="no handle is given twice"):
            team.spawn(handle=taken)
    own_daemon.stop()


def test_messages_in_a_turn_and_an_open_request_survive_a_rename(team: Team) -> None:
    team.spawn("ASK ls", handle="ann")
    request = open_request(team)
    team.send("ann", "SAY waited")
    rename(team, "ann", "bob")
    until(lambda: open_request(team)["handle"] == "bob", "the request shows the new handle")
    assert len(team.call("request_list", handle="ann")["requests"]) == 1
    team.call("request_answer", id=request["id"], digest=request["digest"], answer="allow")
    team.has_turns("bob", 2)
    assert "waited" in team.texts("bob")


def test_wakes_arrive_and_the_own_echo_does_not_after_a_rename(team: Team) -> None:
    team.spawn(handle="ann", profile="writes")
    team.call("term_spawn", name="t")
    team.call("term_subscribe", name="t", from_handle="ann")
    rename(team, "ann", "bob")
    team.call("term_run", name="t", cmd="true", from_handle="bob")
    team.call("term_run", name="t", cmd="echo other", from_handle="pm")
    team.has_turns("bob", 1)
    [opened] = team.entries("bob", "turn_opened")
    assert opened["text"].startswith("> from term:t ")
    assert "echo other" in opened["text"]
    assert "$ true" not in opened["text"]


def test_a_renamed_sender_is_notified_of_a_lost_turn_and_of_a_budget_in_its_own_inbox(
    own_daemon: DaemonProcess,
) -> None:
    """Its messages show the current handle, which has no inbox."""
    program = [sys.executable, str(STAND_IN), "claude"]
    poor = {"provider": "claude", "permission": "ask", "command": program, "budget_usd": 0.01}
    team = Team(own_daemon, more={"poor": poor})
    team.spawn(handle="ann", profile="writes")
    rename(team, "ann", "bob")
    worker = team.spawn(handle="worker", profile="poor", from_handle="ann")
    team.send(worker, "DIE", "bob")
    team.has_turns("bob", 1)
    [opened] = team.entries("bob", "turn_opened")
    assert "turn 1 of 'worker', which your message began, was interrupted" in opened["text"]
    rename(team, "worker", "kid")
    team.send("worker", "SAY one", "ann")
    until(lambda: "the agent 'kid' cost 0.01" in str(team.entries("bob", "turn_opened")), "warned")
    inboxes = own_daemon.root / ".aegis" / "state" / "inboxes"
    assert {each.name for each in inboxes.iterdir()} & {"bob.jsonl", "kid.jsonl"} == set()
    own_daemon.stop()


def test_a_session_renames_only_what_it_spawned(team: Team) -> None:
    team.spawn(handle="ann", profile="writes")
    team.spawn(handle="peer", profile="writes")
    team.spawn(handle="child", profile="writes", from_handle="ann")
    for target in ("ann", "peer"):
        with pytest.raises(CommandFailed, match="cannot be reached with 'aegis_rename'"):
            rename(team, target, "new", from_handle="ann")
    assert rename(team, "child", "kid", from_handle="ann") == "kid"


def test_the_verb_gives_an_agent_another_handle(team: Team) -> None:
    team.spawn(handle="ann", profile="writes")
    done = team.daemon.cli("agent", "rename", "ann", "bob")
    assert (done.returncode, done.stderr) == (0, "renamed to bob\n")
    assert team.info("ann")["handle"] == "bob"
    done = team.daemon.cli("agent", "meta", "--as", "bob")
    assert done.returncode == 0, done.stderr
    done = team.daemon.cli("agent", "send", "ann", "SAY hello")
    assert done.returncode == 0, done.stderr
    team.has_outcomes("bob", "completed")
