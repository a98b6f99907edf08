"""Terminals in real worker processes: nobody who uses them can tell, until a worker is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import GUARD_S, DaemonProcess, LiveTerminal, is_alive, wait_ended
from tests.e2e.streams import stream_client

pytestmark = pytest.mark.real


@pytest.fixture
def spread(own_daemon: DaemonProcess) -> Iterator[DaemonProcess]:
    """A daemon with two workers. When it has stopped nothing of it is left."""
    own_daemon.start("--port", "0", "--workers", "2")
    yield own_daemon
    if own_daemon.is_running:
        own_daemon.hang_up()
        workers = pids(own_daemon)
        assert own_daemon.stop() == 0
        assert own_daemon.shell_processes() == []
        assert [pid for pid in workers.values() if is_alive(pid)] == []


def pids(daemon: DaemonProcess) -> dict[str, int]:
    """The processes of the workers that are up."""
    nodes = daemon.call("status")["nodes"]
    return {node["name"]: node["pid"] for node in nodes if node["state"] == "up"}


def kill(daemon: DaemonProcess, node: str) -> None:
    while node not in pids(daemon):
        daemon.call("inbox_wait", timeout=0.1, from_handle="sleeper")
    os.kill(pids(daemon)[node], signal.SIGKILL)


def spawn(daemon: DaemonProcess, name: str, **arguments: Any) -> LiveTerminal:
    return LiveTerminal(daemon, name, daemon.call("term_spawn", name=name, **arguments))


def children(pid: int) -> list[str]:
    """The states of the processes that this one has started and not reaped."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    stats = (Path(f"/proc/{child}/stat") for child in path.read_text().split())
    return [stat.read_text().split()[2] for stat in stats]


def test_what_a_killed_worker_had_comes_back_on_another_and_the_others_do_not_notice(
    spread: DaemonProcess,
) -> None:
    build, other = spawn(spread, "build"), spawn(spread, "other")
    assert [build.info["node"], other.info["node"]] == ["w1", "w2"]
    other.run("kept=$$")
    kept = build.run("cd /usr && echo one")
    wakes = build.subscribe("pm")
    pending = build.start("setsid sleep 1000 & echo begun; sleep 1000")
    build.has_printed("begun")
    waiting = spread.send("term_wait", name="build", timeout=GUARD_S).has_arrived()
    kill(spread, "w1")
    with pytest.raises(CommandFailed) as failed:
        pending.result()
    assert str(failed.value) == (
        "terminal 'build' lost its worker while it handled this call, and is being started again; "
        "if your command was typed, it was killed: look for its record with aegis_term_read before "
        "you run it again"
    )
    first, killed = build.records()
    assert first == kept
    assert (killed["seq"], killed["end"], killed["killed_by_restart"]) == (
        1,
        "killed_by_restart",
        True,
    )
    assert "begun\n" in killed["stdout"]
    outcome = waiting.result()
    assert (outcome["reason"], outcome["record"]) == ("ended", killed)
    assert wakes.next()["id"].split("/")[2] == "1"
    shown = build.described()
    assert (shown["node"], shown["subscribers"]) == ("w2", ["pm"])
    assert build.run("pwd")["stdout"] == "/usr\n"
    assert [line for line in spread.shell_processes("build/") if "sleep" in line] == []
    assert other.run("[ $kept = $$ ]")["exit"] == 0


@pytest.mark.long
def test_of_killed_workers_the_daemon_keeps_no_process(spread: DaemonProcess) -> None:
    terminal = spawn(spread, "build")
    before = children(spread.process.pid)
    for _ in range(3):
        terminal.run("setsid sleep 1000 & sleep 1000 &")
        kill(spread, terminal.described()["node"])
        terminal.records()
    terminal.run("true")
    while len(pids(spread)) < 2:
        spread.call("inbox_wait", timeout=0.1, from_handle="sleeper")
    after = children(spread.process.pid)
    assert len(after) == len(before)
    assert "Z" not in after
    [shell] = spread.shell_processes()
    assert shell.split()[0] == str(terminal.described()["pid"])


async def test_a_watcher_sees_all_that_is_printed_before_and_after(spread: DaemonProcess) -> None:
    terminal = spawn(spread, "build")
    async with stream_client(spread) as client:
        stream = await client.open("terminal_output", name="build")
        await stream.type(b"echo be''fore\r")
        await stream.bytes_until(b"before")
        kill(spread, "w1")
        terminal.records()  # by the terminal that came back
        terminal.run("true")  # what is typed before a first prompt may be dropped by the shell
        await stream.type(b"echo af''ter\r")
        await stream.bytes_until(b"after")
        terminal.close()
        _, frame = await stream.all_bytes()
        assert frame["code"] == "closed"


@pytest.mark.long
def test_a_daemon_that_is_killed_takes_its_workers_along_and_the_next_has_all_again(
    spread: DaemonProcess,
) -> None:
    terminals = [spawn(spread, name) for name in ("a", "b", "c")]
    for terminal in terminals:
        terminal.run("setsid sleep 1000 & true")
    workers = pids(spread)
    spread.kill()
    spread.start("--port", "0", "--workers", "2")
    wait_ended(workers.values())  # each notices by itself that the daemon is gone
    assert [line for line in spread.shell_processes() if "sleep" in line] == []
    nodes = sorted(terminal.described()["node"] for terminal in terminals)
    assert nodes in (["w1", "w1", "w2"], ["w1", "w2", "w2"])
    for terminal in terminals:
        assert terminal.run("echo on")["seq"] == 1


@pytest.mark.long
def test_a_daemon_in_a_terminal_ends_no_worker_with_that_terminal(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.variables = {"AEGIS_TERMINAL": f"{own_daemon.root}/build/1.2"}
    own_daemon.start("--port", "0", "--workers", "2")
    workers = pids(own_daemon)
    spawn(own_daemon, "build").close()
    assert pids(own_daemon) == workers
    assert spawn(own_daemon, "build").run("echo well")["stdout"] == "well\n"
    assert own_daemon.stop() == 0
