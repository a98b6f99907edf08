"""Group commit: what is acknowledged is synced, syncs are shared, failures are told to all."""

from __future__ import annotations

import errno
import threading
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.errors import StorageError
from aegis.journal.appender import Appender, Position
from aegis.journal.disk import APPEND
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line, scan
from aegis.journal.reader import LedgerReader

if TYPE_CHECKING:
    from tests.fakes.faulty_disk import FaultyDisk

LINES = [encode_line({"seq": seq}) for seq in range(100)]
TEN = len(LINES[0])


class Running(Protocol):
    def __call__(self, disk: FaultyDisk) -> AbstractAsyncContextManager[Appender]: ...


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def running(path: Path) -> Running:
    @asynccontextmanager
    async def run(disk: FaultyDisk) -> AsyncIterator[Appender]:
        appender = await Appender.open(path, Flusher(disk))
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                appender.start(nursery.start_soon)
                disk.calls.clear()
                yield appender
                appender.close()
                nursery.cancel_scope.cancel()
        assert disk.open_fds == set()

    return run


def content(path: Path) -> bytes:
    return path.read_bytes()


def put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def seqs(path: Path) -> list[int]:
    found = scan(content(path))
    assert (found.damaged, found.torn) == ((), 0)
    return [line.fields["seq"] for line in found.lines]


async def test_an_append_is_in_the_file_at_once_and_acknowledged_by_a_sync(
    path: Path, disk: FaultyDisk, running: Running
) -> None:
    async with running(disk) as appender:
        position = appender.append(LINES[0])
        assert content(path) == LINES[0]
        assert (position.end, appender.synced, disk.calls["fdatasync"]) == (TEN, 0, 0)
        await appender.wait_synced(position)
        assert (appender.synced, disk.calls["fdatasync"]) == (TEN, 1)
        await appender.wait_synced(position)
        assert disk.calls["fdatasync"] == 1


async def test_appending_goes_on_where_the_ledger_ended(path: Path, disk: FaultyDisk) -> None:
    put(path, LINES[0] + b"torn")
    appender = await Appender.open(path, Flusher(disk))
    assert appender.opened.last == {"seq": 0}
    assert appender.opened.torn is not None
    assert appender.synced == TEN
    assert appender.append(LINES[1]).end == 2 * TEN
    appender.close()
    assert seqs(path) == [0, 1]


async def test_waiters_share_one_sync(disk: FaultyDisk, running: Running) -> None:
    async with running(disk) as appender, trio.open_nursery() as nursery:
        for line in LINES:
            nursery.start_soon(appender.wait_synced, appender.append(line))
    assert disk.calls["fdatasync"] == 1


async def test_what_is_appended_during_a_sync_shares_the_next(
    disk: FaultyDisk, running: Running
) -> None:
    disk.hold("fdatasync")
    async with running(disk) as appender:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(appender.wait_synced, appender.append(LINES[0]))
            await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
            for line in LINES[1:]:
                nursery.start_soon(appender.wait_synced, appender.append(line))
            await trio.testing.wait_all_tasks_blocked()
            assert appender.synced == 0
            disk.release("fdatasync")
        assert disk.calls["fdatasync"] == 2
        assert appender.synced == len(LINES[0]) * 10 + len(LINES[10]) * 90


async def test_a_sync_under_way_does_not_acknowledge_what_came_after_it_began(
    disk: FaultyDisk, running: Running
) -> None:
    disk.hold("fdatasync")
    async with running(disk) as appender:
        first = appender.append(LINES[0])
        async with trio.open_nursery() as nursery:
            nursery.start_soon(appender.wait_synced, first)
            await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
            appender.append(LINES[1])
            disk.release("fdatasync")
        assert appender.synced == first.end
        assert disk.calls["fdatasync"] == 1


async def test_no_sync_ever_runs_on_the_loop(path: Path, disk: FaultyDisk) -> None:
    put(path, b"torn")
    appender = await Appender.open(path, Flusher(disk))
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        await appender.wait_synced(appender.append(LINES[0]))
        disk.fail("fdatasync", errno.EIO)
        with pytest.raises(StorageError):
            await appender.wait_synced(appender.append(LINES[1]))
        await appender.recover()
        await appender.wait_synced(appender.append(LINES[1]))
        appender.close()
        nursery.cancel_scope.cancel()
    assert disk.threads["write"] >= {threading.get_ident()}
    assert disk.calls["fdatasync"] == 3
    assert disk.calls["fsync"] >= 3
    assert threading.get_ident() not in disk.threads["fdatasync"] | disk.threads["fsync"]


