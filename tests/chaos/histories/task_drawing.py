"""The steps of histories with queues, and how often they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.chaos.histories import script as s
from tests.chaos.histories.agent_drawing import Drawing

POINTS: Mapping[str, int] = {
    "ledger.append.before[once.jsonl]": 25,
    "ledger.append.after[twice.jsonl]": 25,
    "queue.spawn.before": 5,
    "queue.spawn.after": 5,
    "queue.notify.before": 4,
    "queue.notify.after": 4,
    "ledger.append.after[once.jsonl]": 15,
    "ledger.sync.before[twice.jsonl]": 10,
    "ledger.sync.after[once.jsonl]": 10,
    "actor.receive.before[QueueDesk]": 15,
    "actor.receive.after[QueueDesk]": 15,
    "actor.setup.before[QueueDesk]": 1,
    "actor.setup.after[QueueDesk]": 1,
}
"""The fault points that may be struck, with the most passes that precede the strike."""

KINDS = {
    "quick": 10,
    "slow": 8,
    "ask": 4,
    **dict.fromkeys(("fail", "die", "limit"), 2),
    **dict.fromkeys(("retract", "own", "hang", "child", "cancel"), 1),
}

KEYS = 3


def _kind(drawing: Drawing) -> str:
    [kind] = drawing.chance.choices(list(KINDS), list(KINDS.values()))
    return kind


def _by(drawing: Drawing) -> str | None:
    return drawing.one_of((*s.AGENTS, s.HUMAN)) if drawing.chance.random() < 0.3 else None


def _enqueue(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    chance = drawing.chance
    names = chance.randint(1, 2) if chance.random() < 0.25 else 0
    key = chance.randrange(KEYS) if chance.random() < 0.4 else None
    return s.EnqueueStep(
        **who,
        queue=drawing.one_of(s.QUEUES),
        # Repeated with the same key it is the same order.
        kind="quick" if key is not None else _kind(drawing),
        by=None if key is not None else _by(drawing),
        key=key,
        callback=chance.random() < 0.85,
        after=() if key is not None else tuple(chance.randrange(1000) for _ in range(names)),
        priority=chance.choice((0, 0, 0, 1, -1)),
    )


def _delegate(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.DelegateStep(
        **who,
        queue=drawing.one_of(s.QUEUES),
        kind=_kind(drawing),
        by=_by(drawing),
        timeout_s=drawing.chance.choice((0.0, 0.3, 3.0)),
    )


def _order(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    what: Any = drawing.one_of(("cancel", "cancel", "retry"))
    return s.OrderTaskStep(**who, draw=drawing.chance.randrange(1000), what=what)


def _pause(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    is_paused = drawing.chance.random() < 0.4
    return s.PauseQueueStep(**who, queue=drawing.one_of(s.QUEUES), is_paused=is_paused)


def _read(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.ReadTasksStep(**who, queue=drawing.one_of(s.QUEUES))


STEPS: Mapping[Callable[[Any, dict[str, Any]], s.Step], int] = {
    _enqueue: 60,
    _delegate: 14,
    _order: 16,
    _pause: 5,
    _read: 8,
}
"""The steps of every client, with their weights, beside those of histories with agents."""
