"""What a daemon meets at its start when the power failed soon after the first one.

Among it what was written by a daemon that was killed before it had synced it, and that the next one
has shown: that must be there in every image of the disk.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from aegis.daemon_process import hold_root
from aegis.errors import StartupError
from aegis.journal.disk import replace_file
from aegis.journal.purging import delete, delete_left_over, take_name
from aegis.lifetime import sync_state
from aegis.state.root import StatePaths
from aegis.terminals.directory.spawning import restored_settings
from aegis.terminals.meta import load_settings, save_settings
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.disk_model import Image, cached_image
from tests.chaos.machine.simulated_disk import Die, DiskPlan, Fail, ProcessDied, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.faults.names import SETTINGS

STATE = StatePaths(Path("/project"))
TERMINALS = Path("/terminals")
FILES = TerminalFiles(TERMINALS / "build")


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


@pytest.mark.parametrize("left", [b"", b"\0\0", b"\n", b"1\n"])
def test_a_version_that_was_lost_or_is_older_is_written_anew(tmp_path: Path, left: bytes) -> None:
    state = StatePaths(tmp_path)
    with hold_root(state):
        path = state.directory / "version"
        written = path.read_bytes()
    path.write_bytes(left)
    with hold_root(state):
        assert path.read_bytes() == written


@pytest.mark.parametrize("left", [b"999\n", b"x\n"])
def test_a_newer_version_still_prevents_the_start(tmp_path: Path, left: bytes) -> None:
    state = StatePaths(tmp_path)
    with hold_root(state):
        (state.directory / "version").write_bytes(left)
    with pytest.raises(StartupError, match="made by a newer aegis-actors"), hold_root(state):
        pass


# What a daemon was killed over, and the next one shows.


def killed(image: Image, act: Callable[[SimulatedDisk], object], call: int) -> SimulatedDisk:
    """What the process has left that did this and was killed before that fsync; the next one's."""
    disk = SimulatedDisk(image, DiskPlan({("fsync", call): Die()}))
    with pytest.raises(ProcessDied):
        act(disk)
    disk.model.close_all()
    left = SimulatedDisk()
    left.model = disk.model
    return left


def purge(disk: SimulatedDisk) -> None:
    doomed = take_name(disk, FILES.directory)
    assert doomed is not None
    delete(disk, doomed)


def resized() -> TerminalSettings:
    return attrs.evolve(SETTINGS, cols=132)


def saved() -> Image:
    disk = SimulatedDisk({"/": None, str(TERMINALS): None})
    save_settings(disk, FILES, SETTINGS)
    return cached_image(disk.model)


def restored(disk: SimulatedDisk) -> TerminalSettings:
    return restored_settings("build", Path("/"), FILES, SimulatedFlusher(disk))


def test_keys_that_a_next_daemon_gives_out_are_there_after_a_loss_of_power() -> None:
    image: Image = {
        "/": None,
        "/project": None,
        "/project/.aegis": None,
        str(STATE.directory): None,
    }
    keys = STATE.directory / "keys.json"
    disk = killed(image, lambda disk: replace_file(disk, keys, [b"secret"]), 2)
    assert any(str(keys) not in left for left in legal_images(disk.model))
    sync_state(disk, STATE)
    assert all(left.get(str(keys)) == b"secret" for left in legal_images(disk.model))


def test_settings_that_a_next_daemon_shows_are_there_after_a_loss_of_power() -> None:
    disk = killed(saved(), lambda disk: save_settings(disk, FILES, resized()), 2)
    assert any(_columns(left) == 80 for left in legal_images(disk.model))
    assert restored(disk).cols == 132
    assert {_columns(left) for left in legal_images(disk.model)} == {132}


def test_a_disk_that_cannot_confirm_settings_is_told_and_they_stay() -> None:
    disk = SimulatedDisk(saved(), DiskPlan({("fsync", 1): Fail(errno.EIO)}))
    with pytest.raises(OSError, match="Input/output error"):
        restored(disk)
    assert restored(disk) == SETTINGS


def test_a_purge_that_a_next_daemon_finishes_leaves_nothing_after_a_loss_of_power() -> None:
    """And not a part: the name of the terminal is away for good before its files are deleted."""
    disk = killed({**saved(), str(FILES.ledger): b"lines\n"}, purge, 1)
    assert any(str(FILES.ledger) in image for image in legal_images(disk.model))
    delete_left_over(disk, TERMINALS)
    assert all(str(FILES.directory) not in image for image in legal_images(disk.model))


def test_what_a_purge_has_left_is_not_deleted_before_its_new_name_is_synced() -> None:
    disk = killed({**saved(), str(FILES.ledger): b"lines\n"}, purge, 1)
    disk.plan = DiskPlan({("fsync", 1): Fail(errno.EIO)})
    delete_left_over(disk, TERMINALS)
    assert disk.plan.hits["unlink"] == 0
    delete_left_over(disk, TERMINALS)
    assert disk.list_directory(TERMINALS) == []


def _columns(image: Image) -> int | None:
    settings = load_settings(SimulatedDisk(image), FILES, Path("/"))
    return None if settings is None else settings.cols