async def test_a_cancelled_waiter_costs_the_others_nothing(
    disk: FaultyDisk, running: Running
) -> None:
    disk.hold("fdatasync")
    async with running(disk) as appender:
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()

            async def give_up() -> None:
                with scope:
                    await appender.wait_synced(appender.append(LINES[0]))

            nursery.start_soon(give_up)
            await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
            nursery.start_soon(appender.wait_synced, appender.append(LINES[1]))
            scope.cancel()
            await trio.testing.wait_all_tasks_blocked()
            disk.release("fdatasync")
        assert appender.synced == 2 * TEN


async def test_short_writes_are_carried_on(path: Path, disk: FaultyDisk, running: Running) -> None:
    async with running(disk) as appender:
        disk.shorten("write", 1, 2, 3)
        await appender.wait_synced(appender.append(LINES[0]))
    assert disk.calls["write"] == 4
    assert seqs(path) == [0]


@pytest.mark.parametrize("written", [0, 1, TEN - 1])
async def test_a_failed_write_leaves_no_half_line_and_is_told_to_all_who_wait(
    path: Path, disk: FaultyDisk, running: Running, written: int
) -> None:
    async with running(disk) as appender:
        kept = appender.append(LINES[0])
        await appender.wait_synced(kept)
        lost = appender.append(LINES[1])
        disk.shorten("write", written, 0)
        with pytest.raises(StorageError, match="No space left on device; free some space"):
            appender.append(LINES[2])
        assert content(path) == LINES[0]
        assert appender.failed
        with pytest.raises(StorageError, match="No space left on device"):
            await appender.wait_synced(lost)
        await appender.wait_synced(kept)
        with pytest.raises(StorageError, match="No space left on device"):
            appender.append(LINES[3])
        assert disk.calls["fdatasync"] == 1


async def test_after_a_recovery_the_owner_submits_again_what_was_refused(
    path: Path, disk: FaultyDisk, running: Running
) -> None:
    async with running(disk) as appender:
        await appender.wait_synced(appender.append(LINES[0]))
        disk.fail("write", errno.ENOSPC)
        with pytest.raises(StorageError):
            appender.append(LINES[1])
        await appender.recover()
        assert not appender.failed
        await appender.wait_synced(appender.append(LINES[1]))
    assert seqs(path) == [0, 1]


async def test_a_failed_sync_fails_all_and_is_not_retried_on_the_same_pages(
    path: Path, disk: FaultyDisk, running: Running
) -> None:
    async with running(disk) as appender:
        await appender.wait_synced(appender.append(LINES[0]))
        disk.fail("fdatasync", errno.EIO)
        told: list[str] = []

        async def wait(position: Position) -> None:
            with pytest.raises(StorageError) as caught:
                await appender.wait_synced(position)
            told.append(str(caught.value))

        async with trio.open_nursery() as nursery:
            for line in LINES[1:4]:
                nursery.start_soon(wait, appender.append(line))
        assert len(told) == 3
        assert all("cannot sync" in sentence for sentence in told)
        assert disk.calls["fdatasync"] == 2
        assert disk.calls["open"] == 0
        await appender.recover()
        assert disk.calls["open"] == 1
        assert seqs(path) == [0]
        await appender.wait_synced(appender.append(LINES[1]))
    assert seqs(path) == [0, 1]


async def test_each_waiter_gets_an_exception_of_its_own(disk: FaultyDisk, running: Running) -> None:
    async with running(disk) as appender:
        disk.fail("fdatasync", errno.EIO)
        position = appender.append(LINES[0])
        caught = []
        for _ in range(2):
            with pytest.raises(StorageError) as info:
                await appender.wait_synced(position)
            caught.append(info.value)
        assert caught[0] is not caught[1]


