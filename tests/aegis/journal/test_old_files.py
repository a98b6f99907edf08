"""The common limit of archives and segments: what is deleted, in which order, and what stays."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest

from aegis.errors import StorageError
from aegis.journal.archive import Archive
from aegis.journal.old_files import delete_oldest, old_files
from tests.chaos.machine.disk_images import legal_images
from tests.chaos.machine.disk_model import Image, cached_image
from tests.chaos.machine.simulated_disk import ANY, DiskPlan, Fail, SimulatedDisk

STATE = Path("/state")


def image_of(*names: str, size: int = 100) -> Image:
    """Return a state with these files, each of the same size."""
    found: dict[str, bytes | None] = {"/": None, "/state": None}
    for name in names:
        path = STATE / name
        found |= dict.fromkeys(str(each) for each in reversed(path.parents))
        found[str(path)] = b"x" * size
    return found


def segment(terminal: str, day: int, first: int, packed: str = ".gz") -> str:
    return f"terminals/{terminal}/ledger.2026-11-{day:02}T000000.{first}-{first + 9}.jsonl{packed}"


def rows(day: int) -> str:
    return f"archive/tasks/2026-11-{day:02}T000000-0001.jsonl.gz"


FILES = (
    *(segment("a", 1, 0), segment("a", 5, 10), segment("a", 7, 20, "")),
    *(segment("b", 2, 0), segment("b", 3, 10, "")),
    *(rows(4), rows(6)),
    *("terminals/a/ledger.jsonl", "terminals/a/raw.log", "archive/tasks/index-0001-20261101.jsonl"),
)
OLDEST_FIRST = (FILES[0], FILES[3], rows(4), FILES[1], rows(6))
"""Without the newest segments, the files that grow, and the index."""


def left(disk: SimulatedDisk) -> set[str]:
    return {
        str(Path(path).relative_to(STATE))
        for path, data in cached_image(disk.model).items()
        if data is not None
    }


def test_files_are_ordered_by_the_time_at_which_they_were_written() -> None:
    found = old_files(SimulatedDisk(image_of(*FILES)), STATE)
    assert tuple(str(each.path.relative_to(STATE)) for each in found) == OLDEST_FIRST


@pytest.mark.parametrize("number", range(6))
def test_the_oldest_are_deleted_until_the_others_fit(
    number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    disk = SimulatedDisk(image_of(*FILES))
    delete_oldest(disk, STATE, 100 * (5 - number) + 50)
    assert left(disk) == {*FILES} - {*OLDEST_FIRST[:number]}
    logged = capsys.readouterr().out
    assert logged.count("archive too large, oldest deleted") == bool(number)
    assert all(each in logged for each in OLDEST_FIRST[:number])


def test_a_file_that_was_just_written_is_spared() -> None:
    disk = SimulatedDisk(image_of(*FILES))
    delete_oldest(disk, STATE, 1, spared=STATE / rows(4))
    assert left(disk) == {*FILES} - {*OLDEST_FIRST} | {rows(4)}


def test_a_state_without_such_files_has_nothing_to_delete() -> None:
    for image in (image_of(), image_of("terminals/a/ledger.jsonl"), image_of("archive/x.json")):
        disk = SimulatedDisk(image)
        delete_oldest(disk, STATE, 1)
        assert left(disk) == {
            str(Path(path).relative_to(STATE)) for path, data in image.items() if data
        }


def test_rows_that_are_archived_take_the_place_of_old_segments() -> None:
    disk = SimulatedDisk(image_of(segment("a", 1, 0), segment("a", 2, 10), size=3_000))
    chance = Random(1)
    text = "".join(chr(chance.randrange(33, 120)) for _ in range(1_000))
    Archive(STATE / "archive", "tasks", disk, 2_000).add([{"id": "a", "set": {"text": text}}], {})
    kept = sorted(each for each in left(disk) if "index" not in each)
    assert len(kept) == 2
    assert kept[1] == segment("a", 2, 10)


CALLS = 60
"""More calls of the disk than the deletions make."""


@pytest.mark.parametrize("number", range(1, CALLS))
def test_after_a_refusal_or_a_kill_no_older_file_is_left_without_a_newer_one(number: int) -> None:
    plan = DiskPlan()
    disk = SimulatedDisk(image_of(*FILES), plan)
    plan.faults[ANY, plan.hits[ANY] + number] = Fail(errno.EIO)
    before, is_refused = plan.hits[ANY], False
    try:
        delete_oldest(disk, STATE, 1)
    except StorageError:
        is_refused = True
    plan.faults.clear()
    assert is_refused or plan.hits[ANY] < before + CALLS
    for image in [dict(cached_image(disk.model)), *legal_images(disk.model)]:
        there = [f"/state/{each}" in image for each in OLDEST_FIRST]
        assert there == sorted(there), "what is left are the newest"
        assert all(f"/state/{each}" in image for each in FILES if each not in OLDEST_FIRST)
