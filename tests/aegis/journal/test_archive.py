"""The archive of rows: what it finds again, how it is bounded, and what a crash leaves."""

from __future__ import annotations

import contextlib
import errno
import json
from hashlib import blake2b
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from aegis.errors import StorageError
from aegis.journal import archive, name_filter
from aegis.journal.archive import Archive
from aegis.journal.disk import OsDisk
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.disk_model import Image, cached_image
from tests.chaos.machine.simulated_disk import ANY, DiskPlan, Fail, SimulatedDisk

ROOT = Path("/state/archive")
EMPTY: Image = {"/": None, "/state": None}


def opened(disk: SimulatedDisk, max_bytes: int = 1 << 30) -> Archive:
    return Archive(ROOT, "things", disk, max_bytes)


def line(number: int, text: str = "x") -> dict[str, object]:
    return {"id": f"r{number}", "set": {"number": number, "text": text}}


def add(found: Archive, first: int, count: int, text: str = "x") -> None:
    numbers = range(first, first + count)
    entries = {f"thing {each}": {"id": f"r{each}"} for each in numbers}
    found.add([line(each, text) for each in numbers], entries)


def known(found: Archive, number: int) -> object:
    """Return the number of a row that is found by its name."""
    entry = found.entry(f"thing {number}")
    if entry is None:
        return None
    row = found.row(entry["in"], entry["id"])
    return None if row is None else row["number"]


@pytest.mark.parametrize("index_bytes", [1, 50_000, archive.INDEX_BYTES])
def test_every_row_is_found_by_its_name(index_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "INDEX_BYTES", index_bytes)
    disk = SimulatedDisk(EMPTY)
    found = opened(disk)
    assert not found.lacks("thing 1"), "it is not known yet"
    assert found.entry("thing 1") is None
    assert found.lacks("thing 1")
    for first in range(0, 1_000, 100):
        add(found, first, 100)
    for again in (found, opened(disk)):
        assert [known(again, each) for each in range(0, 1_000, 7)] == [*range(0, 1_000, 7)]
        assert again.entry("thing 1000") is None
        assert not any(again.lacks(f"thing {each}") for each in range(1_000))
    rows = [each["id"] for file in found.files() for each in found.rows(file)]
    assert rows == [f"r{each}" for each in reversed(range(1_000))], "the newest first"


def test_a_later_entry_takes_the_place_of_an_earlier_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for index_bytes in (1, archive.INDEX_BYTES):
        monkeypatch.setattr(archive, "INDEX_BYTES", index_bytes)
        found = opened(SimulatedDisk(EMPTY))
        found.add([line(1)], {"a": {"id": "r1"}})
        found.add([line(2)], {"a": {"id": "r2"}})
        entry = found.entry("a")
        assert entry is not None
        assert entry["id"] == "r2"
        assert found.row(entry["in"], "r2") == {"number": 2, "text": "x"}


def test_the_oldest_files_are_deleted_and_their_names_stay_known() -> None:
    chance = Random(1)
    disk = SimulatedDisk(EMPTY)
    found = opened(disk, 4_000)
    for number in range(20):
        add(found, number, 1, "".join(chr(chance.randrange(33, 120)) for _ in range(1_000)))
    sizes = [len(v or b"") for k, v in cached_image(disk.model).items() if k.endswith(".gz")]
    assert sum(sizes) <= 4_000
    assert [known(found, each) for each in (0, 10, 19)] == [None, None, 19]
    assert found.entry("thing 0") is not None


def test_the_files_of_all_kinds_are_bounded_together() -> None:
    disk = SimulatedDisk(EMPTY)
    chance = Random(2)
    for number in range(12):
        text = "".join(chr(chance.randrange(33, 120)) for _ in range(1_000))
        add(Archive(ROOT, "ab"[number % 2], disk, 4_000), number, 1, text)
    sizes = [len(v or b"") for k, v in cached_image(disk.model).items() if k.endswith(".gz")]
    assert 2_000 < sum(sizes) <= 4_000


def test_an_index_is_deleted_when_its_newest_entry_is_too_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(archive, "INDEX_BYTES", 1)
    disk = SimulatedDisk(EMPTY)
    found = opened(disk)
    now = 1_700_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    add(found, 1, 1)
    now += 399 * archive.DAY_S
    add(found, 2, 1)
    assert known(found, 1) == 1
    now += 3 * archive.DAY_S
    add(found, 3, 1)
    assert [known(found, each) for each in (1, 2, 3)] == [None, 2, 3]


