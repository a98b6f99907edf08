"""A ledger in several files: what is read, what it costs, and what a kill leaves."""

from __future__ import annotations

import errno
import gzip
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from aegis.errors import StorageError
from aegis.journal import segments
from aegis.journal.ledger import BLOCK_BYTES, encode_line, seal_line
from aegis.journal.reader import Reading
from aegis.journal.segment_names import segment_named, segments_of
from aegis.journal.segments import (
    SegmentReader,
    close_segment,
    newest_number,
    pack_segments,
    place_of,
    unpacked,
)
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.disk_model import Image, cached_image
from tests.chaos.machine.simulated_disk import ANY, DiskPlan, Fail, SimulatedDisk

if TYPE_CHECKING:
    from tests.fakes.faulty_disk import FaultyDisk

LEDGER = Path("/state/terminals/build/ledger.jsonl")
DIRECTORY = str(LEDGER.parent)
EMPTY: Image = {"/": None, "/state": None, "/state/terminals": None, DIRECTORY: None}


def line(number: int, pad: int = 0) -> bytes:
    return encode_line({"seq": number, "stdout": "x" * pad})


class Ledger:
    """A ledger that is written and split as drawn, and a list of what it has."""

    def __init__(self, chance: Random | None = None) -> None:
        self.image: dict[str, bytes | None] = dict(EMPTY)
        self.entries: list[int | None] = []
        """The numbers of all lines, None for a damaged one."""
        self.newest = -1
        self._chance = Random(0) if chance is None else chance

    def write(self, *, damage: float = 0.0, gap: float = 0.0, pad: int = 0) -> None:
        """Append a line."""
        text = self.image.get(str(LEDGER)) or b""
        if self._chance.random() < damage:
            self.entries.append(None)
            self.image[str(LEDGER)] = text + b'{"seq":damaged' + b"x" * pad + b"}\n"
            return
        self.newest += 1 if self._chance.random() >= gap else self._chance.randrange(2, 5)
        self.entries.append(self.newest)
        sealed = seal_line(line(self.newest, pad), SimulatedDisk(EMPTY).seal(LEDGER))
        self.image[str(LEDGER)] = text + sealed

    def split(self, *, pack: bool) -> None:
        """Close the file, if its last line has a number."""
        disk = SimulatedDisk(self.image)
        highest = max((each.last for each in segments_of(disk, LEDGER)), default=-1)
        if self.entries[-1:] != [None] and highest < self.newest:
            close_segment(disk, LEDGER, self.newest)
        if pack:
            pack_segments(disk, LEDGER)
        self.image = dict(cached_image(disk.model))

    @property
    def reader(self) -> SegmentReader:
        return SegmentReader(LEDGER, disk=SimulatedDisk(self.image))

    @property
    def numbers(self) -> list[int]:
        return [each for each in self.entries if each is not None]


def numbers_of(reading: Reading) -> list[int]:
    return [each["seq"] for each in reading.records]


def files(image: Image) -> list[str]:
    return sorted(each.removeprefix(f"{DIRECTORY}/") for each, data in image.items() if data)


