"""What a daemon meets at its start when the power failed soon after the first one."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from aegis.app import sync_state
from aegis.chaos.disk_images import legal_images
from aegis.chaos.simulated_disk import DiskPlan, Fail, SimulatedDisk
from aegis.errors import StartupError
from aegis.process import hold_root
from aegis.root import State

STATE = State(Path("/project"))


def fresh(plan: DiskPlan | None = None) -> SimulatedDisk:
    """A project whose state directories were just made."""
    disk = SimulatedDisk({"/": None, "/project": None}, plan)
    disk.mkdir(STATE.directory.parent)
    disk.mkdir(STATE.directory)
    return disk


def test_the_directories_of_the_state_are_on_the_medium_before_anything_is_acknowledged() -> None:
    disk = fresh()
    assert any(str(STATE.directory) not in image for image in legal_images(disk.model))
    sync_state(disk, STATE)
    assert all(str(STATE.directory) in image for image in legal_images(disk.model))


def test_a_disk_that_cannot_sync_them_prevents_the_start() -> None:
    disk = fresh(DiskPlan({("fsync", 2): Fail(errno.EIO)}))
    with pytest.raises(StartupError, match=r"cannot sync /project/\.aegis/state: Input/output"):
        sync_state(disk, STATE)


def test_a_root_that_may_be_entered_and_not_read_prevents_nothing() -> None:
    sync_state(fresh(DiskPlan({("open", 1): Fail(errno.EACCES)})), STATE)


@pytest.mark.parametrize("left", [b"", b"\0\0", b"\n"])
def test_a_version_that_was_lost_is_written_anew(tmp_path: Path, left: bytes) -> None:
    state = State(tmp_path)
    with hold_root(state):
        path = state.directory / "version"
        written = path.read_bytes()
    path.write_bytes(left)
    with hold_root(state):
        assert path.read_bytes() == written


@pytest.mark.parametrize("left", [b"999\n", b"x\n"])
def test_a_newer_version_still_prevents_the_start(tmp_path: Path, left: bytes) -> None:
    state = State(tmp_path)
    with hold_root(state):
        (state.directory / "version").write_bytes(left)
    with pytest.raises(StartupError, match="made by a newer aegis-actors"), hold_root(state):
        pass