def test_damaged_files_are_logged_and_not_taken_for_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "SMALL_BYTES", 0)
    disk = SimulatedDisk(EMPTY)
    found = opened(disk)
    add(found, 1, 1)
    add(found, 2, 1)
    image = dict(cached_image(disk.model))
    (first, second) = (k for k in sorted(image) if k.endswith(".gz"))
    (index,) = (k for k in image if "index" in k)
    data = image[first]
    assert data is not None
    image[first] = data[:-9]
    again = opened(SimulatedDisk(image))
    assert [known(again, 1), known(again, 2)] == [None, 2]
    image[index] = (image[index] or b"").replace(b"r2", b"r9")
    assert known(opened(SimulatedDisk(image)), 2) is None
    del image[second]
    assert capsys.readouterr().out.count("archive damaged") >= 2


def test_most_unknown_names_need_no_look_at_the_disk() -> None:
    plan = DiskPlan()
    disk = SimulatedDisk(EMPTY, plan)
    found = opened(disk)
    for first in range(0, 20_000, 5_000):
        add(found, first, 5_000)
    for again in (found, opened(disk)):
        assert again.entry("thing") is None
        before = plan.hits[ANY]
        unknown = [f"another {each}" for each in range(2_000)]
        assert sum(again.lacks(each) for each in unknown) > 1_950
        assert plan.hits[ANY] == before
        assert {again.entry(each) for each in unknown} == {None}


@pytest.mark.parametrize("seed", range(60))
def test_no_name_in_the_index_is_taken_for_an_unknown_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = Random(seed)
    monkeypatch.setattr(archive, "INDEX_BYTES", chance.choice([1, 2_000, 20_000]))
    monkeypatch.setattr(name_filter, "MIN_BITS", chance.choice([8, 256, 1 << 13]))
    monkeypatch.setattr(name_filter, "MAX_BITS", chance.choice([8, 1024, 1 << 26]))
    now = 1_700_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    plan = DiskPlan()
    disk, found, added = SimulatedDisk(EMPTY, plan), None, 0
    for _ in range(chance.randrange(10, 40)):
        found = found or opened(disk, chance.choice([2_000, 1 << 30]))
        if chance.random() < 0.3:
            plan.faults[ANY, plan.hits[ANY] + chance.randrange(1, 20)] = Fail(errno.EIO)
        with contextlib.suppress(StorageError):
            if chance.random() < 0.6:
                first, count = added, chance.randrange(1, 60)
                added += count
                add(found, chance.choice([first, first, max(0, first - 30)]), count)
            else:
                found.entry(f"thing {chance.randrange(added + 9)}")
        plan.faults.clear()
        now += chance.choice([0, 1, archive.DAY_S, 150 * archive.DAY_S])
        there = known_in(cached_image(disk.model))
        for each in (f"thing {number}" for number in range(added + 9)):
            assert (found.entry(each) is not None) == (each in there)
            assert not (found.lacks(each) and each in there)
        match chance.randrange(8):
            case 0:  # a kill
                found = None
            case 1:
                images = [*legal_images(disk.model)]
                disk, found = SimulatedDisk(chance.choice(images), plan), None
            case 2:
                found.delete_unfinished()
                for name in [each for each in found.files() if chance.random() < 0.5]:
                    disk.unlink(found.directory / name)


def known_in(image: Image) -> set[str]:
    """Return the names of all entries in the index."""
    keys = {
        json.loads(line)["k"]
        for path, data in image.items()
        if "/index-" in path and path.endswith(".jsonl")
        for line in (data or b"").splitlines()
    }
    names = (f"thing {each}" for each in range(3_000))
    return {each for each in names if blake2b(each.encode(), digest_size=16).hexdigest() in keys}


