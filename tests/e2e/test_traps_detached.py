"""Trap 31: a child that detached itself is gone after whatever ends the shell it came from."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.harness import DaemonProcess, Gate, LiveTerminal, is_alive

pytestmark = pytest.mark.real

DAEMONIZE = """\
import os, signal, subprocess, sys, time
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
os.chdir("/")
os.closerange(0, 256)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with open(sys.argv[1], "w") as file:
    file.write(str(os.getpid()))
subprocess.run(sys.argv[2], shell=True)
time.sleep(1000)
"""
"""As daemons do it: two forks, two sessions, nothing held open, deaf to a hangup."""

SCRIPT = 'echo $$ >"$1"; eval "$2"; while :; do sleep 1000; done'

DETACHED = {
    "setsid": "setsid sh -c {script} sh {pid} {reach} >/dev/null 2>&1 &",
    "setsid that forks": "setsid -f sh -c {script} sh {pid} {reach}",
    "a daemon of two forks": "{python} -c {daemonize} {pid} {reach}",
    "one that ignores signals": (
        "setsid sh -c 'trap \"\" HUP TERM INT; '{script} sh {pid} {reach} >/dev/null 2>&1 &"
    ),
    "one without its environment": "env -i /bin/sh -c {script} sh {pid} {reach} >/dev/null 2>&1 &",
}


def detach(terminal: LiveTerminal, how: str, gate: Gate, pid: Path) -> int:
    """Let a command of the terminal leave a child; gives its pid."""
    words = {"script": SCRIPT, "daemonize": DAEMONIZE, "python": sys.executable}
    quoted = {name: shlex.quote(word) for name, word in words.items()}
    reach = shlex.quote(gate.reach)
    record = terminal.run(DETACHED[how].format(**quoted, pid=shlex.quote(str(pid)), reach=reach))
    assert record["exit"] == 0, record
    gate.wait_reached()
    child = int(pid.read_text())
    assert is_alive(child)
    return child


def detach_all(terminal: LiveTerminal, gate: Gate, directory: Path) -> dict[str, int]:
    """One child of each kind; their pids."""
    return {
        how: detach(terminal, how, gate, directory / f"pid{number}")
        for number, how in enumerate(DETACHED)
    }


def spawn(daemon: DaemonProcess) -> LiveTerminal:
    return LiveTerminal(daemon, "build", daemon.call("term_spawn", name="build"))


def close(terminal: LiveTerminal) -> None:
    terminal.close()


def kill_and_start(terminal: LiveTerminal) -> None:
    terminal.daemon.kill()
    terminal.daemon.start()
    assert terminal.run("echo back")["stdout"] == "back\n"


def kill_and_start_clean(terminal: LiveTerminal) -> None:
    terminal.daemon.kill()
    terminal.daemon.start("--port", "0", "--clean")


def stop(terminal: LiveTerminal) -> None:
    assert terminal.daemon.stop() == 0


def leave_the_shell(terminal: LiveTerminal) -> None:
    """The record comes once nothing of the shell is left."""
    assert terminal.run("exit 3")["end"] == "shell_exit"


def fail_a_spawn(terminal: LiveTerminal) -> None:
    """Three shells in a row that end before a prompt: the terminal has failed."""
    (terminal.daemon.home / ".bashrc").write_text("exit 1\n")
    assert terminal.run("exit 3")["end"] == "shell_exit"


ENDINGS: dict[str, Callable[[LiveTerminal], None]] = {
    "a close": close,
    "a kill -9 of the daemon and its start": kill_and_start,
    "a kill -9 of the daemon and a clean start": kill_and_start_clean,
    "a stop": stop,
    "the end of the shell": leave_the_shell,
    "the end of the shell and no other to follow": fail_a_spawn,
}


@pytest.mark.parametrize("end", ENDINGS.values(), ids=ENDINGS)
def test_trap_31_a_detached_child_is_gone_after(
    own_daemon: DaemonProcess, gate: Gate, tmp_path: Path, end: Callable[[LiveTerminal], None]
) -> None:
    own_daemon.start()
    terminal = spawn(own_daemon)
    children = detach_all(terminal, gate, tmp_path)
    end(terminal)
    assert [how for how, child in children.items() if is_alive(child)] == []
    assert "remain" not in own_daemon.log


@pytest.mark.parametrize(
    "also",
    [
        pytest.param("", id="which cleans up"),
        pytest.param(",actor.teardown.before[Shell]@1=crash", id="which cannot even clean up"),
    ],
)
def test_trap_31_a_detached_child_is_gone_after_a_crash_of_the_shells_actor(
    own_daemon: DaemonProcess, gate: Gate, tmp_path: Path, also: str
) -> None:
    strikes_at = 80
    own_daemon.start(faults=f"actor.receive.before[Shell]@{strikes_at}=crash{also}")
    terminal = spawn(own_daemon)
    children = detach_all(terminal, gate, tmp_path)
    sent = 0
    while "InjectedCrash" not in own_daemon.log:
        sent += 1
        assert sent <= strikes_at
        own_daemon.send("term_keys", name="build", keys=" ").outcome()
    assert terminal.run("echo back")["stdout"] == "back\n"
    assert [how for how, child in children.items() if is_alive(child)] == []
    own_daemon.kill()  # its log rightly tells of the crash
