"""Reading from the end: what is returned, what it costs, and what is never shown."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from aegis.errors import StorageError
from aegis.journal import reader as reader_module
from aegis.journal.ledger import BLOCK_BYTES, encode_line
from aegis.journal.reader import LedgerReader, Reading

if TYPE_CHECKING:
    from tests.fakes.faulty_disk import FaultyDisk


def fill(path: Path, count: int, pad: int = 0) -> list[dict[str, Any]]:
    records = [{"seq": seq, "stdout": "x" * pad} for seq in range(count)]
    path.write_bytes(b"".join(map(encode_line, records)))
    return records


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.mark.parametrize("n", [1, 2, 99, 100, 101, 5000])
@pytest.mark.parametrize("pad", [0, 3000])
def test_last_n_gives_the_newest_oldest_first(path: Path, n: int, pad: int) -> None:
    records = fill(path, 100, pad)
    assert LedgerReader(path).last_n(n) == Reading(
        records=records[-n:], more=False, damaged=(), damaged_count=0
    )


@pytest.mark.parametrize("n", [0, -1])
def test_last_n_of_less_than_one_is_refused(path: Path, n: int) -> None:
    with pytest.raises(ValueError, match="must be 1 or more"):
        LedgerReader(path).last_n(n)


@pytest.mark.parametrize("since", [-1, 0, 50, 98, 99, 1000])
def test_since_gives_what_is_strictly_greater(path: Path, since: int) -> None:
    records = fill(path, 100)
    assert LedgerReader(path).since("seq", since).records == records[since + 1 :]


@pytest.mark.parametrize("content", [None, b"", b"torn"])
def test_a_missing_or_empty_ledger_holds_nothing(path: Path, content: bytes | None) -> None:
    if content is not None:
        path.write_bytes(content)
    assert LedgerReader(path).last_n(5).records == []
    assert LedgerReader(path).since("seq", -1).records == []


def test_a_line_under_way_is_never_shown(path: Path) -> None:
    records = fill(path, 2)
    whole = path.read_bytes()
    coming = encode_line({"seq": 2})
    for cut in range(len(coming)):
        path.write_bytes(whole + coming[:cut])
        assert LedgerReader(path).last_n(5).records == records


def test_nothing_behind_the_end_given_is_shown(path: Path) -> None:
    records = fill(path, 5)
    lines = [len(encode_line(record)) for record in records]
    for count in range(6):
        end = sum(lines[:count])
        assert LedgerReader(path).last_n(9, end=end).records == records[:count]
        assert LedgerReader(path).since("seq", -1, end=end).records == records[:count]
    assert LedgerReader(path).last_n(9, end=10**9).records == records


def test_damaged_lines_are_passed_over_and_reported(path: Path) -> None:
    records = fill(path, 4)
    data = path.read_bytes()
    start = data.index(b'{"seq":2')
    path.write_bytes(data.replace(b'"seq":2', b'"seq":9'))
    for reading in (LedgerReader(path).last_n(3), LedgerReader(path).since("seq", 0)):
        assert [record["seq"] for record in reading.records][-2:] == [1, 3]
        assert [item.start for item in reading.damaged] == [start]
        assert reading.damaged_count == 1
    assert LedgerReader(path).last_n(3).records == [records[0], records[1], records[3]]


def test_lines_without_the_number_are_passed_over(path: Path) -> None:
    objects: list[dict[str, Any]] = [{"seq": 0}, {"seq": True}, {"note": "x"}, {"seq": 1}]
    path.write_bytes(b"".join(map(encode_line, objects)))
    assert LedgerReader(path).since("seq", -1).records == [{"seq": 0}, {"seq": 1}]


def test_too_much_is_cut_to_the_newest_or_for_catching_up_to_the_oldest(path: Path) -> None:
    records = fill(path, 100, pad=100)
    line = len(encode_line(records[50]))
    newest = LedgerReader(path).last_n(50, max_bytes=10 * line)
    assert (newest.records, newest.more) == (records[-10:], True)
    oldest = LedgerReader(path).since("seq", 49, max_bytes=10 * line)
    assert (oldest.records, oldest.more) == (records[50:60], True)


def test_one_record_comes_even_if_it_alone_is_too_much(path: Path) -> None:
    records = fill(path, 3, pad=500)
    newest = LedgerReader(path).last_n(2, max_bytes=10)
    assert (newest.records, newest.more) == (records[-1:], True)
    oldest = LedgerReader(path).since("seq", 0, max_bytes=10)
    assert (oldest.records, oldest.more) == (records[1:2], True)
    assert not LedgerReader(path).last_n(1, max_bytes=10).more


def test_the_cost_goes_by_what_is_returned(path: Path, disk: FaultyDisk) -> None:
    fill(path, 40_000)
    assert path.stat().st_size > 20 * BLOCK_BYTES
    reader = LedgerReader(path, disk=disk)
    reader.last_n(5)
    reader.since("seq", 39_990)
    assert disk.calls["pread"] == 4  # each: the last byte, and one block
    assert disk.open_fds == set()


@pytest.mark.parametrize("max_bytes", [1, 100, 1000, 1_000_000])
def test_onward_from_where_a_reading_ended_nothing_is_left_out_or_read_twice(
    path: Path, max_bytes: int
) -> None:
    records = fill(path, 100, pad=30)
    reader = LedgerReader(path)
    reading = reader.since("seq", 9, max_bytes=max_bytes)
    found = reading.records
    while reading.more:
        reading = reader.onward(reading.end, max_bytes=max_bytes)
        assert reading.records
        found += reading.records
    assert found == records[10:]
    assert reading.end == path.stat().st_size


def test_onward_shows_whole_lines_up_to_its_end_and_reports_the_damaged(path: Path) -> None:
    lines = [encode_line({"seq": seq}) for seq in range(4)]
    path.write_bytes(lines[0] + b"damaged\n" + b"".join(lines[1:]) + b"under way")
    synced = path.stat().st_size - len(lines[3]) - len(b"under way")
    reading = LedgerReader(path).onward(0, end=synced)
    assert (reading.records, reading.more) == ([{"seq": 0}, {"seq": 1}, {"seq": 2}], False)
    assert (reading.damaged_count, reading.end) == (1, synced)
    rest = LedgerReader(path).onward(synced)
    assert (rest.records, rest.more) == ([{"seq": 3}], False)
    assert LedgerReader(path).onward(rest.end).records == []


def test_onward_in_a_ledger_that_is_gone_or_was_cut_is_empty(path: Path) -> None:
    assert LedgerReader(path).onward(1000).records == []
    fill(path, 3)
    assert LedgerReader(path).onward(1_000_000).records == []


def test_onward_passes_over_what_is_longer_than_any_line(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_module, "MAX_LINE_BYTES", 4096)
    path.write_bytes(encode_line({"seq": 0}) + b"x" * 10_000 + b"\n" + encode_line({"seq": 1}))
    reading = LedgerReader(path).onward(0, max_bytes=64)
    found = reading.records
    while reading.more:
        before, reading = reading.end, LedgerReader(path).onward(reading.end, max_bytes=64)
        assert reading.end > before
        found += reading.records
    assert found == [{"seq": 0}, {"seq": 1}]


@pytest.mark.parametrize("call", ["open", "pread"])
def test_a_disk_that_refuses_is_one_sentence(path: Path, disk: FaultyDisk, call: str) -> None:
    fill(path, 3)
    disk.fail(call, errno.EIO)
    with pytest.raises(StorageError, match=r"cannot read .*: Input/output error; the disk fails"):
        LedgerReader(path, disk=disk).last_n(1)
    assert disk.open_fds == set()
