"""The careful sequences: writes that fall short, replacing a file, sentences for callers."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aegis.journal.disk import (
    APPEND,
    OsDisk,
    make_directory,
    pwrite_all,
    read_exactly,
    read_file,
    remove_tree,
    replace_file,
    shown,
    storage_error,
    sync_directory,
    write_all,
)

if TYPE_CHECKING:
    from tests.fakes.faulty_disk import Crash, FaultyDisk


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_private_and_closed_on_exec(tmp_path: Path) -> None:
    disk = OsDisk()
    fd = disk.open(tmp_path / "ledger", APPEND)
    copy = disk.dup(fd)
    try:
        assert mode(tmp_path / "ledger") == 0o600
        assert not os.get_inheritable(fd)
        assert not os.get_inheritable(copy)
    finally:
        disk.close(fd)
        disk.close(copy)


def test_missing_directories_are_made_private_and_synced(tmp_path: Path, disk: FaultyDisk) -> None:
    make_directory(disk, tmp_path / "a" / "b" / "c")
    assert [mode(tmp_path / part) for part in ("a", "a/b", "a/b/c")] == [0o700] * 3
    assert disk.calls["fsync"] == 3
    make_directory(disk, tmp_path / "a" / "b" / "c")
    assert disk.calls["fsync"] == 3
    assert disk.open_fds == set()


def test_two_threads_may_make_the_same_directories(
    tmp_path: Path, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = disk.mkdir

    def beaten(path: Path) -> None:
        """Somebody else makes the directory just after its parent was found missing."""
        try:
            first(path)
        except FileNotFoundError:
            path.mkdir(parents=True)
            raise

    monkeypatch.setattr(disk, "mkdir", beaten)
    make_directory(disk, tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_short_writes_are_carried_on(tmp_path: Path, disk: FaultyDisk) -> None:
    disk.shorten("write", 1, 3, 2)
    fd = disk.open(tmp_path / "file", APPEND)
    write_all(disk, fd, b"0123456789")
    assert disk.calls["write"] == 4
    disk.shorten("pwrite", 1, 1)
    pwrite_all(disk, fd, b"", 0)
    disk.close(fd)
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_short_positioned_writes_are_carried_on(tmp_path: Path, disk: FaultyDisk) -> None:
    disk.shorten("pwrite", 1, 3, 2)
    fd = disk.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    pwrite_all(disk, fd, b"0123456789", 5)
    disk.close(fd)
    assert (tmp_path / "file").read_bytes() == b"\0" * 5 + b"0123456789"


def test_a_disk_that_takes_no_byte_is_full(tmp_path: Path, disk: FaultyDisk) -> None:
    disk.shorten("write", 4, 0)
    fd = disk.open(tmp_path / "file", APPEND)
    with pytest.raises(OSError, match="No space left"):
        write_all(disk, fd, b"0123456789")
    disk.close(fd)


def test_the_full_device_says_so() -> None:
    disk = OsDisk()
    fd = os.open("/dev/full", os.O_WRONLY)
    try:
        with pytest.raises(OSError, match="No space left") as caught:
            write_all(disk, fd, b"x")
        assert caught.value.errno == errno.ENOSPC
    finally:
        disk.close(fd)


def test_reading_beyond_the_end_is_an_error_and_not_less(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123")
    disk = OsDisk()
    fd = disk.open(tmp_path / "file", os.O_RDONLY)
    try:
        assert read_exactly(disk, fd, 2, 1) == b"12"
        with pytest.raises(OSError, match="shorter"):
            read_exactly(disk, fd, 3, 2)
    finally:
        disk.close(fd)


def test_a_small_file_is_read_up_to_a_limit_and_a_missing_one_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_file(OsDisk(), tmp_path / "file", max_bytes=4) == b"0123"
    assert read_file(OsDisk(), tmp_path / "file", max_bytes=40) == b"0123456789"
    assert read_file(OsDisk(), tmp_path / "none", max_bytes=4) is None


@pytest.mark.parametrize("durable", [True, False])
def test_a_replaced_file_is_the_old_one_or_the_new_wherever_a_kill_comes(
    tmp_path: Path, new_disk: type[FaultyDisk], crash: type[Crash], durable: bool
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    steps = 0
    while True:
        (tmp_path / "file.new").write_bytes(b"of an earlier kill")
        dying = new_disk(crash_at=steps)
        try:
            replace_file(dying, path, [b"n", b"ew"], durable=durable)
        except crash:
            assert path.read_bytes() == (b"new" if dying.calls["rename"] else b"old")
            assert dying.open_fds == set()
            path.write_bytes(b"old")
            steps += 1
        else:
            break
    assert steps == dying.total
    assert dying.calls["fsync"] == (2 if durable else 0)
    assert path.read_bytes() == b"new"
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
def test_a_replacement_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, disk: FaultyDisk, call: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    disk.fail(call, errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        replace_file(disk, path, [b"new"])
    assert path.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == [path]
    assert disk.open_fds == set()


def test_syncing_a_directory_that_is_a_file_fails(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        sync_directory(OsDisk(), tmp_path / "file")


def test_an_error_becomes_one_sentence_with_a_remedy() -> None:
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    path = Path("/home/u/project/.aegis/state/terminals/build/ledger.jsonl")
    assert str(storage_error("write", path, full)) == (
        "cannot write .aegis/state/terminals/build/ledger.jsonl: No space left on device; "
        "free some space, then try again"
    )


def test_an_error_without_a_number_still_makes_a_sentence() -> None:
    assert str(storage_error("sync", Path("x"), OSError())) == (
        "cannot sync x: OSError; check the disk, then try again"
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b/.aegis/state/x", ".aegis/state/x"),
        ("/x", "/x"),
        ("/a/b/c/d/e", "…/c/d/e"),
        ("relative/file", "relative/file"),
    ],
)
def test_a_path_is_shown_as_its_user_knows_it(path: str, expected: str) -> None:
    assert shown(Path(path)) == expected


def test_a_tree_goes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    (kept := tmp_path / "kept").write_text("x")
    tree = tmp_path / "tree"
    (tree / "below" / "deeper").mkdir(parents=True)
    (tree / "below" / "file").write_text("y")
    (tree / "to a file").symlink_to(kept)
    (tree / "to a directory").symlink_to(tmp_path)
    remove_tree(OsDisk(), tree)
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]


def test_only_a_directory_is_one(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    asked = [tmp_path, tmp_path / "file", tmp_path / "file" / "below", tmp_path / "missing"]
    assert [OsDisk().is_directory(each) for each in asked] == [True, False, False, False]