def test_a_name_that_is_added_while_the_names_are_read_is_known(tmp_path: Path) -> None:
    add(Archive(tmp_path, "things", OsDisk(), 1 << 30), 1, 1)
    adding: list[Thread] = []

    class Disk(OsDisk):
        def pread(self, fd: int, size: int, offset: int) -> bytes:
            data = super().pread(fd, size, offset)
            if not adding:
                adding.append(Thread(target=add, args=(found, 2, 1)))
                adding[0].start()
                adding[0].join(0.2)  # it waits until all is read
            return data

    found = Archive(tmp_path, "things", Disk(), 1 << 30)
    assert found.entry("another") is None
    adding[0].join()
    assert not found.lacks("thing 1")
    assert not found.lacks("thing 2")


CALLS = 40
"""More calls of the disk than an addition makes."""


@pytest.mark.parametrize("small_bytes", [0, archive.SMALL_BYTES])
@pytest.mark.parametrize("number", range(1, CALLS))
def test_a_refusal_or_a_kill_at_any_call_loses_nothing_that_was_added(
    number: int, small_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "SMALL_BYTES", small_bytes)
    plan = DiskPlan()
    disk = SimulatedDisk(EMPTY, plan)
    found = opened(disk)
    add(found, 0, 3)
    plan.faults[ANY, plan.hits[ANY] + number] = Fail(errno.EIO)
    is_refused, before = False, plan.hits[ANY]
    try:
        add(found, 3, 3)
    except StorageError:
        is_refused = True
    plan.faults.clear()
    assert plan.hits[ANY] < before + CALLS
    images = [dict(cached_image(disk.model)), *legal_images(disk.model)]
    for image in images:
        again = opened(SimulatedDisk(image))
        added = 3 if is_refused else 6
        assert [known(again, each) for each in range(added)] == [*range(added)]
        add(again, 3, 3)
        add(again, 6, 1)
        assert [known(again, each) for each in range(7)] == [*range(7)]


def test_a_small_file_of_today_gets_the_next_rows_too(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk(EMPTY)
    found = opened(disk)
    now = 1_700_000_000.0
    monkeypatch.setattr("time.time", lambda: now)
    for number in range(4):
        add(found, number, 1)
    assert len(found.files()) == 1
    now += archive.DAY_S
    add(found, 4, 1)
    assert len(found.files()) == 2, "a search takes the day of a file for that of its rows"
    chance = Random(3)
    add(found, 5, 1, "".join(chr(chance.randrange(33, 1_000)) for _ in range(20_000)))
    add(found, 6, 1)
    assert len(found.files()) == 3
    image = dict(cached_image(disk.model))
    newest = str(found.directory / found.files()[0])
    image[newest] = b"damaged"
    again = opened(SimulatedDisk(image))
    add(again, 7, 1)
    assert [known(again, each) for each in range(8)] == [*range(6), None, 7]
    assert len(again.files()) == 4


def test_a_file_has_the_second_in_which_the_last_of_its_rows_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = SimulatedDisk(EMPTY)
    now = 1_700_000_000.0  # 2023-11-14T22:13:20
    monkeypatch.setattr("time.time", lambda: now)
    times = []
    for kind, *seconds in (
        ("one", 20.25),
        ("later", 19.0, 20.999),
        ("earlier", 20.0, 3.5),
        ("unknown", 20.0, None, 20.5),
        ("never", 1e12),
    ):
        found = Archive(ROOT, kind, disk, 1 << 30)
        for each in seconds:
            found.add([line(1)], {}, 0.0 if each is None else now - 20 + each)
        (file,) = found.files()
        times.append(found.ended_before(file))
        assert len([*found.rows(file)]) == len(seconds)
    known = "2023-11-14T22:13:21.000Z"
    assert times == [known, known, known, "2023-11-14T24", "2023-11-14T24"]
    assert "2023-11-14T23:59:59.999Z" < "2023-11-14T24" < "2023-11-15"
    disk.unlink(found.directory / file)
    assert found.ended_before(file) is None


@pytest.mark.parametrize("number", range(1, CALLS))
def test_what_is_added_after_a_refused_first_addition_is_durable(number: int) -> None:
    plan = DiskPlan()
    disk = SimulatedDisk(EMPTY, plan)
    found = opened(disk)
    plan.faults[ANY, number] = Fail(errno.EIO)
    with contextlib.suppress(StorageError):
        add(found, 0, 3)
    plan.faults.clear()
    add(found, 0, 3)
    for image in legal_images(disk.model):
        again = opened(SimulatedDisk(image))
        assert [known(again, each) for each in range(3)] == [*range(3)], "its directory is there"
