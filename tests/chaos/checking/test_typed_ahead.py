"""Tests of lines typed ahead of a waiting command: allowed and forbidden results."""

from __future__ import annotations

from typing import Any

import pytest

from tests.chaos.checking.checker import violations
from tests.chaos.checking.evidence import Command, Evidence, Life
from tests.chaos.checking.matching import Matching
from tests.chaos.checking.observations import Death, Disturbance, Record, Span
from tests.chaos.checking.parts import KILLED, at, command, record_of

NOW = command(0, 1, span=Span(1, 20))
FIRST = command(1, 1, typed=True, span=at(2))
SECOND = command(2, 1, typed=True, span=at(2))
BEHIND = command(3, 1, span=Span(4, 30))
ALL = (NOW, FIRST, SECOND, BEHIND)
ECHO = Disturbance(kind="keys", terminal="t0", span=at(2), text=f"{FIRST.text}\r{SECOND.text}\r")


def evidence(*records: Record, begun: tuple[Command, ...] = ALL, **fields: Any) -> Evidence:
    """Return the evidence of the four commands in an incarnation that was killed."""
    tokens = tuple(each.token for each in begun)
    sound: dict[str, Any] = {
        "commands": ALL,
        "begun": tokens,
        "ended": tokens,
        "seen": (),
        "refused": (),
        "ledgers": {"t0": records},
        "ids": {"t0": "abc"},
        "answers": {},
        "kept": {},
        "handoffs": (),
        "lives": (Life(number=1, killed=True), Life(number=2, killed=False)),
        "disturbances": (ECHO,),
    }
    return Evidence(**{**sound, **fields})


def found(one: Evidence) -> list[str]:
    return [each.rule for each in violations(one)]


def test_all_of_them_in_their_order_are_sound() -> None:
    records = [record_of(each, seq) for seq, each in enumerate(ALL)]
    assert found(evidence(*records)) == []


def test_a_run_behind_them_that_has_no_record_is_noticed() -> None:
    records = [record_of(each, seq) for seq, each in enumerate(ALL[:3])]
    assert found(evidence(*records)) == ["unrecorded"]


@pytest.mark.parametrize("known", [1, 2])
def test_lines_that_the_shell_began_last_may_be_unknown_to_a_killed_daemon(known: int) -> None:
    records = [record_of(each, seq) for seq, each in enumerate(ALL[:known])]
    assert found(evidence(*records, begun=ALL[:3])) == []


def test_a_line_that_began_before_a_recorded_command_is_not_excused() -> None:
    records = [record_of(NOW, 0), record_of(BEHIND, 1, **KILLED, stdout="")]
    assert found(evidence(*records)) == ["unrecorded", "unrecorded"]


def test_their_echo_may_end_inside_a_line_of_what_ran() -> None:
    echoed = f"{NOW.token}{FIRST.text}\n"
    assert NOW.stdout != echoed
    records = [record_of(NOW, 0, stdout=echoed), record_of(FIRST, 1)]
    assert found(evidence(*records, begun=(NOW, FIRST))) == []
    foreign = f"garbled {NOW.token}\n"
    records = [record_of(NOW, 0, stdout=foreign), record_of(FIRST, 1)]
    assert found(evidence(*records, begun=(NOW, FIRST))) == ["outcome"]


@pytest.mark.parametrize(("stdout", "rules"), [("", []), ("anything", ["outcome"])])
def test_a_run_behind_a_line_that_ended_the_shell_did_not_begin(
    stdout: str, rules: list[str]
) -> None:
    leaving = command(1, 1, typed=True, span=at(2), end="shell_exit", exit=3)
    lost = {"end": "shell_exit", "exit": None}
    records = [
        record_of(NOW, 0),
        record_of(leaving, 1),
        record_of(BEHIND, 2, **lost, stdout=stdout),
    ]
    commands = (NOW, leaving, BEHIND)
    one = evidence(*records, begun=(NOW, leaving), commands=commands, disturbances=())
    assert found(one) == rules


def test_a_record_without_a_text_is_that_of_no_command_sent_before_the_one_ahead_of_it() -> None:
    later = command(4, 1, typed=True, span=at(40))
    records = [
        record_of(NOW, 0),
        record_of(BEHIND, 1),
        record_of(later, 2, **KILLED, cmd=None, stdout=""),
    ]
    one = evidence(*records, begun=(NOW, BEHIND, SECOND), commands=(*ALL, later))
    assert "out of turn" not in found(one)


def test_a_record_without_a_text_is_of_the_command_that_it_shows() -> None:
    record = record_of(SECOND, 0, **KILLED, cmd=None)
    deaths = (Death(life=2, kind="power loss", moment=90),)
    assert Matching(evidence(record, deaths=deaths)).of == {"t0": [SECOND]}
