"""G14: at ``up`` nothing runs on that an earlier daemon left, and nothing else is ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal
from tests.resources.waiting import until

pytestmark = pytest.mark.real

PORT_0 = ("--port", "0")

STUBBORN = "trap '' HUP TERM INT; echo $$ >&7; while :; do sleep 1000; done"


def spawn(daemon: DaemonProcess, name: str) -> LiveTerminal:
    return LiveTerminal(daemon, name, daemon.call("term_spawn", name=name))


def leave_running(terminal: LiveTerminal, gate: Gate) -> None:
    """Processes in the shell's session and outside, some of which ignore signals."""
    children = (
        f"setsid bash -c \"trap '' HUP TERM INT; {gate.reach}; sleep 1000; sleep 1000\"",
        f"env -i /bin/sh -c '{gate.reach}; exec sleep 1000'",
        f"nohup setsid sh -c '{gate.reach}; exec sleep 1000' >/dev/null 2>&1",
    )
    terminal.run("".join(f"{child} &\n" for child in children))
    for _ in children:
        gate.wait_reached()


@pytest.mark.parametrize("options", [PORT_0, (*PORT_0, "--clean")], ids=["restoring", "clean"])
@pytest.mark.parametrize("note", ["as it was", "missing", "damaged"])
def test_a_start_ends_all_processes_of_all_terminals_of_a_killed_daemon(
    own_daemon: DaemonProcess,
    new_gate: Callable[[], Gate],
    options: tuple[str, ...],
    note: str,
) -> None:
    own_daemon.start()
    terminals = [spawn(own_daemon, name) for name in ("one", "two")]
    for terminal in terminals:
        leave_running(terminal, new_gate())
    own_daemon.kill()
    # With a cookie; those without are found by their session. One may be within its exec.
    until(lambda: len(sleepers(own_daemon)) >= 4, "they sleep")
    for terminal in terminals:
        path = terminal.directory / "shell.json"
        assert path.exists()
        if note == "missing":
            path.unlink()
        elif note == "damaged":
            path.write_bytes(b"\xff{" * 100)
    own_daemon.start(*options)
    assert sleepers(own_daemon) == []
    if note == "as it was":
        assert sessions_alive(terminals) == []
    assert "remain" not in own_daemon.log


def sleepers(daemon: DaemonProcess) -> list[str]:
    return [each for each in daemon.shell_processes() if "sleep 1000" in each]


def sessions_alive(terminals: list[LiveTerminal]) -> list[int]:
    """The pids of processes in the sessions of the terminals' first shells."""
    sids = {terminal.info["pid"] for terminal in terminals}
    pids = [int(each.name) for each in Path("/proc").glob("[0-9]*")]
    found = []
    for pid in pids:
        try:
            state = (
                (Path("/proc") / str(pid) / "stat")
                .read_bytes()
                .rpartition(b")")[2]
                .split()[0]
                .decode()
            )
            if state not in "ZX" and os.getsid(pid) in sids:
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.fixture
def bystander(own_daemon: DaemonProcess) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Starts processes with a cookie that the daemon did not give them."""
    started: list[subprocess.Popen[bytes]] = []

    def start(cookie: str) -> subprocess.Popen[bytes]:
        environment = {**own_daemon.environment, "AEGIS_TERMINAL": cookie}
        started.append(subprocess.Popen(["sleep", "1000"], env=environment, start_new_session=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_a_start_ends_by_the_cookie_what_is_of_this_root_and_nothing_else(
    own_daemon: DaemonProcess, bystander: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    root = own_daemon.root
    own = bystander(f"{root}/never-heard-of/0123456789ab.1.1")
    others = [
        bystander(f"{root}/nested/root/build/0123456789ab.1.1"),
        bystander(f"{root}x/build/0123456789ab.1.1"),
        bystander(f"{root.parent}/build/0123456789ab.1.1"),
    ]
    own_daemon.start()
    assert own.wait() < 0  # by a hang-up, or by what follows where hang-ups are ignored
    assert [each.poll() for each in others] == [None] * 3


def test_a_session_that_is_somebody_elses_by_now_is_left_alone(
    own_daemon: DaemonProcess, bystander: Callable[[str], subprocess.Popen[bytes]]
) -> None:
    own_daemon.start()
    terminal = spawn(own_daemon, "build")
    note = terminal.directory / "shell.json"
    mine = note.read_text()
    pid = terminal.info["pid"]
    assert f'"sid": {pid}' in mine
    own_daemon.kill()
    other = bystander("")
    # As if the pid of the shell had been given to another one meanwhile.
    own_daemon.sign(note, {**json.loads(mine), "sid": other.pid})
    own_daemon.start()
    assert terminal.run("echo lives")["stdout"] == "lives\n"
    assert other.poll() is None


class InheritedDaemon(DaemonProcess):
    """A daemon that is started inside a terminal, with that terminal's cookie."""

    cookie = ""

    @property
    def environment(self) -> dict[str, str]:
        return {**super().environment, "AEGIS_TERMINAL": self.cookie}

    @property
    def program(self) -> list[str]:
        # A shell between: it has the cookie too, and waits for the daemon.
        return ["bash", "-c", '"$@"; exit $?', "bash", *super().program]


def test_a_daemon_inside_a_terminal_of_its_own_root_ends_neither_itself_nor_its_ancestors(
    tmp_path: Path,
) -> None:
    daemon = InheritedDaemon(tmp_path)
    daemon.cookie = f"{daemon.root}/build/0123456789ab.1.1"
    daemon.start()
    try:
        terminal = spawn(daemon, "build")
        assert terminal.run("echo $AEGIS_TERMINAL")["stdout"] != f"{daemon.cookie}\n"
        os.kill(terminal.info["pid"], signal.SIGKILL)
        terminal.start("true").outcome()  # perhaps still in the shell that is killed
        assert terminal.run("echo lives")["stdout"] == "lives\n"
        terminal.close()
        assert daemon.process.poll() is None
    finally:
        if daemon.is_running:
            os.kill(daemon.endpoint.pid, signal.SIGTERM)
        code = daemon.wait_stopped()
    assert code == 0
