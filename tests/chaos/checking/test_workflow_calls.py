"""Tests of the rules for calls of workflows: a sound history passes, each broken one is found."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.chaos.checking.agent_evidence import AgentEvidence, UserFrame
from tests.chaos.checking.case import Case
from tests.chaos.checking.evidence import Evidence
from tests.chaos.checking.observations import Message
from tests.chaos.checking.task_evidence import TaskEvidence
from tests.chaos.checking.test_checker import SOUND as SOUND_TERMINALS
from tests.chaos.checking.workflow_call_rules import WORKFLOW_CALL_RULES
from tests.chaos.checking.workflow_evidence import (
    QuestionAnswered,
    StepEvent,
    WorkflowEvidence,
    WorkflowOrdered,
    WorkflowRun,
)

TASK, LOST, SENT, REFUSED = (
    "@work.1.quick@",
    "@work.2.fail@",
    "@work.3.slow@",
    "@work.4.die@",
)
TO_TASK, TO_LOST = f"task:once:{TASK}", f"task:twice:{LOST}"
TO_SENT, TO_REFUSED = f"send:{SENT}", f"send:{REFUSED}"
ORDERS = (TO_TASK, TO_LOST, "ask:first", "ask:second", "spawn:1", TO_SENT, TO_REFUSED)


def event(step: str, result: str, *, refused: bool = False) -> StepEvent:
    kind: Any = "refused" if refused else "passed"
    return StepEvent(kind=kind, workflow="w1", step=step, process=1, result=result)


def task(id_: str, token: str, status: str = "completed") -> dict[str, Any]:
    result = f"did {token.strip('@')}" if status == "completed" else None
    return {"task_id": id_, "payload": token, "status": status, "result": result}


def question(id_: str, text: str, state: str = "answered") -> dict[str, Any]:
    asked = {"questions": [{"question": text}]}
    return {"id": id_, "workflow": "w1", "input": asked, "state": state, "withdrawn": None}


def answer(id_: str, asked: str, text: str | None, outcome: str | None) -> QuestionAnswered:
    return QuestionAnswered(id=id_, workflow="w1", question=asked, text=text, outcome=outcome)


def got(*tokens: str) -> UserFrame:
    return UserFrame(process=1, session="s", uuid=tokens[0], tokens=tokens, moment=1)


def stored(token: str) -> Message:
    return {"id": token, "body": token}


def session(state: str) -> dict[str, Any]:
    return {"id": "s", "handle": "scripted-1", "spawned_by": "workflow:scripted", "state": state}


EVENTS = (
    event(TO_TASK, "did work.1.quick"),
    event(TO_LOST, "TaskFailed: task t2 has failed: it said no", refused=True),
    event("ask:first", "a1"),
    event("ask:second", "declined"),
    event("spawn:1", "scripted-1"),
    event(TO_SENT, "did work.3.slow"),
    event(TO_REFUSED, "CallFailed: 'scripted-1' did not answer", refused=True),
)
ANSWERS = (
    answer("r1", "first", "a1", "applied"),
    answer("r1", "first", "b1", "already_answered"),
    answer("r2", "second", None, None),
    answer("r2", "second", "b2", "refused"),
)
WORKFLOWS = WorkflowEvidence(
    runs=(WorkflowRun(orders=ORDERS, sender="pm", id="w1"),), steps=EVENTS, answered=ANSWERS
)
TASKS = (task("t1", TASK), task("t2", LOST, "failed"))
AGENTS = AgentEvidence(
    frames=(got(TASK), got(LOST), got(SENT), got(REFUSED)),
    inboxes={"scripted-1": (stored(SENT), stored(REFUSED))},
    requests=(question("r1", "first"), question("r2", "second"), {"workflow": None}),
    sessions=(session("closed"), {"handle": "ann", "spawned_by": "human", "state": "idle"}),
)
SOUND = attrs.evolve(
    SOUND_TERMINALS, workflows=WORKFLOWS, agents=AGENTS, tasks=TaskEvidence(tasks=TASKS)
)


def rules_of(evidence: Evidence) -> set[str]:
    case = Case(evidence)
    return {name for name, rule in WORKFLOW_CALL_RULES.items() if [*rule.find(case)]}


def with_workflows(**fields: Any) -> Evidence:
    return attrs.evolve(SOUND, workflows=attrs.evolve(SOUND.workflows, **fields))


def with_agents(**fields: Any) -> Evidence:
    return attrs.evolve(SOUND, agents=attrs.evolve(SOUND.agents, **fields))


def with_tasks(*tasks: dict[str, Any]) -> Evidence:
    return attrs.evolve(SOUND, tasks=TaskEvidence(tasks=tasks))


def with_event(number: int, changed: StepEvent) -> Evidence:
    return with_workflows(steps=(*EVENTS[:number], changed, *EVENTS[number + 1 :]))


def test_a_sound_history_breaks_nothing() -> None:
    assert rules_of(SOUND) == set()


def test_a_refused_task_has_no_result() -> None:
    refused = event(TO_LOST, "CallFailed: there is no queue 'twice'", refused=True)
    without = attrs.evolve(with_event(1, refused), tasks=TaskEvidence(tasks=TASKS[:1]))
    assert rules_of(without) == set()


def test_a_limited_agent_continues_without_a_text() -> None:
    limited = "@work.5.limit@"
    run = WorkflowRun(orders=(f"send:{limited}",), sender="pm", id="w1")
    evidence = attrs.evolve(
        SOUND,
        workflows=WorkflowEvidence(runs=(run,), steps=(event(f"send:{limited}", ""),)),
        agents=AgentEvidence(frames=(got(limited),)),
    )
    assert rules_of(evidence) == set()


@pytest.mark.parametrize(
    "reason",
    [
        "the daemon was restarted before the answer was applied",
        "its session ended before the answer could be applied",
        "its session crashed while the answer was applied: it may have acted",
    ],
)
def test_a_question_whose_answer_was_lost_is_asked_again(reason: str) -> None:
    lost = {**question("r3", "first", "withdrawn"), "withdrawn": reason}
    assert rules_of(with_agents(requests=(lost, *AGENTS.requests))) == set()
    other = {**lost, "withdrawn": "the daemon was restarted"}
    found = rules_of(with_agents(requests=(other, *AGENTS.requests)))
    assert found == {"workflow question twice"}


def test_a_workflow_that_is_resumed_asks_again() -> None:
    resumed = WorkflowOrdered(kind="resume", id="w1", done=True)
    ended = {**question("r3", "first", "withdrawn"), "withdrawn": "its workflow is failed"}
    again = attrs.evolve(
        with_agents(requests=(ended, *AGENTS.requests)),
        workflows=attrs.evolve(WORKFLOWS, ordered=(resumed,)),
    )
    assert rules_of(again) == set()


@pytest.mark.parametrize("done", [True, None, False])
def test_a_workflow_that_a_person_runs_from_its_beginning_makes_its_calls_again(
    done: bool | None,
) -> None:
    retry = WorkflowOrdered(kind="retry", id="w1", done=done)
    again = attrs.evolve(
        SOUND,
        workflows=attrs.evolve(
            WORKFLOWS,
            ordered=(retry,),
            steps=(*EVENTS, event("ask:first", "c1")),
            answered=(*ANSWERS, answer("r3", "first", "c1", "applied")),
        ),
        tasks=TaskEvidence(tasks=(*TASKS, task("t3", TASK))),
        agents=attrs.evolve(
            AGENTS,
            frames=(*AGENTS.frames, got(SENT)),
            inboxes={**AGENTS.inboxes, "scripted-r2-1": (stored(SENT),)},
            requests=(*AGENTS.requests, question("r3", "first")),
        ),
    )
    twice = {"workflow task twice", "workflow question twice", "workflow message twice"}
    assert rules_of(again) == (set() if done is not False else twice | {"workflow answer"})


BROKEN: dict[str, tuple[str, Evidence]] = {
    "a delegated step with two tasks": (
        "workflow task twice",
        with_tasks(*TASKS, task("t3", TASK)),
    ),
    "a result that is not that of its task": (
        "workflow task result",
        with_event(0, event(TO_TASK, "did work.9.quick")),
    ),
    "a result of a task that failed": (
        "workflow task result",
        with_tasks(task("t1", TASK, "failed"), TASKS[1]),
    ),
    "a result without a task": ("workflow task result", with_tasks(TASKS[1])),
    "a result that no agent gave": (
        "workflow task result",
        with_agents(frames=AGENTS.frames[1:]),
    ),
    "a failure of a task that completed": (
        "workflow task result",
        with_tasks(TASKS[0], task("t2", LOST)),
    ),
    "a failure of another task": (
        "workflow task result",
        with_event(1, event(TO_LOST, "TaskFailed: task t1 has failed: why", refused=True)),
    ),
    "a question with two requests": (
        "workflow question twice",
        with_agents(requests=(*AGENTS.requests, question("r3", "first"))),
    ),
    "a question that is open though no workflow runs": (
        "workflow question twice",
        with_agents(requests=(question("r1", "first", "open"), *AGENTS.requests[1:])),
    ),
    "an answer that nobody gave": ("workflow answer", with_event(2, event("ask:first", "a9"))),
    "an answer that was not the applied one": (
        "workflow answer",
        with_event(2, event("ask:first", "b1")),
    ),
    "a question that fails": (
        "workflow answer",
        with_event(2, event("ask:first", "CallFailed: call 1 has ended before", refused=True)),
    ),
    "an answer that was refused": ("workflow answer", with_event(3, event("ask:second", "b2"))),
    "a question that nobody answered": ("workflow answer", with_workflows(answered=ANSWERS[:2])),
    "two answers that acted": (
        "workflow answer",
        with_workflows(answered=(ANSWERS[0], attrs.evolve(ANSWERS[1], outcome="applied"))),
    ),
    "a message that is in two inboxes": (
        "workflow message twice",
        with_agents(inboxes={**AGENTS.inboxes, "other": (stored(SENT),)}),
    ),
    "a message that a program got twice": (
        "workflow message twice",
        with_agents(frames=(*AGENTS.frames, got(REFUSED))),
    ),
    "a reply to another message": (
        "workflow reply",
        with_event(5, event(TO_SENT, "did work.4.die")),
    ),
    "a reply to a message that no program got": (
        "workflow reply",
        with_agents(frames=(got(TASK), got(LOST), got(REFUSED))),
    ),
    "a session that is open at the end": (
        "workflow session left",
        with_agents(sessions=(session("idle"),)),
    ),
    "a program that lives at the end": (
        "workflow session left",
        with_workflows(living=("scripted-1",)),
    ),
}


@pytest.mark.parametrize(("rule", "evidence"), BROKEN.values(), ids=BROKEN)
def test_one_thing_wrong_with_a_call_is_named_by_its_rule(rule: str, evidence: Evidence) -> None:
    assert rules_of(evidence) == {rule}


def test_every_rule_is_broken_by_some_history() -> None:
    assert {rule for rule, _ in BROKEN.values()} == set(WORKFLOW_CALL_RULES)
