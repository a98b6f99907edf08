"""The steps and faults of histories with canvases, and how often they are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.chaos.histories import script as s
from tests.chaos.histories.agent_drawing import Drawing

POINTS: Mapping[str, int] = {
    "canvas.write.before": 15,
    "canvas.write.after": 15,
    "canvas.open.before": 1,
    "canvas.open.after": 1,
    "canvas.notify.before": 6,
    "canvas.notify.after": 6,
    "exchange.write.before": 6,
    "exchange.write.after": 6,
    "exchange.rename.after": 6,
    "exchange.sync.after": 6,
    "actor.receive.before[CanvasActor]": 25,
    "actor.receive.after[CanvasActor]": 25,
    "actor.receive.before[CanvasDesk]": 15,
    "actor.setup.after[CanvasActor]": 2,
}
"""The fault points that may be struck, with the most passes that precede the strike."""

CALLS: Mapping[str, tuple[int, int]] = {
    "exchange": (4, 6),
    "rename_new": (1, 2),
    "rename": (2, 8),
    "unlink": (2, 12),
    "fsync": (3, 12),
}
"""The calls of the disk that may be struck: weight, and the most calls that precede the strike."""

IN_EXCHANGES = (
    "exchange.write.before",
    "exchange.write.after",
    "exchange.rename.after",
    "exchange.sync.after",
)
"""The places of an exchange at which another program edits the file."""

SYNCS = 0.65
"""The share of edits by other programs that sync the file."""

SECTIONS = ("todo", "done", "log")


def _write(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    how: Any = drawing.chance.choices(("read", "known", "force"), (6, 5, 1))[0]
    return s.WriteCanvasStep(
        **who, canvas=drawing.one_of(s.CANVASES), section=drawing.one_of(SECTIONS), how=how
    )


def _append(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.AppendCanvasStep(
        **who, canvas=drawing.one_of(s.CANVASES), section=drawing.one_of(SECTIONS)
    )


def _read(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.ReadCanvasStep(**who, canvas=drawing.one_of(s.CANVASES))


def _subscribe(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    on = drawing.chance.random() < 0.8
    section = drawing.one_of(SECTIONS) if on and drawing.chance.random() < 0.3 else None
    return s.SubscribeCanvasStep(**who, canvas=drawing.one_of(s.CANVASES), on=on, section=section)


def _edit(drawing: Drawing, who: dict[str, Any]) -> s.Step:
    return s.OutsideEditStep(
        **who,
        canvas=drawing.one_of(s.CANVASES),
        section=drawing.one_of(SECTIONS),
        syncs=drawing.chance.random() < SYNCS,
        open_s=drawing.chance.choice((0.0, 0.0, 0.02, 0.2)),
        noticed_s=drawing.chance.choice((0.0, 0.01, 0.5)),
    )


def _edit_in_exchange(drawing: Drawing, step: int) -> s.ScriptFault:
    return s.OutsideEditFault(
        step=step,
        canvas=drawing.one_of(s.CANVASES),
        section=drawing.one_of(SECTIONS),
        place=drawing.one_of(IN_EXCHANGES),
        number=drawing.chance.randint(1, 3),
        syncs=drawing.chance.random() < SYNCS,
    )


def _power_loss(drawing: Drawing, step: int) -> s.ScriptFault:
    draw = drawing.chance.getrandbits(32)
    return s.PowerLossFault(step=step, after_s=drawing.seconds(0.1), draw=draw)


STEPS: Mapping[Callable[[Any, dict[str, Any]], s.Step], int] = {
    _write: 40,
    _append: 25,
    _edit: 20,
    _read: 12,
    _subscribe: 14,
}
"""The steps of every client, with their weights, beside those of other histories."""

FAULTS: Mapping[Callable[[Any, int], s.ScriptFault], int] = {
    _edit_in_exchange: 10,
    _power_loss: 3,
}
"""The faults, with their weights, beside those of other histories."""
