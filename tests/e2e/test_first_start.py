"""What a newcomer does first: ``up`` in all its forms, and the commands that it prints."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import aegis
from aegis.daemon_process import LOG_BYTES
from tests.e2e.harness import GUARD_S, PROGRAM, DaemonProcess
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def root(own_daemon: DaemonProcess) -> Iterator[DaemonProcess]:
    """A root without a daemon; one that a test starts there in the background is stopped."""
    yield own_daemon
    if own_daemon.state.endpoint.exists() and not own_daemon.is_running:
        assert own_daemon.cli("down").returncode == 0


def test_up_in_the_background_returns_when_it_serves(root: DaemonProcess) -> None:
    done = root.cli("up", "-d", "--port", "0")
    assert done.returncode == 0, done.stderr
    assert root.cli("term", "spawn", "build").returncode == 0
    assert f"is ready for {root.root}" in done.stdout
    assert "Ctrl-C" not in done.stdout  # it would reach nothing
    [log] = re.findall(r"its log: (\S+)", done.stderr)
    assert Path(log) == root.state.log
    again = root.cli("up", "-d")
    assert again.returncode == 0
    assert f"(pid {root.endpoint.pid})" in again.stderr


def test_a_start_in_the_background_that_fails_has_its_reason_code_and_log(
    root: DaemonProcess,
) -> None:
    (root.root / ".aegis.yaml").write_text("terminals: {cols: wide}\n")
    done = root.cli("up", "-d", "--port", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "terminals.cols" in done.stderr
    assert not (root.root / ".aegis").exists()
    done = subprocess.run(
        [str(PROGRAM), "up", "-d", "--host", "203.0.113.1", "--root", str(root.home)],
        env=root.environment,
        capture_output=True,
        text=True,
        timeout=GUARD_S,
        check=False,
    )
    assert done.returncode == 1
    assert "cannot listen on 203.0.113.1" in done.stderr
    assert not (root.home / ".aegis").exists()


def test_the_log_of_the_background_is_one_file_of_the_state_and_bounded(
    root: DaemonProcess, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    root.variables["TMPDIR"] = str(scratch)
    log, older = root.state.log, Path(f"{root.state.log}.1")

    def cycle() -> None:
        assert root.cli("up", "-d", "--port", "0", "--log-level", "debug").returncode == 0
        assert root.cli("down").returncode == 0

    cycle()
    first = log.read_text()
    assert all(line.startswith("{") for line in first.splitlines())
    cycle()
    assert log.read_text().startswith(first)
    with log.open("ab") as file:
        file.truncate(LOG_BYTES + 1)
    cycle()
    assert (older.stat().st_size, log.stat().st_size < LOG_BYTES) == (LOG_BYTES + 1, True)

    # It grows while the daemon runs, too: the next line begins another file.
    assert root.cli("up", "-d", "--port", "0", "--log-level", "debug").returncode == 0
    with log.open("ab") as file:
        file.truncate(LOG_BYTES + 2)
    assert root.cli("term", "spawn", "build").returncode == 0
    assert root.cli("down").returncode == 0
    assert LOG_BYTES + 2 <= older.stat().st_size < LOG_BYTES + 10_000
    assert 0 < log.stat().st_size < LOG_BYTES
    assert list(scratch.iterdir()) == []


def test_clients_wait_for_a_daemon_that_is_starting(
    root: DaemonProcess, request: pytest.FixtureRequest
) -> None:
    halted = halt_while_it_starts(root)
    request.addfinalizer(halted.kill)
    waiting = subprocess.Popen(
        [*root.program, "status", "--json"],
        env=root.environment,
        cwd=root.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until_asleep(waiting.pid)
    halted.send_signal(signal.SIGCONT)
    with aegis.connect_sync(root.root) as client:
        assert client.terminals.list().result == []
    out, err = waiting.communicate(timeout=GUARD_S)
    assert (waiting.returncode, err) == (0, "")
    assert f'"pid": {halted.pid}' in out
    assert root.cli("down").returncode == 0
    assert halted.wait(GUARD_S) == 0


def test_a_verb_right_behind_up_waits_for_a_daemon_that_has_no_lock_yet(
    root: DaemonProcess, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    def start(*words: str) -> subprocess.Popen[bytes]:
        halted = subprocess.Popen(
            [*root.program, "up", "--port", "0", *words],
            env=root.environment,
            cwd=root.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        halted.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, halted.pid, os.WSTOPPED | os.WNOWAIT)
        request.addfinalizer(halted.kill)
        return halted

    # No daemon of this root, and nothing to wait for.
    other = start("--root", str(tmp_path))
    missing = root.cli("status")
    assert "no daemon runs for" in missing.stderr
    other.kill()
    other.wait(GUARD_S)

    halted = start()
    while root.state.lock.exists():
        kill_quicker(root, halted)
        halted = start()
    words = [*root.program, "status", "--json"]
    waiting = subprocess.Popen(
        words, env=root.environment, cwd=root.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until_asleep(waiting.pid)
    # A verb waits for twenty seconds, and the daemon has yet to import everything.
    waiting.send_signal(signal.SIGSTOP)
    halted.send_signal(signal.SIGCONT)
    until(root.state.endpoint.exists, "the daemon serves")
    waiting.send_signal(signal.SIGCONT)
    out, err = waiting.communicate(timeout=GUARD_S)
    assert (waiting.returncode, err) == (0, b"")
    assert f'"pid": {halted.pid}'.encode() in out
    assert root.cli("down").returncode == 0
    assert halted.wait(GUARD_S) == 0


def halt_while_it_starts(root: DaemonProcess) -> subprocess.Popen[bytes]:
    """Start a daemon, and stop its process while it holds the lock and does not serve yet."""
    for _ in range(20):
        process = subprocess.Popen(
            [*root.program, "up", "--port", "0"],
            env=root.environment,
            cwd=root.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + GUARD_S
        while not (root.state.lock.exists() and root.state.lock.read_text() == f"{process.pid}\n"):
            assert time.monotonic() < deadline
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        if not root.state.endpoint.exists():
            return process
        kill_quicker(root, process)
    raise AssertionError("each daemon served before it could be stopped")


def kill_quicker(root: DaemonProcess, process: subprocess.Popen[bytes]) -> None:
    """Kill a daemon that was too far when it was stopped, and remove its lock and its endpoint."""
    process.kill()
    process.wait(GUARD_S)
    root.state.lock.unlink(missing_ok=True)
    root.state.endpoint.unlink(missing_ok=True)


def until_asleep(pid: int) -> None:
    """Wait until a client sleeps between two attempts: it waits for nothing else by a clock."""
    deadline = time.monotonic() + GUARD_S
    while "nanosleep" not in Path(f"/proc/{pid}/wchan").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("words", [["-d", "--open"], ["--open"]], ids=["background", "foreground"])
def test_up_opens_the_page_once_it_serves(
    root: DaemonProcess, tmp_path: Path, words: list[str]
) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part\nmv {opened}.part {opened}\n')
    browser.chmod(0o755)
    root.variables |= {"DISPLAY": ":77", "BROWSER": f"{browser} %s"}
    started = subprocess.Popen(
        [*root.program, "up", "--port", "0", *words],
        env=root.environment,
        cwd=root.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(opened.exists, "the browser is started")
    address = opened.read_text().strip()
    page = Path(address.removeprefix("file://")).read_text()
    assert root.endpoint.url in page
    assert root.cli("down").returncode == 0
    assert started.wait(GUARD_S) == 0


def test_the_commands_that_up_prints_work_in_a_shell_without_the_program_on_its_path(
    root: DaemonProcess,
) -> None:
    environment = root.environment | {"PATH": "/usr/bin:/bin"}

    def shell(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["/bin/sh", "-c", line],
            env=environment,
            cwd=root.root,
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )

    done = shell(f"{PROGRAM} up -d --port 0")
    assert done.returncode == 0, done.stderr
    commands = re.findall(r"(\S+ (?:term (?:spawn|run)|down|session)\b.*)", done.stdout)
    assert len(commands) == 4
    for command in commands:
        done = shell(command.strip('"$()').replace("NAME", "pm"))
        assert done.returncode == 0, (command, done.stderr)
    done = shell(f"{PROGRAM} status")
    [start] = re.findall(r"start one with: (.*)", done.stderr)
    assert shell(f"{start} -d --port 0").returncode == 0


def test_a_unit_for_systemd_starts_a_daemon_that_notifies(
    root: DaemonProcess, tmp_path: Path
) -> None:
    odd = root.root / 'a b%c$d"é'
    odd.mkdir()
    (odd / ".aegis.yaml").touch()
    done = root.cli("--root", str(odd), "unit")
    assert done.returncode == 0, done.stderr
    assert "systemctl --user enable --now aegis-a-b-c-d" in done.stderr
    unit = tmp_path / "aegis-test.service"
    unit.write_text(done.stdout)
    if shutil.which("systemd-analyze") is not None:
        verified = subprocess.run(
            ["systemd-analyze", "verify", unit],
            capture_output=True,
            text=True,
            timeout=GUARD_S,
            check=False,
        )
        assert (verified.returncode, verified.stderr) == (0, "")
    [line] = re.findall(r"^ExecStart=(.*)", done.stdout, re.MULTILINE)
    assert line.startswith(f'"{PROGRAM}" up --root "')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        path = tmp_path / "notify"
        manager.bind(str(path))
        manager.settimeout(GUARD_S)
        root.variables["NOTIFY_SOCKET"] = str(path)
        root.start("--port", "0")
        assert manager.recv(100) == b"READY=1"
    assert root.state.endpoint.exists()
    record = root.terminal("build").run("echo [$NOTIFY_SOCKET]")
    assert record["stdout"] == "[]\n"
