"""One kill in detail: a running command, its processes, and the recovery."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.client.line import ConnectionLost
from tests.chaos.real.deaths import POINTS
from tests.chaos.real.processes import processes_of
from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal, Wakes
from tests.test_fault_points import ONLY_REAL

pytestmark = pytest.mark.real

KILLED_ELSEWHERE = {
    each
    for each in ONLY_REAL
    if each.startswith(
        (
            "agent.",
            "worktree.",
            "takeover.",
            "rewind.",
            "queue.",
            "group.",
            "canvas.",
            "exchange.",
            "workflow.",
            "telegram.",
        )
    )
}
"""Points that tests of their own in tests/e2e kill at."""

RUNNING = {
    "a command": "{hold}; sleep 60",
    "with a child under nohup": "(nohup sleep 60 >/dev/null 2>&1 &); {hold}; sleep 60",
    "with a child in a session of its own": "(setsid sleep 60 &); {hold}; sleep 60",
    "with a child that was disowned": "sleep 60 & disown; {hold}; sleep 60",
    "with all of these": (
        "(setsid nohup sleep 60 >/dev/null 2>&1 &); sleep 60 & disown -h %+\n{hold}; sleep 60"
    ),
    "that ignores signals": "trap '' HUP TERM INT; {hold}; sleep 60",
    "that is stopped": "sleep 60 & kill -STOP $!; {hold}; sleep 60",
}


@pytest.mark.parametrize("cmd", RUNNING.values(), ids=RUNNING)
def test_a_kill_leaves_one_record_no_process_and_a_terminal_that_works(
    own_daemon: DaemonProcess, gate: Gate, cmd: str
) -> None:
    own_daemon.start()
    terminal = LiveTerminal(own_daemon, "build", own_daemon.call("term_spawn", name="build"))
    first = terminal.run("echo first")
    terminal.subscribe("alice")
    text = cmd.format(hold=f"echo so far; {gate.reach}")
    running = terminal.start(text, from_handle="bob")
    gate.wait_reached()
    assert terminal.refusal("echo never", timeout=0.1).code == "busy"
    terminal.has_printed("so far")
    before = processes_of(own_daemon.root)
    own_daemon.kill()
    assert running.outcome()[0] == "lost"

    own_daemon.start()
    assert before & processes_of(own_daemon.root) == set()
    again, killed = terminal.records()
    assert again == first
    assert (killed["seq"], killed["cmd"], killed["writer"]) == (1, text, "agent:bob")
    assert (killed["killed_by_restart"], killed["end"]) == (True, "killed_by_restart")
    assert (killed["exit"], killed["duration_s"]) == (None, None)
    assert killed["stdout"].endswith("so far\n")
    after = terminal.run("echo on", from_handle="bob")
    assert (after["seq"], after["stdout"], after["exit"]) == (2, "on\n", 0)
    assert terminal.described()["state"] == "idle"
    wakes = own_daemon.call("inbox_wait", from_handle="alice")["messages"]
    assert wakes[0]["body"].split("\n")[1] == "exit ? · killed by restart"


def test_a_kill_while_nothing_runs_costs_nothing(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    terminal = LiveTerminal(own_daemon, "build", own_daemon.call("term_spawn", name="build"))
    records = [terminal.run(f"echo {number}") for number in range(3)]
    own_daemon.kill()
    own_daemon.start()
    assert terminal.records() == records
    assert terminal.run("echo on")["seq"] == 3


@pytest.mark.parametrize("point", ["ledger.append.after", "ledger.sync.before"])
def test_a_command_that_ended_before_the_kill_keeps_its_end_though_nobody_was_told(
    own_daemon: DaemonProcess, point: str
) -> None:
    own_daemon.start(faults=f"{point}[ledger.jsonl]@1=kill")
    terminal = LiveTerminal(own_daemon, "build", own_daemon.call("term_spawn", name="build"))
    terminal.subscribe("alice")
    running = terminal.start("echo out; (exit 7)", from_handle="bob")
    assert running.outcome()[0] == "lost"
    own_daemon.wait_stopped()

    own_daemon.start()
    [record] = terminal.records()
    assert (record["end"], record["exit"], record["killed_by_restart"]) == ("exited", 7, False)
    assert record["stdout"] == "out\n"
    assert record["duration_s"] is not None
    [wake] = own_daemon.call("inbox_wait", from_handle="alice")["messages"]
    assert wake["body"].split("\n")[1].startswith("exit 7 · ")


@pytest.mark.parametrize("point", sorted(ONLY_REAL.keys() - KILLED_ELSEWHERE))
def test_a_daemon_is_killed_at_what_no_simulated_one_passes(
    own_daemon: DaemonProcess, point: str
) -> None:
    assert point in POINTS
    own_daemon.start(faults=f"{point}@2=kill")
    own_daemon.call("status")
    with pytest.raises(ConnectionLost):
        own_daemon.call("status")
    own_daemon.wait_stopped()


@pytest.mark.parametrize("lines", [1, 3], ids=["one line", "three lines"])
def test_trap_37_a_run_behind_lines_typed_ahead_is_recorded_after_a_kill(
    own_daemon: DaemonProcess, gate: Gate, tmp_path: Path, lines: int
) -> None:
    """The kill comes when the shell has started the run, and before the front has read the mark."""
    own_daemon.start(faults=f"mark.start.after@{lines + 2}=kill")
    terminal = LiveTerminal(own_daemon, "build", own_daemon.call("term_spawn", name="build"))
    terminal.start(gate.hold)
    gate.wait_reached()
    typed = [f"echo typed {number}" for number in range(lines)]
    terminal.keys("".join(f"{line}\r" for line in typed), from_handle="alice")
    behind = f"echo ran >{tmp_path / 'evidence'}; sleep 60"
    waiting = terminal.start(behind, from_handle="bob")
    gate.open()
    assert waiting.outcome()[0] == "lost"
    own_daemon.wait_stopped()

    own_daemon.start()
    records = terminal.records()
    assert [record["cmd"] for record in records] == [gate.hold, *typed, behind]
    assert [record["seq"] for record in records] == list(range(lines + 2))
    assert [record["exit"] for record in records] == [*[0] * (lines + 1), None]
    assert records[-1]["killed_by_restart"]
    assert terminal.run("echo next")["seq"] == lines + 2


def test_a_record_whose_line_was_damaged_wakes_its_subscribers_when_it_is_recorded_again(
    own_daemon: DaemonProcess,
) -> None:
    """The note has the command of the last line of a ledger, which a loss of power may damage."""
    own_daemon.start(faults="ledger.append.after[ledger.jsonl]@2=kill")
    terminal = LiveTerminal(own_daemon, "build", own_daemon.call("term_spawn", name="build"))
    terminal.subscribe("alice")
    terminal.run("echo one", from_handle="bob")
    assert terminal.start("echo two", from_handle="bob").outcome()[0] == "lost"
    own_daemon.wait_stopped()
    ledger = terminal.directory / "ledger.jsonl"
    first, second = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(first + second.replace(b"two", b"xxx"))

    own_daemon.start()
    assert [(each["seq"], each["stdout"]) for each in terminal.records()] == [
        (0, "one\n"),
        (1, "two\n"),
    ]
    terminal.run("echo three", from_handle="bob")
    wakes = Wakes(own_daemon, "alice")
    assert [wakes.next()["body"].split("\n")[0] for _ in range(3)] == [
        f"$ echo {word} · run by agent:bob" for word in ("one", "two", "three")
    ]
