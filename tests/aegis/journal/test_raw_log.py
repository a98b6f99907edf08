"""The raw log: offsets that never move, rotation, gaps, and a kill at any step."""

from __future__ import annotations

import errno
import random
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.errors import StorageError
from aegis.journal.raw_log import BUFFER_BYTES, RawLog

if TYPE_CHECKING:
    from tests.fakes.faulty_disk import Crash, FaultyDisk


def stream(start: int, end: int) -> bytes:
    """Bytes that tell their offset: byte ``i`` of the stream is the same in every test."""
    return bytes((i * 7 + i // 251) % 256 for i in range(start, end))


def feed(log: RawLog, size: int) -> None:
    log.write(stream(log.position, log.position + size))


def check(log: RawLog) -> None:
    """Whatever is kept is the right byte at the right place, and every other is counted."""
    end = log.position
    for start in range(end):
        data, dropped = log.read(start, start + 1)
        assert (data, dropped) in ((stream(start, start + 1), 0), (b"", 1))
        assert start >= log.oldest or dropped
    data, dropped = log.read(0, end)
    assert len(data) + dropped == end
    assert b"".join(stretches(log)) == data


def stretches(log: RawLog) -> list[bytes]:
    """What is kept, read onward in pieces: each begins at or behind the end of the one before."""
    pieces, cursor = [], 0
    while cursor < log.position:
        begin, piece = log.stretch(cursor, 7)
        assert cursor <= begin
        assert len(piece) <= 7
        assert piece == stream(begin, begin + len(piece))
        pieces.append(piece)
        cursor = begin + len(piece)
    assert log.stretch(cursor, 7) == (log.position, b"")
    return pieces


def test_what_was_written_and_flushed_is_in_the_file_as_it_is(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path / "build")
    log.write(b"\x1b[1mhello\r\n")
    log.write(b"\xff\0")
    assert log.position == 13
    log.flush()
    path = tmp_path / "build" / "raw.log"
    assert path.read_bytes() == b"\x1b[1mhello\r\n\xff\0"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "build" / "raw.base").stat().st_mode) == 0o600
    log.close()


def test_nothing_is_synced_so_all_may_happen_on_the_loop(tmp_path: Path, disk: FaultyDisk) -> None:
    log = RawLog.open(tmp_path / "new" / "build", disk=disk, limit_bytes=100)
    for _ in range(10):
        feed(log, 60)
        log.flush()
    log.close()
    assert disk.calls["write"] > 10
    assert disk.calls["fsync"] + disk.calls["fdatasync"] == 0


def test_bytes_not_flushed_yet_can_be_read(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path)
    feed(log, 10)
    log.flush()
    feed(log, 5)
    assert log.read(8, 12) == (stream(8, 12), 0)
    assert (tmp_path / "raw.log").stat().st_size == 10
    log.close()
    assert (tmp_path / "raw.log").stat().st_size == 15


def test_a_stretch_goes_over_both_files_and_the_buffer_up_to_a_gap(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path, limit_bytes=100)
    for size in (60, 60):
        feed(log, size)
        log.flush()
    feed(log, 20)
    assert log.stretch(10, 1000) == (10, stream(10, 140))
    assert log.stretch(10, 70) == (10, stream(10, 80))
    feed(log, 60)
    log.flush()
    assert (log.oldest, log.position) == (60, 200)
    assert log.stretch(0, 1000) == (60, stream(60, 200))
    assert log.stretch(0, 5) == (60, stream(60, 65))
    log.previous_path.unlink()
    [begin] = {log.stretch(cursor, 1000)[0] for cursor in (0, 61, 99)}
    assert log.stretch(0, 1000) == (begin, stream(begin, 200))
    log.close()


