"""The note in flight: rewriting in place, long notes, torn writes, numbering."""

from __future__ import annotations

import errno
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.errors import StorageError
from aegis.journal.flusher import Flusher
from aegis.journal.note import SLOT_BYTES, Note, next_seq

if TYPE_CHECKING:
    from tests.fakes.faulty_disk import Crash, FaultyDisk

SHORT: dict[str, Any] = {"seq": 1, "cmd": "make"}
LONG: dict[str, Any] = {"seq": 2, "cmd": "x" * 1_000_000}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "build" / "inflight.json"


def reloaded(path: Path) -> dict[str, Any] | None:
    note = Note.open(path, Flusher())
    note.close()
    assert not note.damaged
    return note.load()


def test_a_missing_note_says_that_nothing_is_in_flight(path: Path) -> None:
    assert reloaded(path) is None
    assert not path.exists()


def test_a_note_is_there_after_each_write_and_gone_after_clear(path: Path) -> None:
    note = Note.open(path, Flusher())
    for seq in range(5):
        note.write({"seq": seq, "cmd": "ü\udc80\n"})
        assert note.load() == reloaded(path) == {"seq": seq, "cmd": "ü\udc80\n"}
    note.clear()
    assert note.load() is None
    assert reloaded(path) is None
    note.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def sizes_around_a_slot() -> list[int]:
    # 60 bytes are about what surrounds the command in its line.
    return [0, 1, SLOT_BYTES - 100, *range(SLOT_BYTES - 80, SLOT_BYTES - 20), SLOT_BYTES, 9000]


def test_notes_of_any_length_follow_one_another(path: Path) -> None:
    note = Note.open(path, Flusher())
    sizes = sizes_around_a_slot()
    for size in [size for pair in zip(sizes, reversed(sizes), strict=True) for size in pair]:
        note.write({"cmd": "x" * size})
        assert reloaded(path) == {"cmd": "x" * size}
    note.close()


def test_a_shorter_note_after_a_long_one_leaves_nothing_of_it(path: Path) -> None:
    note = Note.open(path, Flusher())
    note.write(LONG)
    assert reloaded(path) == LONG
    note.write(SHORT)
    assert reloaded(path) == SHORT
    assert path.stat().st_size == 2 * SLOT_BYTES
    assert b"xxx" not in path.read_bytes()
    note.write({"seq": 3, "cmd": "secret" * 100})
    note.clear()
    note.write({"seq": 4})
    assert b"secret" not in path.read_bytes()
    note.close()


def test_no_write_syncs_so_all_may_happen_on_the_loop(path: Path, disk: FaultyDisk) -> None:
    note = Note.open(path, Flusher(disk))
    for fields in (SHORT, LONG, SHORT):
        note.write(fields)
    note.clear()
    note.close()
    assert disk.calls["fsync"] + disk.calls["fdatasync"] == 0


def test_clearing_nothing_writes_nothing(path: Path, disk: FaultyDisk) -> None:
    note = Note.open(path, Flusher(disk))
    note.clear()
    assert not path.exists()
    note.close()


def test_a_usual_note_costs_one_write_call(path: Path, disk: FaultyDisk) -> None:
    note = Note.open(path, Flusher(disk))
    note.write(SHORT)
    disk.calls.clear()
    note.write(SHORT)
    note.clear()
    assert disk.calls == {"pwrite": 2}
    note.close()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_write_torn_at_any_byte_leaves_the_note_before_it(path: Path, count: int) -> None:
    note = Note.open(path, Flusher())
    for seq in range(count):
        note.write({"seq": seq, "cmd": "old"})
    before = path.read_bytes()
    note.write({"seq": count, "cmd": "new"})
    after = path.read_bytes()
    note.close()
    changed = [place for place in range(len(after)) if before[place] != after[place]]
    for cut in range(changed[0], changed[-1] + 1):
        path.write_bytes(after[:cut] + before[cut:])
        torn = Note.open(path, Flusher())
        assert torn.load() == {"seq": count - 1, "cmd": "old"}
        torn.close()
    path.write_bytes(after)
    assert reloaded(path) == {"seq": count, "cmd": "new"}


