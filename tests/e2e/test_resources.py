"""What the system has no more of: a full disk. One clear sentence; all else lives on; then back."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import GUARD_S, DaemonProcess, Gate, LiveTerminal

pytestmark = pytest.mark.real

DISK = "No space left on device; free some space, then try again"


class SmallDisk:
    """A file system of a few megabytes that a test can fill and free again."""

    def __init__(self, path: Path) -> None:
        self._ballast = path / "ballast"

    def fill(self) -> None:
        descriptor = os.open(self._ballast, os.O_CREAT | os.O_WRONLY)
        with suppress(OSError):
            while True:
                os.write(descriptor, bytes(65_536))
        with suppress(OSError):
            while True:
                os.write(descriptor, b"\0")
        os.close(descriptor)

    def free(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def small_daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    """A daemon whose state is on a file system of its own."""
    daemon = DaemonProcess(tmp_path)
    disk = daemon.root / ".aegis"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("mounting a file system needs root")
    try:
        daemon.start()
        yield daemon
        assert daemon.stop() == 0
        assert daemon.shell_processes() == []
    finally:
        if daemon.is_running:
            daemon.kill()
        subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def disk(small_daemon: DaemonProcess) -> SmallDisk:
    """The file system of ``small_daemon``."""
    return SmallDisk(small_daemon.root / ".aegis")


@pytest.fixture
def spawn(small_daemon: DaemonProcess) -> Callable[[str], LiveTerminal]:
    """Spawns a terminal of ``small_daemon``, one command old: its note has its place on disk."""

    def spawned(name: str) -> LiveTerminal:
        info = small_daemon.call("term_spawn", name=name)
        terminal = LiveTerminal(small_daemon, name, info)
        terminal.run("true")
        return terminal

    return spawned


def until_it_runs(terminal: LiveTerminal, cmd: str) -> dict[str, object]:
    """What ``cmd`` gives once the terminal, which tries again by itself, takes commands."""
    while terminal.described()["state"] != "idle":
        terminal.daemon.call("inbox_wait", timeout=0.1, from_handle="sleeper")
    return terminal.run(cmd)


def test_every_run_on_a_full_disk_is_told_at_once_and_recorded_when_there_is_room(
    small_daemon: DaemonProcess, spawn: Callable[[str], LiveTerminal], disk: SmallDisk
) -> None:
    terminal, other = spawn("full"), spawn("other")
    disk.fill()
    # Long enough not to fit into what is left of the ledger's last page.
    commands = [f"head -c 5000 /dev/zero | tr '\\0' {letter}" for letter in "abc"]
    errors = [terminal.refusal(cmd, timeout=GUARD_S) for cmd in commands]
    assert [error.code for error in errors] == ["storage"] * 3
    assert all(str(error).endswith(DISK) for error in errors), errors
    assert other.described()["state"] == "idle"
    assert small_daemon.call("inbox_read", from_handle="reader")["messages"] == []
    disk.free()
    assert terminal.run("echo back")["stdout"] == "back\n"
    records = terminal.records()
    assert len(records) == 5
    assert [record["seq"] for record in records] == list(range(len(records)))
    assert [record["cmd"] for record in records][1:4] == commands
    assert [record["exit"] for record in records][1:4] == [0, 0, 0]


def test_a_shell_that_ends_on_a_full_disk_is_replaced_when_there_is_room(
    small_daemon: DaemonProcess, spawn: Callable[[str], LiveTerminal], disk: SmallDisk
) -> None:
    left, killed = spawn("left"), spawn("killed")
    disk.fill()
    assert left.run("exit 3")["end"] == "shell_exit"
    os.kill(killed.info["pid"], signal.SIGKILL)
    for terminal in (left, killed):
        while terminal.described()["state"] != "failed":
            small_daemon.call("inbox_wait", timeout=0.1, from_handle="sleeper")
        error = terminal.refusal("echo no shell")
        assert error.code == "unavailable"
        assert "tries each second" in str(error)
        assert str(error).endswith(DISK)
    assert small_daemon.shell_processes() == []
    disk.free()
    for terminal in (left, killed):
        record = until_it_runs(terminal, "echo back")
        assert record["stdout"] == "back\n"
        seqs = [each["seq"] for each in terminal.records()]
        assert seqs == list(range(len(seqs)))
        assert len(small_daemon.shell_processes(f"{terminal.name}/")) == 1


def test_closing_on_a_full_disk_does_not_wait_for_room(
    small_daemon: DaemonProcess,
    spawn: Callable[[str], LiveTerminal],
    disk: SmallDisk,
    gate: Gate,
) -> None:
    terminal = spawn("closed")
    disk.fill()
    run = terminal.start(f"head -c 50000 /dev/zero | tr '\\0' a; {gate.hold}")
    gate.wait_reached()
    error = small_daemon.refusal("term_close", name="closed")
    assert (error.code, str(error).endswith(DISK)) == ("storage", True)
    assert "is closed, but the next up starts it again unless you close it once more" in str(error)
    assert small_daemon.shell_processes() == []
    with pytest.raises(CommandFailed, match="No space left on device"):
        run.result()
    assert "did not end in order" not in small_daemon.log
    disk.free()
    terminal.close()
    assert json.loads(small_daemon.state.workspace.read_text())["terminals"] == []
    terminal = spawn("closed")
    assert [(each["seq"], each["end"]) for each in terminal.records()] == [
        (0, "exited"),
        (1, "closed"),
        (2, "exited"),
    ]


def test_what_cannot_be_made_on_a_full_disk_is_told_and_leaves_nothing(
    small_daemon: DaemonProcess, disk: SmallDisk
) -> None:
    small_daemon.call("session_new", handle="known")
    disk.fill()
    # A page of the new file system's own may still be had: what is large cannot.
    refused = small_daemon.refusal("handoff", target_handle="known", context="x" * 100_000)
    assert (refused.code, str(refused).endswith(DISK)) == ("storage", True)
    error = small_daemon.refusal("term_spawn", name="new")
    assert (error.code, str(error).endswith(DISK)) == ("storage", True), error
    assert not (small_daemon.state.terminals / "new").exists()
    assert small_daemon.shell_processes() == []
    for handle in ("one", "two", "three"):
        error = small_daemon.refusal("session_new", handle=handle)
        assert (error.code, str(error).endswith(DISK)) == ("storage", True), error
    disk.free()
    assert small_daemon.call("term_spawn", name="new")["state"] == "idle"
    assert small_daemon.call("session_new", handle="one")["url"]
    assert not [line for line in small_daemon.failures() if "crashed" in line]


def test_without_free_descriptors_spawning_is_refused_and_all_else_goes_on(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    _, hard = resource.prlimit(own_daemon.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(own_daemon.process.pid, resource.RLIMIT_NOFILE, (64, hard))
    terminals = [
        LiveTerminal(own_daemon, name, own_daemon.call("term_spawn", name=name))
        for name in ("a", "b", "c")
    ]
    more = (f"t{number}" for number in range(64))
    with pytest.raises(CommandFailed, match="of at most 64 files open") as refused:
        terminals.extend(
            LiveTerminal(own_daemon, name, own_daemon.call("term_spawn", name=name))
            for name in more
        )
    assert refused.value.code == "unavailable"
    assert not (own_daemon.state.terminals / f"t{len(terminals) - 3}").exists()
    assert [terminal.run("echo on")["stdout"] for terminal in terminals] == ["on\n"] * len(
        terminals
    )
    assert terminals[0].run("sleep 1000 & exit 3")["end"] == "shell_exit"
    assert terminals[0].run("echo fresh")["stdout"] == "fresh\n"
    assert own_daemon.call("inbox_read", from_handle="new")["messages"] == []
    for terminal in terminals[1:]:
        terminal.close()
    assert own_daemon.call("term_spawn", name="again")["state"] == "idle"


def test_a_file_that_may_not_grow_is_told_and_goes_on_once_it_may(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    info = own_daemon.call("term_spawn", name="grown")
    terminal = LiveTerminal(own_daemon, "grown", info)
    terminal.run("true")
    no_limit = resource.prlimit(own_daemon.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(own_daemon.process.pid, resource.RLIMIT_FSIZE, (20_000, no_limit[1]))
    error = terminal.refusal("head -c 50000 /dev/zero | tr '\\0' a")
    assert (error.code, "File too large; raise the limit" in str(error)) == ("storage", True)
    resource.prlimit(own_daemon.process.pid, resource.RLIMIT_FSIZE, no_limit)
    assert terminal.run("echo on")["stdout"] == "on\n"
    assert [record["seq"] for record in terminal.records()] == [0, 1, 2]
    own_daemon.kill()  # its log rightly tells of the raw log that could not be written
