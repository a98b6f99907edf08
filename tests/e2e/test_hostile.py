"""Shells, programs and clients that do what they should not: stopped, deaf, gone, half spoken."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Callable

import pytest

from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal, Pending
from tests.resources.waiting import until

pytestmark = pytest.mark.real


def test_a_number_that_was_shown_is_never_given_to_another_command(
    terminal: LiveTerminal,
) -> None:
    os.kill(terminal.info["pid"], signal.SIGSTOP)
    shown = terminal.run('echo "', timeout=0.3)
    assert (shown["seq"], shown["timed_out"], shown["end"]) == (0, True, None)
    os.kill(terminal.info["pid"], signal.SIGCONT)
    assert terminal.run("echo next")["seq"] == 1
    first, second = terminal.records()
    assert (first["cmd"], first["end"], first["exit"]) == ('echo "', "lost", None)
    assert (second["cmd"], second["stdout"]) == ("echo next", "next\n")


def test_a_run_that_waits_for_a_probe_of_a_stopped_shell_is_not_typed_later(
    terminal: LiveTerminal,
) -> None:
    terminal.run("true")
    terminal.keys("\x03")  # perhaps kept by bash: the next run asks with a key that changes nothing
    os.kill(terminal.info["pid"], signal.SIGSTOP)
    terminal.keys("\x03")
    error = terminal.refusal("echo late", timeout=0.3)
    assert (error.code, "was not typed" in str(error)) == ("unavailable", True)
    os.kill(terminal.info["pid"], signal.SIGCONT)
    assert terminal.run("echo next")["seq"] == 1
    assert [record["cmd"] for record in terminal.records()] == ["true", "echo next"]


@pytest.mark.long
def test_a_run_behind_a_lot_of_type_ahead_ends_with_its_timeout(
    terminal: LiveTerminal, new_gate: Callable[[], Gate]
) -> None:
    gate, second = new_gate(), new_gate()
    run = terminal.start(gate.hold)
    gate.wait_reached()
    some = "sleep 0.01\n" * 10
    terminal.keys(f"{some}{second.hold}\n{some}", from_handle="alice")
    gate.open()
    run.result()
    error = terminal.refusal("echo late", timeout=0.5)
    second.open()
    assert (error.code, "was not typed" in str(error)) == ("busy", True)
    assert terminal.run("echo next")["stdout"] == "next\n"
    cmds = [record["cmd"] for record in terminal.records()]
    assert "echo late" not in cmds
    assert cmds.count("sleep 0.01") == 20


@pytest.mark.parametrize("how", ["stopped", "deaf"])
def test_closing_ends_what_is_stopped_or_ignores_signals(
    how: str, daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    child = "setsid -f bash -c 'trap \"\" HUP TERM INT; sleep 1000 & wait; sleep 1000'"
    terminal.run(f"{child}; trap '' HUP TERM")
    if how == "stopped":
        os.kill(terminal.info["pid"], signal.SIGSTOP)
    terminal.close()
    assert daemon.shell_processes(f"{terminal.name}/") == []


def test_clients_that_hang_up_during_their_first_call_leave_no_actor(
    daemon: DaemonProcess,
) -> None:
    for _ in range(100):
        Pending(daemon.endpoint.socket, "term_list", {}).hang_up()
    with daemon.connect() as client:
        until(lambda: client.call("status", {})["connections"] == 1, "all others are over")


def test_many_requests_of_one_client_are_each_answered_once(daemon: DaemonProcess) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(GUARD_S)
        client.connect(daemon.endpoint.socket)
        waits = [_frame(number, "inbox_wait", from_handle=f"w{number}") for number in range(64)]
        client.sendall(b"".join([*waits, _frame(64, "status"), _frame(0, "status")]))
        lines = client.makefile("rb")
        over, same = json.loads(lines.readline()), json.loads(lines.readline())
        assert (over["id"], over["code"]) == (64, "busy")
        assert (same["id"], same["code"]) == (None, "invalid_request")
        cancels = [json.dumps({"type": "cancel", "id": n}).encode() + b"\n" for n in range(64)]
        client.sendall(b"".join(cancels))
        answers = [json.loads(lines.readline()) for _ in range(64)]
        assert {answer["code"] for answer in answers} == {"cancelled"}
        assert sorted(answer["id"] for answer in answers) == list(range(64))
        client.sendall(_frame("after", "status"))
        assert json.loads(lines.readline())["type"] == "reply"


def _frame(number: int | str, command: str, **arguments: object) -> bytes:
    frame = {"type": "request", "id": number, "command": command, "arguments": arguments}
    return json.dumps(frame).encode() + b"\n"


@pytest.mark.parametrize("left", [0, 10])
def test_a_terminal_goes_on_without_a_number_twice_after_its_ledger_was_lost(
    left: int, terminal: LiveTerminal
) -> None:
    assert [terminal.run(f"echo {number}")["seq"] for number in range(3)] == [0, 1, 2]
    terminal.close()
    os.truncate(terminal.directory / "ledger.jsonl", left)
    terminal.daemon.expected |= {f"terminal {terminal.name}"}
    terminal.daemon.call("term_spawn", name=terminal.name)
    assert [terminal.run(f"echo {number}")["seq"] for number in range(2)] == [3, 4]
    # The note of what was in flight still tells of the last command that was lost, and of its end.
    ends = [(record["seq"], record["end"]) for record in terminal.records()]
    assert ends == [(2, "exited"), (3, "exited"), (4, "exited")]


def test_a_terminal_whose_files_were_removed_acknowledges_nothing_and_can_be_spawned_anew(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    info = own_daemon.call("term_spawn", name="bare")
    terminal = LiveTerminal(own_daemon, "bare", info)
    terminal.run("true")
    shutil.rmtree(terminal.directory)
    error = terminal.refusal("echo lost")
    assert (error.code, "another program removed it" in str(error)) == ("storage", True)
    terminal.close()
    own_daemon.call("term_spawn", name="bare")
    assert terminal.run("echo again")["seq"] == 0
    assert [record["cmd"] for record in terminal.records()] == ["echo again"]