def test_damage_at_any_byte_never_loads_as_another_note(path: Path) -> None:
    note = Note.open(path, Flusher())
    note.write({"seq": 0})
    note.write({"seq": 1})
    note.close()
    good = path.read_bytes()
    for place in [*range(100), *range(SLOT_BYTES, SLOT_BYTES + 100)]:
        bad = bytearray(good)
        bad[place] ^= 0x10
        path.write_bytes(bad)
        damaged = Note.open(path, Flusher())
        assert damaged.load() in ({"seq": 0}, {"seq": 1})
        damaged.close()


def test_a_note_that_does_not_check_is_reported(path: Path) -> None:
    note = Note.open(path, Flusher())
    note.write(LONG)
    note.close()
    path.write_bytes(path.read_bytes()[:500_000])
    torn = Note.open(path, Flusher())
    assert torn.load() is None
    assert torn.damaged
    torn.write(SHORT)
    torn.close()
    assert reloaded(path) == SHORT


@pytest.mark.parametrize(
    "line", [b'{"crc":"15d54739"}\n', b'{"number":"1","fields":null,"crc":"00000000"}\n']
)
def test_what_is_no_note_does_not_load(path: Path, line: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(line)
    note = Note.open(path, Flusher())
    assert note.load() is None
    assert note.damaged
    note.close()


@pytest.mark.parametrize("new", [SHORT, LONG, None], ids=["short", "long", "clear"])
@pytest.mark.parametrize("old", [{"seq": 0}, LONG], ids=["short", "long"])
def test_a_kill_at_any_step_of_a_write_leaves_the_old_note_or_the_new(
    path: Path,
    new_disk: type[FaultyDisk],
    crash: type[Crash],
    old: dict[str, Any],
    new: dict[str, Any] | None,
) -> None:
    for steps in range(20):
        disk = new_disk()
        note = Note.open(path, Flusher(disk))
        note.write(old)
        disk.crash_after(steps)
        try:
            note.clear() if new is None else note.write(new)
        except crash:
            assert reloaded(path) in (old, new)
        else:
            assert reloaded(path) == new
            note.close()
            return
        note.close()
        assert disk.open_fds == set()
    pytest.fail("the write never came to its end")


@pytest.mark.parametrize("call", ["open", "write", "rename"])
def test_a_first_write_that_is_refused_leaves_no_note(
    path: Path, disk: FaultyDisk, call: str
) -> None:
    note = Note.open(path, Flusher(disk))
    disk.fail(call, errno.ENOSPC)
    with pytest.raises(StorageError, match=r"cannot write .*inflight\.json: No space left"):
        note.write(SHORT)
    assert note.load() is None
    assert reloaded(path) is None
    note.write(SHORT)
    assert reloaded(path) == SHORT
    note.close()
    assert disk.open_fds == set()


def test_a_later_write_that_is_refused_leaves_the_note_before_it(
    path: Path, disk: FaultyDisk
) -> None:
    note = Note.open(path, Flusher(disk))
    note.write(SHORT)
    disk.shorten("pwrite", 20, 0)
    with pytest.raises(StorageError, match="No space left"):
        note.write({"seq": 2})
    assert note.load() == SHORT
    again = Note.open(path, Flusher())
    assert (again.load(), again.damaged) == (SHORT, True)
    again.close()
    note.write({"seq": 2})
    assert reloaded(path) == {"seq": 2}
    note.close()


def test_short_writes_are_carried_on(path: Path, disk: FaultyDisk) -> None:
    note = Note.open(path, Flusher(disk))
    disk.shorten("write", 5, 6)
    note.write(SHORT)
    disk.shorten("pwrite", 5, 6)
    note.write({"seq": 2})
    assert reloaded(path) == {"seq": 2}
    note.close()


def test_opening_where_no_directory_can_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="cannot open"):
        Note.open(tmp_path / "file" / "note", Flusher())


