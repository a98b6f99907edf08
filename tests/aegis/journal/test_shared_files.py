"""Files that other programs edit while they are exchanged. No daemon: the functions alone."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from aegis.journal import faults, shared_directory
from aegis.journal.disk import OsDisk
from aegis.journal.file_content import NO_FILE, FilePlace, digest_of
from aegis.journal.shared_directory import open_directory_of
from aegis.journal.shared_files import discard, exchange, look
from aegis.state.state_files import UnsafeFile

DISK = OsDisk()
MAX_BYTES = 1_000
OLD, NEW, EDIT = b"old\n", b"new\n", b"edit\n"

POINTS = ("EXCHANGE_WRITE", "EXCHANGE_WRITTEN", "EXCHANGE_AFTER", "EXCHANGE_SYNCED")

Edit = Callable[[Path], None]


@pytest.fixture
def place(tmp_path: Path) -> FilePlace:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "n.md").write_bytes(OLD)
    return FilePlace(str(tmp_path), "notes/n.md", ".beside")


def path_of(place: FilePlace) -> Path:
    return Path(place.base) / place.path


def names(place: FilePlace) -> list[str]:
    return sorted(each.name for each in path_of(place).parent.iterdir())


class Passing:
    """A fault point at which something happens once."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act: Callable[[], None] | None = act

    def hit(self, _: str) -> None:
        act, self.act = self.act, None
        if act is not None:
            act()


def at(patch: pytest.MonkeyPatch, point: str, act: Callable[[], None]) -> None:
    patch.setattr(faults, point, Passing(act))


def rename_over(path: Path) -> None:
    fresh = path.with_name("other")
    fresh.write_bytes(EDIT)
    fresh.replace(path)


def write_in_place(path: Path) -> None:
    path.write_bytes(EDIT)


