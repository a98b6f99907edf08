"""Tests of the rules for workflows: a sound history has no violation, each broken one is found."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.chaos.checking.case import Case
from tests.chaos.checking.observations import Span
from tests.chaos.checking.test_checker import SOUND as SOUND_TERMINALS
from tests.chaos.checking.workflow_evidence import (
    StepEvent,
    WorkflowEvidence,
    WorkflowOrdered,
    WorkflowRun,
    WorkflowShown,
)
from tests.chaos.checking.workflow_rules import WORKFLOW_RULES


def begun(step: str, process: int) -> StepEvent:
    return StepEvent(kind="begun", workflow="w1", step=step, process=process)


def passed(step: str, process: int, by: int = 0) -> StepEvent:
    result = f"did {step} in {by or process}"
    return StepEvent(kind="passed", workflow="w1", step=step, process=process, result=result)


def run(id_: str | None, **fields: Any) -> WorkflowRun:
    known: dict[str, Any] = {"orders": ("step:a", "redo:b"), "sender": "pm", "key": "k1"}
    return WorkflowRun(**known | {"id": id_} | fields)


RESULT = '"did a in 1 did b in 2"'
DONE = WorkflowShown(id="w1", status="completed", result=RESULT, span=Span(5, 6))
STEPS = (
    begun("a", 1),
    passed("a", 1),
    begun("b", 1),
    passed("a", 2, by=1),
    begun("b", 2),
    passed("b", 2),
)
SOUND = WorkflowEvidence(
    runs=(run("w1"), run("w1"), run("w2", key=None, callback=False), run(None)),
    shown=(
        WorkflowShown(id="w1", status="running", result=None, span=Span(1, 2)),
        DONE,
        attrs.evolve(DONE, is_last=True, span=Span(7, 8)),
        WorkflowShown(id="w2", status="failed", result=None, is_last=True),
    ),
    steps=STEPS,
)
TOLD: dict[str, tuple[Any, ...]] = {"pm": ({"id": "workflow:w1/end", "status": "ok"},)}


def rules_of(
    workflows: WorkflowEvidence, kept: dict[str, tuple[Any, ...]] | None = None
) -> set[str]:
    evidence = attrs.evolve(
        SOUND_TERMINALS, workflows=workflows, kept=TOLD if kept is None else kept
    )
    case = Case(evidence)
    return {name for name, rule in WORKFLOW_RULES.items() if [*rule.find(case)]}


def test_a_sound_history_breaks_nothing() -> None:
    assert rules_of(SOUND) == set()


@pytest.mark.parametrize("done", [True, None])
def test_a_workflow_that_a_person_runs_from_its_beginning_may_do_steps_again(
    done: bool | None,
) -> None:
    again = (*STEPS, begun("a", 3), passed("a", 3))
    ordered = WorkflowOrdered(kind="retry", id="w1", done=done)
    assert rules_of(attrs.evolve(SOUND, steps=again, ordered=(ordered,))) == set()
    refused = attrs.evolve(ordered, done=False)
    assert rules_of(attrs.evolve(SOUND, steps=again, ordered=(refused,))) == {
        "step done again",
        "step begun twice",
        "step result changed",
    }


def shown(*more: WorkflowShown) -> WorkflowEvidence:
    return attrs.evolve(SOUND, shown=(*SOUND.shown, *more))


BROKEN: dict[str, tuple[set[str], WorkflowEvidence]] = {
    "a finished step that is begun again": (
        {"step done again"},
        attrs.evolve(SOUND, steps=(*STEPS, begun("b", 3))),
    ),
    "an interrupted step that is begun again": (
        {"step begun twice"},
        attrs.evolve(SOUND, steps=(begun("a", 1), begun("a", 2), *STEPS[1:])),
    ),
    "a result that changes": (
        {"step result changed"},
        attrs.evolve(SOUND, steps=(*STEPS, passed("a", 3))),
    ),
    "an acknowledged workflow that is gone": (
        {"workflow forgotten"},
        attrs.evolve(SOUND, runs=(*SOUND.runs, run("w3", key=None, callback=False))),
    ),
    "an end that changes": (
        {"workflow end changed"},
        shown(WorkflowShown(id="w1", status="failed", result=None, span=Span(6, 7))),
    ),
    "a key with two workflows": (
        {"workflow key twice"},
        attrs.evolve(SOUND, runs=(*SOUND.runs, run("w2", callback=False))),
    ),
    "a result of a step that was never done": (
        {"workflow result invented"},
        attrs.evolve(SOUND, steps=STEPS[:5]),
    ),
    "a workflow that does not come to rest": (
        {"workflow stuck"},
        attrs.evolve(SOUND, stuck=("w1",)),
    ),
}


@pytest.mark.parametrize(("rules", "evidence"), BROKEN.values(), ids=BROKEN)
def test_one_thing_wrong_with_a_workflow_is_named_by_its_rules(
    rules: set[str], evidence: WorkflowEvidence
) -> None:
    assert rules_of(evidence) == rules


@pytest.mark.parametrize(
    "messages",
    [
        (),
        ({"id": "workflow:w1/end", "status": "error"},),
        ({"id": "workflow:w1/end", "status": "ok"}, {"id": "workflow:w1/end/2", "status": "ok"}),
        (*TOLD["pm"], {"id": "workflow:w2/end", "status": "error"}),
    ],
    ids=["none", "a wrong one", "two", "one that was not wanted"],
)
def test_a_wrong_report_of_an_end_is_found(messages: tuple[Any, ...]) -> None:
    assert rules_of(SOUND, {"pm": messages}) == {"workflow unreported"}


def test_every_rule_is_broken_by_some_history() -> None:
    found = set().union(*(rules for rules, _ in BROKEN.values()))
    assert found | {"workflow unreported"} == set(WORKFLOW_RULES)
