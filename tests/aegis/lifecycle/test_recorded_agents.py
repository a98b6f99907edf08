"""Recordings of real programs, judged: how long each verdict was wrong, and by which evidence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from aegis.lifecycle.machine import IDLE_S
from aegis.lifecycle.states import Evidence, State
from tests.aegis.lifecycle.misjudgements import misjudged, table
from tests.aegis.lifecycle.recorded import Played, play
from tests.agents_real.tui.recording import load, names

STATEMENTS = frozenset({"Report", "Hook", "TitleChanged", "Notice", "ProgressNotice"})
WITHOUT: Mapping[str, frozenset[str]] = {
    "all": frozenset(),
    "bytes only": STATEMENTS | {"TtyFact", "KeyInput", "Resized", "screen"},
}
"""The evidence that is left out. The last one is silence alone."""

LIMITS = {
    "claude": 2.0,
    "claude-unanswered": 2.5,
    "codex": 0.5,
    "gemini": 1.0,
    # Neither says what it does: the idle time is lost at the end of each turn.
    "kimi": 35.0,
    "opencode": 36.0,
    "bash": 2.0,
    "build": 0.0,
    "download": 0.0,
    "python": 5.5,
    "vim": 4.5,
}
"""Seconds of wrong verdicts in each recording, with all evidence."""

REPORTED_S = 2.0
"""A block is seen within so many seconds where a report, a hook, a title or the tty tells of it."""

RECORDED_S = 600.0
"""So many seconds of recorded programs have no false verdict."""

TELLING = ["claude", "claude-unanswered", "codex", "gemini"]
SILENT = ["kimi", "opencode"]
AGENTS = [*TELLING, *SILENT]


def judged(name: str, without: str = "all") -> Played:
    return play(load(name), WITHOUT[without])


def test_each_recording_has_a_limit() -> None:
    assert set(LIMITS) == set(names())


@pytest.mark.parametrize("name", names())
def test_a_program_is_seldom_misjudged(name: str) -> None:
    played = judged(name)
    assert played.wrong_s <= LIMITS[name], played.wrong
    assert played.verdicts[-1].state is State.EXITED


@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_at_work_is_never_taken_to_wait(name: str) -> None:
    wrong = [each for each in judged(name).wrong if each.truth.state == "working"]
    assert [each for each in wrong if each.truth.because != "the program starts"] == []


@pytest.mark.parametrize("name", TELLING)
def test_an_agent_that_says_what_it_does_is_misjudged_at_its_start_only(name: str) -> None:
    assert {each.truth.because for each in judged(name).wrong} <= {"the program starts"}


@pytest.mark.parametrize("name", TELLING)
def test_more_evidence_is_better_than_silence(name: str) -> None:
    assert judged(name).wrong_s < judged(name, "bytes only").wrong_s / 10


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("claude", Evidence.REPORT),
        ("codex", Evidence.REPORT),
        ("claude-unanswered", Evidence.HOOK),
        ("gemini", Evidence.TITLE),
        ("kimi", Evidence.SILENCE),
        ("bash", Evidence.TTY),
    ],
)
def test_the_verdict_names_the_source_that_a_program_has(name: str, source: Evidence) -> None:
    waiting = [each for each in judged(name).verdicts if each.state is State.NEEDS_INPUT]
    assert source in {each.source for each in waiting}


def test_the_question_of_a_permission_prompt_is_known() -> None:
    needs = [each.need for each in judged("claude").verdicts if each.need is not None]
    asked = [need for need in needs if need.kind == "permission"]
    assert any(need.text.startswith("approve Bash: touch ") for need in asked)
    assert any(need.tool == "Bash" and "touch " in need.tool_input for need in asked)


def test_in_ten_minutes_no_program_at_work_is_taken_to_need_input() -> None:
    judged_ones = {name: misjudged(name) for name in names()}
    assert {name: each.false for name, each in judged_ones.items() if each.false} == {}
    assert 60 * sum(each.minutes for each in judged_ones.values()) >= RECORDED_S


@pytest.mark.parametrize("name", names())
def test_no_block_is_missed_for_longer_than_promised(name: str) -> None:
    limit_s = IDLE_S + 1 if name in SILENT else REPORTED_S
    assert misjudged(name).longest_s <= limit_s


@pytest.mark.parametrize("name", AGENTS)
def test_silence_alone_misses_the_blocks_of_every_agent(name: str) -> None:
    assert len(misjudged(name, "silence alone").missed) >= 6


def test_the_table_in_the_reference_is_up_to_date() -> None:
    page = Path("docs/reference/terminal-agents.md").read_text(encoding="utf-8")
    assert table() in page, "python -m tests.aegis.lifecycle.misjudgements"
