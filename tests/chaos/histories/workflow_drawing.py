"""The steps and faults of histories with workflows, and how often they are drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from tests.chaos.histories import script as s
from tests.chaos.histories import task_drawing as tasks
from tests.chaos.histories.agent_drawing import Drawing

POINTS: Mapping[str, int] = {
    "ledger.append.before[runs.jsonl]": 3,
    "ledger.append.after[runs.jsonl]": 3,
    "ledger.append.before[ledger.jsonl]": 20,
    "ledger.append.after[ledger.jsonl]": 20,
    "workflow.call.before": 5,
    "workflow.call.after": 5,
    "workflow.launch.before": 3,
    "workflow.launch.after": 3,
    "workflow.notify.before": 2,
    "workflow.notify.after": 2,
    "workflow.settle.after": 2,
    "actor.receive.before[WorkflowDesk]": 25,
    "actor.receive.after[WorkflowDesk]": 25,
    "actor.setup.after[WorkflowDesk]": 1,
    "actor.receive.before[WorkflowProcess]": 15,
    "actor.receive.after[WorkflowProcess]": 15,
}
"""The fault points that may be struck, with the most passes that precede the strike."""

KINDS = {
    "step": 8,
    "redo": 6,
    "both": 2,
    "mark": 3,
    "die": 2,
    "fail": 1,
    "task": 3,
    "ask": 3,
    "send": 3,
}
"""The orders of a workflow, with their weights. A message is sent to a session of its own."""

SENT = {
    "quick": 8,
    "slow": 8,
    "ask": 2,
    **dict.fromkeys(("fail", "die", "limit", "hang", "own"), 1),
}
"""The kinds of the orders in messages, with their weights."""

TOKENS = 600_000
"""The first number of the orders that workflows give."""

KEYED = (("step:k1", "redo:k2"), ("redo:k1", "mark:k2", "step:k3"))
"""The orders of workflows with a key: the same key has the same orders."""


def _one_of(drawing: Drawing, weights: Mapping[str, int]) -> str:
    [chosen] = drawing.chance.choices(list(weights), list(weights.values()))
    return chosen


def _orders(drawing: Drawing, step: int, number: int) -> tuple[str, ...]:
    kind, token = _one_of(drawing, KINDS), f"@work.{TOKENS + 10 * step + number}."
    match kind:
        case "both":
            return (f"both:a{number},b{number}",)
        case "task":
            queue = drawing.one_of(s.QUEUES)
            return (f"task:{queue}:{token}{_one_of(drawing, tasks.KINDS)}@",)
        case "send":
            return (f"spawn:{number}", f"send:{token}{_one_of(drawing, SENT)}@")
    return (f"{kind}:{kind}{number}",)


def _run(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    chance = drawing.chance
    if chance.random() < 0.3:
        key = chance.randrange(len(KEYED))
        return s.RunWorkflowStep(**who, orders=KEYED[key], key=key)
    drawn = (_orders(drawing, who["number"], number) for number in range(chance.randint(2, 5)))
    orders = tuple(itertools.chain.from_iterable(drawn))
    return s.RunWorkflowStep(**who, orders=orders, callback=chance.random() < 0.8)


def _command(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    what: Any = drawing.chance.choices(("cancel", "resume", "retry"), (3, 5, 2))[0]
    return s.OrderWorkflowStep(**who, draw=drawing.chance.randrange(1000), what=what)


def _read(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.ReadWorkflowStep(**who, draw=drawing.chance.randrange(1000))


def _answer(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    chance = drawing.chance
    return s.AnswerWorkflowStep(
        **who,
        draw=chance.randrange(1000),
        declines=chance.random() < 0.2,
        twice=chance.random() < 0.3,
    )


def _process_killed(drawing: Drawing, step: int) -> s.ScriptFault:
    draw = drawing.chance.getrandbits(32)
    return s.WorkflowKilledFault(
        step=step, after_s=round(drawing.chance.uniform(0, 0.3), 4), draw=draw
    )


STEPS: Mapping[Callable[[Any, dict[str, Any]], s.Step], int] = {
    _run: 30,
    _command: 14,
    _read: 12,
    _answer: 12,
}
"""The steps of every client, with their weights, beside those of other histories."""

FAULTS: Mapping[Callable[[Any, int], s.ScriptFault], int] = {_process_killed: 5}
"""The faults, with their weights, beside those of other histories."""
