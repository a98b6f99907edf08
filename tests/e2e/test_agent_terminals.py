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
import trio

import aegis
from aegis.protocol.agent_streams import CommandOutputItem
from tests.e2e.harness import DaemonProcess, command_of, is_alive
from tests.e2e.streams import Refused, StreamEnded, stream_client
from tests.e2e.test_agents import STAND_IN, Team, agents_of, open_request
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


async def off(work: Any, *arguments: Any, **named: Any) -> Any:
    """Call the blocking ``work`` in a thread."""
    return await trio.to_thread.run_sync(lambda: work(*arguments, **named))


def says(team: Team, handle: str, text: str) -> None:
    until(lambda: text in "\n".join(team.texts(handle)), f"{handle} says {text!r}")


def events(team: Team, handle: str, tag: str) -> list[dict[str, Any]]:
    found = [each["event"] for each in team.entries(handle, "event")]
    return [each for each in found if each["type"] == tag]


def words_of_agents(team: Team) -> list[list[str]]:
    return [command_of(each).split() for each in agents_of(team.daemon)]


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


@pytest.mark.parametrize(
    ("order", "said", "status"),
    [
        ("TERM echo begun; exit 3", "ended 3 None: begun", (3, None)),
        ("TERM echo begun; kill -KILL $$", "ended None SIGKILL: begun", (None, "SIGKILL")),
        ("LIMIT 0.5 echo begun; sleep 1000", "ended None SIGTERM: begun", (None, "SIGTERM")),
        (
            "LEAVE echo begun; sleep 1000",
            'left {"exitCode": null, "signal": "SIGKILL"}',
            (None, "SIGKILL"),
        ),
    ],
)
def test_the_scenarios_of_the_protocol_end_as_its_page_says(
    team: Team, order: str, said: str, status: tuple[int | None, str | None]
) -> None:
    handle = team.spawn(order, profile="acp-full")
    says(team, handle, said)
    team.has_outcomes(handle, "completed")
    (end,) = events(team, handle, "terminal_ended")
    assert (end["exit_code"], end["signal"]) == status
    assert team.info(handle)["terminals"] == []
    assert all("sleep 1000" not in command_of(each) for each in agents_of(team.daemon))


def test_a_wait_that_the_agent_cancels_is_answered_and_may_be_repeated(team: Team) -> None:
    handle = team.spawn("CANCEL echo begun; sleep 1000\nTERM echo more", profile="acp-full")
    says(team, handle, "cancelled -32800")
    says(team, handle, "ended 0 None: more")


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
    own = {"agent": handle, "id": "term_1_1", "command": "echo begun; sleep 1000"}
    listing = {"result": [], "of_agents": [own]}
    until(lambda: team.call("term_list") == listing, "the terminals of agents are listed")
    assert f"{handle}  term_1_1  echo begun; sleep 1000" in team.daemon.cli("term", "list").stdout
    until(lambda: events(team, handle, "terminal_output") != [], "the output is shown")
    assert events(team, handle, "terminal_output")[0]["output"] == "begun\n"
    assert any("sleep 1000" in command_of(each) for each in agents_of(team.daemon))
    team.call("close", handle=handle)
    until(lambda: agents_of(team.daemon) == [], "no process is left")
    (end,) = events(team, handle, "terminal_ended")
    assert (end["output"], end["signal"]) == ("begun\n", "SIGKILL")
    assert team.info(handle)["terminals"] == []
    assert team.call("term_list")["of_agents"] == []
    assert "term_1_1" not in set(names_in(team.call("tree")))


async def test_the_output_of_a_command_is_a_live_stream(team: Team) -> None:
    line = "printf 'begun\\nhalf'; while [ ! -e go ]; do sleep 0.05; done; echo; exit 3"
    handle = await off(team.spawn, f"OPEN {line}", profile="acp-full")
    await off(says, team, handle, "opened term_1_1")
    async with stream_client(team.daemon) as client:
        stream = await client.open("agent_command", handle=handle, command="term_1_1")
        shown, item = "", await stream.item()
        while item.get("line") != "half":
            shown, item = shown + item["text"], await stream.item()
        (Path(team.daemon.root) / "go").touch()
        while not item.get("has_ended"):
            shown, item = shown + item["text"], await stream.item()
        shown += item["text"]
        assert (shown, item.get("line", ""), item["exit_code"]) == ("begun\nhalf\n", "", 3)
        await off(team.call, "close", handle=handle)
        with pytest.raises(StreamEnded) as ended:
            await stream.item()
        assert ended.value.frame["code"] == "closed"


async def test_the_python_client_follows_a_command(team: Team) -> None:
    handle = await off(team.spawn, "OPEN echo begun; exit 3", profile="acp-full")
    await off(says, team, handle, "opened term_1_1")
    await off(until, lambda: team.call("term_list")["of_agents"] != [], "the command is listed")
    async with aegis.connect(team.daemon.root) as client:
        [listed] = (await client.terminals.list()).of_agents
        async with client.agents.command_output(handle, listed.id) as output:
            shown, last = "", CommandOutputItem(text="")
            while not last.has_ended:
                item = await anext(output)
                assert isinstance(item, CommandOutputItem)
                last = item
                shown += last.text
    assert (shown, last.exit_code) == ("begun\n", 3)


async def test_a_command_that_is_not_open_and_one_of_another_session_have_no_stream(
    team: Team,
) -> None:
    handle = await off(team.spawn, "OPEN sleep 1000", profile="acp-full")
    other = await off(team.spawn, "SAY x", profile="acp-full")
    await off(says, team, handle, "opened term_1_1")
    async with stream_client(team.daemon) as client:
        with pytest.raises(Refused, match="has no open command 'term_1_2'") as refused:
            await client.open("agent_command", handle=handle, command="term_1_2")
        assert refused.value.code == "not_found"
        with pytest.raises(Refused, match="command must be"):
            await client.open("agent_command", handle=handle, command="../driver")
        with pytest.raises(Refused) as forbidden:
            await client.open("agent_command", handle=handle, command="term_1_1", from_handle=other)
        assert forbidden.value.code == "forbidden"


def test_a_command_that_ended_with_the_daemon_has_a_final_record(team: Team) -> None:
    handle = team.spawn("OPEN echo begun; sleep 1000\nHANG", profile="acp-full")
    until(lambda: events(team, handle, "terminal_output") != [], "its output is shown")
    team.daemon.kill()
    for _ in range(2):
        team.daemon.start("--port", "0", "--trust")
        team.has_outcomes(handle, "interrupted")
        [end] = events(team, handle, "terminal_ended")
        assert (end["command"], end["output"]) == ("echo begun; sleep 1000", "begun\n")
        assert (end["exit_code"], end["signal"], end["truncated"]) == (None, None, True)
        assert team.info(handle)["terminals"] == []
        team.daemon.stop()
    team.daemon.start("--port", "0", "--trust")
    assert "[its end was not seen]" in team.daemon.cli("agent", "read", handle).stdout


@pytest.mark.parametrize("victim", ["agent", "daemon"])
def test_no_process_of_a_terminal_outlives_the_agent_or_the_daemon(team: Team, victim: str) -> None:
    handle = team.spawn(f"OPEN {ESCAPE}\nHANG", profile="acp-full")
    says(team, handle, "opened")
    file = Path(team.daemon.root) / "pid"
    until(file.exists, "the process has left its session")
    # The shell that started it, and its mv, end a moment later.
    until(lambda: ["sleep", "9"] in words_of_agents(team), "the command goes on")
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
