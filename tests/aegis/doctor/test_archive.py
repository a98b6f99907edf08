"""What ``doctor`` says about the archive."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

from aegis.doctor.archive import examine_archive
from aegis.doctor.finding import Level
from aegis.journal.archive import Archive
from aegis.journal.disk import OsDisk
from aegis.state.root import CONFIG_NAME, StatePaths


def archived(state: StatePaths, chars: int) -> None:
    text = "".join(chr(Random(1).randrange(33, 120)) for _ in range(10)) * chars
    found = Archive(state.archive, "tasks", OsDisk(), 1 << 30)
    found.add([{"id": "a", "set": {"text": text[:chars]}}], {})


def test_the_size_of_the_archive_is_a_finding(tmp_path: Path) -> None:
    state = StatePaths(tmp_path)
    state.directory.mkdir(parents=True)
    assert [each.sentence for each in examine_archive(state)] == ["empty"]
    archived(state, 100)
    (finding,) = examine_archive(state)
    assert finding.level is Level.OK
    assert re.fullmatch(
        r"1 files since [0-9]{4}-[0-9]{2}-[0-9]{2}, [0-9]+ of 1073741824 bytes", finding.sentence
    )


def test_a_full_archive_and_a_damaged_file_are_warnings(tmp_path: Path) -> None:
    state = StatePaths(tmp_path)
    state.directory.mkdir(parents=True)
    archived(state, 100)
    (tmp_path / CONFIG_NAME).write_text("keep: {archive_bytes: 65536}\n")
    (path,) = state.archive.glob("*/*.gz")
    path.write_bytes(path.read_bytes() + b"x" * 65_536)
    damaged, full = examine_archive(state)
    assert damaged.level is full.level is Level.WARNING
    assert damaged.sentence.startswith(f"archive/tasks/{path.name} is damaged: ")
    assert full.sentence.endswith("of 65536 bytes: the oldest are deleted")
    assert "keep.archive_bytes" in full.remedy
