"""A daemon that is started as pid 1 of a container, or as a subreaper, reaps the orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.processes.os_processes import process_of, read_groups
from aegis.processes.process_table import ProcessInfo
from tests.e2e.harness import PROGRAM, DaemonProcess
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.long]

SUBREAPER = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(36, 1, 0, 0, 0); os.execv(sys.argv[1], "
    "sys.argv[1:])"
)


class Container:
    """``aegis-actors up`` in the place of init: ``pid`` is the process that adopts orphans."""

    def __init__(self, daemon: DaemonProcess, kind: str) -> None:
        self.daemon, self.kind = daemon, kind
        up = [str(PROGRAM), "up", "--port", "0"]
        command = (
            [sys.executable, "-c", SUBREAPER, *up]
            if kind == "subreaper"
            else ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *up]
        )
        self.log = daemon.root.parent / "log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                env=daemon.environment,
                cwd=daemon.root,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        until(lambda: "is ready for" in self.log.read_text(), "the daemon serves")
        children = children_of(self.process.pid)
        self.pid = self.process.pid if kind == "subreaper" else children[0].pid

    def cli(self, *words: str) -> str:
        inside = ["nsenter", "-t", str(self.pid), "-m", "-p", f"--wd={self.daemon.root}"]
        done = subprocess.run(
            [*(inside if self.kind == "pid 1" else []), str(PROGRAM), *words],
            env=self.daemon.environment,
            cwd=self.daemon.root,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def children_of(parent: int) -> list[ProcessInfo]:
    found = (process_of(pid) for pids in read_groups().values() for pid in pids)
    return [each for each in found if each is not None and each.parent == parent]


@pytest.fixture(params=["subreaper", "pid 1"])
def container(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Container]:
    if request.param == "pid 1" and os.geteuid() != 0:
        pytest.skip("only root can make a namespace of processes")
    made = Container(DaemonProcess(tmp_path), request.param)
    yield made
    if made.process.poll() is None:
        made.process.kill()
    made.process.wait(60)


def test_an_orphan_that_ended_is_no_zombie_of_the_process_that_adopted_it(
    container: Container,
) -> None:
    go = container.daemon.root / "go"
    container.cli("term", "spawn", "build")
    orphan = f"while [ ! -e {go} ]; do sleep 0.05; done"
    container.cli("term", "run", "build", f"for i in 1 2 3; do (setsid sh -c '{orphan}' &); done")

    def adopted() -> list[ProcessInfo]:
        return [each for each in children_of(container.pid) if each.name in ("sh", "dash", "bash")]

    until(lambda: len(adopted()) == 3, "the orphans are adopted")
    orphans = adopted()
    go.touch()
    until(lambda: all(process_of(each.pid) is None for each in orphans), "they are reaped")
    assert container.cli("term", "run", "build", "(exit 7); echo $?") == "7\n"
    # A signal for the process that was started is for the daemon.
    os.kill(container.pid, signal.SIGTERM)
    assert container.process.wait(60) == 0
    assert '"event": "stopped"' in container.log.read_text()
    assert not container.daemon.state.endpoint.exists()
