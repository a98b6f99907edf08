"""The inputs that fuzzing kept, replayed: what broke once stays mended."""

from __future__ import annotations

import pytest

import aegis.terminals.parse.control_sequences as control_sequences
import aegis.terminals.parse.plain as terminals_plain
from aegis.terminals.parse.osc133 import Mark
from tests.fuzz import grammar, targets
from tests.fuzz.growth import MAX_RATIO, ratio
from tests.fuzz.run import NAMES, Outcome, outcome
from tests.fuzz.store import kept
from tests.recordings.corpus import recordings

SIZE = 65_536
LONGEST_UNIT = 64
GROWN = 6


def replay(target: str) -> None:
    for data in kept(target):
        targets.TARGETS[target](data)


@pytest.mark.parametrize("target", NAMES)
def test_what_was_kept_holds(target: str) -> None:
    assert len(kept(target)) > 20
    replay(target)


@pytest.mark.parametrize("target", NAMES)
def test_pieces_of_the_recordings_hold(target: str) -> None:
    for recording in recordings():
        for at in range(0, len(recording.data), 4_096):
            targets.TARGETS[target](recording.data[at : at + 1_024])


def test_every_target_that_runs_is_there_and_the_other_way_round() -> None:
    assert set(NAMES) == set(targets.TARGETS)


# That the targets can fail.


def broken_cleaner(self: object, text: str) -> str:
    return text


@pytest.mark.parametrize(
    ("target", "where", "broken"),
    [
        ("text", "TextCleaner._take_complete", broken_cleaner),
        ("capture", "TextCleaner._take_complete", broken_cleaner),
        ("marks", "MarkParser._without_secret", broken_cleaner),
        ("boundaries", "Boundaries._advance", lambda self, number: None),
        ("queries", "control_sequences._unfinished", lambda data, start: b""),
        ("plain", "plain._is_incomplete", lambda data, found: False),
    ],
)
def test_a_target_sees_what_is_broken(
    target: str, where: str, broken: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, method = where.split(".")
    owner = {"control_sequences": control_sequences, "plain": terminals_plain}.get(name)
    monkeypatch.setattr(owner or getattr(targets, name), method, broken)
    with pytest.raises(AssertionError):
        replay(target)


@pytest.mark.long
def test_growth_beyond_the_bytes_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def cubic(data: bytes, step: int) -> None:
        for _ in range((len(data) // 8_192) ** 2):
            data.count(b"\0")

    monkeypatch.setattr("tests.fuzz.growth.FEEDS", {"text": cubic})
    assert ratio("text", b"x", 4 * SIZE, 1) > MAX_RATIO


# The grammar.


def test_a_script_is_a_stream_with_actions_between() -> None:
    assert list(grammar.script(b"a\xff\x01b\xfd\x07c\xfe\x02\x05\xff")) == [
        b"a\x1b]133;b",
        7,
        b"c" + grammar.mark(2, 5) + b"\x1b",
    ]


def test_the_marks_of_the_grammar_are_marks_of_every_kind() -> None:
    events = targets._parsed([b"".join(grammar.mark(shape, 9) for shape in range(28))])
    found = [each for each in events if isinstance(each, Mark)]
    assert len(found) == 28
    assert {each.kind for each in found} == set("ABCDP")
    assert {each.submitted for each in found} == {True, False}


def test_the_pieces_of_a_cut_are_the_whole() -> None:
    data = bytes(range(256)) * 3
    assert b"".join(grammar.cut(data)) == data
    assert len(grammar.cut(data)) > 100


def test_the_log_of_a_run_is_read() -> None:
    log = (
        "#2 INITED cov: 5 ft: 9 corp: 1/1b exec/s: 0 rss: 40Mb\n"
        "#9 DONE cov: 7 ft: 12 corp: 3/9b exec/s: 4 rss: 44Mb\n"
        "stat::number_of_executed_units: 120\n"
    )
    read = outcome("text", log, 10, [], None)
    assert read == Outcome(
        target="text",
        executions=120,
        seconds=10,
        edges=7,
        features=12,
        memory_first_mb=40,
        memory_last_mb=44,
        found=0,
        worst_ratio=0.0,
        broken=None,
    )
    assert "nothing broke" in read.line()
