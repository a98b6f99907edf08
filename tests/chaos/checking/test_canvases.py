"""Tests of the rules for canvases: a sound history has no violation, each broken one is found."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from aegis.protocol.canvases import CanvasChange
from tests.chaos.checking.canvas_evidence import (
    CanvasEvidence,
    CanvasFound,
    CanvasSeen,
    CanvasWrite,
    OutsideEdit,
)
from tests.chaos.checking.canvas_rules import CANVAS_RULES, broken
from tests.chaos.checking.case import Case
from tests.chaos.checking.observations import Death, Span
from tests.chaos.checking.test_checker import SOUND as SOUND_TERMINALS

W1, W2, W3, W4, E1 = "@canvas.1@", "@canvas.2@", "@canvas.3@", "@canvas.4@", "@edit.1@"


def write(token: str, rev: int | None, **fields: Any) -> CanvasWrite:
    known: dict[str, Any] = {"canvas": "plan", "section": "todo", "done": rev is not None}
    return CanvasWrite(**known | {"token": token, "rev": rev} | fields)


def change(rev: int, op: Any, text: str | None, **fields: Any) -> CanvasChange:
    known: dict[str, Any] = {"section": "todo", "writer": "agent:ann", "timestamp": ""}
    return CanvasChange(**known | {"added": 1, "removed": 0} | fields, rev=rev, op=op, text=text)


def seen(rev: int, text: str) -> CanvasSeen:
    return CanvasSeen(canvas="plan", section="todo", rev=rev, text=text)


CHANGES = (
    change(1, "written", W1),
    change(2, "appended", W2),
    change(3, "changed", f"{W1}\n{W2}\n{E1}", writer="outside"),
    change(4, "written", W3),
    change(5, "changed", "old", writer="outside", displaced=True),
)
FOUND = CanvasFound(
    canvas="plan",
    changes=CHANGES,
    sections=(seen(4, W3),),
    file=f"## todo\n\n{W3}\n",
)
SOUND = CanvasEvidence(
    writes=(
        write(W1, 1),
        write(W2, 2, is_append=True),
        write(W3, 4, if_rev=3),
        write(W4, None, done=False, if_rev=2),
    ),
    edits=(OutsideEdit(canvas="plan", token=E1),),
    seen=(seen(2, f"{W1}\n{W2}"), seen(4, W3)),
    found=(FOUND,),
)


def rules_of(canvases: CanvasEvidence, *deaths: Death) -> set[str]:
    case = Case(attrs.evolve(SOUND_TERMINALS, canvases=canvases, deaths=deaths))
    return {name for name, rule in CANVAS_RULES.items() if [*rule.find(case)]}


def ended(*changes: CanvasChange, **fields: Any) -> CanvasEvidence:
    found = attrs.evolve(FOUND, changes=changes or FOUND.changes, **fields)
    return attrs.evolve(SOUND, found=(found,))


def test_a_sound_history_breaks_nothing() -> None:
    assert rules_of(SOUND) == set()
    assert not [*broken(SOUND)]


def test_an_empty_canvas_has_no_history() -> None:
    empty = CanvasFound(
        canvas="plan",
        changes=(),
        sections=(CanvasSeen(canvas="plan", section="body", rev=0, text=""),),
        file="",
    )
    assert rules_of(CanvasEvidence(found=(empty,))) == set()


def test_a_write_without_an_answer_may_be_there_or_not() -> None:
    unknown = write(W4, None, done=None, is_append=True)
    writes = (*SOUND.writes[:3], unknown)
    assert rules_of(attrs.evolve(SOUND, writes=writes)) == set()
    there = (*CHANGES, change(6, "appended", W4))
    text = f"{W3}\n{W4}"
    evidence = ended(*there, sections=(seen(6, text),), file=text)
    assert rules_of(attrs.evolve(evidence, writes=writes)) == set()


@pytest.mark.parametrize(
    ("is_synced", "loss", "rules"),
    [(False, 21, set()), (False, 19, {"edit lost"}), (True, 21, {"edit lost"})],
)
def test_only_a_loss_of_power_takes_an_edit_that_was_not_synced_and_those_before_it(
    is_synced: bool, loss: int, rules: set[str]
) -> None:
    before = OutsideEdit(canvas="plan", token="@edit.2@", span=Span(10, 11))
    last = OutsideEdit(canvas="plan", token="@edit.3@", span=Span(20, 21), is_synced=is_synced)
    evidence = attrs.evolve(SOUND, edits=(*SOUND.edits, before, last))
    death = Death(life=1, kind="power loss", moment=loss)
    assert rules_of(evidence, death) == rules
    assert rules_of(evidence, attrs.evolve(death, kind="kill")) == {"edit lost"}


@pytest.mark.parametrize(
    ("acknowledged", "loss", "rules"),
    [
        (None, 31, set()),
        (None, 25, {"edit lost"}),
        (Span(22, 23), 31, {"edit lost"}),
        (Span(22, 33), 31, set()),
        (Span(15, 23), 31, set()),
    ],
)
def test_a_loss_of_power_takes_the_name_of_a_file_that_was_not_synced_until_a_write_is_acknowledged(
    acknowledged: Span | None, loss: int, rules: set[str]
) -> None:
    first = OutsideEdit(canvas="plan", token=E1, span=Span(20, 21), is_synced=False)
    behind = OutsideEdit(canvas="plan", token="@edit.2@", span=Span(30, 31))
    writes = SOUND.writes
    if acknowledged is not None:
        writes = (attrs.evolve(writes[0], span=acknowledged), *writes[1:])
    evidence = attrs.evolve(SOUND, edits=(first, behind), writes=writes)
    assert rules_of(evidence, Death(life=1, kind="power loss", moment=loss)) == rules


BROKEN: dict[str, tuple[set[str], CanvasEvidence]] = {
    "an acknowledged write that is not in the history": (
        {"write lost"},
        attrs.evolve(SOUND, writes=(*SOUND.writes, write(W4, 6, if_rev=4))),
    ),
    "an edit that is nowhere": (
        {"edit lost"},
        attrs.evolve(SOUND, edits=(*SOUND.edits, OutsideEdit(canvas="plan", token="@edit.2@"))),
    ),
    "a refused write that is there": (
        {"refused write", "overwritten unseen"},
        ended(*CHANGES, change(6, "written", W4), sections=(seen(6, W4),), file=W4),
    ),
    "a text that nobody wrote": (
        {"refused write", "overwritten unseen"},
        ended(*CHANGES, change(6, "written", "@other.1@"), sections=(seen(6, "@other.1@"),)),
    ),
    "a write that replaced what its writer had not read": (
        {"overwritten unseen"},
        attrs.evolve(SOUND, writes=(*SOUND.writes[:2], write(W3, 4, if_rev=2), SOUND.writes[3])),
    ),
    "a file that is not the history": (
        {"canvas differs from its history"},
        ended(sections=(seen(4, W1),)),
    ),
    "a section that is gone unseen": ({"canvas differs from its history"}, ended(sections=())),
    "a file that an exchange left": (
        {"canvas differs from its history"},
        ended(beside=(".aegis-canvas-x.swap",)),
    ),
    "a canvas that cannot be used": (
        {"canvas differs from its history"},
        ended(problem="its file cannot be read"),
    ),
    "a revision that is used twice": (
        {"canvas differs from its history"},
        ended(*CHANGES, change(5, "changed", "old", displaced=True)),
    ),
    "an older text with a newer revision": (
        {"read text forgotten"},
        attrs.evolve(SOUND, seen=(seen(4, f"{W1}\n{W2}\n{E1}"),)),
    ),
    "a text that was read and is not in the history": (
        {"read text forgotten"},
        attrs.evolve(SOUND, seen=(seen(9, W3),)),
    ),
    "a request without an answer": ({"canvas stuck"}, attrs.evolve(SOUND, stuck=("plan",))),
}


@pytest.mark.parametrize(("rules", "evidence"), BROKEN.values(), ids=BROKEN)
def test_one_thing_wrong_with_a_canvas_is_named_by_its_rules(
    rules: set[str], evidence: CanvasEvidence
) -> None:
    assert rules_of(evidence) == rules


def test_every_rule_is_broken_by_some_history() -> None:
    assert set().union(*(rules for rules, _ in BROKEN.values())) == set(CANVAS_RULES)
