"""The steps of histories with groups, and how often they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.chaos.histories import script as s
from tests.chaos.histories.agent_drawing import Drawing

POINTS: Mapping[str, int] = {
    "ledger.append.before[jury.jsonl]": 15,
    "ledger.append.after[crew.jsonl]": 15,
    "group.spawn.before": 3,
    "group.spawn.after": 3,
    "group.notify.before": 2,
    "group.notify.after": 2,
    "actor.receive.before[GroupDesk]": 12,
    "actor.receive.after[GroupDesk]": 12,
    "actor.setup.after[GroupDesk]": 1,
}
"""The fault points that may be struck, with the most passes that precede the strike."""

KINDS = {
    "quick": 10,
    "slow": 8,
    "ask": 3,
    **dict.fromkeys(("fail", "die", "hang", "limit", "retract", "own"), 1),
}

KEYS = 3


def _spawn(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    members = drawing.chance.randint(1, 3)
    return s.SpawnGroupStep(**who, group=drawing.one_of(s.GROUPS), members=members)


def _broadcast(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    key = drawing.chance.randrange(KEYS) if drawing.chance.random() < 0.4 else None
    [kind] = drawing.chance.choices(list(KINDS), list(KINDS.values()))
    return s.GroupBroadcastStep(
        **who,
        group=drawing.one_of(s.GROUPS),
        kind="quick" if key is not None else kind,
        key=key,
        callback=key is not None or drawing.chance.random() < 0.8,
    )


def _wait(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.GroupWaitStep(
        **who,
        group=drawing.one_of(s.GROUPS),
        is_any=drawing.chance.random() < 0.5,
        cancels=drawing.chance.random() < 0.5,
        timeout_s=drawing.chance.choice((0.0, 0.2, 1.0)),
        draw=drawing.chance.randrange(1000),
    )


def _show(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.ShowGroupStep(**who, group=drawing.one_of(s.GROUPS))


def _dissolve(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.DissolveGroupStep(**who, group=drawing.one_of(s.GROUPS))


STEPS: Mapping[Callable[[Any, dict[str, Any]], s.Step], int] = {
    _spawn: 16,
    _broadcast: 45,
    _wait: 40,
    _show: 5,
    _dissolve: 3,
}
"""The steps of every client, with their weights, beside those of histories with agents."""
