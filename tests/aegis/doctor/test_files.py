"""Modes, leftovers and keys of a state directory."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from aegis.daemon_process import hold_root
from aegis.doctor import files
from aegis.doctor.examination import examine, repair
from aegis.doctor.files import (
    examine_keys,
    examine_leftovers,
    examine_modes,
    examine_version,
    quarantine,
    repair_files,
    repair_modes,
)
from aegis.doctor.finding import Level
from aegis.journal.ledger import encode_line
from aegis.servers.access.auth import open_keys
from aegis.state.root import StatePaths, make_directory


@pytest.fixture
def state(tmp_path: Path) -> StatePaths:
    made = StatePaths(tmp_path)
    make_directory(made)
    (made.terminals / "build").mkdir(parents=True, mode=0o700)
    made.terminals.chmod(0o700)
    return made


def write(path: Path, text: str = "x", mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_private_state_is_well(state: StatePaths) -> None:
    write(state.lock)
    write(state.terminals / "build" / "typed.0", mode=0o644)  # a shell made it
    (state.directory / "link").symlink_to("/etc/passwd")
    assert [each.level for each in examine_modes(state)] == [Level.OK]


def test_what_a_daemon_removes_meanwhile_is_no_problem(
    state: StatePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(state.lock)
    write(state.terminals / "build" / "meta.json.new")
    listed = files.every_file

    def every_file(directory: Path) -> Iterator[Path]:
        for path in listed(directory):
            if path.name == "build":
                shutil.rmtree(path)
            yield path

    monkeypatch.setattr(files, "every_file", every_file)
    assert [each.level for each in examine_modes(state)] == [Level.OK]
    assert not (state.terminals / "build").exists()


def test_what_others_may_use_is_named_and_mended(state: StatePaths) -> None:
    ledger = write(state.terminals / "build" / "ledger.jsonl", mode=0o604)
    keys = write(state.keys, mode=0o640)
    state.terminals.chmod(0o755)
    [found] = examine_modes(state)
    assert found.level is Level.PROBLEM
    for name in ("keys.json", "terminals", "ledger.jsonl"):
        assert name in found.sentence
    assert len(list(repair_modes(state))) == 3
    assert (mode_of(ledger), mode_of(keys), mode_of(state.terminals)) == (0o600, 0o600, 0o700)
    assert [each.level for each in examine_modes(state)] == [Level.OK]


def test_of_many_files_the_first_are_named(state: StatePaths) -> None:
    for number in range(9):
        write(state.terminals / "build" / f"f{number}", mode=0o666)
    [found] = examine_modes(state)
    assert found.sentence.endswith(" and 4 more")


def test_leftovers_are_put_aside_and_not_deleted(state: StatePaths) -> None:
    write(state.directory / "keys.json.new", "half")
    write(state.endpoint, "{}")
    purged = state.terminals / ".purged-1"
    purged.mkdir()
    write(purged / "raw.log", "bytes")
    write(purged / "x.new")
    [found] = examine_leftovers(state, is_in_use=False)
    assert found.level is Level.WARNING
    assert [each.level for each in examine_leftovers(state, is_in_use=True)] == [Level.OK]
    assert len(list(repair_files(state))) == 3
    aside = state.directory / "aside"
    assert mode_of(aside) == 0o700
    assert (aside / "keys.json.new.0").read_text() == "half"
    assert (aside / "terminals-.purged-1.0" / "raw.log").read_text() == "bytes"
    assert [each.level for each in examine_leftovers(state, is_in_use=False)] == [Level.OK]


def test_what_is_put_aside_never_takes_the_place_of_another(state: StatePaths) -> None:
    kept = [quarantine(state, write(state.directory / "a", str(number))) for number in range(3)]
    assert [each.read_text() for each in kept] == ["0", "1", "2"]


def test_keys_that_cannot_be_read_are_a_problem_until_they_are_put_aside(state: StatePaths) -> None:
    assert [each.level for each in examine_keys(state)] == [Level.OK]
    open_keys(state.directory).session_secret("pm")
    [found] = examine_keys(state)
    assert (found.level, found.sentence) == (Level.OK, "1 sessions")
    secret = state.keys.read_text()
    state.keys.write_text(secret[:-30])
    [found] = examine_keys(state)
    assert found.level is Level.PROBLEM
    assert "--repair" in found.remedy
    list(repair_files(state))
    assert not state.keys.exists()
    assert (state.directory / "aside" / "keys.json.0").read_text() == secret[:-30]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("1\n", Level.OK),
        ("2\n", Level.OK),
        ("", Level.OK),
        ("3\n", Level.PROBLEM),
        ("ü", Level.PROBLEM),
    ],
)
def test_a_state_of_a_newer_version_is_a_problem(
    state: StatePaths, text: str, level: Level
) -> None:
    write(state.directory / "version", text)
    [found] = examine_version(state)
    assert found.level is level


def test_an_examination_changes_nothing(state: StatePaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aegis.doctor.examination.examine_shells", list)
    write(state.directory / "x.new")
    ledger = state.terminals / "build" / "ledger.jsonl"
    write(ledger, encode_line({"seq": 0}).decode() + "torn", mode=0o644)
    write(ledger.with_name("meta.json"), encode_line({"version": 1}).decode())
    write(state.workspace, '{"version": 1, "terminals": []}')
    before = {each: (each.lstat().st_mode, each.lstat().st_mtime_ns) for each in _all(state)}
    levels = {each.subject: each.level for each in examine(state)}
    assert before == {
        each: (each.lstat().st_mode, each.lstat().st_mtime_ns) for each in _all(state)
    }
    assert levels["modes"] is Level.PROBLEM
    assert levels["terminal build"] is Level.WARNING
    assert levels["leftovers"] is Level.WARNING
    assert levels["daemon"] is Level.OK


def test_a_repair_is_refused_while_a_daemon_holds_the_root(state: StatePaths) -> None:
    left = write(state.directory / "x.new", mode=0o644)
    with hold_root(state):
        [refused] = repair(state)
    assert refused.level is Level.PROBLEM
    assert "a daemon already runs" in refused.sentence
    assert mode_of(left) == 0o644
    assert {each.level for each in repair(state)} == {Level.OK}
    assert not left.exists()


def test_a_root_without_a_state_is_examined_and_not_made_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aegis.doctor.examination.examine_shells", list)
    state = StatePaths(tmp_path)
    assert list(repair(state)) == []
    assert {each.level for each in examine(state)} == {Level.OK}
    assert list(tmp_path.iterdir()) == []


def test_what_the_system_refuses_is_a_problem_of_that_check_alone(
    state: StatePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aegis.doctor.examination.examine_shells", list)
    (state.terminals / "build" / "ledger.jsonl").mkdir(mode=0o700)
    found = {each.subject: each for each in examine(state)}
    assert found["ledgers"].level is Level.PROBLEM
    assert "Is a directory" in found["ledgers"].sentence
    assert found["daemon"].level is Level.OK


def _all(state: StatePaths) -> list[Path]:
    return sorted(state.root.rglob("*"))
