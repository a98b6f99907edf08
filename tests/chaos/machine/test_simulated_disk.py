"""The disk that fails and dies where a plan says, and the flusher that takes its time."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
import trio
import trio.testing

from aegis.journal.disk import APPEND, Disk, OsDisk, write_all
from aegis.journal.shared_directory import SharedDirectory
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.file_content import FailedSync
from tests.chaos.machine.simulated_disk import (
    ANY,
    CALLS,
    Die,
    DiskPlan,
    Fail,
    FallShort,
    ProcessDied,
    SimulatedDirectory,
    SimulatedDisk,
    Stall,
)
from tests.chaos.machine.simulated_flusher import SYNC_S, SimulatedFlusher

A = Path("/a")

OF_SHARED = {"link", "rename_new", "exchange", "is_same"}
"""The calls of files that other programs edit too."""


def contents(disk: SimulatedDisk) -> set[bytes | None]:
    return {image.get("/a") for image in legal_images(disk.model)}


def opened(plan: DiskPlan) -> tuple[SimulatedDisk, int]:
    disk = SimulatedDisk({"/a": b""}, plan)
    return disk, disk.open(A, APPEND)


def test_it_has_every_call_of_the_real_disk() -> None:
    disk: Disk = SimulatedDisk()
    real = {name for name in vars(OsDisk) if not name.startswith("_")}
    shared = {name for name in vars(SharedDirectory) if not name.startswith("_")}
    assert real == {*CALLS, "close", "seal", "shared_directory"} - OF_SHARED
    assert shared == {*vars(SimulatedDirectory)} & shared
    assert shared >= OF_SHARED
    assert all(callable(getattr(disk, name)) for name in real)


def test_a_dead_process_makes_no_calls_but_may_close() -> None:
    disk, fd = opened(DiskPlan({("write", 2): Die()}))
    write_all(disk, fd, b"one")
    with pytest.raises(ProcessDied):
        write_all(disk, fd, b"two")
    for call in (lambda: disk.write(fd, b"x"), lambda: disk.fsync(fd), lambda: disk.unlink(A)):
        with pytest.raises(ProcessDied):
            call()
    disk.close(fd)
    assert disk.is_dead
    assert b"one" in contents(disk)
    assert not any(b"two" in (content or b"") for content in contents(disk))


def test_death_is_no_error_that_could_be_handled() -> None:
    assert not issubclass(ProcessDied, Exception)


def test_a_call_fails_once_where_the_plan_says() -> None:
    disk, fd = opened(DiskPlan({("write", 1): Fail(errno.ENOSPC)}))
    with pytest.raises(OSError, match="No space left"):
        disk.write(fd, b"x")
    assert disk.write(fd, b"y") == 1
    assert disk.plan.hits["write"] == 2
    assert disk.plan.hits[ANY] == 3


@pytest.mark.parametrize(("size", "taken"), [(1, 1), (2, 1), (9, 4)])
def test_a_write_falls_short_but_never_to_nothing(size: int, taken: int) -> None:
    disk, fd = opened(DiskPlan({("write", 1): FallShort()}))
    assert disk.write(fd, b"x" * size) == taken
    assert disk.size(fd) == taken


@pytest.mark.parametrize("fate", FailedSync)
def test_a_failed_sync_leaves_the_file_in_doubt(fate: FailedSync) -> None:
    disk, fd = opened(DiskPlan({("fdatasync", 1): Fail(errno.EIO, fate)}))
    disk.write(fd, b"x")
    with pytest.raises(OSError, match="Input/output"):
        disk.fdatasync(fd)
    assert b"" in contents(disk)
    disk.fdatasync(fd)
    assert (contents(disk) == {b"x"}) is (fate is FailedSync.DIRTY)


async def test_a_sync_under_way_promises_what_was_written_before_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk, fd = opened(DiskPlan())
    flusher = SimulatedFlusher(disk)
    disk.write(fd, b"1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(flusher.fdatasync, fd)
        await trio.sleep(SYNC_S / 2)
        disk.write(fd, b"2")
        assert b"" in contents(disk)
    assert contents(disk) == {b"1", b"12", b"1\0"}


async def test_a_sync_that_is_cancelled_promises_nothing(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk, fd = opened(DiskPlan({("fdatasync", 1): Stall(60)}))
    disk.write(fd, b"1")
    with trio.move_on_after(30) as scope:
        await SimulatedFlusher(disk).fdatasync(fd)
    assert scope.cancelled_caught
    assert b"" in contents(disk)


async def test_a_process_that_dies_during_a_sync_hears_nothing_of_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk, fd = opened(DiskPlan())
    disk.write(fd, b"1")
    with pytest.RaisesGroup(ProcessDied):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(SimulatedFlusher(disk).fdatasync, fd)
            await trio.sleep(SYNC_S / 2)
            disk.die()
    assert b"" in contents(disk)


async def test_work_that_changes_files_is_not_left_behind_by_a_cancellation(
    autojump_clock: trio.testing.MockClock,
) -> None:
    disk, _ = opened(DiskPlan())
    with trio.CancelScope() as scope:
        scope.cancel()
        await SimulatedFlusher(disk).call(lambda: disk.unlink(A))
    assert disk.list_directory(Path("/")) == []
