"""Tests of the rules for wakes of canvases: a sound history passes, each broken one is found."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from tests.chaos.checking.canvas_evidence import (
    CanvasEvidence,
    CanvasFound,
    CanvasSeen,
    CanvasSubscribing,
    CanvasWrite,
    OutsideEdit,
)
from tests.chaos.checking.canvas_wake_rules import CANVAS_WAKE_RULES
from tests.chaos.checking.case import Case
from tests.chaos.checking.evidence import Evidence
from tests.chaos.checking.observations import Death, Disturbance, Message, Span
from tests.chaos.checking.test_canvases import change
from tests.chaos.checking.test_checker import SOUND as SOUND_TERMINALS

W1, W2, E1 = "@canvas.1@", "@canvas.2@", "@edit.1@"


def subscribed(handle: str, span: Span, **fields: Any) -> CanvasSubscribing:
    known: dict[str, Any] = {"canvas": "plan", "on": True, "done": True}
    return CanvasSubscribing(**known | {"handle": handle, "span": span} | fields)


def wake(rev: int, handle: str, how: str, token: str, section: str = "todo") -> Message:
    body = f'section "{section}"\n{how} (+1 / -0 lines)\n──\n{token}'
    return {"id": f"canvas:plan/l1/{rev}/{handle}", "body": body}


FOUND = CanvasFound(
    canvas="plan",
    changes=(
        change(1, "written", W1),
        change(2, "changed", f"{W1}\n{E1}", writer="outside"),
        change(3, "appended", W2, writer="agent:bob", section="done"),
    ),
    sections=(),
    file="",
)
CANVASES = CanvasEvidence(
    writes=(
        CanvasWrite(canvas="plan", section="todo", token=W1, done=True, rev=1, span=Span(10, 12)),
        CanvasWrite(canvas="plan", section="done", token=W2, done=True, rev=3, span=Span(30, 32)),
    ),
    edits=(OutsideEdit(canvas="plan", token=E1, span=Span(20, 21)),),
    subscribed=(
        subscribed("ann", Span(1, 2)),
        subscribed("bob", Span(3, 4), section="done"),
        subscribed("cleo", Span(1, 2), section="todo"),
        subscribed("cleo", Span(25, 26), on=False),
        subscribed("dan", Span(40, 41)),
    ),
    found=(FOUND,),
)
OUTSIDE = wake(2, "ann", "changed by another program, outside", f"{W1}\n{E1}")
APPENDED = wake(3, "ann", "appended by agent:bob", W2, "done")
TO_CLEO = wake(1, "cleo", "written by agent:ann", W1)
KEPT: dict[str, tuple[Message, ...]] = {
    "ann": (OUTSIDE, APPENDED),
    "bob": (),
    "cleo": (TO_CLEO,),
    "dan": (),
}
SOUND = attrs.evolve(SOUND_TERMINALS, canvases=CANVASES, kept=KEPT, disturbances=())


def rules_of(evidence: Evidence) -> set[str]:
    case = Case(evidence)
    return {name for name, rule in CANVAS_WAKE_RULES.items() if [*rule.find(case)]}


def kept(**messages: tuple[Message, ...]) -> Evidence:
    return attrs.evolve(SOUND, kept={**KEPT, **messages})


def with_canvases(**fields: Any) -> Evidence:
    return attrs.evolve(SOUND, canvases=attrs.evolve(CANVASES, **fields))


def test_a_sound_history_breaks_nothing() -> None:
    assert rules_of(SOUND) == set()


def test_who_unsubscribed_may_have_lost_the_wakes_of_changes_before() -> None:
    assert rules_of(kept(cleo=())) == set()


@pytest.mark.parametrize("done", [None, False])
def test_a_subscription_without_an_answer_obliges_to_nothing(done: bool | None) -> None:
    maybe = subscribed("ann", Span(1, None), done=done)
    others = CANVASES.subscribed[1:]
    silent = attrs.evolve(with_canvases(subscribed=(maybe, *others)), kept={**KEPT, "ann": ()})
    assert rules_of(silent) == set()


def test_a_read_of_a_revision_says_that_it_is_older() -> None:
    late = subscribed("dan", Span(40, 41))
    first = wake(2, "dan", "changed by another program, outside", f"{W1}\n{E1}")
    assert rules_of(kept(dan=(first,))) == {"canvas wake needless"}
    unknown = tuple(attrs.evolve(each, span=Span(each.span.asked)) for each in CANVASES.writes)
    evidence = attrs.evolve(kept(dan=(first,)), canvases=attrs.evolve(CANVASES, writes=unknown))
    assert rules_of(evidence) == set()
    seen = CanvasSeen(canvas="plan", section="todo", rev=2, text="", span=Span(33, 34))
    read = attrs.evolve(evidence.canvases, seen=(seen,), subscribed=(*CANVASES.subscribed, late))
    assert rules_of(attrs.evolve(evidence, canvases=read)) == {"canvas wake needless"}


def test_a_canvas_that_cannot_be_read_is_not_judged() -> None:
    assert rules_of(with_canvases(found=())) == set()


def test_a_failing_inbox_may_change_the_order() -> None:
    swapped = kept(ann=(APPENDED, OUTSIDE))
    crash = Disturbance(kind="crash", terminal=None, span=Span(1, 2))
    assert rules_of(swapped) == {"canvas wake out of order"}
    assert rules_of(attrs.evolve(swapped, disturbances=(crash,))) == set()


def test_a_hole_in_an_inbox_changes_the_order_only_after_a_loss_of_power() -> None:
    swapped = attrs.evolve(kept(ann=(APPENDED, OUTSIDE)), damaged_inboxes=frozenset({"ann"}))
    lost = Death(life=1, kind="power loss", moment=1)
    assert rules_of(swapped) == {"canvas wake out of order"}
    assert rules_of(attrs.evolve(swapped, deaths=(lost,))) == set()
    elsewhere = attrs.evolve(swapped, deaths=(lost,), damaged_inboxes=frozenset({"ben"}))
    assert rules_of(elsewhere) == {"canvas wake out of order"}


BROKEN: dict[str, tuple[str, Evidence]] = {
    "a change of which a subscriber was not notified": (
        "canvas wake lost",
        kept(ann=(OUTSIDE,)),
    ),
    "an outside edit of which a subscriber was not notified": (
        "canvas wake lost",
        kept(ann=(APPENDED,)),
    ),
    "a wake for the writer": (
        "canvas wake needless",
        kept(bob=(wake(3, "bob", "appended by agent:bob", W2, "done"),)),
    ),
    "a wake for another section": (
        "canvas wake needless",
        kept(bob=(wake(1, "bob", "written by agent:ann", W1),)),
    ),
    "a wake for a client that had not subscribed yet": (
        "canvas wake needless",
        kept(dan=(wake(3, "dan", "appended by agent:bob", W2, "done"),)),
    ),
    "a wake after the end of a subscription": (
        "canvas wake needless",
        with_canvases(
            subscribed=(
                *CANVASES.subscribed[:2],
                subscribed("cleo", Span(1, 2)),
                subscribed("cleo", Span(5, 6), on=False),
            ),
        ),
    ),
    "a wake for no change": (
        "canvas wake needless",
        kept(ann=(OUTSIDE, APPENDED, wake(9, "ann", "written by agent:bob", W2))),
    ),
    "a wake of another client": (
        "canvas wake needless",
        kept(ann=({**OUTSIDE, "id": "canvas:plan/l1/2/cleo"}, OUTSIDE, APPENDED)),
    ),
    "two wakes for one change": (
        "canvas wake needless",
        kept(ann=(OUTSIDE, APPENDED, APPENDED)),
    ),
    "a wake with another text": (
        "canvas wake wrong",
        kept(ann=(OUTSIDE, wake(3, "ann", "appended by agent:bob", W1, "done"))),
    ),
    "a wake with another writer": (
        "canvas wake wrong",
        kept(ann=(OUTSIDE, wake(3, "ann", "appended by agent:eve", W2, "done"))),
    ),
    "a wake with another section": (
        "canvas wake wrong",
        kept(ann=(OUTSIDE, wake(3, "ann", "appended by agent:bob", W2))),
    ),
    "wakes in another order": ("canvas wake out of order", kept(ann=(APPENDED, OUTSIDE))),
}


@pytest.mark.parametrize(("rule", "evidence"), BROKEN.values(), ids=BROKEN)
def test_one_thing_wrong_with_a_wake_is_named_by_its_rule(rule: str, evidence: Evidence) -> None:
    assert rules_of(evidence) == {rule}


def test_every_rule_is_broken_by_some_history() -> None:
    assert {rule for rule, _ in BROKEN.values()} == set(CANVAS_WAKE_RULES)