def test_the_newest_bytes_are_read_without_the_disk(tmp_path: Path, disk: FaultyDisk) -> None:
    log = RawLog.open(tmp_path, disk=disk)
    feed(log, 10)
    log.flush()
    feed(log, 20)
    log.rest()
    for call in ("open", "pread", "write"):
        disk.fail(call, errno.EIO, times=1000)
    assert log.stretch(10, 1000) == (10, stream(10, 30))
    assert log.stretch(15, 7) == (15, stream(15, 22))
    assert log.stretch(30, 7) == (30, b"")
    with pytest.raises(StorageError):
        log.stretch(9, 1000)
    disk.heal()
    log.close()


def test_a_full_buffer_is_written_through(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path)
    log.write(b"x" * (BUFFER_BYTES - 1))
    assert (tmp_path / "raw.log").stat().st_size == 0
    log.write(b"x")
    assert (tmp_path / "raw.log").stat().st_size == BUFFER_BYTES
    log.close()


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 30, (0, 30, 0)),
        (-5, 10, (0, 10, 0)),
        (25, 99, (25, 30, 0)),
        (30, 99, (30, 30, 0)),
        (20, 10, (20, 20, 0)),
        (99, 120, (30, 30, 0)),
    ],
)
def test_a_range_is_brought_inside_of_what_was_written(
    tmp_path: Path, start: int, end: int, expected: tuple[int, int, int]
) -> None:
    log = RawLog.open(tmp_path)
    feed(log, 30)
    log.flush()
    first, last, dropped = expected
    assert log.read(start, end) == (stream(first, last), dropped)
    log.close()


def test_only_two_files_within_the_limit_are_kept_and_the_rest_is_counted(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path, limit_bytes=100)
    for _ in range(50):
        feed(log, 30)
        log.flush()
        sizes = [path.stat().st_size for path in tmp_path.glob("raw.log*")]
        assert len(sizes) <= 2
        assert max(sizes) <= 100
    assert log.position == 1500
    assert log.read(0, 1500) == (stream(log.oldest, 1500), log.oldest)
    assert log.oldest >= 1500 - 200
    check(log)
    log.close()


@pytest.mark.long
@pytest.mark.one_python
def test_a_write_larger_than_both_files_keeps_its_newest_bytes(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path, limit_bytes=100)
    feed(log, 3 * BUFFER_BYTES)
    data, dropped = log.read(0, log.position)
    assert data == stream(log.oldest, log.position)
    assert dropped == log.oldest == log.position - len(data)
    assert 100 < len(data) <= 200
    log.close()


def test_a_log_that_rests_has_no_file_open_and_goes_on_at_its_next_use(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path / "build", limit_bytes=64)
    feed(log, 30)
    log.rest()  # not yet in the file: it stays open
    assert open_files_below(tmp_path) == 1
    log.flush()
    log.rest()
    log.rest()
    assert open_files_below(tmp_path) == 0
    check(log)
    log.rest()
    feed(log, 100)
    log.flush()
    log.rest()
    check(log)
    log.close()
    assert open_files_below(tmp_path) == 0