@pytest.fixture(params=["one step", "two steps"])
def steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the file system can exchange names."""
    if request.param == "two steps":

        def refuse(*_: object) -> None:
            raise OSError(errno.EINVAL, "not here")

        monkeypatch.setattr(shared_directory, "exchange_names", refuse)
    return str(request.param)


@pytest.mark.usefixtures("steps")
def test_the_new_content_takes_the_place_and_the_permissions(place: FilePlace) -> None:
    path_of(place).chmod(0o751)
    assert exchange(DISK, place, NEW, digest_of(OLD), MAX_BYTES) == "exchanged"
    assert path_of(place).read_bytes() == NEW
    assert stat.S_IMODE(path_of(place).stat().st_mode) == 0o751
    assert names(place) == ["n.md"]


def test_a_file_that_does_not_exist_is_made(place: FilePlace) -> None:
    path_of(place).unlink()
    assert exchange(DISK, place, NEW, NO_FILE, MAX_BYTES) == "exchanged"
    assert path_of(place).read_bytes() == NEW
    assert names(place) == ["n.md"]


def test_a_file_that_was_made_meanwhile_is_kept(
    place: FilePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    path_of(place).unlink()
    at(monkeypatch, "EXCHANGE_WRITTEN", lambda: write_in_place(path_of(place)))
    assert exchange(DISK, place, NEW, NO_FILE, MAX_BYTES) == "changed"
    assert (path_of(place).read_bytes(), names(place)) == (EDIT, ["n.md"])


@pytest.mark.usefixtures("steps")
@pytest.mark.parametrize("edit", [rename_over, write_in_place])
@pytest.mark.parametrize("point", POINTS)
def test_an_edit_at_any_moment_of_an_exchange_is_kept(
    place: FilePlace, monkeypatch: pytest.MonkeyPatch, point: str, edit: Edit
) -> None:
    at(monkeypatch, point, lambda: edit(path_of(place)))
    outcome = exchange(DISK, place, NEW, digest_of(OLD), MAX_BYTES)
    assert path_of(place).read_bytes() == EDIT
    is_before = point in ("EXCHANGE_WRITE", "EXCHANGE_WRITTEN")
    assert outcome == ("changed" if is_before else "exchanged")
    assert names(place) == ["n.md"]


@pytest.mark.parametrize("point", POINTS[:2])
def test_a_program_that_opened_the_file_meanwhile_still_writes_to_it(
    place: FilePlace, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    opened: list[int] = []
    at(monkeypatch, point, lambda: opened.append(os.open(path_of(place), os.O_WRONLY)))
    assert exchange(DISK, place, NEW, digest_of(OLD), MAX_BYTES) == "open"
    os.write(opened[0], EDIT)
    os.close(opened[0])
    assert path_of(place).read_bytes() == EDIT
    assert names(place) == ["n.md"]
    assert look(DISK, place, MAX_BYTES).file.digest == digest_of(EDIT)


def test_two_edits_at_once_are_both_kept(place: FilePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, "EXCHANGE_WRITTEN", lambda: rename_over(path_of(place)))
    later = b"later\n"

    def edit_later() -> None:
        path_of(place).write_bytes(later)

    at(monkeypatch, "EXCHANGE_AFTER", edit_later)
    assert exchange(DISK, place, NEW, digest_of(OLD), MAX_BYTES) == "unclear"
    found = look(DISK, place, MAX_BYTES)
    assert {found.file.data, found.swap.data} == {EDIT, later}


@pytest.mark.parametrize("steps_left", ["link", "rename"])
def test_an_exchange_in_steps_that_was_cut_leaves_a_readable_file(
    place: FilePlace, steps_left: str
) -> None:
    directory = path_of(place).parent
    (directory / place.swap).write_bytes(NEW)
    os.link(path_of(place), directory / place.displaced)
    if steps_left == "rename":
        (directory / place.swap).replace(path_of(place))
    found = look(DISK, place, MAX_BYTES)
    is_renamed = steps_left == "rename"
    assert found.file.data == (NEW if is_renamed else OLD)
    assert found.swap.data == (OLD if is_renamed else NEW)
    assert names(place) == sorted([place.swap, "n.md"])


def test_an_exchange_in_steps_that_was_cut_keeps_an_edit_before_it(place: FilePlace) -> None:
    directory = path_of(place).parent
    rename_over(path_of(place))
    (directory / place.swap).write_bytes(NEW)
    os.link(path_of(place), directory / place.displaced)
    (directory / place.swap).replace(path_of(place))
    assert look(DISK, place, MAX_BYTES).swap.data == EDIT


def test_an_edit_after_the_first_step_is_in_its_place(place: FilePlace) -> None:
    directory = path_of(place).parent
    (directory / place.swap).write_bytes(NEW)
    os.link(path_of(place), directory / place.displaced)
    rename_over(path_of(place))
    found = look(DISK, place, MAX_BYTES)
    assert (found.file.data, found.swap.data) == (EDIT, NEW)
    assert names(place) == sorted([place.swap, "n.md"])


def test_a_look_says_what_an_exchange_left(place: FilePlace) -> None:
    (path_of(place).parent / place.swap).write_bytes(EDIT)
    assert look(DISK, place, MAX_BYTES).swap.data == EDIT
    discard(DISK, place, "kept")
    assert names(place) == ["kept", "n.md"]
    discard(DISK, place)
    assert names(place) == ["kept", "n.md"]


def test_a_file_that_is_open_for_writing_is_not_exchanged(place: FilePlace) -> None:
    with path_of(place).open("a"):
        assert look(DISK, place, MAX_BYTES).file.is_open
        assert exchange(DISK, place, NEW, digest_of(OLD), MAX_BYTES) == "open"
    with path_of(place).open():
        assert not look(DISK, place, MAX_BYTES).file.is_open
        assert exchange(DISK, place, NEW, digest_of(OLD), MAX_BYTES) == "exchanged"


def test_another_content_is_not_exchanged(place: FilePlace) -> None:
    assert exchange(DISK, place, NEW, digest_of(EDIT), MAX_BYTES) == "changed"
    assert (path_of(place).read_bytes(), names(place)) == (OLD, ["n.md"])


@pytest.mark.parametrize("point", POINTS)
def test_a_disk_that_refuses_leaves_one_of_the_two(
    place: FilePlace, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    def refuse() -> None:
        raise OSError(errno.ENOSPC, "full")

    at(monkeypatch, point, refuse)
    with pytest.raises(OSError, match="full"):
        exchange(DISK, place, NEW, digest_of(OLD), MAX_BYTES)
    found = look(DISK, place, MAX_BYTES)
    is_done = point in ("EXCHANGE_AFTER", "EXCHANGE_SYNCED")
    assert found.file.data == (NEW if is_done else OLD)
    assert place.fresh not in names(place)


def test_only_a_plain_file_of_this_user_is_read(place: FilePlace, tmp_path: Path) -> None:
    path = path_of(place)

    def becomes(make: Callable[[], object]) -> None:
        path.unlink()
        make()
        with pytest.raises(UnsafeFile):
            look(DISK, place, MAX_BYTES)

    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    becomes(lambda: path.symlink_to(secret))
    becomes(lambda: os.link(secret, path))
    becomes(lambda: os.mkfifo(path))


def test_a_directory_that_is_a_link_is_not_entered(place: FilePlace, tmp_path: Path) -> None:
    path_of(place).parent.rename(tmp_path / "moved")
    (tmp_path / "notes").symlink_to(tmp_path / "moved")
    with pytest.raises(UnsafeFile), open_directory_of(place):
        pass


def test_no_more_than_the_limit_is_read(place: FilePlace) -> None:
    path_of(place).write_bytes(b"x" * 5_000)
    data = look(DISK, place, MAX_BYTES).file.data
    assert data is not None
    assert len(data) == MAX_BYTES + 1
