"""Tests of the shortest script: its steps and faults, its rule, and its listing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tests.chaos.checking.checker import Violation
from tests.chaos.checking.evidence import Evidence
from tests.chaos.histories import script as s
from tests.chaos.histories.drawing import make_script
from tests.chaos.histories.playing import Outcome
from tests.chaos.running.failure import (
    replay_lines,
    shortest_lines,
    trace_lines,
    violation_lines,
)
from tests.chaos.running.reducing import part_of, reduce_script, script_lines

SCRIPT = make_script(11)
RULE = "numbers"


def player(needed: set[object], *, rule: str = RULE) -> Callable[[s.Script], Outcome]:
    """Return a player that breaks ``rule`` while these parts are in, and another rule always."""

    def play(script: s.Script) -> Outcome:
        found = [Violation("other", "always")]
        if needed <= {*script.steps, *script.faults}:
            found.append(Violation(rule, "bang"))
        return outcome(*found)

    return play


def outcome(*found: Violation) -> Outcome:
    fields: dict[str, Any] = {field.name: 0 for field in attrs.fields(Outcome)}
    return Outcome(**{**fields, "violations": found, "hits": {}, "evidence": Evidence})


def test_a_script_shrinks_to_what_breaks_the_rule() -> None:
    needed: set[object] = {SCRIPT.steps[7], SCRIPT.steps[30], SCRIPT.faults[0]}
    found = reduce_script(SCRIPT, RULE, player=player(needed))
    assert found.is_minimal
    assert {*found.script.steps, *found.script.faults} == needed
    assert found.script.seed == SCRIPT.seed
    assert RULE in {each.rule for each in found.outcome.violations}


def test_another_rule_that_a_part_breaks_does_not_count() -> None:
    needed: set[object] = {SCRIPT.steps[5]}
    found = reduce_script(SCRIPT, RULE, player=player(needed))
    assert found.script.steps == (SCRIPT.steps[5],)


def test_a_part_that_cannot_be_played_is_none_that_breaks_the_rule() -> None:
    sound = player({SCRIPT.steps[5], SCRIPT.steps[6]})

    def play(script: s.Script) -> Outcome:
        if not script.faults:
            raise ZeroDivisionError
        return sound(script)

    found = reduce_script(SCRIPT, RULE, player=play)
    assert found.script.steps == SCRIPT.steps[5:7]
    assert len(found.script.faults) == 1


def test_the_search_is_bounded_and_tells_of_each_try() -> None:
    tried: list[tuple[int, int]] = []
    found = reduce_script(
        SCRIPT,
        RULE,
        tries=9,
        on_try=lambda number, parts: tried.append((number, parts)),
        player=player({SCRIPT.steps[7], SCRIPT.steps[30]}),
    )
    assert [number for number, _ in tried] == list(range(9))
    assert (found.tries, found.is_minimal) == (9, False)


def test_the_search_is_ended_by_what_is_raised_at_a_try() -> None:
    def on_try(tried: int, parts: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reduce_script(SCRIPT, RULE, on_try=on_try, player=player(set()))


def test_a_part_keeps_steps_and_faults_apart() -> None:
    parts: tuple[s.Step | s.ScriptFault, ...] = (*SCRIPT.faults[:1], *SCRIPT.steps[3:5])
    part = part_of(SCRIPT, parts)
    assert (part.steps, part.faults) == (SCRIPT.steps[3:5], SCRIPT.faults[:1])
    assert (part.seed, part.clients) == (SCRIPT.seed, SCRIPT.clients)


def test_each_step_and_fault_is_a_line() -> None:
    script = attrs.evolve(
        SCRIPT,
        steps=(
            s.RunStep(number=4, client=2, terminal="shared", kind="quick"),
            s.InboxStep(number=12, client=0, acknowledges=True, pause_s=0.5),
        ),
        faults=(s.KillFault(step=4, after_s=0.25),),
    )
    assert list(script_lines(script)) == [
        "step   4  client 2  Run terminal='shared' kind='quick'",
        "step  12  client 0  Inbox pause_s=0.5 acknowledges=True",
        "from step   4 on  Kill after_s=0.25",
    ]


@pytest.mark.parametrize("seed", range(20))
def test_every_script_can_be_read(seed: int) -> None:
    script = make_script(seed)
    lines = list(script_lines(script))
    assert len(lines) == len(script.steps) + len(script.faults)
    assert not any("\n" in line for line in lines)


def test_a_failure_is_reported_in_few_lines() -> None:
    many = [Violation("numbers", "x" * 9999)] * 20
    lines = [
        *violation_lines(many),
        *trace_lines([f"{number} message {'y' * 9999}" for number in range(1000)]),
        *shortest_lines(RULE, ["one", "two"], whole=60, tries=9, is_minimal=True),
        *replay_lines(17),
    ]
    text = "\n".join(lines)
    assert len(lines) < 60
    assert max(map(len, lines)) < 500
    for words in ("and 12 more", "999 message", "2 of 60", "just replay 17"):
        assert words in text
