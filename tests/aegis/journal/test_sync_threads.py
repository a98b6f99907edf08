"""Syncs in threads: how many at once, who gets which outcome, and who may go."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
import trio

from aegis.errors import LimitReached
from aegis.journal.flusher import SyncThreads
from tests.fakes.faulty_disk import FaultyDisk

LIMIT = 3


class Slow:
    """A sync that ends when ``release`` says so, and counts who is in it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._go = threading.Event()
        self.inside: list[int] = []
        self.most = 0
        self.entered = threading.Semaphore(0)

    def sync(self, fd: int) -> None:
        """Wait."""
        with self._lock:
            self.inside.append(fd)
            self.most = max(self.most, len(self.inside))
        self.entered.release()
        assert self._go.wait(60)
        with self._lock:
            self.inside.remove(fd)

    def release(self) -> None:
        """Let all go, now and from now on."""
        self._go.set()


@pytest.fixture
def fd(tmp_path: Path, disk: FaultyDisk) -> int:
    return disk.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)


async def entered(slow: Slow, count: int) -> None:
    for _ in range(count):
        assert await trio.to_thread.run_sync(slow.entered.acquire, True, 60)


async def test_no_more_than_the_limit_are_at_work_and_all_come_to_their_end(
    disk: FaultyDisk, fd: int
) -> None:
    threads, slow, ended = SyncThreads(disk, LIMIT), Slow(), list[int]()

    async def one(number: int) -> None:
        await threads.run(slow.sync, fd)
        ended.append(number)

    async with trio.open_nursery() as nursery:
        for number in range(4 * LIMIT):
            nursery.start_soon(one, number)
        await entered(slow, LIMIT)
        assert len(slow.inside) == LIMIT
        slow.release()
    assert sorted(ended) == list(range(4 * LIMIT))
    assert slow.most == LIMIT
    assert disk.open_fds == {fd}


async def test_each_waits_for_its_own_outcome(disk: FaultyDisk, fd: int) -> None:
    threads, told = SyncThreads(disk, LIMIT), dict[int, str]()

    async def one(number: int) -> None:
        def sync(_: int) -> None:
            if number % 2:
                raise OSError(5, f"refused {number}")

        try:
            await threads.run(sync, fd)
            told[number] = "well"
        except OSError as error:
            told[number] = error.args[1]

    async with trio.open_nursery() as nursery:
        for number in range(50):
            nursery.start_soon(one, number)
    assert told == {n: f"refused {n}" if n % 2 else "well" for n in range(50)}
    assert disk.open_fds == {fd}


async def test_whoever_waits_for_a_sync_that_hangs_may_go_and_others_go_on(
    disk: FaultyDisk, fd: int
) -> None:
    threads, hanging = SyncThreads(disk, 2), Slow()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(threads.run, hanging.sync, fd)
        await entered(hanging, 1)
        for _ in range(5):
            await threads.run(os.fstat, fd)  # type: ignore[arg-type]
        nursery.cancel_scope.cancel()
    assert len(hanging.inside) == 1
    hanging.release()


async def test_one_that_goes_before_its_turn_leaves_no_descriptor_and_is_not_synced(
    disk: FaultyDisk, fd: int
) -> None:
    threads, hanging, synced = SyncThreads(disk, 1), Slow(), list[int]()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(threads.run, hanging.sync, fd)
        await entered(hanging, 1)
        async with trio.open_nursery() as impatient:
            impatient.start_soon(threads.run, synced.append, fd)
            await trio.testing.wait_all_tasks_blocked()
            impatient.cancel_scope.cancel()
        assert len(disk.open_fds) == 2
        hanging.release()
    await threads.run(synced.append, fd)
    assert len(synced) == 1
    assert disk.open_fds == {fd}


async def test_the_descriptor_that_is_synced_is_no_other_files_when_its_owner_has_closed_it(
    tmp_path: Path, disk: FaultyDisk, fd: int
) -> None:
    threads, slow = SyncThreads(disk, 1), Slow()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(threads.run, slow.sync, fd)
        await entered(slow, 1)
        disk.close(fd)
        fresh = [disk.open(tmp_path / f"{n}", os.O_WRONLY | os.O_CREAT) for n in range(5)]
        assert slow.inside[0] not in fresh
        slow.release()
    assert disk.open_fds == set(fresh)


class TellingDisk(FaultyDisk):
    """Says when a descriptor was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = threading.Event()

    def close(self, fd: int) -> None:
        """Close it."""
        super().close(fd)
        self.closed.set()


def test_a_loop_that_has_ended_does_not_disturb_a_thread_that_still_syncs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    disk, slow = TellingDisk(), Slow()
    fd = disk.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)

    async def leave() -> None:
        threads = SyncThreads(disk, 1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(threads.run, slow.sync, fd)
            await entered(slow, 1)
            nursery.cancel_scope.cancel()

    trio.run(leave)
    assert disk.open_fds > {fd}
    slow.release()
    assert disk.closed.wait(60)
    assert disk.open_fds == {fd}
    assert capfd.readouterr().err == ""


async def test_after_a_rest_there_are_threads_again(disk: FaultyDisk, fd: int) -> None:
    threads = SyncThreads(disk, LIMIT)
    for _ in range(3):
        await threads.run(os.fstat, fd)  # type: ignore[arg-type]
        await trio.testing.wait_all_tasks_blocked()
    assert disk.open_fds == {fd}


async def test_where_no_thread_can_be_started_who_waits_is_told_and_the_next_may_have_one(
    disk: FaultyDisk, fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = SyncThreads(disk, LIMIT)

    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(trio.lowlevel, "start_thread_soon", refuse)
        with pytest.raises(LimitReached, match="cannot start a thread: "):
            await threads.run(os.fstat, fd)  # type: ignore[arg-type]
    assert disk.open_fds == {fd}
    await threads.run(os.fstat, fd)  # type: ignore[arg-type]
    assert disk.open_fds == {fd}
