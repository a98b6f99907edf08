"""A start that is refused leaves no file in the project."""

from __future__ import annotations

import atexit
import functools
import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from aegis.daemon_process import hold_root
from aegis.errors import StartupError
from aegis.node_key import open_node_key
from aegis.state.root import StatePaths
from tests.e2e.harness import PROGRAM, DaemonProcess

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be in another's home")

OTHER_USER = 12_345


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory without a state, with a home directory above it."""
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "project").mkdir()
    return tmp_path / "home" / "project"


def of_another_user(project: Path) -> list[str]:
    for each in (project.parent, project):
        os.chown(each, OTHER_USER, OTHER_USER)
    return []


def registry_open_to_others(project: Path) -> list[str]:
    registry = project.parent / ".local" / "state" / "aegis-actors"
    registry.mkdir(parents=True)
    registry.chmod(0o777)
    return []


def registry_is_a_file(project: Path) -> list[str]:
    (project.parent / ".local").write_text("")
    return []


def bad_configuration(project: Path) -> list[str]:
    (project / ".aegis.yaml").write_text("terminals: [")
    return []


def port_taken(_: Path) -> list[str]:
    return ["--port", str(taken_port())]


@functools.cache
def taken_port() -> int:
    """Return a port at which this process listens until it ends."""
    listening = socket.create_server(("127.0.0.1", 0))
    atexit.register(listening.close)
    port: int = listening.getsockname()[1]
    return port


@pytest.mark.real
@pytest.mark.long
@pytest.mark.parametrize(
    "hinder",
    [
        pytest.param(of_another_user, marks=as_root),
        registry_open_to_others,
        registry_is_a_file,
        bad_configuration,
        port_taken,
    ],
)
def test_a_refused_start_leaves_the_project_as_it_was(
    project: Path, hinder: Callable[[Path], list[str]]
) -> None:
    options = hinder(project)
    before = sorted(project.parent.rglob("*"))
    command = [str(PROGRAM), "up", "--root", str(project), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (1, 2), done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(project.rglob("*")) == [each for each in before if project in each.parents]
    states = project.parent / ".local" / "state" / "aegis-actors" / "states"
    assert not states.is_dir() or list(states.iterdir()) == []
    foreign = [each for each in project.parent.rglob("*") if hinder is of_another_user]
    assert [each for each in foreign if each.stat().st_uid != OTHER_USER] == []


@pytest.mark.real
def test_a_second_start_that_is_refused_leaves_the_files_of_the_daemon_that_runs(
    tmp_path: Path,
) -> None:
    daemon = DaemonProcess(tmp_path)
    daemon.start()
    before = sorted(daemon.root.rglob("*"))
    done = daemon.cli("up", "--port", "0")
    assert done.returncode == 1
    assert "a daemon already runs" in done.stderr
    assert sorted(daemon.root.rglob("*")) == before
    assert daemon.stop() == 0


def test_a_state_of_a_newer_version_is_left_as_it_is(tmp_path: Path) -> None:
    state = StatePaths(tmp_path)
    with hold_root(state):
        (state.directory / "version").write_text("99\n")
    (state.directory / "place.json").unlink()
    before = {each.name: each.read_bytes() for each in state.directory.iterdir()}
    for trust in (False, True):
        refused = pytest.raises(StartupError, match="version '99', made by a newer aegis-actors")
        with refused, hold_root(state, trust=trust):
            pass
    assert {each.name: each.read_bytes() for each in state.directory.iterdir()} == before


@as_root
def test_root_that_makes_no_key_for_hosts_in_anothers_project_leaves_no_file(
    project: Path,
) -> None:
    of_another_user(project)
    with pytest.raises(StartupError, match=f"belongs to user {OTHER_USER}"):
        open_node_key(StatePaths(project))
    assert list(project.iterdir()) == []