async def test_a_position_from_before_a_failure_is_not_taken_for_a_later_line(
    path: Path, disk: FaultyDisk, running: Running
) -> None:
    async with running(disk) as appender:
        acknowledged = appender.append(LINES[0])
        await appender.wait_synced(acknowledged)
        lost = appender.append(LINES[1])
        disk.fail("write", errno.EIO)
        with pytest.raises(StorageError):
            appender.append(LINES[2])
        await appender.recover()
        later = appender.append(LINES[3])
        assert later.end == lost.end
        await appender.wait_synced(later)
        with pytest.raises(StorageError):
            await appender.wait_synced(lost)
        await appender.wait_synced(acknowledged)
    assert seqs(path) == [0, 3]


async def test_a_write_that_fails_while_a_sync_runs_takes_its_acknowledgement_away(
    path: Path, disk: FaultyDisk, running: Running
) -> None:
    # The failed write cuts off what the sync covers, so its success must not acknowledge it.
    disk.hold("fdatasync")
    async with running(disk) as appender:
        position = appender.append(LINES[0])

        async def wait() -> None:
            with pytest.raises(StorageError):
                await appender.wait_synced(position)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
            disk.fail("write", errno.ENOSPC)
            with pytest.raises(StorageError):
                appender.append(LINES[1])
        disk.release("fdatasync")
        await appender.recover()
        assert appender.synced == 0
        await appender.wait_synced(appender.append(LINES[2]))
    assert seqs(path) == [2]


@pytest.mark.parametrize("call", ["open", "pread", "ftruncate", "fsync", "dup"])
async def test_a_recovery_that_fails_may_be_tried_again(
    path: Path, disk: FaultyDisk, running: Running, call: str
) -> None:
    async with running(disk) as appender:
        await appender.wait_synced(appender.append(LINES[0]))
        disk.fail("write", errno.EIO)
        with pytest.raises(StorageError):
            appender.append(LINES[1])
        disk.fail(call, errno.EIO)
        fds = len(disk.open_fds)
        with pytest.raises(StorageError, match="Input/output error"):
            await appender.recover()
        assert appender.failed
        assert len(disk.open_fds) == fds
        await appender.recover()
        await appender.wait_synced(appender.append(LINES[2]))
    assert seqs(path) == [0, 2]


async def test_a_recovery_cuts_off_what_the_failure_could_not(
    path: Path, disk: FaultyDisk, running: Running
) -> None:
    async with running(disk) as appender:
        await appender.wait_synced(appender.append(LINES[0]))
        disk.shorten("write", 5, 0)
        disk.fail("ftruncate", errno.EIO)
        with pytest.raises(StorageError):
            appender.append(LINES[1])
        assert content(path) == LINES[0] + LINES[1][:5]
        await appender.recover()
        assert content(path) == LINES[0]


@pytest.mark.parametrize(
    ("left", "sentence"),
    [(LINES[0] + LINES[1][:-1], "shorter than"), (LINES[0] + b"?" * (TEN - 1) + b"\n", "damaged")],
)
async def test_a_recovery_refuses_a_file_that_lacks_what_was_acknowledged(
    path: Path, disk: FaultyDisk, running: Running, left: bytes, sentence: str
) -> None:
    async with running(disk) as appender:
        appender.append(LINES[0])
        await appender.wait_synced(appender.append(LINES[1]))
        disk.fail("write", errno.EIO)
        with pytest.raises(StorageError):
            appender.append(LINES[2])
        put(path, left)
        with pytest.raises(StorageError, match=sentence):
            await appender.recover()
        assert content(path) == left
        assert appender.failed


async def test_old_damage_at_the_end_does_not_stand_in_the_way_of_a_recovery(
    path: Path, disk: FaultyDisk, running: Running
) -> None:
    put(path, LINES[0] + b"damaged\n")
    async with running(disk) as appender:
        disk.fail("write", errno.EIO)
        with pytest.raises(StorageError):
            appender.append(LINES[1])
        await appender.recover()
        await appender.wait_synced(appender.append(LINES[1]))
    assert [line.fields["seq"] for line in scan(content(path)).lines] == [0, 1]


async def test_recover_without_a_failure_does_nothing(disk: FaultyDisk, running: Running) -> None:
    async with running(disk) as appender:
        await appender.recover()
        assert disk.total == 0


