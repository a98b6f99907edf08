"""Daemons on disks, with limits and clocks of their own: the real resources that run out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import connect_mcp, gate, new_gate, own_daemon
from tests.e2e.harness import DaemonProcess, LiveTerminal
from tests.resources.fuse_disk import FuseDisk, why_not
from tests.resources.small_disk import SmallDisk

__all__ = ["connect_mcp", "gate", "new_gate", "own_daemon"]
"""Fixtures of the tests from outside that are used here too."""

Spawn = Callable[[str], LiveTerminal]


@pytest.fixture(scope="session")
def can_fuse() -> None:
    """Skips where no file system can be mounted by FUSE."""
    reason = why_not()
    if reason:
        pytest.skip(reason)


def spawned(daemon: DaemonProcess, name: str) -> LiveTerminal:
    """A new terminal, one command old: all of its files are on the disk."""
    terminal = LiveTerminal(daemon, name, daemon.call("term_spawn", name=name))
    terminal.run("true")
    return terminal


def check_stopped(daemon: DaemonProcess) -> None:
    """Stop it, unless the test did: in order, without a process left, and nothing had crashed."""
    daemon.hang_up()
    if daemon.is_running:
        assert daemon.stop() == 0
    assert daemon.shell_processes() == []
    assert not daemon.state.endpoint.exists()
    lines = daemon.log.splitlines()
    assert not [line for line in lines if '"level": "error"' in line or not is_expected(line)]


def is_expected(line: str) -> bool:
    """Whether a line of a log is an event, or the sentence of a start that was refused."""
    return line.startswith(("{", "aegis-actors: "))


@pytest.fixture
def fused_daemon(tmp_path: Path) -> DaemonProcess:
    """A daemon, not started yet, whose state is on ``fuse``."""
    return DaemonProcess(tmp_path)


@pytest.fixture
def fuse(fused_daemon: DaemonProcess, tmp_path: Path, can_fuse: None) -> Iterator[FuseDisk]:
    """A disk that fails, tears and waits on command, below ``.aegis`` of ``fused_daemon``."""
    place = fused_daemon.root / ".aegis"
    place.mkdir()
    disk = FuseDisk(tmp_path, place)
    try:
        yield disk
        disk.heal()
        check_stopped(fused_daemon)
    finally:
        disk.heal()  # no process dies in a call that is held
        if fused_daemon.is_running:
            fused_daemon.kill()
        disk.close()


@pytest.fixture
def waiting_daemon(tmp_path: Path) -> DaemonProcess:
    """The daemon that ``small_disk`` is for, not started yet."""
    return DaemonProcess(tmp_path)


@pytest.fixture
def small_disk(waiting_daemon: DaemonProcess) -> Iterator[SmallDisk]:
    """A file system of four megabytes, below ``.aegis`` of ``waiting_daemon``."""
    disk = SmallDisk(waiting_daemon.root / ".aegis")
    try:
        yield disk
        check_stopped(waiting_daemon)
    finally:
        if waiting_daemon.is_running:
            waiting_daemon.kill()
        disk.close()


@pytest.fixture
def small_daemon(waiting_daemon: DaemonProcess, small_disk: SmallDisk) -> DaemonProcess:
    """A daemon that runs, with its state on ``small_disk``."""
    waiting_daemon.start()
    return waiting_daemon


@pytest.fixture
def spawn(small_daemon: DaemonProcess) -> Spawn:
    """Spawns a terminal of ``small_daemon``, one command old."""
    return lambda name: spawned(small_daemon, name)
