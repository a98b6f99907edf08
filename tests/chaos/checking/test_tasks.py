"""Tests of the rules for tasks: a sound history has no violation, and each broken one is found."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.chaos.checking.agent_evidence import AgentEvidence, Entry, UserFrame
from tests.chaos.checking.case import Case
from tests.chaos.checking.observations import Span
from tests.chaos.checking.task_evidence import Enqueued, TaskEvidence, TaskOrdered
from tests.chaos.checking.task_rules import TASK_RULES
from tests.chaos.checking.test_checker import SOUND as SOUND_TERMINALS

FIRST, SECOND, THIRD, FOURTH = (f"@work.{number}.quick@" for number in range(1, 5))


def task(number: int, token: str, status: str = "completed", **fields: Any) -> dict[str, Any]:
    done = status == "completed"
    return {
        "task_id": f"t{number}",
        "queue": "once",
        "status": status,
        "attempt": 1,
        "max_attempts": 1,
        "result": f"did {token.strip('@')}" if done else None,
        "error": None if done else "it failed",
        "sender": "agent:pm",
        "payload": token,
        "key": None,
        "ended": "then",
        **fields,
    }


def enqueued(number: int, token: str, **fields: Any) -> Enqueued:
    known: dict[str, Any] = {"queue": "once", "token": token, "sender": "pm", "span": Span(1, 2)}
    return Enqueued(**known | {"id": f"t{number}"} | fields)


def line(kind: str, number: int) -> dict[str, Any]:
    return {"kind": kind, "id": f"t{number}"}


def got(token: str, moment: int = 10) -> UserFrame:
    return UserFrame(process=1, session="s", uuid=token, tokens=(token,), moment=moment)


def end(number: int, status: str = "ok") -> dict[str, Any]:
    return {"id": f"task:t{number}/end", "status": status, "body": ""}


LINES = tuple(line(kind, number) for number in range(1, 5) for kind in ("ended", "notified"))
DONE = task(1, FIRST, key="k")
AFTER = task(2, SECOND)
CANCELLED = task(3, THIRD, "cancelled")
SILENT = task(4, FOURTH)

SOUND = TaskEvidence(
    enqueued=(
        enqueued(1, FIRST, key="k"),
        enqueued(1, FIRST, key="k", id=None),
        enqueued(2, SECOND, after=("t1",)),
        enqueued(3, THIRD),
        enqueued(4, FOURTH, callback=False),
    ),
    ordered=(TaskOrdered(kind="cancel", id="t3", span=Span(3, 4), done=True),),
    tasks=(DONE, AFTER, CANCELLED, SILENT),
    ledgers={"once": LINES},
)
FRAMES = (got(FIRST), got(SECOND), got(FOURTH))
INBOX = (end(1), end(2), end(3, "error"))


def found(
    tasks: TaskEvidence, frames: tuple[UserFrame, ...] = FRAMES, inbox: tuple[Any, ...] = INBOX
) -> set[str]:
    agents = AgentEvidence(frames=frames, inboxes={"pm": inbox})
    case = Case(attrs.evolve(SOUND_TERMINALS, agents=agents, tasks=tasks))
    return {name for name, rule in TASK_RULES.items() if [*rule.find(case)]}


def with_tasks(*tasks: Entry) -> TaskEvidence:
    return attrs.evolve(SOUND, tasks=tasks)


def test_a_sound_history_breaks_nothing() -> None:
    assert found(SOUND) == set()


WAITED = attrs.evolve(SOUND, enqueued=(*SOUND.enqueued, enqueued(1, FIRST, ended="completed")))

ALLOWED: dict[str, tuple[Any, ...]] = {
    "an end that a waiting caller got": (WAITED, FRAMES, INBOX[1:]),
    "an end that a waiting caller got, and its inbox after a kill": (WAITED,),
    "a retried task with another end": (
        attrs.evolve(SOUND, ledgers={"once": (*LINES, line("retried", 3), line("ended", 3))}),
        FRAMES,
        (*INBOX[:2], {**end(3, "error"), "id": "task:t3/end/1"}),
    ),
    "an attempt that was cancelled as it began, and a retry": (
        attrs.evolve(SOUND, ledgers={"once": (*LINES, line("retried", 1))}),
        (*FRAMES, got(FIRST, 20)),
        ({**end(1), "id": "task:t1/end/1"}, *INBOX[1:]),
    ),
    "an attempt that was cancelled as it began": (SOUND, (*FRAMES, got(THIRD))),
}


@pytest.mark.parametrize("evidence", ALLOWED.values(), ids=ALLOWED)
def test_what_may_be_is_no_violation(evidence: tuple[Any, ...]) -> None:
    assert found(*evidence) == set()


BROKEN: dict[str, tuple[str, tuple[Any, ...]]] = {
    "a task that is gone": ("task lost", (with_tasks(DONE, AFTER, CANCELLED), FRAMES)),
    "a task with another payload": (
        "task lost",
        (with_tasks({**DONE, "payload": SECOND, "result": "did work.2.quick"}, *SOUND.tasks[1:]),),
    ),
    "a key with two tasks": (
        "key twice",
        (with_tasks(*SOUND.tasks, {**DONE, "task_id": "t9", "sender": "agent:pm", "ended": None}),),
    ),
    "a task that began twice": ("task begun too often", (SOUND, (*FRAMES, got(FIRST, 20)))),
    "a completed task that no agent got": ("task begun too often", (SOUND, FRAMES[:2])),
    "more attempts than allowed": (
        "task begun too often",
        (with_tasks({**DONE, "attempt": 2}, *SOUND.tasks[1:]),),
    ),
    "a result that no agent said": (
        "task result",
        (with_tasks({**DONE, "result": "x"}, *SOUND.tasks[1:]),),
    ),
    "an end stored twice": (
        "task ended twice",
        (attrs.evolve(SOUND, ledgers={"once": (*LINES, line("ended", 1))}),),
    ),
    "a notification noted twice": (
        "task ended twice",
        (attrs.evolve(SOUND, ledgers={"once": (*LINES, line("notified", 2))}),),
    ),
    "an end that nobody got": ("end unreported", (SOUND, FRAMES, INBOX[1:])),
    "an end that was reported otherwise": (
        "end unreported",
        (SOUND, FRAMES, (end(1, "error"), *INBOX[1:])),
    ),
    "an end that the sender did not want": ("end unreported", (SOUND, FRAMES, (*INBOX, end(4)))),
    "a cancellation without effect": (
        "cancelled wrongly",
        (
            with_tasks(DONE, AFTER, {**CANCELLED, "status": "failed"}, SILENT),
            FRAMES,
        ),
    ),
    "a cancelled task that nobody cancelled": (
        "cancelled wrongly",
        (attrs.evolve(SOUND, ordered=()),),
    ),
    "a task that began before another": (
        "task out of order",
        (
            with_tasks(task(1, FIRST, "failed", key="k"), *SOUND.tasks[1:]),
            FRAMES,
            (end(1, "error"), *INBOX[1:]),
        ),
    ),
    "a task that failed for another, which did not": (
        "task out of order",
        (
            with_tasks(
                DONE,
                {**task(2, SECOND, "failed"), "error": "t1, which it waits for, has failed"},
                CANCELLED,
                SILENT,
            ),
            FRAMES,
            (INBOX[0], end(2, "error"), INBOX[2]),
        ),
    ),
    "a worker that lives on": ("task stuck", (attrs.evolve(SOUND, stuck=("a worker",)),)),
}


@pytest.mark.parametrize(("rule", "evidence"), BROKEN.values(), ids=BROKEN)
def test_one_thing_wrong_with_a_task_is_named_by_its_rule(
    rule: str, evidence: tuple[Any, ...]
) -> None:
    assert found(*evidence) == {rule}


def test_each_rule_is_broken_by_some_case() -> None:
    assert {rule for rule, _ in BROKEN.values()} == set(TASK_RULES)
