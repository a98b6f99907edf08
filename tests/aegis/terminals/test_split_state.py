"""The codes of a split ledger: the files of another state are refused or signed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from aegis.doctor.finding import Level
from aegis.doctor.ledgers import examine_ledgers
from aegis.journal.disk import APPEND, OsDisk, make_directory, write_all
from aegis.journal.ledger import seal_new_line
from aegis.journal.segments import SegmentReader, close_segment, pack_segments
from aegis.state.registration import claim_state
from aegis.state.root import StatePaths
from aegis.state.root import make_directory as make_state
from aegis.state.sealing import Seals
from aegis.trust import forged_files, take_over
from tests.aegis.doctor.test_ledgers import line


def write(state: StatePaths, seals: Seals) -> Path:
    """Write a ledger with three segments, of which two are compressed."""
    disk, path = OsDisk(seals), state.terminals / "build" / "ledger.jsonl"
    make_directory(disk, path.parent)
    for number in range(20):
        fd = disk.open(path, APPEND)
        write_all(disk, fd, seal_new_line(line(number), disk.seal(path)))
        disk.close(fd)
        if number % 5 == 4 and number < 16:
            close_segment(disk, path, number)
            pack_segments(disk, path)
    return path


def numbers(path: Path, seals: Seals) -> list[int]:
    found = SegmentReader(path, disk=OsDisk(seals)).last_now(100)
    return [each["seq"] for each in found.records]


@pytest.fixture
def state(tmp_path: Path) -> StatePaths:
    made = StatePaths(tmp_path)
    make_state(made)
    return made


def test_all_files_belong_to_their_state_and_are_signed_when_it_is_taken_over(
    state: StatePaths,
) -> None:
    first, second = (Seals(bytes(32), id_ * 32, str(state.directory)) for id_ in "01")
    path = write(state, first)
    plain = next(each.name for each in path.parent.iterdir() if ".00000010-00000014." in each.name)
    assert forged_files(state, first) == []
    assert sorted(forged_files(state, second)) == [
        f"terminals/build/{plain}",
        "terminals/build/ledger.jsonl",
    ]
    assert numbers(path, second) == []
    take_over(state, second)
    assert forged_files(state, second) == []
    assert numbers(path, second) == [*range(20)]


def test_the_check_reads_all_files_of_a_ledger(state: StatePaths) -> None:
    path = write(state, claim_state(state))
    [found] = examine_ledgers(state, is_in_use=False)
    assert found.sentence == "1 read, 20 intact lines"
    files = sorted(each for each in path.parent.iterdir() if each.name != path.name)
    oldest, second, newest = files
    assert [each.suffix for each in files] == [".gz", ".gz", ".jsonl"]

    oldest.unlink()  # as the common limit deletes it
    [found] = examine_ledgers(state, is_in_use=False)
    assert found.sentence == "1 read, 15 intact lines"

    path.rename(path.with_name("aside"))  # a kill has left no growing file
    [found] = examine_ledgers(state, is_in_use=True)
    assert found.sentence == "1 read, 10 intact lines"
    path.with_name("aside").rename(path)

    content = second.read_bytes()
    second.write_bytes(content[:-9])
    levels = {each.level for each in examine_ledgers(state, is_in_use=False)}
    assert Level.WARNING in levels
    second.write_bytes(gzip.compress(gzip.decompress(content).replace(b"echo 7", b"echo 8")))
    damaged, _ = examine_ledgers(state, is_in_use=False)
    assert "1 lines have a bad checksum" in damaged.sentence
    second.unlink()
    newest.unlink()
    path.write_bytes(b"")
    [found] = examine_ledgers(state, is_in_use=False)
    assert found.sentence == "1 read, 0 intact lines"