@pytest.mark.parametrize("seed", range(60))
async def test_reads_of_any_part_are_as_of_one_file(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    # Files of a few hundred bytes are searched by bisection too.
    monkeypatch.setattr(segments, "SCAN_BYTES", chance.choice([1, 100, 1_000, segments.SCAN_BYTES]))
    monkeypatch.setattr(segments, "PROBE_BYTES", chance.choice([7, 64, 4_096]))
    ledger = Ledger(chance)
    damage, gap = chance.choice([0, 0.1, 0.5]), chance.choice([0, 0.2])
    for _ in range(chance.randrange(90)):
        ledger.write(damage=damage, gap=gap, pad=chance.choice([0, 20, 200]))
        if chance.random() < 0.15:
            ledger.split(pack=chance.random() < 0.5)
    entries, reader = ledger.entries, ledger.reader
    newest_one = max(ledger.numbers, default=-1)
    for _ in range(25):
        number = chance.randrange(-1, newest_one + 3)
        newest = chance.choice([None, chance.randrange(-1, newest_one + 2)])
        shown = [each for each in ledger.numbers if newest is None or each <= newest]
        found = await reader.since(number, newest=newest)
        assert numbers_of(found) == [each for each in shown if each > number]
        assert not found.more
        # Damaged lines between the first that is wanted and the one before it are reported.
        start = max((n for n, e in enumerate(entries) if e is not None and e <= number), default=-1)
        if newest is None:
            assert found.damaged_count == entries[start + 1 :].count(None)
        n = chance.randrange(1, 12)
        last = await reader.last(n, before=number, newest=newest)
        assert numbers_of(last) == [each for each in shown if each < number][-n:]
        assert numbers_of(await reader.last(n, newest=newest)) == shown[-n:]


@pytest.mark.parametrize("max_bytes", [1, 300, 10_000])
async def test_pages_forward_and_backward_have_each_line_and_each_damaged_one_once(
    max_bytes: int,
) -> None:
    for seed in range(8):
        ledger = Ledger(Random(seed))
        for number in range(60):
            ledger.write(damage=0.2, pad=30)
            if number % 17 == 16:
                ledger.split(pack=True)
        reader, found, more, damaged = ledger.reader, list[int](), True, 0
        while more:
            page = await reader.since(found[-1] if found else -1, max_bytes=max_bytes)
            found += numbers_of(page)
            more = page.more
        assert found == ledger.numbers
        found = []
        while page.records:
            page = await reader.last(5, before=found[0] if found else None, max_bytes=max_bytes)
            found = numbers_of(page) + found
            damaged += page.damaged_count
        assert found == ledger.numbers
        # A page that is too long has met damaged lines of the next one.
        assert damaged >= ledger.entries.count(None)
        assert damaged == ledger.entries.count(None) or max_bytes < 10_000


async def test_a_ledger_of_an_earlier_version_is_read_and_then_split() -> None:
    ledger = Ledger()
    for _ in range(50):
        ledger.write()
    assert numbers_of(await ledger.reader.since(20)) == [*range(21, 50)]
    ledger.split(pack=True)
    ledger.write()
    assert numbers_of(await ledger.reader.since(20)) == [*range(21, 51)]
    ledger.split(pack=True)
    first, second = files(ledger.image)
    assert first.startswith("ledger.")
    assert first.endswith(".00000000-00000049.jsonl.gz")
    assert second.endswith(".00000050-00000050.jsonl"), "the newest is not compressed"
    assert (await ledger.reader.since(20)).oldest == 0


def test_other_files_are_no_segments() -> None:
    names = [
        *("ledger.jsonl", "ledger.jsonl.new", "ledger.jsonl.torn-5-00000000", "meta.json"),
        *("ledger.2026-11-27T123000.0-9.jsonl.gz.new", "ledger.0-9.jsonl", "raw.log"),
        "ledger.2026-11-27T123000.0-9.jsonl.gz.gz",
    ]
    assert [segment_named(LEDGER, each) for each in names] == [None] * len(names)
    plain = segment_named(LEDGER, "ledger.2026-11-27T123000.0-9.jsonl")
    assert plain is not None
    assert (plain.first, plain.last, plain.closed_at) == (0, 9, "2026-11-27T123000")
    assert segment_named(LEDGER, plain.packed.name) == plain


async def test_what_is_deleted_is_missing_and_the_oldest_number_is_returned() -> None:
    ledger = Ledger()
    for number in range(40):
        ledger.write()
        if number % 10 == 9:
            ledger.split(pack=True)
    for name in files(ledger.image)[:2]:
        del ledger.image[f"{DIRECTORY}/{name}"]
    found = await ledger.reader.since(3)
    assert (numbers_of(found), found.oldest) == ([*range(20, 40)], 20)
    assert numbers_of(await ledger.reader.last(30)) == [*range(20, 40)]


async def test_lines_after_damage_in_a_compressed_segment_are_lost_and_no_others() -> None:
    ledger, chance = Ledger(), Random(5)
    for number in range(3_000):
        ledger.write(pad=chance.randrange(40))
        if number % 1_000 == 999:
            ledger.split(pack=True)
    (name, *_) = files(ledger.image)
    data = ledger.image[f"{DIRECTORY}/{name}"]
    assert data is not None
    assert unpacked(data)[1] == ""
    for damaged in (data[: len(data) // 2], data[:-1], b"", data[:500] + b"?" + data[501:]):
        ledger.image[f"{DIRECTORY}/{name}"] = damaged
        found = await ledger.reader.since(-1)
        numbers = numbers_of(found)
        assert numbers == [*range(numbers.index(1_000)), *range(1_000, 3_000)]
        assert found.damaged_count >= 1
        assert await ledger.reader.last(1) == Reading(
            records=found.records[-1:], more=False, damaged=(), damaged_count=0
        )


def test_a_place_is_found_in_few_reads() -> None:
    data = b"".join(line(2 * each, 50) for each in range(50_000))
    read = 0

    def read_at(offset: int, size: int) -> bytes:
        nonlocal read
        read += size
        return data[offset : offset + size]

    low, high = place_of(read_at, len(data), 70_001, None)
    assert low == high
    assert data[low:].startswith(b'{"seq":70002,')
    assert read < 200_000 < len(data)


def real(tmp_path: Path, count: int, pad: int) -> Path:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"".join(line(each, pad) for each in range(count)))
    return path


async def test_a_small_read_stays_on_the_loop(tmp_path: Path, disk: FaultyDisk) -> None:
    path = real(tmp_path, 40_000, 0)
    assert path.stat().st_size > 20 * BLOCK_BYTES
    reader = SegmentReader(path, disk=disk)
    assert numbers_of(await reader.last(3)) == [39_997, 39_998, 39_999]
    assert disk.calls["pread"] == 2, "the last byte, and one block"
    assert numbers_of(await reader.since(39_990)) == [*range(39_991, 40_000)]
    assert numbers_of(await reader.since(2_000, max_bytes=100))[0] == 2_001
    assert disk.threads["pread"] == {threading.get_ident()}
    assert disk.open_fds == set()


async def test_a_large_read_ends_in_a_thread(tmp_path: Path, disk: FaultyDisk) -> None:
    reader = SegmentReader(real(tmp_path, 300, 10_000), disk=disk)
    assert numbers_of(await reader.last(300)) == [*range(300)]
    assert numbers_of(await reader.since(-1)) == [*range(300)]
    assert len(disk.threads["pread"] - {threading.get_ident()}) >= 1
    assert disk.open_fds == set()


@pytest.mark.parametrize("call", ["open", "pread", "list_directory"])
async def test_a_disk_that_refuses_is_one_sentence(
    tmp_path: Path, disk: FaultyDisk, call: str
) -> None:
    reader = SegmentReader(real(tmp_path, 3, 0), disk=disk)
    disk.fail(call, errno.EIO)
    with pytest.raises(StorageError, match=r"cannot read .*: Input/output error; the disk fails"):
        await reader.last(1)
    assert disk.open_fds == set()


async def test_a_refused_second_listing_leaves_no_file_open(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    reader = SegmentReader(real(tmp_path, 3, 0), disk=disk)
    disk.pass_then_fail("list_directory", 1, errno.EIO)
    with pytest.raises(StorageError):
        await reader.last(1)
    assert disk.open_fds == set()


@pytest.mark.parametrize("n", [0, -1])
def test_last_of_less_than_one_is_refused(n: int) -> None:
    with pytest.raises(ValueError, match="must be 1 or more"):
        Ledger().reader.last_now(n)


class Changing(SimulatedDisk):
    """A disk on which the ledger is split, or a segment compressed, at each opening of a file."""

    def __init__(self, image: Image, change: Any) -> None:
        super().__init__(image)
        self._change = change

    def open(self, path: Path, flags: int) -> int:
        change, self._change = self._change, None
        if change is not None:
            change(self)
            self._change = change
        return super().open(path, flags)


def split(disk: SimulatedDisk) -> None:
    close_segment(disk, LEDGER, 29)


def pack(disk: SimulatedDisk) -> None:
    pack_segments(disk, LEDGER)


@pytest.mark.parametrize("changes", [(split,), (pack,), (split, pack), (pack, split)])
@pytest.mark.parametrize("skipped", range(4))
@pytest.mark.parametrize("way", ["since", "last"])
async def test_a_reader_sees_each_line_once_while_files_are_split_and_compressed(
    way: str, skipped: int, changes: tuple[Callable[[SimulatedDisk], None], ...]
) -> None:
    ledger = Ledger()
    for number in range(30):
        ledger.write()
        if number % 10 == 9 and number < 25:
            ledger.split(pack=False)
    # One change at each opening of a file, from a later one on.
    left = [*(lambda _: None,) * skipped, *changes]

    def change(disk: SimulatedDisk) -> None:
        if left:
            left.pop(0)(disk)

    reader = SegmentReader(LEDGER, disk=Changing(ledger.image, change))
    found = await (reader.since(-1) if way == "since" else reader.last(100))
    assert numbers_of(found) == [*range(30)]


CALLS = 40
"""More calls of the disk than splitting and compressing make."""


@pytest.mark.parametrize("number", range(1, CALLS))
async def test_a_refusal_or_a_kill_at_any_call_loses_no_line(number: int) -> None:
    ledger = Ledger()
    for each in range(6):
        ledger.write()
        if each in (1, 3):
            ledger.split(pack=False)
    plan = DiskPlan()
    disk = SimulatedDisk(ledger.image, plan)
    before = plan.hits[ANY]
    plan.faults[ANY, before + number] = Fail(errno.EIO)
    try:
        close_segment(disk, LEDGER, 5)
        pack_segments(disk, LEDGER)
    except StorageError:
        pass
    plan.faults.clear()
    assert plan.hits[ANY] < before + CALLS
    for image in [dict(cached_image(disk.model)), *legal_images(disk.model)]:
        again = SimulatedDisk(image)
        reader = SegmentReader(LEDGER, disk=again)
        assert numbers_of(await reader.since(-1)) == [*range(6)]
        if str(LEDGER) in image:
            close_segment(again, LEDGER, 5)
        pack_segments(again, LEDGER)
        assert newest_number(again, LEDGER) == 5
        assert numbers_of(await reader.since(-1)) == [*range(6)]
        assert len(segments_of(again, LEDGER)) == 3
        packed = [each for each in files(cached_image(again.model)) if each.endswith(".gz")]
        assert len(packed) == 2


NAMES = ("0-999999999", "0-2", "7-7", "50-40", "999-1000")


@pytest.mark.parametrize("content", [b"", b'{"seq":900}\n', line(900)])
@pytest.mark.parametrize("name", NAMES)
async def test_a_file_that_this_state_did_not_write_hides_nothing(
    name: str, content: bytes
) -> None:
    """A branch that is checked out may have one: names are not signed, lines are."""
    for packed in ("", ".gz"):
        ledger = Ledger()
        for number in range(30):
            ledger.write()
            if number % 10 == 9 and number < 25:
                ledger.split(pack=False)
        ledger.image[f"{DIRECTORY}/ledger.2030-01-01T000000.{name}.jsonl{packed}"] = content
        reader, disk = ledger.reader, SimulatedDisk(ledger.image)
        assert numbers_of(await reader.since(-1)) == [*range(30)]
        assert numbers_of(await reader.since(17)) == [*range(18, 30)]
        assert numbers_of(await reader.last(100)) == [*range(30)]
        assert numbers_of(await reader.last(3, before=26)) == [23, 24, 25]
        assert numbers_of(await reader.last(100, before=13)) == [*range(13)]
        assert newest_number(disk, LEDGER) == 29
        if name in ("0-999999999", "999-1000"):
            with pytest.raises(StorageError, match=r"another file beside .* has the numbers up to"):
                close_segment(disk, LEDGER, 29)


def test_a_file_that_unpacks_to_more_than_any_segment_is_not_read_whole() -> None:
    bomb = gzip.compress(b"x" * (segments.MAX_PACKED_BYTES + 70_000_000), 9)
    assert len(bomb) < 200_000
    assert unpacked(bomb) == (b"", "it is too large")
