"""At the limit of processes and PTYs calls are refused with its name, and nothing else ends."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import GUARD_S, PROGRAM, DaemonProcess
from tests.resources.conftest import check_stopped, spawned
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.long]

FORKS = "clone,clone3,fork,vfork"


@contextlib.contextmanager
def no_process(daemon: DaemonProcess) -> Iterator[None]:
    """Let the daemon start no thread and no process; it has none in reserve."""
    pid = daemon.process.pid
    until(lambda: len(os.listdir(f"/proc/{pid}/task")) == 1, "its idle threads have ended")
    if os.geteuid() != 0:
        before = resource.prlimit(pid, resource.RLIMIT_NPROC)
        resource.prlimit(pid, resource.RLIMIT_NPROC, (1, before[1]))
        try:
            yield
        finally:
            resource.prlimit(pid, resource.RLIMIT_NPROC, before)
        return
    # Root is exempt from the limit: the system calls fail as they would.
    if shutil.which("strace") is None:
        pytest.skip("root is exempt from the limit, and strace is not installed")
    fails = ["-e", f"trace={FORKS}", "-e", f"inject={FORKS}:error=EAGAIN"]
    tracer = subprocess.Popen(["strace", "-f", "-qq", "-o", os.devnull, *fails, "-p", str(pid)])
    try:
        until(lambda: f"TracerPid:\t{tracer.pid}\n" in status_of(pid), "it is traced")
        yield
    finally:
        tracer.send_signal(signal.SIGTERM)
        tracer.wait(60)


def status_of(pid: int) -> str:
    return Path(f"/proc/{pid}/status").read_text()


CALLS: tuple[tuple[str, dict[str, object]], ...] = (
    ("term_run", {"name": "kept", "cmd": "echo hi"}),
    ("term_read", {"name": "kept"}),
    ("term_subscribe", {"name": "kept", "from_handle": "bob"}),
    ("term_spawn", {"name": "new"}),
    ("term_close", {"name": "closed"}),
    ("workspace_create", {"workspace": "v"}),
    ("workspace_exec", {"workspace": "w", "command": "true"}),
    ("shell_open", {"workspace": "w"}),
    ("session_new", {"handle": "bob"}),
    ("handoff", {"target_handle": "bob", "context": "hello", "from_handle": "eve"}),
    ("inbox_read", {"from_handle": "eve"}),
    ("canvas_open", {"name": "plan", "file": "plan.md"}),
    ("agent_launch", {"cmd": "cat", "handle": "ann"}),
    ("list_agents", {}),
    ("workflow_list", {}),
    ("request_list", {}),
    ("page_link", {"view": "terminal:kept"}),
    ("token_rotate", {}),
    ("tree", {}),
    ("term_list", {}),
    ("status", {}),
)


def test_without_a_free_process_each_call_is_refused_by_the_limits_name_and_no_shell_is_lost(
    own_daemon: DaemonProcess,
) -> None:
    own_daemon.start()
    kept, ended = spawned(own_daemon, "kept"), spawned(own_daemon, "ended")
    spawned(own_daemon, "closed")
    kept.run("X=kept")
    own_daemon.call("workspace_create", workspace="w")
    refused: dict[str, CommandFailed] = {}
    with no_process(own_daemon):
        ended.keys("exit\r")
        for command, arguments in CALLS:
            try:
                own_daemon.call(command, **arguments)
            except CommandFailed as error:
                refused[command] = error
        until(lambda: ended.described()["state"] != "idle", "its shell has ended")
    assert refused.keys() >= {"term_spawn", "workspace_exec"}
    for command, refusal in refused.items():
        assert refusal.code in ("unavailable", "storage"), (command, refusal)
        assert re.search(r"RLIMIT_NPROC|pids.max|kernel.pid_max", str(refusal)), (command, refusal)
    assert kept.run("echo $X")["stdout"] == "kept\n"
    until(lambda: ended.described()["state"] == "idle", "it has a fresh shell")
    assert ended.run("echo fresh")["stdout"] == "fresh\n"
    assert own_daemon.call("workspace_exec", workspace="w", command="echo on")["stdout"] == "on\n"
    assert own_daemon.call("term_spawn", name="later")["state"] in ("starting", "idle")
    assert '"event": "crashed"' not in own_daemon.log
    check_stopped(own_daemon)  # its log rightly reports its own failures meanwhile


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount another /dev/pts")
def test_a_terminal_that_got_no_pty_at_up_is_started_once_one_is_free(tmp_path: Path) -> None:
    daemon = DaemonProcess(tmp_path)
    daemon.start()
    spawned(daemon, "build")
    assert daemon.stop() == 0
    # One PTY in a /dev/pts of its own, taken by the shell that starts the daemon.
    script = f"""
        mount -t devpts -o newinstance,ptmxmode=0666,max=1 devpts /dev/pts
        mount --bind /dev/pts/ptmx /dev/ptmx
        exec 5<>/dev/ptmx
        {PROGRAM} up --port 0 >log 2>&1 &
        until {PROGRAM} term list | grep -q '^build *failed'; do sleep 0.1; done
        {PROGRAM} term list
        exec 5>&-
        until {PROGRAM} term list | grep -q '^build *idle'; do sleep 0.1; done
        {PROGRAM} term run build 'echo started'
        {PROGRAM} down
        wait
    """
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        env=daemon.environment,
        cwd=daemon.root,
        capture_output=True,
        text=True,
        timeout=5 * GUARD_S,  # every `term list` begins with an interpreter
        check=False,
    )
    assert "started" in done.stdout, (done.stderr, (daemon.root / "log").read_text())
    assert "kernel.pty.max" in done.stdout
