"""Notes that must survive a loss of power: synced before they take the place of the one before."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from aegis.errors import StorageError
from aegis.journal.disk import OsDisk
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note

if TYPE_CHECKING:
    from tests.fakes.faulty_disk import Crash, FaultyDisk

SHORT: dict[str, Any] = {"seq": 1}
LONG: dict[str, Any] = {"text": "x" * 10_000}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "subscribers.json"


def reloaded(path: Path) -> dict[str, Any] | None:
    note = Note.open(path, Flusher())
    note.close()
    assert not note.damaged
    return note.load()


class Ordered(OsDisk):
    """Writes down in which order files are synced and renamed."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def fsync(self, fd: int) -> None:
        self.order.append("fsync")
        super().fsync(fd)

    def fdatasync(self, fd: int) -> None:
        self.order.append("fdatasync")
        super().fdatasync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self.order.append("rename")
        super().rename(old, new)


async def test_a_new_file_is_synced_before_it_has_its_name_and_its_directory_after(
    path: Path,
) -> None:
    disk = Ordered()
    note = Note.open(path, Flusher(disk))
    for fields in (SHORT, LONG):
        assert not note.fits_in_place(fields)
        await note.write_synced(fields)
        assert disk.order == ["fsync", "rename", "fsync"]
        assert note.load() == reloaded(path) == fields
        disk.order.clear()
    note.close()


async def test_in_place_it_costs_one_sync(path: Path) -> None:
    disk = Ordered()
    note = Note.open(path, Flusher(disk))
    await note.write_synced(SHORT)
    disk.order.clear()
    for seq in range(3):
        assert note.fits_in_place({"seq": seq})
        await note.write_synced({"seq": seq})
        assert reloaded(path) == {"seq": seq}
    assert disk.order == ["fdatasync"] * 3
    note.close()


async def test_what_is_written_between_is_not_synced_and_what_was_synced_stays(
    path: Path, disk: FaultyDisk
) -> None:
    note = Note.open(path, Flusher(disk))
    await note.write_synced(SHORT)
    disk.calls.clear()
    note.write({"seq": 2})
    assert (disk.calls["pwrite"], disk.calls["fsync"], disk.calls["fdatasync"]) == (1, 0, 0)
    assert reloaded(path) == {"seq": 2}
    note.close()


async def test_all_of_it_is_off_the_loop(path: Path, disk: FaultyDisk) -> None:
    note = Note.open(path, Flusher(disk))
    disk.threads.clear()
    await note.write_synced(LONG)
    await note.write_synced(SHORT)
    await note.write_synced(SHORT)
    for call in ("fsync", "fdatasync", "rename", "write"):
        assert threading.get_ident() not in disk.threads[call], call
    note.close()
    assert disk.open_fds == set()


@pytest.mark.parametrize("new", [SHORT, LONG], ids=["short", "long"])
@pytest.mark.parametrize("old", [{"seq": 0}, LONG], ids=["short", "long"])
def test_a_kill_at_any_step_leaves_the_old_note_or_the_new(
    path: Path,
    new_disk: type[FaultyDisk],
    crash: type[Crash],
    old: dict[str, Any],
    new: dict[str, Any],
) -> None:
    async def rewrite(disk: FaultyDisk, steps: int) -> bool:
        note = Note.open(path, Flusher(disk))
        await note.write_synced(old)
        disk.crash_after(steps)
        try:
            await note.write_synced(new)
        except crash:
            assert reloaded(path) in (old, new)
            return False
        finally:
            note.close()
        assert reloaded(path) == new
        return True

    for steps in range(20):
        disk = new_disk()
        if trio.run(rewrite, disk, steps):
            assert steps > 1
            return
        assert disk.open_fds == set()
    pytest.fail("the write never came to its end")


@pytest.mark.parametrize("call", ["open", "write", "fsync", "rename"])
async def test_a_refusal_is_one_sentence_and_the_next_write_mends_it(
    path: Path, disk: FaultyDisk, call: str
) -> None:
    note = Note.open(path, Flusher(disk))
    await note.write_synced(SHORT)
    disk.fail(call, errno.ENOSPC)
    with pytest.raises(StorageError, match=r"cannot write .*subscribers\.json: No space left"):
        await note.write_synced(LONG)
    assert note.load() == reloaded(path) == SHORT
    assert not note.fits_in_place(SHORT)
    await note.write_synced(SHORT)
    assert reloaded(path) == SHORT
    note.close()
    assert disk.open_fds == set()


async def test_a_note_that_is_closed_while_it_is_replaced_leaves_no_descriptor(
    path: Path, disk: FaultyDisk
) -> None:
    note = Note.open(path, Flusher(disk))
    disk.hold("fsync")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(note.write_synced, SHORT)
        await trio.to_thread.run_sync(disk.wait_held, "fsync")
        note.close()
        disk.release("fsync")
    assert disk.open_fds == set()
    assert reloaded(path) == SHORT
