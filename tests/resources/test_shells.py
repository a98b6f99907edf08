"""Shells and children that somebody kills, stops or lets flood, under a daemon that goes on."""

from __future__ import annotations

import os
import signal

import pytest

from tests.e2e.conftest import Connect
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal
from tests.resources.conftest import spawned
from tests.resources.waiting import until, until_state

pytestmark = pytest.mark.real

MIB = 1024 * 1024


def shell_of(terminal: LiveTerminal) -> int:
    """The pid of the shell that it has now."""
    pid = terminal.described()["pid"]
    assert isinstance(pid, int)
    return pid


def until_fresh(terminal: LiveTerminal, before: int) -> None:
    """Wait until another shell than that one is at its prompt."""
    until(lambda: terminal.described()["pid"] not in (before, None), "there is a fresh shell")
    until_state(terminal, "idle")


def child_of(terminal: LiveTerminal, words: str) -> int:
    """The pid of the process of the terminal that was started with these words."""

    def found() -> list[str]:
        processes = terminal.daemon.shell_processes(f"{terminal.name}/")
        return [each for each in processes if each.endswith(f" {words} ")]

    until(lambda: bool(found()), f"{words} runs")
    return int(found()[0].split()[0])


async def test_a_shell_that_is_killed_ends_its_command_with_all_its_children_and_a_fresh_one_comes(
    own_daemon: DaemonProcess, gate: Gate, connect_mcp: Connect
) -> None:
    own_daemon.start()
    terminal, other = spawned(own_daemon, "killed"), spawned(own_daemon, "other")
    woken = terminal.subscribe("eve")
    held = other.start(f"echo undisturbed; {gate.hold}")
    gate.wait_reached()
    async with connect_mcp(own_daemon, "auto", "ann") as client:
        for expected in range(1, 3):
            # At rest: the end of the shell is recorded by itself.
            before = shell_of(terminal)
            os.kill(before, signal.SIGKILL)
            until_fresh(terminal, before)
            # In the middle: the command ends with its shell, and so does what it left behind.
            run = terminal.start("setsid sleep 1001 & (trap '' HUP TERM; sleep 1002) & sleep 1003")
            child_of(terminal, "sleep 1001")
            child_of(terminal, "sleep 1003")
            os.kill(shell_of(terminal), signal.SIGKILL)
            record = run.result()
            assert (record["seq"], record["end"], record["exit"]) == (
                3 * expected - 1,
                "shell_exit",
                128 + signal.SIGKILL,
            )
            left = own_daemon.shell_processes("killed/")
            assert not [each for each in left if "sleep" in each]
            done = await client.call_tool("aegis_term_run", {"name": "killed", "cmd": "echo on"})
            assert done.structured_content is not None
            assert done.structured_content["stdout"] == "on\n"
    gate.open()
    assert held.result()["stdout"] == "undisturbed\n"
    assert [record["seq"] for record in terminal.records()] == list(range(7))
    assert [woken.next()["id"].split("/")[-2] for _ in range(6)] == ["1", "2", "3", "4", "5", "6"]


def test_a_child_that_is_killed_ends_its_command_and_not_its_shell(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    terminal = spawned(own_daemon, "parent")
    shell = shell_of(terminal)
    run = terminal.start("sleep 1000")
    os.kill(child_of(terminal, "sleep 1000"), signal.SIGKILL)
    record = run.result()
    assert (record["exit"], record["end"]) == (128 + signal.SIGKILL, "exited")
    assert shell_of(terminal) == shell


def test_a_shell_that_is_stopped_holds_up_its_own_callers_and_goes_on_where_it_was(
    own_daemon: DaemonProcess, gate: Gate
) -> None:
    own_daemon.start()
    terminal, other = spawned(own_daemon, "stopped"), spawned(own_daemon, "other")
    shell = shell_of(terminal)
    terminal.wait_editing()  # stopped before its prompt, it would get no command
    os.kill(shell, signal.SIGSTOP)
    typed = terminal.run("echo typed", timeout=0.5)
    assert (typed["seq"], typed["timed_out"], typed["end"]) == (1, True, None)
    error = terminal.refusal("echo never", timeout=0.5)
    assert error.code == "busy"
    assert "was not typed" in str(error)
    assert other.run("echo fine")["stdout"] == "fine\n"
    os.kill(shell, signal.SIGCONT)
    done = own_daemon.call("term_wait", name="stopped", seq=1, timeout=GUARD_S)["record"]
    assert (done["stdout"], done["exit"], done["timed_out"]) == ("typed\n", 0, True)
    # Once more, in the middle of a command whose child goes on alone.
    child = f"({gate.hold}; echo child said)"
    run = terminal.start(child)
    gate.wait_reached()
    os.kill(shell, signal.SIGSTOP)
    gate.open()
    terminal.has_printed("child said")
    assert terminal.described()["state"] == "running"
    os.kill(shell, signal.SIGCONT)
    assert run.result()["stdout"] == "child said\n"
    # A terminal whose shell is stopped can be closed, and leaves nothing.
    os.kill(shell, signal.SIGSTOP)
    terminal.close()
    assert own_daemon.shell_processes("stopped/") == []
    assert [record["cmd"] for record in terminal.records()] == [
        "true",
        "echo typed",
        child,
    ]


def test_floods_without_end_are_bounded_and_others_are_served_and_the_daemon_stops(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    floods = [spawned(own_daemon, name) for name in ("yes", "line", "escapes")]
    other = spawned(own_daemon, "other")
    before = own_daemon.call("status")["rss_bytes"]
    commands = ("yes", "yes | tr -d '\\n'", "yes $'\\e[31m\\e]0;title\\a'")
    runs = [flood.start(cmd) for flood, cmd in zip(floods, commands, strict=True)]
    cursors = [0, 0, 0]
    for number in range(8):
        assert other.run(f"echo {number}")["stdout"] == f"{number}\n"
        for index, flood in enumerate(floods):
            chunk = own_daemon.call("term_output", name=flood.name, cursor=cursors[index])
            assert chunk["next_cursor"] >= cursors[index]
            cursors[index] = chunk["next_cursor"]
    assert own_daemon.call("status")["rss_bytes"] - before < 48 * MIB
    for flood in floods:
        assert sum(each.stat().st_size for each in flood.directory.glob("raw.*")) < 21 * MIB
    until(
        lambda: "y\ny\n" in own_daemon.call("term_output", name="yes")["text"],
        "the program runs that gets the Ctrl-C",
    )
    floods[0].keys("\x03")
    assert runs[0].result()["exit"] == 130
    assert own_daemon.stop() == 0
    for run in runs[1:]:
        assert run.result()["end"] == "killed_by_restart"
    assert own_daemon.shell_processes() == []
