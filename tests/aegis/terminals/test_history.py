"""Damage of a ledger: what cannot be read is counted and logged once, and so are gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from structlog.testing import capture_logs

from aegis.errors import NotFound
from aegis.journal.disk import OsDisk
from aegis.journal.ledger import encode_line
from aegis.journal.segment_names import segments_of
from aegis.journal.segments import close_segment
from aegis.protocol.derived.wire import to_plain
from aegis.protocol.terminals import ReadRecords
from aegis.terminals import history as history_module
from aegis.terminals.history import History
from tests.aegis.terminals.samples import RECORD


def line(seq: int, **fields: object) -> bytes:
    record = attrs.evolve(RECORD, seq=seq)
    return encode_line({**attrs.asdict(record), **fields})


def read(ledger: Path, **arguments: Any) -> Any:
    request = ReadRecords(name="a", **arguments)
    return to_plain(trio.run(History(ledger).read, request))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.mark.parametrize("arguments", [{"last_n": 10}, {"since_seq": -1}])
def test_lines_that_cannot_be_read_are_counted_in_the_reply(
    ledger: Path, arguments: dict[str, int]
) -> None:
    broken = line(1).replace(b"seq", b"SEQ")
    ledger.write_bytes(line(0) + broken + line(2, color="red") + line(3))
    found = read(ledger, **arguments)
    assert [each["seq"] for each in found["result"]] == [0, 3]
    assert found["damaged"] == 2


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"before_seq": 4}, [0, 1, 2, 3]),
        ({"before_seq": 4, "last_n": 2}, [2, 3]),
        ({"before_seq": 2, "last_n": 9}, [0, 1]),
        ({"before_seq": 0}, []),
        ({"before_seq": 99, "last_n": 1}, [5]),
    ],
)
def test_records_are_read_backwards_from_a_seq(
    ledger: Path, arguments: dict[str, int], found: list[int]
) -> None:
    ledger.write_bytes(b"".join(map(line, range(6))))
    assert [each["seq"] for each in read(ledger, **arguments)["result"]] == found


@pytest.mark.parametrize(
    ("arguments", "found", "damaged"),
    [
        ({"since_seq": 1}, [6, 7], 4),
        ({"since_seq": 3}, [6, 7], 2),
        ({"before_seq": 6, "last_n": 2}, [0, 1], 4),
        ({"before_seq": 5, "last_n": 1}, [1], 3),
        ({"since_seq": 7}, [], 0),
    ],
)
def test_a_page_is_never_empty_while_there_are_records_beyond_it(
    ledger: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: dict[str, int],
    found: list[int],
    damaged: int,
) -> None:
    foreign = [line(seq, color="red") for seq in range(2, 6)]
    ledger.write_bytes(b"".join([line(0), line(1), *foreign, line(6), line(7)]))
    monkeypatch.setattr(history_module, "MAX_REPLY_BYTES", 2 * len(line(0)) + 10)
    page = read(ledger, **arguments)
    assert [each["seq"] for each in page["result"]] == found
    assert page.get("damaged", 0) == damaged


def test_a_page_behind_lines_that_are_passed_says_what_was_deleted_before_them(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger.write_bytes(b"".join(map(line, range(4))))
    close_segment(OsDisk(), ledger, 3)
    ledger.write_bytes(b"".join(line(seq, color="red") for seq in range(4, 8)))
    close_segment(OsDisk(), ledger, 7)
    segments_of(OsDisk(), ledger)[0].path.unlink()
    ledger.write_bytes(line(8))
    monkeypatch.setattr(history_module, "MAX_REPLY_BYTES", 2 * len(line(0)) + 10)
    page = read(ledger, since_seq=1)
    assert [each["seq"] for each in page["result"]] == [8]
    assert page["oldest_kept"] == 4


def test_reading_backwards_says_how_many_lines_on_the_way_cannot_be_read(ledger: Path) -> None:
    ledger.write_bytes(line(0) + line(1).replace(b"seq", b"SEQ") + line(2) + line(3))
    found = read(ledger, before_seq=3, last_n=2)
    assert [each["seq"] for each in found["result"]] == [0, 2]
    assert found["damaged"] == 1


def test_records_without_output_keep_all_other_fields(ledger: Path) -> None:
    ledger.write_bytes(line(0, stdout="a lot", output_bytes=5))
    [record] = read(ledger, output=False)["result"]
    assert record == {**read(ledger)["result"][0], "stdout": "", "stderr": ""}
    assert record["output_bytes"] == 5


def test_a_ledger_without_such_lines_says_nothing_of_them(ledger: Path) -> None:
    ledger.write_bytes(line(0))
    assert "damaged" not in read(ledger)


def test_they_are_logged_once_with_the_reason(ledger: Path) -> None:
    ledger.write_bytes(line(0) + line(1, exit="no"))
    history = History(ledger)
    with capture_logs() as logs:
        for _ in range(3):
            trio.run(history.read, ReadRecords(name="a"))
    [told] = logs
    assert (told["event"], told["log_level"], told["lines"]) == (
        "damaged lines skipped",
        "warning",
        1,
    )
    assert "seq 1" in told["where"][0]
    assert "exit" in told["where"][0]


def test_the_number_of_a_newest_line_that_cannot_be_read_is_not_given_again(ledger: Path) -> None:
    ledger.write_bytes(line(7) + line(8, color="red"))
    assert History(ledger).last() == (None, 8)


def test_a_directory_as_an_older_version_wrote_it_is_shown_in_the_notation(ledger: Path) -> None:
    ledger.write_bytes(line(0, cwd="/srv/d\udcff"))
    history = History(ledger)
    assert read(ledger)["result"][0]["cwd"] == r"$'/srv/d\xff'"
    assert trio.run(history.one, 0, "a").cwd == r"$'/srv/d\xff'"
    with pytest.raises(NotFound):
        trio.run(history.one, 1, "a")


async def events(path: Path) -> list[tuple[str, int, int]]:
    """The gaps that are logged when all is read, twice."""
    history = History(path)
    with capture_logs() as logs:
        for _ in range(2):
            await history.read(ReadRecords(name="build", since_seq=-1))
    return [
        (each["event"], each["after"], each["before"])
        for each in logs
        if each["event"] == "records missing"
    ]


async def test_a_gap_in_the_numbers_is_logged_once(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(line(0) + line(1) + line(5) + line(6) + line(9))
    assert await events(path) == [("records missing", 1, 5), ("records missing", 6, 9)]


async def test_numbers_that_damaged_lines_may_have_had_are_no_gap(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(line(0) + b"damaged\n" + line(2) + line(3))
    assert await events(path) == []


def test_a_reader_is_told_which_number_is_the_oldest_that_is_kept(ledger: Path) -> None:
    disk = OsDisk()
    for number in range(30):
        with ledger.open("ab") as file:
            file.write(line(number))
        if number % 10 == 9:
            close_segment(disk, ledger, number)
    next(each for each in ledger.parent.iterdir() if "-00000009." in each.name).unlink()
    assert [each["seq"] for each in read(ledger, since_seq=4)["result"]] == [*range(10, 30)]
    for arguments in ({"since_seq": -1}, {"since_seq": 8}, {"last_n": 21}, {"before_seq": 12}):
        assert read(ledger, **arguments)["oldest_kept"] == 10
    for arguments in ({"since_seq": 9}, {"last_n": 20}, {"before_seq": 13, "last_n": 3}):
        assert "oldest_kept" not in read(ledger, **arguments)


def test_a_record_that_is_not_durable_yet_is_not_shown(ledger: Path) -> None:
    ledger.write_bytes(b"".join(map(line, range(6))))
    history = History(ledger)
    history.newest = 3
    for request in (
        ReadRecords(name="a", since_seq=1),
        ReadRecords(name="a", last_n=2),
        ReadRecords(name="a", last_n=2, before_seq=9),
    ):
        assert [each.seq for each in trio.run(history.read, request).result] == [2, 3]
    assert history.last()[1] == 3