async def test_a_file_that_stalls_holds_no_other(tmp_path: Path, disk: FaultyDisk) -> None:
    stalling = await Appender.open(tmp_path / "a", Flusher(disk))
    lively = await Appender.open(tmp_path / "b", Flusher())
    disk.hold("fdatasync")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            stalling.start(nursery.start_soon)
            lively.start(nursery.start_soon)
            nursery.start_soon(stalling.wait_synced, stalling.append(LINES[0]))
            await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
            for line in LINES:
                await lively.wait_synced(lively.append(line))
            assert stalling.synced == 0
            disk.release("fdatasync")
            await stalling.wait_synced(stalling.append(LINES[1]))
            stalling.close()
            lively.close()
            nursery.cancel_scope.cancel()


async def test_stopping_does_not_wait_for_a_stalled_sync_and_no_descriptor_is_reused_under_it(
    path: Path, disk: FaultyDisk
) -> None:
    flusher = Flusher(disk, threads=1)
    appender = await Appender.open(path, flusher)
    disk.hold("fdatasync")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            appender.start(nursery.start_soon)
            nursery.start_soon(refused, appender, appender.append(LINES[0]))
            await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
            appender.close()
            nursery.cancel_scope.cancel()
        own = set(disk.open_fds)
        assert len(own) == 1  # the thread's, which closes it itself
        others = {disk.open(path.with_name(f"other-{n}"), APPEND) for n in range(3)}
        assert not own & others
        disk.release("fdatasync")
        await flusher.fdatasync(min(others))  # its only thread is free again
    assert disk.open_fds == others
    for fd in others:
        disk.close(fd)


async def refused(appender: Appender, position: Position) -> None:
    with pytest.raises(StorageError, match="is closed"):
        await appender.wait_synced(position)


async def test_cancelled_before_its_thread_began_a_sync_leaves_no_descriptor(
    path: Path, disk: FaultyDisk
) -> None:
    flusher = Flusher(disk, threads=1)
    fd = disk.open(path, APPEND)
    disk.hold("fdatasync")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(flusher.fdatasync, fd)
            await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
            with trio.move_on_after(0.01) as scope:
                await flusher.fdatasync(fd)
            assert scope.cancelled_caught
            assert len(disk.open_fds) == 2
            disk.release("fdatasync")
    disk.close(fd)
    assert disk.calls["fdatasync"] == 1
    assert disk.open_fds == set()


async def test_close_refuses_what_comes_after_and_wakes_who_waits(
    disk: FaultyDisk, path: Path
) -> None:
    appender = await Appender.open(path, Flusher(disk))
    synced = appender.append(LINES[0])
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            appender.start(nursery.start_soon)
            await appender.wait_synced(synced)
            waiting = appender.append(LINES[1])
            nursery.start_soon(refused, appender, waiting)
            await trio.lowlevel.checkpoint()
            appender.close()
            nursery.cancel_scope.cancel()
    appender.close()
    with pytest.raises(StorageError, match="is closed: try again when it is open"):
        appender.append(LINES[2])
    with pytest.raises(StorageError, match="is closed"):
        await appender.recover()
    await appender.wait_synced(synced)
    assert disk.open_fds == set()


async def test_an_appender_needs_no_task_to_sync(path: Path, disk: FaultyDisk) -> None:
    appender = await Appender.open(path, Flusher(disk))
    disk.hold("fdatasync")
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        for line in LINES[:3]:
            position = appender.append(line)
            appender.request_sync()
        await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
        assert len(nursery.child_tasks) == 0
        disk.release("fdatasync")
        await appender.wait_synced(position)
        appender.close()


async def test_lines_that_were_written_before_the_thread_began_share_its_sync(
    path: Path, disk: FaultyDisk
) -> None:
    flusher = Flusher(disk, threads=1)
    appender = await Appender.open(path, flusher)
    other = disk.open(path.with_name("other"), APPEND)
    disk.hold("fdatasync")
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        nursery.start_soon(flusher.fdatasync, other)
        await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
        for line in LINES[:3]:
            position = appender.append(line)
            appender.request_sync()
        disk.release("fdatasync")
        await appender.wait_synced(position)
    # The one that each request after the first wants has nothing left to do.
    assert disk.calls["fdatasync"] == 2
    appender.close()
    disk.close(other)


