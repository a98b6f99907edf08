"""A daemon with worker processes: all of them may die; and a machine without what they need."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.actors.nodes.machine import exists
from tests.e2e.harness import GUARD_S, DaemonProcess

pytestmark = pytest.mark.real

NO_EXTRA = """\
from importlib.machinery import PathFinder

find = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    missing = name.partition(".")[0] in ("tractor", "msgspec")
    return None if missing else find(name, path, target)

PathFinder.find_spec = staticmethod(find_spec)
"""
"""Lets Python not find what the extra installs, as where it is not installed."""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[DaemonProcess]:
    """A daemon with two workers."""
    own = DaemonProcess(tmp_path)
    own.start("--port", "0", "--workers", "2")
    try:
        yield own
    finally:
        own.hang_up()
        pids = worker_pids(own)
        code = own.stop()
    assert code == 0
    assert not [pid for pid in pids.values() if exists(pid)]
    own.check_left_nothing()


def worker_pids(daemon: DaemonProcess) -> dict[str, int]:
    """The processes of the workers that are up."""
    nodes = daemon.call("status")["nodes"]
    return {node["name"]: node["pid"] for node in nodes if node["state"] == "up"}


def until_up(daemon: DaemonProcess, *but: int) -> dict[str, int]:
    """Wait until both are, in other processes than these."""
    guard = time.monotonic() + GUARD_S
    while len(pids := worker_pids(daemon)) < 2 or set(but) & set(pids.values()):
        assert time.monotonic() < guard
        time.sleep(0.02)
    return pids


def test_terminals_are_spread_and_nobody_can_tell_but_by_their_node(daemon: DaemonProcess) -> None:
    terminals = [daemon.terminal(name) for name in ("a", "b", "c", "d")]
    assert [each.info["node"] for each in terminals] == ["w1", "w2", "w1", "w2"]
    here = daemon.call("term_spawn", name="here", node="local")
    assert here["node"] == "local"
    for each in terminals:
        assert each.run("echo $((6 * 7))")["stdout"] == "42\n"
        assert each.run("false")["exit"] == 1
    parents = {daemon.terminal(name).run("ps -o ppid= $$")["stdout"].strip() for name in "abcd"}
    assert parents == {str(pid) for pid in worker_pids(daemon).values()}
    tree = daemon.json("tree", "--json")
    below = {node["name"]: node for node in tree["children"]}
    assert [worker["name"] for worker in below["workers"]["children"]] == ["w1", "w2"]


def until_recorded(daemon: DaemonProcess, name: str, count: int) -> dict[str, object]:
    """The last of so many records, once they are there."""
    guard = time.monotonic() + GUARD_S
    while True:
        try:
            records = daemon.call("term_read", name=name, since_seq=-1)["result"]
        except Exception:
            records = []
        if len(records) >= count:
            last: dict[str, object] = records[-1]
            return last
        assert time.monotonic() < guard
        time.sleep(0.02)


@pytest.mark.long
def test_both_workers_may_die_at_once_and_again(daemon: DaemonProcess) -> None:
    names = [f"t{number}" for number in range(6)]
    for name in names:
        daemon.terminal(name).run("echo one")
    pids = until_up(daemon).values()
    for _ in range(3):
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        pids = until_up(daemon, *pids).values()
    for name in names:
        until_recorded(daemon, name, 1)
        assert until_run(daemon, name)["stdout"] == "two\n"
        assert [each["seq"] for each in daemon.terminal(name).records()] == [0, 1]


def until_run(daemon: DaemonProcess, name: str) -> dict[str, object]:
    guard = time.monotonic() + GUARD_S
    while True:
        try:
            record: dict[str, object] = daemon.call(
                "term_run", name=name, cmd="echo two", timeout=GUARD_S
            )
        except Exception:
            assert time.monotonic() < guard
            time.sleep(0.02)
        else:
            return record


class WithoutExtra(DaemonProcess):
    """A daemon whose Python does not find what the extra installs."""

    @property
    def program(self) -> list[str]:
        run = "from aegis_actors import main; main()"
        return [sys.executable, "-P", "-c", f"{NO_EXTRA}\n{run}"]


@pytest.mark.long
def test_without_the_extra_all_else_works_and_says_nothing(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    daemon = WithoutExtra(root)
    refused = daemon.cli("up", "--port", "0", "--workers", "2")
    assert refused.returncode == 1
    assert "uv sync --extra nodes" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    daemon.start("--port", "0")
    try:
        assert daemon.terminal("a").run("echo works")["stdout"] == "works\n"
        status = daemon.cli("status")
        assert "worker" not in status.stdout + status.stderr
    finally:
        assert daemon.stop() == 0
    assert "tractor" not in daemon.log
    assert "nodes" not in daemon.log
    daemon.check_left_nothing()
