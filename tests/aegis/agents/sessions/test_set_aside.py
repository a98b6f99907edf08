"""The files that a rewind changes: a kill at any step loses none, and a failure changes none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from aegis.agents.sessions.set_aside import (
    MAX_FILE_BYTES,
    PutBack,
    SetAside,
    clear,
    digest_of,
    files_aside,
    look_at,
    put_back,
    set_aside,
)
from aegis.errors import InvalidRequest, StorageError
from aegis.journal.disk import OsDisk

DISK = OsDisk()


class Died(BaseException):
    """The daemon was killed."""


class DyingDisk(OsDisk):
    """A disk whose process dies at its call number ``last``."""

    def __init__(self, last: int) -> None:
        super().__init__()
        self._left = last

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Died

    def open(self, path: Path, flags: int) -> int:
        self._step()
        return super().open(path, flags)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        self._step()
        return super().write(fd, data)

    def fsync(self, fd: int) -> None:
        self._step()
        super().fsync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        super().rename(old, new)

    def unlink(self, path: Path) -> None:
        self._step()
        super().unlink(path)


class Checkout:
    """Three files that the agent made: ``own``, ``others`` (changed since), ``gone`` (deleted)."""

    def __init__(self, root: Path) -> None:
        self.own, self.others, self.gone = root / "own", root / "others", root / "gone"
        self.aside, self.kept = root / "aside", root / "kept"
        self.edited = {}
        for each in (self.own, self.others, self.gone):
            each.write_text("agent")
            self.edited[str(each)] = digest_of(each)
        self.others.write_text("person")
        self.others.chmod(0o751)
        self.gone.unlink()

    def set_aside(self, disk: OsDisk = DISK) -> list[SetAside]:
        return set_aside(disk, self.aside, [*self.edited], self.edited)

    def rewind(self) -> None:
        """Set all back, as the agent does."""
        for each in (self.own, self.others, self.gone):
            each.write_text("before")

    def put_back(
        self, files: list[SetAside], disk: OsDisk = DISK, *, newer: bool = True
    ) -> PutBack:
        return put_back(disk, self.aside, files, self.kept, keeps_newer=newer)

    def whole(self, disk: OsDisk) -> None:
        """Carry out a rewind from its first step to its last."""
        files = self.set_aside(disk)
        self.rewind()
        self.put_back([each for each in files if each.is_others], disk, newer=False)
        clear(disk, self.aside)

    def recover(self, disk: OsDisk = DISK) -> PutBack:
        """Do what the next start does."""
        done = self.put_back(files_aside(disk, self.aside), disk)
        clear(disk, self.aside)
        return done

    def of_others(self) -> tuple[str, int, bool]:
        mode = self.others.stat().st_mode & 0o777
        return self.others.read_text(), mode, self.gone.exists()


UNTOUCHED = ("person", 0o751, False)


def test_the_files_of_others_are_put_back_and_the_agents_own_are_not(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    looked = look_at([*checkout.edited], checkout.edited)
    assert [each.is_others for each in looked] == [False, True, True]
    checkout.whole(DISK)
    assert checkout.own.read_text() == "before"
    assert checkout.of_others() == UNTOUCHED
    assert not checkout.aside.exists()
    assert not checkout.kept.exists()


def test_a_file_whose_digest_is_not_known_is_of_others(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    assert all(each.is_others for each in look_at([*checkout.edited], {}))


def test_a_rewind_that_is_undone_changes_nothing(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.set_aside()
    checkout.rewind()
    checkout.recover()
    assert checkout.own.read_text() == "agent"
    assert checkout.of_others() == UNTOUCHED


def test_a_kill_at_any_step_loses_no_file_of_others(tmp_path: Path) -> None:
    steps, has_died = 0, True
    while has_died:
        (root := tmp_path / str(steps)).mkdir()
        checkout = Checkout(root)
        try:
            checkout.whole(DyingDisk(steps))
            has_died = False
        except Died:
            checkout.recover()
        assert checkout.of_others() == UNTOUCHED, steps
        assert checkout.own.read_text() in ("agent", "before"), steps
        assert not checkout.aside.exists(), steps
        steps += 1
    assert steps > 20


def test_a_kill_at_any_step_of_the_recovery_loses_none_either(tmp_path: Path) -> None:
    steps, has_died = 0, True
    while has_died:
        (root := tmp_path / str(steps)).mkdir()
        checkout = Checkout(root)
        checkout.set_aside()
        checkout.rewind()
        try:
            checkout.recover(DyingDisk(steps))
            has_died = False
        except Died:
            checkout.recover()
        assert checkout.of_others() == UNTOUCHED, steps
        assert checkout.own.read_text() == "agent", steps
        steps += 1
    assert steps > 5


def test_what_was_written_while_the_daemon_was_gone_is_kept_beside(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    checkout.set_aside()
    checkout.others.write_text("newer")
    kept = dict(checkout.recover().kept)
    assert Path(kept[str(checkout.others)]).read_text() == "newer"
    assert checkout.of_others() == UNTOUCHED


@pytest.mark.parametrize("what", ["directory", "link", "fifo", "parent"])
def test_a_file_that_was_replaced_is_left_alone_and_named(tmp_path: Path, what: str) -> None:
    (inside := tmp_path / "inside").mkdir()
    checkout = Checkout(inside)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    checkout.aside, checkout.kept = tmp_path / "aside", tmp_path / "kept"
    checkout.set_aside()
    checkout.rewind()
    checkout.others.unlink()
    match what:
        case "directory":
            checkout.others.mkdir()
        case "link":
            checkout.others.symlink_to(elsewhere / "others")
        case "fifo":
            os.mkfifo(checkout.others)
        case "parent":
            inside.rename(tmp_path / "moved")
            inside.symlink_to(elsewhere)
    done = checkout.recover()
    found = {path: (copy, why) for path, copy, why in done.unable}
    copy, why = found[str(checkout.others)]
    assert Path(copy).read_text() == "person"
    assert why == ("it is no regular file" if what in ("directory", "fifo") else LINK)
    assert [*elsewhere.iterdir()] == []
    assert not checkout.aside.exists()
    if what != "parent":
        assert [*found] == [str(checkout.others)]
        assert checkout.own.read_text() == "agent"


LINK = "a link has taken its place"


def test_what_cannot_be_kept_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    link, large, fifo = tmp_path / "link", tmp_path / "large", tmp_path / "fifo"
    link.symlink_to(checkout.own)
    large.touch()
    os.truncate(large, MAX_FILE_BYTES + 1)
    os.mkfifo(fifo)
    reasons = {link: "a link", large: "too large", fifo: "no regular", tmp_path: "no regular"}
    for each, reason in reasons.items():
        paths = [str(checkout.own), str(each)]
        with pytest.raises(InvalidRequest, match=f"cannot be kept \\(it is {reason}"):
            set_aside(DISK, checkout.aside, paths, {})
        with pytest.raises(InvalidRequest, match="move it away, then try again"):
            look_at(paths, {})
        assert not checkout.aside.exists()


class Full(OsDisk):
    def write(self, fd: int, data: bytes | memoryview) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    with pytest.raises(StorageError, match="No space left"):
        checkout.set_aside(Full())
    assert not checkout.aside.exists()
    assert checkout.own.read_text() == "agent"


def test_a_disk_that_is_full_when_files_are_put_back_keeps_the_copies(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    files = checkout.set_aside()
    checkout.rewind()
    with pytest.raises(OSError, match="No space left"):
        checkout.put_back(files, Full())
    checkout.recover()
    assert checkout.of_others() == UNTOUCHED
    assert checkout.own.read_text() == "agent"
