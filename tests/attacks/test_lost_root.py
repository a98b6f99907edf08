"""A daemon whose lock or state directory is taken away stops, and touches nothing of another's."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.client.line import ClientError
from tests.attacks.test_foreign_state import tree
from tests.e2e.harness import GUARD_S, DaemonProcess, processes_with
from tests.resources.waiting import until

pytestmark = pytest.mark.real

UP = ("--port", "0")
SOON_S = GUARD_S
"""A second until it looks and two until it has stopped, on a busy machine."""


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[DaemonProcess, DaemonProcess]]:
    """Two daemons that are to have the same root."""
    first = DaemonProcess(tmp_path)
    (tmp_path / "second").mkdir()
    second = DaemonProcess(tmp_path / "second")
    second.root, second.state = first.root, first.state
    yield first, second
    for each in (second, first):
        each.hang_up()
        if each._process is not None and each.is_running:
            each.stop()


def endpoint_pid(daemon: DaemonProcess) -> int:
    pid = json.loads(daemon.state.endpoint.read_text())["pid"]
    assert isinstance(pid, int)
    return pid


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_daemon_that_has_lost_its_lock_stops_before_another_one_starts(
    pair: tuple[DaemonProcess, DaemonProcess], how: str
) -> None:
    first, second = pair
    first.start(*UP)
    terminal = first.terminal("build")
    waiting = terminal.start("sleep 600")
    waiting.has_arrived()
    lock = first.state.lock
    lock.unlink()
    if how == "replaced":
        lock.touch(0o600)
    second.start(*UP)
    assert first.wait_dead(SOON_S)
    assert first.stop() == 0
    assert f"{lock} was" in first.log
    assert endpoint_pid(second) == second.process.pid
    [record] = [each for each in second.terminal("build").records() if each["cmd"] == "sleep 600"]
    assert record["end"] == "killed_by_restart"
    assert second.terminal("build").run("echo hello")["stdout"] == "hello\n"
    with contextlib.suppress(ClientError):
        waiting.result()


def test_a_daemon_without_its_lock_stops_by_itself(
    pair: tuple[DaemonProcess, DaemonProcess],
) -> None:
    first, second = pair
    first.start(*UP)
    first.terminal("build")
    first.state.lock.unlink()
    assert first.wait_dead(SOON_S)
    assert first.stop() == 0
    assert processes_with(f"AEGIS_TERMINAL={first.root}/") == []
    second.start(*UP)
    assert [info["name"] for info in second.call("term_list")["result"]] == ["build"]


def test_a_daemon_whose_state_was_moved_away_leaves_a_new_one_alone(
    pair: tuple[DaemonProcess, DaemonProcess], tmp_path: Path
) -> None:
    first, second = pair
    first.start(*UP)
    first.terminal("build").start("sleep 600").has_arrived()
    first.state.directory.rename(tmp_path / "moved")
    second.start(*UP)
    second.terminal("other")
    before = {name: each for name, each in tree(first.root).items() if "raw" not in name}
    assert first.wait_dead(SOON_S)
    assert first.stop() == 0
    assert processes_with(f"AEGIS_TERMINAL={first.root}/build/") == []
    after = {name: each for name, each in tree(first.root).items() if "raw" not in name}
    assert after == before
    assert second.terminal("other").run("echo hello")["stdout"] == "hello\n"


def test_a_daemon_whose_state_was_deleted_stops(
    pair: tuple[DaemonProcess, DaemonProcess],
) -> None:
    first, _ = pair
    first.start(*UP)
    first.terminal("build")

    def is_deleted() -> bool:
        shutil.rmtree(first.state.directory, ignore_errors=True)
        return not first.state.directory.exists()

    # Each second the daemon makes its socket and its endpoint again, also while they are deleted.
    until(is_deleted, "all of it is deleted")
    assert first.wait_dead(SOON_S)
    assert first.stop() == 0
    assert not first.state.directory.exists()
    assert processes_with(f"AEGIS_TERMINAL={first.root}/") == []
