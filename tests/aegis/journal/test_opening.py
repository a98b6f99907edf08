"""Opening a ledger: torn tails, damage, and a kill at any step."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from aegis.errors import StorageError
from aegis.journal import opening
from aegis.journal.disk import Disk, OsDisk
from aegis.journal.ledger import Damaged, encode_line
from aegis.journal.opening import MAX_REPORTED, OpenedLedger, open_ledger

if TYPE_CHECKING:
    from tests.fakes.faulty_disk import Crash, FaultyDisk

FIRST, LAST = encode_line({"seq": 0, "cmd": "ü"}), encode_line({"seq": 1, "cmd": "make"})


def opened_and_closed(disk: Disk, path: Path) -> OpenedLedger:
    opened = open_ledger(disk, path)
    disk.close(opened.fd)
    return opened


def test_a_new_ledger_is_made_private_and_its_directories_synced(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    path = tmp_path / "terminals" / "build" / "ledger.jsonl"
    opened = opened_and_closed(disk, path)
    assert (opened.length, opened.last, opened.damaged, opened.torn) == (0, None, (), None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert disk.calls["fsync"] >= 3
    assert disk.open_fds == set()


def test_a_good_ledger_is_left_as_it_is_and_its_last_line_told(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(FIRST + LAST)
    opened = opened_and_closed(OsDisk(), path)
    assert opened.length == len(FIRST + LAST)
    assert opened.last == {"seq": 1, "cmd": "make"}
    assert path.read_bytes() == FIRST + LAST
    assert sorted(tmp_path.iterdir()) == [path]


def test_what_is_appended_goes_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(FIRST + b"torn")
    opened = open_ledger(OsDisk(), path)
    os.write(opened.fd, LAST)
    os.close(opened.fd)
    assert path.read_bytes() == FIRST + LAST


@pytest.mark.parametrize("cut", range(1, len(LAST)))
def test_a_tail_torn_at_any_byte_is_cut_and_kept_aside(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(FIRST + LAST[:cut])
    opened = opened_and_closed(OsDisk(), path)
    assert path.read_bytes() == FIRST
    assert opened.last == {"seq": 0, "cmd": "ü"}
    assert opened.torn is not None
    assert opened.torn.name.startswith(f"ledger.jsonl.torn-{len(FIRST)}-")
    assert opened.torn.read_bytes() == LAST[:cut]
    assert sorted(tmp_path.iterdir()) == [path, opened.torn]


def test_a_torn_tail_of_megabytes_without_a_newline_is_kept_aside_whole(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    tail = os.urandom(1000).replace(b"\n", b"") * 20_000
    path.write_bytes(FIRST + tail)
    opened = opened_and_closed(OsDisk(), path)
    assert opened.torn is not None
    assert opened.torn.read_bytes() == tail
    assert path.read_bytes() == FIRST


def test_another_torn_tail_at_the_same_place_does_not_replace_the_first(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    for tail in (b'{"seq":1', b'{"seq":1,"c'):
        path.write_bytes(FIRST + tail)
        opened_and_closed(OsDisk(), path)
    kept = {file.read_bytes() for file in tmp_path.glob("*.torn-*")}
    assert kept == {b'{"seq":1', b'{"seq":1,"c'}


def test_an_opening_killed_at_any_step_loses_nothing_and_ends_the_same(
    tmp_path: Path, new_disk: type[FaultyDisk], crash: type[Crash]
) -> None:
    path = tmp_path / "state" / "ledger.jsonl"
    path.parent.mkdir()
    steps = 0
    while True:
        path.write_bytes(FIRST + LAST[:20])
        dying = new_disk(crash_at=steps)
        try:
            opened_and_closed(dying, path)
        except crash:
            steps += 1
        else:
            break
        assert dying.open_fds == set()
        aside = list(path.parent.glob("*.torn-*[0-9a-f]"))
        assert path.read_bytes() == FIRST + LAST[:20] or [file.read_bytes() for file in aside] == [
            LAST[:20]
        ]
        opened = opened_and_closed(OsDisk(), path)
        assert opened.last == {"seq": 0, "cmd": "ü"}
        assert path.read_bytes() == FIRST
        assert [file.read_bytes() for file in path.parent.glob("*.torn-*")] == [LAST[:20]]
    assert steps == dying.total > 10


def test_a_new_ledger_whose_making_was_killed_is_synced_by_the_next_opening(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    path = tmp_path / "ledger.jsonl"
    path.touch()
    opened_and_closed(disk, path)
    assert disk.calls["fsync"] == 4  # the file, and the three directories that may be new


def test_directories_whose_making_was_refused_half_way_are_synced_by_the_next_opening(
    tmp_path: Path, disk: FaultyDisk
) -> None:
    path = tmp_path / "terminals" / "build" / "ledger.jsonl"
    disk.fail("fsync", errno.EIO)
    with pytest.raises(StorageError):
        open_ledger(disk, path)
    assert path.parent.parent.is_dir()  # it is there, and nobody knows that it is not synced
    synced: list[Path] = []
    with patch.object(opening, "sync_directory", lambda _, directory: synced.append(directory)):
        opened_and_closed(disk, path)
    assert synced == [path.parent, path.parent.parent, tmp_path]


def test_damaged_lines_at_the_end_are_told_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    bad = [LAST.replace(b"make", b"fake"), b"\0" * 8 + b"\n"]
    path.write_bytes(FIRST + b"".join(bad))
    opened = opened_and_closed(OsDisk(), path)
    start, middle = len(FIRST), len(FIRST + bad[0])
    assert opened.last == {"seq": 0, "cmd": "ü"}
    assert opened.damaged == (
        Damaged(start, middle, "its checksum does not match"),
        Damaged(middle, middle + 9, "it does not end with a checksum"),
    )
    assert opened.damaged_count == 2
    assert path.read_bytes() == FIRST + b"".join(bad)


def test_a_ledger_of_nothing_but_damage_opens_and_reports_in_bounds(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"?\n" * 5000)
    opened = opened_and_closed(OsDisk(), path)
    assert opened.last is None
    assert opened.damaged_count == 5000
    assert len(opened.damaged) == MAX_REPORTED
    assert opened.damaged[-1].end == opened.length == 10_000


@pytest.mark.parametrize("call", ["open", "pread", "write", "fsync", "rename", "ftruncate"])
def test_a_disk_that_refuses_is_one_sentence_and_the_next_opening_works(
    tmp_path: Path, disk: FaultyDisk, call: str
) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(FIRST + b"torn")
    disk.fail(call, errno.EIO)
    with pytest.raises(StorageError, match=r"cannot open .*ledger\.jsonl: Input/output error"):
        open_ledger(disk, path)
    assert disk.open_fds == set()
    opened = opened_and_closed(disk, path)
    assert path.read_bytes() == FIRST
    assert opened.last == {"seq": 0, "cmd": "ü"}
    assert [file.read_bytes() for file in tmp_path.glob("*.torn-*")] == [b"torn"]
