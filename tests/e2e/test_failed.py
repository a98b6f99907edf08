"""A terminal whose actors crash too often: it alone fails, says so, and can be had anew."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from aegis.client.line import ConnectionLost
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal

pytestmark = pytest.mark.real


def spawn(daemon: DaemonProcess, name: str) -> LiveTerminal:
    return LiveTerminal(daemon, name, daemon.call("term_spawn", name=name))


def wait_failed(terminal: LiveTerminal) -> None:
    """Each look is a call that waits in the daemon, not a spin."""
    for _ in range(int(GUARD_S * 10)):
        if terminal.described()["state"] == "failed":
            return
        terminal.daemon.call("inbox_wait", timeout=0.1, from_handle="sleeper")
    raise AssertionError("it did not fail")


def test_a_terminal_that_spent_its_restarts_is_failed_and_its_command_recorded(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    # The keys make one life of the front crash, and what comes first the three that follow it.
    first = 60
    passes = range(first, first + 4)
    own_daemon.start(
        faults=",".join(f"actor.receive.before[Terminal]@{number}=crash" for number in passes)
    )
    terminal, other = spawn(own_daemon, "build"), spawn(own_daemon, "other")
    kept = terminal.run("echo kept")
    woken = terminal.subscribe("pm")
    pending = terminal.start(f"setsid sleep 1000 & echo begun; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("begun")
    sent = 0
    while "RestartsExhausted" not in own_daemon.log:
        sent += 1
        assert sent < 2 * first
        own_daemon.send("term_keys", name="build", keys=" ").outcome()
    wait_failed(terminal)
    assert pending.outcome()[0] in ("reply", "error")
    before, killed = terminal.records()  # which are there once its processes are gone
    assert own_daemon.shell_processes("build/") == []
    assert before == kept
    assert (killed["end"], killed["killed_by_restart"]) == ("killed_by_restart", True)
    assert "begun\n" in killed["stdout"]
    assert woken.next()["id"].split("/")[2] == "1"
    assert terminal.described()["subscribers"] == ["pm"]
    error = terminal.refusal("true")
    assert error.code == "unavailable"
    assert "terminal 'build' has failed: its actors crashed too often" in str(error)
    assert str(error).endswith("close it and spawn it anew")
    assert other.run("echo well")["stdout"] == "well\n"
    assert other.described()["restarts"] == 0
    assert json.loads(own_daemon.state.workspace.read_text())["terminals"] == ["build", "other"]
    terminal.close()
    assert json.loads(own_daemon.state.workspace.read_text())["terminals"] == ["other"]
    own_daemon.kill()
    own_daemon.start()
    again = spawn(own_daemon, "build")
    assert again.run("echo back")["seq"] == 2
    own_daemon.kill()


def test_who_reads_a_terminal_that_fails_sees_the_record_of_what_it_ran(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    # Ending the processes takes a while: they ignore the hang-up.
    passes = range(60, 64)
    own_daemon.start(
        faults=",".join(f"actor.receive.before[Terminal]@{number}=crash" for number in passes)
    )
    terminal = spawn(own_daemon, "build")
    terminal.start(f"(trap '' HUP TERM; sleep 1000) & echo begun; {gate.hold}")
    gate.wait_reached()
    terminal.has_printed("begun")
    with own_daemon.connect() as client:
        while client.call("term_list", {})["result"][0]["state"] != "failed":
            own_daemon.send("term_keys", name="build", keys=" ").outcome()
        # Not before: the record is there once its processes are gone.
        [record] = client.call("term_read", {"name": "build"})["result"]
    assert record["end"] == "killed_by_restart"
    own_daemon.kill()


def test_a_terminal_whose_shell_cannot_be_started_again_is_closed_at_once(
    own_daemon: DaemonProcess, tmp_path: Path
) -> None:
    own_daemon.start()
    shell = shutil.copy(shutil.which("bash") or "", tmp_path / "bash")
    info = own_daemon.call("term_spawn", name="build", shell=str(shell))
    terminal = LiveTerminal(own_daemon, "build", info)
    terminal.run("echo kept")
    Path(shell).unlink()
    os.kill(info["pid"], signal.SIGKILL)
    wait_failed(terminal)
    terminal.close()
    assert "did not end in order" not in own_daemon.log
    assert own_daemon.call("term_list")["result"] == []
    after = spawn(own_daemon, "build").run("echo on")
    assert (after["seq"], after["new_shell_since"]) == (2, 1)  # 1 is the end of the shell
    own_daemon.stop()


def test_when_the_directory_crashes_the_terminals_go_on_and_are_found_again(
    own_daemon: DaemonProcess,
) -> None:
    # Passes: two spawns, and the list that crashes.
    own_daemon.start(faults="actor.receive.before[TerminalDirectory]@3=crash")
    terminals = [spawn(own_daemon, name) for name in ("one", "two")]
    for terminal in terminals:
        terminal.run("kept=$$")
    assert own_daemon.refusal("term_list").code
    assert {info["name"] for info in own_daemon.call("term_list")["result"]} == {"one", "two"}
    for terminal in terminals:
        assert terminal.run("[ $kept = $$ ]")["exit"] == 0
    assert own_daemon.refusal("term_spawn", name="ONE").code == "already_exists"
    terminals[0].close()
    assert own_daemon.shell_processes("one/") == []
    assert spawn(own_daemon, "one").run("echo anew")["seq"] == 2
    own_daemon.kill()


def test_a_shell_that_was_started_and_never_noted_is_ended_by_its_cookie(
    own_daemon: DaemonProcess,
) -> None:
    # The second shell runs when its actor crashes: only its cookie tells of it.
    own_daemon.start(faults="shell.start.after[build]@2=crash")
    terminal = spawn(own_daemon, "build")
    assert terminal.run("exit 3")["exit"] == 3
    record = terminal.run("echo $$")
    assert "InjectedCrash" in own_daemon.log
    [shell] = own_daemon.shell_processes("build/")
    assert shell.split()[0] == record["stdout"].strip()
    own_daemon.kill()


def test_a_stop_ends_a_shell_whose_start_is_not_over_with_all_that_it_began(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    # What a start-up file begins may outlive the hang-up of its terminal.
    (own_daemon.home / ".bashrc").write_text(f"setsid sleep 1000 &\n{gate.reach}\n")
    own_daemon.start(faults="shell.start.after[build]@2=delay:600")
    terminal = spawn(own_daemon, "build")
    gate.wait_reached()
    os.kill(terminal.described()["pid"], signal.SIGKILL)
    gate.wait_reached()
    assert own_daemon.shell_processes("build/") != []
    assert own_daemon.stop() == 0
    assert own_daemon.shell_processes() == []


def test_a_gateway_that_crashed_listens_again_at_its_address_and_no_command_noticed(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    # Connections: the spawn, the run, and the one that is struck.
    own_daemon.start(faults="gateway.accept.before@3=crash")
    endpoint = own_daemon.endpoint
    terminal = spawn(own_daemon, "build")
    pending = terminal.start(f"echo begun; {gate.hold}; echo ended; (exit 5)")
    gate.wait_reached()
    with pytest.raises(ConnectionLost):
        own_daemon.call("status")
    assert pending.outcome() == ("lost", "")
    while own_daemon.cli("status").returncode:
        assert own_daemon.is_running
    assert own_daemon.endpoint == endpoint
    gate.open()
    assert terminal.run("echo next")["seq"] == 1  # it came after the one in flight
    first, _ = terminal.records()
    assert (first["exit"], first["stdout"], first["end"]) == (5, "begun\nended\n", "exited")
    rows = [line.split() for line in own_daemon.cli("tree").stdout.splitlines()]
    assert [row[-5] for row in rows if row[-2] != "0"] == ["kind", "Gateway"]
    assert rows[-1][-2] == "1"
    own_daemon.kill()  # its log rightly tells of the crash