@pytest.mark.parametrize("error", [ValueError("a bug"), OSError(5, "no disk")])
async def test_an_error_of_the_owner_in_its_outcome_is_a_failure_of_the_owner(
    path: Path, disk: FaultyDisk, error: Exception
) -> None:
    appender = await Appender.open(path, Flusher(disk))

    def fail() -> None:
        raise error

    appender.on_outcome = fail
    with pytest.RaisesGroup(type(error)):
        async with trio.open_nursery() as nursery:
            appender.start(nursery.start_soon)
            position = appender.append(LINES[0])
            await appender.wait_synced(position)
            await trio.sleep_forever()
    assert appender.is_synced(position)
    assert not appender.failed
    appender.close()


async def test_a_sync_that_ends_after_the_close_acknowledges_nothing(
    path: Path, disk: FaultyDisk
) -> None:
    flusher = Flusher(disk, threads=1)
    appender = await Appender.open(path, flusher)
    outcomes = []
    appender.on_outcome = lambda: outcomes.append(appender.synced)
    disk.hold("fdatasync")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            appender.start(nursery.start_soon)
            position = appender.append(LINES[0])
            appender.request_sync()
            await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
            appender.close()
            other = disk.open(path.with_name("other"), APPEND)  # perhaps of the same number
            disk.release("fdatasync")
            await flusher.fdatasync(other)  # its only thread is free again
    assert (appender.synced, outcomes) == (0, [])
    with pytest.raises(StorageError, match="is closed"):
        appender.is_synced(position)
    assert disk.open_fds == {other}
    disk.close(other)


async def test_lines_that_are_not_one_line_are_a_bug_of_the_caller(
    disk: FaultyDisk, running: Running
) -> None:
    async with running(disk) as appender:
        for wrong in (b"", b"x", b"\n\n", b"a\nb\n", b"a\nb"):
            with pytest.raises(AssertionError, match="one newline"):
                appender.append(wrong)


async def test_a_reader_that_ends_at_synced_sees_what_is_acknowledged_only(
    path: Path, disk: FaultyDisk, running: Running
) -> None:
    async with running(disk) as appender:
        await appender.wait_synced(appender.append(LINES[0]))
        appender.append(LINES[1])
        reader = LedgerReader(path)
        assert reader.last_n(9, end=appender.synced).records == [{"seq": 0}]
        assert reader.last_n(9).records == [{"seq": 0}, {"seq": 1}]


async def test_opening_what_cannot_be_opened_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="a file is in the directory's place"):
        await Appender.open(tmp_path / "file" / "ledger.jsonl", Flusher())


STEPS = st.lists(
    st.sampled_from(["append", "wait", "fail write", "short write", "fail sync", "recover"]),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS)
def test_whatever_fails_the_ledger_holds_the_acknowledged_in_order_and_nothing_refused(
    steps: list[str], tmp_path_factory: pytest.TempPathFactory, new_disk: type[FaultyDisk]
) -> None:
    path = tmp_path_factory.mktemp("ledger") / "ledger.jsonl"
    trio.run(_drive, path, new_disk(), steps)


async def _drive(path: Path, disk: FaultyDisk, steps: list[str]) -> None:
    appender = await Appender.open(path, Flusher(disk))
    acknowledged: list[int] = []
    open_: list[tuple[int, Position]] = []
    refused_: list[int] = []
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        for seq, step in enumerate([*steps, "recover", "wait"]):
            if step == "append":
                try:
                    open_.append((seq, appender.append(encode_line({"seq": seq}))))
                except StorageError:
                    refused_.append(seq)
            elif step == "wait":
                for number, position in open_:
                    try:
                        await appender.wait_synced(position)
                        acknowledged.append(number)
                    except StorageError:
                        refused_.append(number)
                open_.clear()
            elif step == "recover":
                disk.heal()
                await appender.recover()
            elif step == "short write":
                disk.shorten("write", 3, 0)
            else:
                disk.fail("write" if step == "fail write" else "fdatasync", errno.EIO)
        appender.close()
        nursery.cancel_scope.cancel()
    assert seqs(path) == acknowledged
    assert not set(refused_) & set(acknowledged)
    assert disk.open_fds == set()
