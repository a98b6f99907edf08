"""Ledgers that were damaged in every way, examined and repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

from aegis.doctor import ledgers as module
from aegis.doctor.finding import Finding, Level
from aegis.doctor.ledger_rules import judge_ledger
from aegis.doctor.ledgers import examine_ledgers, repair_ledgers, survey_of
from aegis.journal.ledger import encode_line, seal_line
from aegis.state.registration import claim_state
from aegis.state.root import StatePaths, make_directory


def line(seq: int, **fields: object) -> bytes:
    record = {
        "seq": seq,
        "cmd": f"echo {seq}",
        "writer": "human",
        "started_at": "2026-01-01T00:00:00.000Z",
        "finished_at": "2026-01-01T00:00:01.000Z",
        "duration_s": 1.0,
        "exit": 0,
        "stdout": "",
        "stderr": "",
        "killed_by_restart": False,
        "timed_out": False,
        "cwd": "/",
        "output_bytes": 0,
        "truncated": False,
        "raw_start": 0,
        "raw_end": 0,
        "needs_input": None,
        "end": "exited",
    }
    return encode_line({**record, **fields})


DAMAGED = line(99).replace(b"echo", b"ECHO")


@pytest.fixture
def state(tmp_path: Path) -> StatePaths:
    made = StatePaths(tmp_path)
    make_directory(made)
    return made


def terminal(state: StatePaths, content: bytes, name: str = "build") -> Path:
    directory = state.terminals / name
    directory.mkdir(parents=True)
    path = directory / "ledger.jsonl"
    path.write_bytes(content)
    return path


def test_a_line_that_no_daemon_of_this_state_wrote_is_told(state: StatePaths) -> None:
    seals = claim_state(state)
    ours = terminal(state, b"")
    ours.write_bytes(seal_line(line(0), seals.of(str(ours))) + line(1))
    found = {each.subject: each for each in examine_ledgers(state, is_in_use=False)}
    assert "1 lines have a bad checksum" in found["terminal build"].sentence


def examined(state: StatePaths, *, is_in_use: bool = False) -> list[Finding]:
    return list(examine_ledgers(state, is_in_use=is_in_use))


def test_a_state_without_ledgers_has_nothing_to_tell(state: StatePaths) -> None:
    [found] = examined(state)
    assert (found.level, found.sentence) == (Level.OK, "0 read, 0 intact lines")


def test_good_ledgers_are_counted(state: StatePaths) -> None:
    terminal(state, line(0) + line(1))
    terminal(state, b"", "empty")
    state.inboxes.mkdir()
    (state.inboxes / "pm.jsonl").write_bytes(encode_line({"kind": "message", "id": "x"}))
    [found] = examined(state)
    assert (found.level, found.sentence) == (Level.OK, "3 read, 3 intact lines")


@pytest.mark.parametrize(
    ("content", "level", "words"),
    [
        (line(0) + b'{"seq":1,"cm', Level.WARNING, "last 12 bytes are an unfinished append"),
        (b"\0" * 100, Level.WARNING, "last 100 bytes"),
        (line(0) + DAMAGED + line(2), Level.WARNING, "1 lines have a bad checksum"),
        (line(0) + b"\n" + line(1), Level.WARNING, "1 lines have a bad checksum"),
        (line(0) + line(1)[1:], Level.WARNING, "1 lines have a bad checksum"),
        (line(0) + line(2), Level.PROBLEM, "1 missing"),
        (line(3), Level.PROBLEM, "0 to 2 missing"),
        (line(0) + DAMAGED + line(3), Level.PROBLEM, "1 to 2 missing"),
        (line(0) + line(1) + line(1), Level.PROBLEM, "1 is repeated after 1"),
        (line(0) + line(1) + line(0) + line(2), Level.PROBLEM, "0 is repeated after 1"),
    ],
)
def test_what_is_wrong_is_told_with_its_terminal(
    state: StatePaths, content: bytes, level: Level, words: str
) -> None:
    path = terminal(state, content)
    found = examined(state)
    assert path.read_bytes() == content
    [worst] = [each for each in found if each.level is level]
    assert worst.subject == "terminal build"
    assert words in worst.sentence
    assert worst.remedy


def test_damaged_lines_excuse_as_many_numbers(state: StatePaths) -> None:
    terminal(state, line(0) + DAMAGED + DAMAGED + line(3))
    assert {each.level for each in examined(state)} == {Level.OK, Level.WARNING}


def test_a_tail_is_no_fault_while_a_daemon_may_be_writing(state: StatePaths) -> None:
    terminal(state, line(0) + b"half")
    assert [each.level for each in examined(state, is_in_use=True)] == [Level.OK]


@pytest.mark.parametrize("chunk", [1, 7, 50, 1 << 20])
def test_a_ledger_reads_the_same_in_chunks_of_any_size(
    state: StatePaths, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    content = line(0) + DAMAGED + line(2) + line(5) + b"half"
    path = terminal(state, content)
    monkeypatch.setattr(module, "CHUNK_BYTES", chunk)
    survey = survey_of(path)
    assert (survey.lines, survey.damaged_count, survey.torn) == (3, 1, 4)
    assert survey.faults == ["3 to 4 missing"]


def test_what_is_longer_than_any_line_is_not_held(
    state: StatePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_BYTES", len(line(0)) // 2)
    monkeypatch.setattr(module, "MAX_LINE_BYTES", 2 * len(line(0)))
    path = terminal(state, line(0) + b"x" * 10_000 + b"\n" + line(2))
    survey = survey_of(path)
    assert (survey.lines, survey.damaged_count, survey.torn, survey.faults) == (2, 1, 0, [])


def test_of_many_faults_the_first_are_named_and_all_counted(state: StatePaths) -> None:
    terminal(state, b"".join(line(2 * number) for number in range(100)))
    [problem] = [each for each in examined(state) if each.level is Level.PROBLEM]
    assert problem.sentence.startswith("its numbers have 99 faults: 1 missing, 3 missing, ")
    assert problem.sentence.count("missing") == 5


def test_a_repair_keeps_the_torn_tail_aside_and_leaves_the_rest(state: StatePaths) -> None:
    good = line(0) + DAMAGED + line(2)
    path = terminal(state, good + b"half a line")
    whole = terminal(state, line(0), "whole")
    [done] = repair_ledgers(state)
    assert (done.subject, done.level) == ("terminal build", Level.OK)
    assert path.read_bytes() == good
    [aside] = path.parent.glob("ledger.jsonl.torn-*")
    assert aside.read_bytes() == b"half a line"
    assert aside.name in done.sentence
    assert [each.name for each in whole.parent.iterdir()] == ["ledger.jsonl"]
    assert list(repair_ledgers(state)) == []


def test_a_ledger_that_cannot_be_read_does_not_keep_the_others_from_repair(
    state: StatePaths,
) -> None:
    (state.terminals / "a" / "ledger.jsonl").mkdir(parents=True)
    terminal(state, line(0) + b"half", "b")
    assert [each.subject for each in repair_ledgers(state)] == ["terminal b"]


def test_the_rules_say_nothing_of_a_good_ledger_but_its_size(state: StatePaths) -> None:
    survey = survey_of(terminal(state, line(0)))
    [found] = judge_ledger("terminal build", survey, is_in_use=False)
    assert (found.level, found.sentence) == (Level.OK, "1 lines are intact")


def test_lines_that_check_and_are_no_records_are_counted_and_named(state: StatePaths) -> None:
    later = line(1, color="red")
    terminal(state, line(0) + later + line(2, cwd="/d\udcff") + line(3, exit="no"))
    found = examined(state)[0]
    assert (found.level, found.subject) == (Level.WARNING, "terminal build")
    assert "2 lines are not records of this version" in found.sentence
    assert f"at byte {len(line(0))}: there is no argument 'color'" in found.sentence or (
        f"at byte {len(line(0))}: " in found.sentence and "color" in found.sentence
    )
    assert "exit" in found.sentence
    assert "missing" not in found.sentence, "their numbers were given"


@pytest.mark.parametrize("name", ["requests", "agents/sessions", "telegram", "queues/build"])
def test_the_ledger_of_each_table_is_read(state: StatePaths, name: str) -> None:
    path = state.directory / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode_line({"id": "x", "set": {}}) + DAMAGED)
    found = {each.subject: each for each in examined(state)}
    assert found.pop("ledgers").sentence == "1 read, 1 intact lines"
    [(subject, damaged)] = found.items()
    assert subject in name.replace("queues/", "queue ")
    assert "1 lines have a bad checksum" in damaged.sentence


def test_lines_of_the_chat_and_of_canvases_are_numbered_from_one_and_a_head_goes_on(
    state: StatePaths,
) -> None:
    state.telegram.parent.mkdir(parents=True, exist_ok=True)
    state.telegram.write_bytes(line(1) + line(2))
    canvas = state.canvases / "plan" / "ledger.jsonl"
    canvas.parent.mkdir(parents=True)
    canvas.write_bytes(encode_line({"kind": "head", "after": 7}) + line(8) + line(10))
    [found] = [each for each in examine_ledgers(state, is_in_use=False) if each.remedy]
    assert (found.subject, found.level) == ("canvas plan", Level.PROBLEM)
    assert "1 faults: 9 missing" in found.sentence