def open_files_below(directory: Path) -> int:
    links = [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return sum(str(link.readlink()).startswith(str(directory)) for link in links)


def test_reopening_goes_on_at_the_same_offset(tmp_path: Path) -> None:
    for _ in range(20):
        log = RawLog.open(tmp_path, limit_bytes=100)
        feed(log, 33)
        log.close()
    log = RawLog.open(tmp_path, limit_bytes=100)
    assert log.position == 660
    check(log)
    log.close()


def test_after_a_power_loss_offsets_never_go_back(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path)
    feed(log, 50)
    log.close()
    with (tmp_path / "raw.log").open("r+b") as file:
        file.truncate(20)
    log = RawLog.open(tmp_path, at_least=50)
    assert log.position == 50
    feed(log, 10)
    log.flush()
    assert log.read(0, 60) == (stream(0, 20) + stream(50, 60), 30)
    log.close()
    log = RawLog.open(tmp_path, at_least=60)
    check(log)
    assert log.read(10, 55) == (stream(10, 20) + stream(50, 55), 30)
    log.close()


def test_at_least_below_the_end_changes_nothing(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path)
    feed(log, 50)
    log.close()
    log = RawLog.open(tmp_path, at_least=20)
    assert log.position == 50
    log.close()


def test_a_new_log_may_begin_beyond_zero(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path, at_least=1000)
    feed(log, 5)
    log.close()
    log = RawLog.open(tmp_path)
    assert log.read(990, 1005) == (stream(1000, 1005), 10)
    log.close()


@pytest.mark.parametrize("bases", [None, b"", b"garbage\n", b'{"crc":"15d54739"}\n'])
def test_without_its_bases_the_log_ends_where_it_was_known_to_end(
    tmp_path: Path, bases: bytes | None
) -> None:
    log = RawLog.open(tmp_path, limit_bytes=100)
    for _ in range(5):
        feed(log, 70)
    log.close()
    (tmp_path / "raw.base").unlink()
    if bases is not None:
        (tmp_path / "raw.base").write_bytes(bases)
    log = RawLog.open(tmp_path, limit_bytes=100, at_least=350)
    assert log.position == 350
    check(log)
    assert len(log.read(0, 350)[0]) > 100
    log.close()


def test_a_kill_at_any_step_costs_only_what_was_not_flushed(
    tmp_path_factory: pytest.TempPathFactory, new_disk: type[FaultyDisk], crash: type[Crash]
) -> None:
    steps = 0
    survived = False
    while not survived:
        directory = tmp_path_factory.mktemp("raw")
        dying = new_disk(crash_at=steps)
        flushed = 0
        try:
            log = RawLog.open(directory, disk=dying, limit_bytes=40)
            for _ in range(6):
                feed(log, 30)
                log.flush()
                flushed = log.position
            survived = True
        except crash:
            steps += 1
        _check_after_a_kill(directory, flushed, new_disk, crash)
    assert steps == dying.total > 50


def _check_after_a_kill(
    directory: Path, flushed: int, new_disk: type[FaultyDisk], crash: type[Crash]
) -> None:
    # The opening is itself killed at each of its steps, again and again, before one succeeds.
    steps = 0
    while True:
        dying = new_disk(crash_at=steps)
        try:
            log = RawLog.open(directory, disk=dying, limit_bytes=40)
        except crash:
            steps += 1
        else:
            break
    dying.heal()
    assert flushed <= log.position <= flushed + 30
    assert log.read(max(flushed - 30, 0), flushed) == (stream(max(flushed - 30, 0), flushed), 0)
    check(log)
    feed(log, 30)
    log.flush()
    check(log)
    log.close()


def test_a_full_disk_is_told_by_flush_and_the_log_goes_on_when_it_is_not_full(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    log = RawLog.open(tmp_path, disk=disk)
    feed(log, 10)
    log.flush()
    disk.shorten("write", 4, 0)
    feed(log, 10)
    with pytest.raises(StorageError, match=r"cannot write .*raw\.log: No space left on device"):
        log.flush()
    log.flush()
    assert log.read(0, 20) == (stream(0, 20), 0)
    assert (tmp_path / "raw.log").read_bytes() == stream(0, 20)
    log.close()
    assert disk.open_fds == set()


def test_while_the_disk_is_full_memory_is_bounded_and_the_gap_is_counted(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    log = RawLog.open(tmp_path, disk=disk)
    feed(log, 10)
    log.flush()
    disk.fail("write", errno.ENOSPC, times=2)
    feed(log, BUFFER_BYTES)
    feed(log, BUFFER_BYTES)
    feed(log, 10)
    log.flush()
    end = 2 * BUFFER_BYTES + 20
    assert log.position == end
    assert log.read(0, end) == (stream(0, 10) + stream(end - 10, end), 2 * BUFFER_BYTES)
    log.close()
    log = RawLog.open(tmp_path)
    assert log.position == end
    assert log.read(0, end)[1] == 2 * BUFFER_BYTES
    log.close()


@pytest.mark.parametrize("call", ["open", "write", "rename"])
@pytest.mark.parametrize("after", range(4))
def test_a_rotation_that_fails_anywhere_is_carried_on_by_the_next_write(
    tmp_path: Path, disk: FaultyDisk, call: str, after: int
) -> None:
    log = RawLog.open(tmp_path, disk=disk, limit_bytes=40)
    for _ in range(2):
        feed(log, 30)
        log.flush()
    disk.fail(call, errno.EIO, times=after)
    for _ in range(4):
        feed(log, 30)
        for _ in range(after):
            try:
                log.flush()
            except StorageError:
                continue
    log.flush()
    assert log.position == 180
    assert log.read(120, 180) == (stream(120, 180), 0)
    check(log)
    log.close()
    assert disk.open_fds == set()


def test_a_rotation_that_failed_hides_nothing_that_is_there(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    log = RawLog.open(tmp_path, disk=disk, limit_bytes=40)
    feed(log, 30)
    log.flush()
    feed(log, 30)
    disk.fail("rename", errno.EIO)
    with pytest.raises(StorageError):
        log.flush()
    disk.pass_then_fail("rename", 1, errno.EIO)  # the intent is stated, raw.log stays
    with pytest.raises(StorageError):
        log.flush()
    assert log.read(0, 60) == (stream(0, 60), 0)
    log.flush()
    assert log.read(0, 60) == (stream(0, 60), 0)
    log.close()


def test_a_disk_that_refuses_the_opening_is_one_sentence(tmp_path: Path, disk: FaultyDisk) -> None:
    for call in ("mkdir", "open", "write", "rename"):
        disk.fail(call, errno.EROFS)
        with pytest.raises(StorageError, match=r"cannot open .*raw\.log: Read-only file system"):
            RawLog.open(tmp_path / "x", disk=disk)
    assert disk.open_fds == set()
    RawLog.open(tmp_path / "x", disk=disk).close()


def test_a_failed_read_is_one_sentence(tmp_path: Path, disk: FaultyDisk) -> None:
    log = RawLog.open(tmp_path, disk=disk)
    feed(log, 10)
    log.flush()
    disk.fail("pread", errno.EIO)
    with pytest.raises(StorageError, match=r"cannot read .*raw\.log"):
        log.read(0, 10)
    log.close()


def test_closing_twice_is_fine_and_a_failing_close_still_closes(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    log = RawLog.open(tmp_path, disk=disk)
    feed(log, 10)
    disk.fail("write", errno.EIO)
    with pytest.raises(StorageError):
        log.close()
    log.close()
    assert disk.open_fds == set()


def test_the_previous_file_removed_from_outside_is_a_gap(tmp_path: Path) -> None:
    log = RawLog.open(tmp_path, limit_bytes=40)
    for _ in range(3):
        feed(log, 30)
        log.flush()
    (tmp_path / "raw.log.1").unlink()
    assert log.read(0, 90) == (stream(60, 90), 60)
    log.close()


@settings(max_examples=60, deadline=None)
@given(limit=st.integers(1, 200), seed=st.integers(0, 2**32))
def test_any_writes_flushes_and_reopenings_keep_every_byte_at_its_offset(
    tmp_path_factory: pytest.TempPathFactory, limit: int, seed: int
) -> None:
    directory = tmp_path_factory.mktemp("raw")
    rng = random.Random(seed)
    log = RawLog.open(directory, limit_bytes=limit)
    for _ in range(rng.randrange(20)):
        feed(log, rng.randrange(2 * limit))
        if rng.random() < 0.3:
            log.close()
            log = RawLog.open(directory, limit_bytes=limit)
        elif rng.random() < 0.5:
            log.flush()
    end = log.position
    log.flush()
    data, dropped = log.read(0, end)
    assert data == stream(dropped, end)
    assert len(data) >= min(end, limit // 2)
    log.close()