async def test_sync_is_off_the_loop_and_syncs_the_directory_once(
    path: Path, disk: FaultyDisk
) -> None:
    note = Note.open(path, Flusher(disk))
    note.write(SHORT)
    disk.calls.clear()
    disk.threads.clear()
    await note.sync()
    assert (disk.calls["fdatasync"], disk.calls["fsync"]) == (1, 1)
    note.write({"seq": 2})
    await note.sync()
    assert (disk.calls["fdatasync"], disk.calls["fsync"]) == (2, 1)
    note.write(LONG)
    await note.sync()
    assert (disk.calls["fdatasync"], disk.calls["fsync"]) == (3, 2)
    assert threading.get_ident() not in disk.threads["fdatasync"] | disk.threads["fsync"]
    note.close()
    assert disk.open_fds == set()


async def test_a_note_of_an_earlier_life_can_be_synced(path: Path, disk: FaultyDisk) -> None:
    earlier = Note.open(path, Flusher())
    earlier.write(SHORT)
    earlier.close()
    note = Note.open(path, Flusher(disk))
    await note.sync()
    assert disk.calls["fdatasync"] == 1
    note.close()
    assert reloaded(path) == SHORT


@pytest.mark.parametrize(("call", "renames"), [("fdatasync", 1), ("fsync", 2)])
async def test_a_failed_sync_is_not_retried_on_the_same_pages(
    path: Path, disk: FaultyDisk, call: str, renames: int
) -> None:
    note = Note.open(path, Flusher(disk))
    note.write(SHORT)
    disk.fail(call, errno.EIO)
    with pytest.raises(StorageError, match=r"cannot sync .*inflight\.json: Input/output error"):
        await note.sync()
    disk.calls.clear()
    await note.sync()
    assert (disk.calls["rename"], disk.calls["fdatasync"], disk.calls["fsync"]) == (
        renames,  # where the file was synced, the new one has its name only when it is synced too
        1,
        1,
    )
    note.close()
    assert reloaded(path) == SHORT
    assert disk.open_fds == set()


@pytest.mark.parametrize("later", [SHORT, LONG], ids=["short", "long"])
async def test_a_new_file_that_comes_during_a_sync_is_synced_before_it_has_its_name(
    path: Path, disk: FaultyDisk, later: dict[str, Any]
) -> None:
    note = Note.open(path, Flusher(disk))
    note.write(LONG)
    await note.sync()
    note.write(LONG)
    disk.calls.clear()
    disk.hold("fdatasync")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(note.sync)
        await trio.to_thread.run_sync(disk.wait_held, "fdatasync")
        note.write(later)  # behind a long note it takes a file of its own
        disk.release("fdatasync")
    assert disk.calls["fdatasync"] == 2
    note.close()
    assert reloaded(path) == later
    assert disk.open_fds == set()


NOTES = st.none() | st.builds(
    lambda seq, size: {"seq": seq, "cmd": "y" * size},
    st.integers(0, 9),
    st.sampled_from([0, 10, 4000, 4096, 10_000]),
)


@settings(max_examples=60, deadline=None)
@given(notes=st.lists(st.tuples(NOTES, st.booleans()), max_size=12))
def test_any_sequence_of_notes_and_reopenings_loads_the_last(
    tmp_path_factory: pytest.TempPathFactory, notes: list[tuple[dict[str, Any] | None, bool]]
) -> None:
    path = tmp_path_factory.mktemp("note") / "inflight.json"
    note = Note.open(path, Flusher())
    for fields, reopen in notes:
        note.clear() if fields is None else note.write(fields)
        if reopen:
            note.close()
            note = Note.open(path, Flusher())
        assert note.load() == reloaded(path) == fields
    note.close()


@pytest.mark.parametrize(
    ("last", "note", "damaged", "expected"),
    [
        (None, None, 0, 0),
        (None, {"seq": 0}, 0, 1),
        (4, None, 0, 5),
        (4, {"seq": 5}, 0, 6),
        (4, {"seq": 3}, 0, 5),
        (4, {}, 0, 5),
        (4, {"seq": None}, 0, 5),
        (4, {"seq": True}, 0, 5),
        (4, None, 2, 7),
        (4, {"seq": 5}, 1, 6),
        (None, None, 1, 1),
    ],
)
def test_the_next_number_is_one_above_all_that_were_given(
    last: int | None, note: dict[str, Any] | None, damaged: int, expected: int
) -> None:
    assert next_seq(last, note, damaged_count=damaged) == expected
