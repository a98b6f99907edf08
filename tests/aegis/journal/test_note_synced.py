"""Notes that must survive a loss of power: synced before they take the place of the one before."""

from __future__ import annotations

import errno
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from aegis.errors import StorageError
from aegis.journal.disk import OsDisk
from aegis.journal.flusher import Flusher
from aegis.journal.note import Note
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.file_content import FailedSync
from tests.chaos.machine.simulated_disk import Die, DiskPlan, Fail, ProcessDied, SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher

if TYPE_CHECKING:
    from tests.fakes.faulty_disk import Crash, FaultyDisk

SHORT: dict[str, Any] = {"seq": 1}
LONG: dict[str, Any] = {"text": "x" * 10_000}
NOTE = Path("/state/note.json")


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


# What an earlier life has left.


def left_unsynced(fields: dict[str, Any]) -> SimulatedDisk:
    """A disk whose process was killed right before it synced this note, the second one."""

    async def write(disk: SimulatedDisk) -> None:
        note = Note.open(NOTE, SimulatedFlusher(disk))
        await note.write_synced(SHORT)
        disk.plan = DiskPlan({("fdatasync", 1): Die(), ("fsync", 2): Die()})
        await note.write_synced(fields)

    disk = SimulatedDisk({"/": None, "/state": None})
    with pytest.RaisesGroup(ProcessDied, allow_unwrapped=True):
        simulated(write, disk)
    disk.model.close_all()
    next_one = SimulatedDisk()
    next_one.model = disk.model
    return next_one


def simulated(work: Callable[[SimulatedDisk], Awaitable[None]], disk: SimulatedDisk) -> None:
    trio.run(work, disk, clock=trio.testing.MockClock(autojump_threshold=0))


def held_in(image: Image) -> dict[str, Any] | None:
    note = Note.open(NOTE, SimulatedFlusher(SimulatedDisk(image)))
    note.close()
    return note.load()


def may_hold(disk: SimulatedDisk) -> list[dict[str, Any] | None]:
    """What may be found after a loss of power now."""
    found: list[dict[str, Any] | None] = []
    for image in legal_images(disk.model):
        if (held := held_in(image)) not in found:
            found.append(held)
    return found


async def open_and_confirm(disk: SimulatedDisk) -> None:
    note = Note.open(NOTE, SimulatedFlusher(disk))
    try:
        await note.confirm()
    finally:
        note.close()


@pytest.mark.parametrize("new", [{"seq": 2}, LONG], ids=["in place", "a new file"])
def test_what_an_earlier_life_did_not_sync_is_there_for_good_once_it_is_confirmed(
    new: dict[str, Any],
) -> None:
    disk = left_unsynced(new)
    assert SHORT in may_hold(disk)
    simulated(open_and_confirm, disk)
    assert may_hold(disk) == [new]


@pytest.mark.parametrize("fate", FailedSync)
@pytest.mark.parametrize("call", ["fdatasync", "fsync"])
@pytest.mark.parametrize("new", [{"seq": 2}, LONG], ids=["in place", "a new file"])
def test_a_disk_that_refuses_that_sync_gets_a_new_file(
    new: dict[str, Any], call: str, fate: FailedSync
) -> None:
    """What its pages have become is unknown, and a second sync would tell nothing of them."""
    disk = left_unsynced(new)
    disk.plan = DiskPlan({(call, 1): Fail(errno.EIO, fate)})
    simulated(open_and_confirm, disk)
    assert disk.plan.hits["rename"] == 1
    assert may_hold(disk) == [new]


def test_where_it_cannot_be_confirmed_that_is_told_and_the_next_try_makes_a_new_file() -> None:
    disk = left_unsynced({"seq": 2})

    async def confirm_twice(disk: SimulatedDisk) -> None:
        note = Note.open(NOTE, SimulatedFlusher(disk))
        with pytest.raises(StorageError, match=r"cannot write /state/note\.json: Input/output"):
            await note.confirm()
        assert note.load() == {"seq": 2}
        await note.confirm()
        assert (disk.plan.hits["fdatasync"], disk.plan.hits["rename"]) == (1, 1)
        note.close()

    eio = Fail(errno.EIO, FailedSync.CLEAN)
    disk.plan = DiskPlan({("fdatasync", 1): eio, ("fsync", 1): eio})
    simulated(confirm_twice, disk)
    assert may_hold(disk) == [{"seq": 2}]


async def test_to_confirm_costs_two_syncs_off_the_loop_and_nothing_the_second_time(
    path: Path, disk: FaultyDisk
) -> None:
    first = Note.open(path, Flusher(disk))
    await first.confirm()
    assert (disk.calls["fdatasync"], disk.calls["fsync"]) == (0, 0)  # there is no file yet
    await first.write_synced(SHORT)
    first.close()
    note = Note.open(path, Flusher(disk))
    disk.calls.clear()
    disk.threads.clear()
    for _ in range(2):
        await note.confirm()
        assert (disk.calls["fdatasync"], disk.calls["fsync"]) == (1, 1)
    assert threading.get_ident() not in disk.threads["fdatasync"] | disk.threads["fsync"]
    note.close()
    assert disk.open_fds == set()
