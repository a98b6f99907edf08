"""Waiting for an agent: for the end of a turn, for rest, for a question, for a text."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, agents_of, open_request
from tests.e2e.test_terminal_agents import Launcher
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


class Waiting:
    """Calls of ``agent_wait`` that run beside a test."""

    def __init__(self, daemon: DaemonProcess) -> None:
        self._daemon = daemon
        self._pool = ThreadPoolExecutor(8)

    def for_(self, handle: str, **wanted: object) -> Future[dict[str, Any]]:
        return self._pool.submit(
            self._daemon.call, "agent_wait", handle=handle, timeout=GUARD_S, **wanted
        )


def test_a_script_launches_sends_and_gets_the_last_message(team: Team) -> None:
    cli = team.daemon.cli
    launched = cli("agent", "launch", "asks", "SAY one", "--handle", "ann", "--wait")
    assert (launched.returncode, launched.stdout) == (0, "one\n")
    sent = cli("agent", "send", "--wait", "ann", "SAY first\nSAY two")
    assert (sent.returncode, sent.stdout) == (0, "two\n")
    piped = subprocess.run(
        [*team.daemon.program, "agent", "send", "--wait", "ann", "-"],
        input="SAY three",
        env=team.daemon.environment,
        cwd=team.daemon.root,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    assert (piped.returncode, piped.stdout) == (0, "three\n")
    resumed = cli("agent", "launch", "--resume", "ann", "--wait", "SAY four")
    assert (resumed.returncode, resumed.stdout) == (0, "four\n")
    again = team.daemon.json("agent", "wait", "ann", "--json")
    assert (again["outcome"], again["turn"], again["text"]) == ("done", 4, "four")
    default = cli("agent", "launch", "--wait", "SAY five words")
    assert (default.returncode, default.stdout) == (0, "five words\n")
    team.call("inbox_read", from_handle="pmz")
    other = cli("agent", "send", "pmz", "--wait", "hi")
    assert (other.returncode, team.inbox("pmz")) == (1, []), "refused before it is sent"


def test_each_way_that_a_wait_ends_has_its_exit_code(team: Team) -> None:
    cli, handle = team.daemon.cli, team.spawn(handle="ann")
    asked = cli("agent", "send", "ann", "--wait", "ASK touch x")
    request = open_request(team)
    assert asked.returncode == 3
    assert f'ann needs you: {request["title"]} {{"command": "touch x"}}' in asked.stderr
    assert f"aegis-actors request answer {request['id']}" in asked.stderr
    assert cli("agent", "wait", "ann").returncode == 3
    team.call("interrupt", handle=handle)
    team.has_outcomes(handle, "cancelled")
    late = cli("agent", "send", "ann", "--wait", "--timeout", "0.2", "HANG")
    assert (late.returncode, late.stdout) == (124, "")
    assert "wait on with: aegis-actors agent wait ann" in late.stderr
    team.is_in("ann", "working")  # a turn that was not sent yet would be sent to the next process
    os.kill(team.agent(), signal.SIGKILL)
    failed = cli("agent", "wait", "ann")
    assert (failed.returncode, "ended" in failed.stderr) == (1, True), failed.stderr
    team.call("close", handle=handle)
    closed = cli("agent", "wait", "ann")
    assert (closed.returncode, closed.stderr) == (1, "↳ ann: closed\n")
    unknown = cli("agent", "wait", "bob")
    assert (unknown.returncode, "bob" in unknown.stderr) == (1, True)


def test_a_wait_for_what_was_said_or_was_never_sent_ends(team: Team) -> None:
    cli, handle = team.daemon.cli, team.spawn("SAY one two", handle="ann")
    team.has_outcomes(handle, "completed")
    said = cli("agent", "wait", "ann", "--text", "one t")
    assert (said.returncode, said.stderr) == (0, "")
    unknown = cli("agent", "wait", "ann", "--message", "nope")
    assert (unknown.returncode, "never got a message 'nope'" in unknown.stderr) == (1, True)
    late = cli("agent", "wait", "ann", "--text", "t o", "--timeout", "0.2")
    hint = "wait on with: aegis-actors agent wait ann --text 't o'"
    assert (late.returncode, late.stderr) == (124, f"↳ ann: it is idle; {hint}\n")


@pytest.mark.parametrize("cut", [signal.SIGINT, signal.SIGKILL])
def test_a_wait_that_is_cut_names_what_continues(
    own_daemon: DaemonProcess, cut: signal.Signals
) -> None:
    team = Team(own_daemon, queues={"build": {"agent": "asks"}})
    team.call("group_spawn_mixed", group="g", profiles=["asks"])
    lines = {
        "ann": ["agent", "launch", "--handle", "ann", "--wait", "asks", "HANG"],
        "build-1": ["queue", "add", "--wait", "90000", "build", "HANG"],
        "asks": ["group", "broadcast", "--wait", "90000", "g", "HANG"],
    }
    with contextlib.ExitStack() as stack:
        waiting = [stack.enter_context(begun(team, words)) for words in lines.values()]
        for each in waiting:
            stack.callback(each.kill)
        until(lambda: works(team) == 3, "all work")
        until(lambda: all(map(is_asleep, waiting)), "all wait")
        if cut is signal.SIGKILL:
            team.daemon.kill()
        for each in waiting:
            each.send_signal(signal.SIGINT) if cut is signal.SIGINT else None
        seen = [each.communicate(timeout=GUARD_S)[1] for each in waiting]
        codes = {each.returncode for each in waiting}
    assert codes == {130 if cut is signal.SIGINT else 1}
    if cut is signal.SIGKILL:
        team.daemon.start("--port", "0", "--trust")
    [task] = team.call("task_list")["result"]
    broadcast = team.call("group_status", group="g")["broadcast"]["broadcast_id"]
    wait = "wait on with: aegis-actors"
    notices = [
        f"↳ ann continues; {wait} agent wait ann",
        f"↳ task {task['task_id']} continues; look at it with: aegis-actors queue task",
        f"↳ the broadcast continues; {wait} group wait --broadcast {broadcast} g",
    ]
    assert seen[0].startswith("↳ launched ann\n")
    for notice, text in zip(notices, seen, strict=True):
        assert notice in text.splitlines()[-1], text


def begun(team: Team, words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*team.daemon.program, *words],
        env=team.daemon.environment,
        cwd=team.daemon.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def is_asleep(process: subprocess.Popen[str]) -> bool:
    """Whether a process has nothing to do for a while."""

    def now() -> tuple[str, str]:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[11]

    before = now()
    time.sleep(0.3)
    return before == now() == ("S", before[1])


def works(team: Team) -> int:
    listed = team.call("list_sessions")["result"]
    return [each["state"] for each in listed].count("working")


@pytest.mark.parametrize("options", [[], ["--wait"]])
def test_a_resume_that_meets_a_close_is_carried_out_behind_it(
    team: Team, options: list[str]
) -> None:
    cli = team.daemon.cli
    team.spawn("STUBBORN\nWAIT 30", handle="ann")  # its close takes seconds
    team.is_in("ann", "working")
    closing = team.daemon.send("close", handle="ann")
    until(lambda: team.info("ann")["state"] == "closed", "its close has begun")
    resumed = cli("agent", "launch", "--resume", "ann", *options, "SAY again")
    assert resumed.returncode == 0, resumed.stderr
    closing.result()
    team.has_outcomes("ann", "cancelled", "completed")
    assert team.texts("ann") == ["again"]


def test_a_limit_that_holds_a_message_back_ends_the_wait(own_daemon: DaemonProcess) -> None:
    command = [sys.executable, str(STAND_IN), "claude"]
    profile = {"provider": "claude", "command": command, "budget_usd": 0.01}
    team = Team(own_daemon, more={"poor": profile})
    cli, handle = own_daemon.cli, team.spawn("SAY one", profile="poor")
    team.has_outcomes(handle, "completed")
    held = cli("agent", "send", handle, "--wait", "SAY two")
    remedy = f"agent set {handle} --budget USD"
    assert (held.returncode, remedy in held.stderr) == (4, True), held.stderr
    waiting = Waiting(own_daemon).for_(handle, turn=2)
    cli("agent", "set", handle, "--budget", "1")
    assert waiting.result(GUARD_S)["outcome"] in ("limit", "done")


def test_a_wait_for_a_message_is_not_ended_by_the_turn_before_it(team: Team) -> None:
    waiting, handle = Waiting(team.daemon), team.spawn("HANG")
    team.is_in(handle, "working")
    receipt = team.call("handoff", target_handle=handle, context="SAY mine", from_handle="pm")
    mine, rest = waiting.for_(handle, message=receipt["id"]), waiting.for_(handle)
    said = waiting.for_(handle, text="min")
    team.call("interrupt", handle=handle)
    assert mine.result(GUARD_S) == {
        "handle": handle,
        "outcome": "done",
        "reason": "",
        "turn": 2,
        "text": "mine",
        "blocked": None,
    }
    assert rest.result(GUARD_S)["turn"] == 2
    assert said.result(GUARD_S)["outcome"] == "done"


def test_the_person_hears_of_each_turn_that_a_message_of_theirs_began(team: Team) -> None:
    long = "w" * 2_000
    handle = team.spawn("SAY one", handle="ann")
    team.has_outcomes(handle, "completed")
    team.send(handle, f"SAY {long}", "pm")
    team.has_outcomes(handle, "completed", "completed")
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    assert team.daemon.cli("agent", "send", "ann", f"SAY {long}").returncode == 0
    until(lambda: len(team.inbox("human")) == 2, "the person hears of both")
    first, last = team.inbox("human")
    assert (first["sender"], first["status"]) == ("substrate", "ok")
    assert first["body"] == "turn 1 of 'ann', which your message began, is done: one"
    assert last["body"].endswith(f" is done: {'w' * 1_000}… (agent read ann)")
    assert team.inbox("pm") == []  # an agent is answered by the agent itself


def test_the_end_of_a_turn_is_known_after_the_daemon_was_killed(team: Team) -> None:
    handle = team.spawn()
    ids = []
    for text in ("SAY one", "HANG"):
        receipt = team.call("handoff", target_handle=handle, context=text, from_handle="pm")
        ids.append(receipt["id"])
        if text != "HANG":
            team.has_turns(handle, 1)
    team.is_in(handle, "working")
    team.daemon.kill()
    until(lambda: agents_of(team.daemon) == [], "the guard has ended the agent")
    team.daemon.start("--port", "0", "--trust")
    first, cut = [team.call("agent_wait", handle=handle, message=each) for each in ids]
    assert (first["outcome"], first["text"]) == ("done", "one")
    assert (cut["outcome"], cut["turn"]) == ("failed", 2)
    assert "the daemon ended during the turn" in cut["reason"]


def test_only_a_wait_for_a_person_lasts_while_the_agent_is_at_rest(team: Team) -> None:
    waiting, handle = Waiting(team.daemon), team.spawn("SAY x")
    team.has_turns(handle, 1)
    blocked = waiting.for_(handle, blocked=True)
    assert team.call("agent_wait", handle=handle)["outcome"] == "done"
    team.send(handle, "ASK touch x")
    found = blocked.result(GUARD_S)
    request = open_request(team)["id"]
    assert (found["outcome"], found["blocked"]["request_id"]) == ("blocked", request)


def test_a_session_waits_for_those_that_it_spawned_alone(team: Team) -> None:
    pm = team.spawn(handle="pm", profile="all")
    child = team.spawn("SAY hi", from_handle=pm)
    stranger = team.spawn("SAY hi")
    assert team.call("agent_wait", handle=child, turn=1, from_handle=pm)["text"] == "hi"
    for other in (stranger, pm):
        with pytest.raises(CommandFailed) as caught:
            team.call("agent_wait", handle=other, from_handle=pm)
        assert caught.value.code == "forbidden"


def test_waits_that_nobody_hears_any_more_leave_room(team: Team) -> None:
    handle = team.spawn("HANG")
    team.is_in(handle, "working")
    program = [*team.daemon.program, "agent", "wait", handle]
    for _ in range(3):
        left = subprocess.Popen(
            program, env=team.daemon.environment, cwd=team.daemon.root, stderr=subprocess.PIPE
        )
        with left:
            with pytest.raises(subprocess.TimeoutExpired):
                left.wait(0.5)
            left.kill()
    team.call("interrupt", handle=handle)
    assert team.call("agent_wait", handle=handle)["outcome"] == "failed"


def test_a_terminal_agent_is_waited_for_until_it_needs_input(own_daemon: DaemonProcess) -> None:
    launcher = Launcher(own_daemon)
    handle = launcher.launch()
    ready = own_daemon.call("agent_wait", handle=handle, timeout=GUARD_S)
    assert ready["outcome"] == "done"
    launcher.asks(handle, "may I")
    blocked = own_daemon.cli("agent", "wait", handle, "--blocked")
    assert (blocked.returncode, "may I" in blocked.stderr) == (3, True), blocked.stderr
    for wanted in ({"turn": 1}, {"message": "x"}, {"text": "x"}):
        with pytest.raises(CommandFailed) as caught:
            own_daemon.call("agent_wait", handle=handle, **wanted)
        assert "aegis_term_wait" in str(caught.value)
    own_daemon.call("close", handle=handle)
    closed = json.loads(own_daemon.cli("agent", "wait", handle, "--json").stdout)
    assert closed["outcome"] == "closed"
