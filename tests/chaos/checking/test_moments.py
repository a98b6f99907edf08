"""Tests of the rules about moments: a sound run breaks none, one fault exactly its own rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from tests.chaos.checking import (
    test_agents,
    test_canvas_wakes,
    test_canvases,
    test_checker,
    test_groups,
    test_tasks,
    test_workflow_calls,
    test_workflows,
)
from tests.chaos.checking.checker import RULES, violations
from tests.chaos.checking.evidence import Answer, Evidence, Handoff, Life, SeenRecord
from tests.chaos.checking.observations import (
    Ask,
    Death,
    Disturbance,
    Listing,
    Outcome,
    RecordsRead,
    Remains,
    Span,
    Subscribing,
)
from tests.chaos.checking.parts import KILLED, at, command, record_of, wake
from tests.chaos.checking.rich import (
    ANSWERS,
    CAST,
    CHANGES,
    COMMANDS,
    GONE,
    LATER_NEWS,
    LONG,
    NEWS,
    PM,
    RICH,
    SUBSCRIPTIONS,
    T0,
    TMP,
    UNHEARD,
    WAKES,
    change,
    output,
    waited,
)
from tests.chaos.checking.rule import TERMINALS


def but(**fields: Any) -> Evidence:
    """Return the sound run with other fields."""
    return attrs.evolve(RICH, **fields)


def added(field: str, *values: object, **fields: Any) -> Evidence:
    """Return the sound run with more of one field."""
    return but(**{field: (*getattr(RICH, field), *values), **fields})


def with_t0(seq: int, /, **fields: Any) -> Evidence:
    """Return the sound run with one record of t0 changed, which no client has seen."""
    records = tuple({**each, **fields} if each["seq"] == seq else each for each in T0)
    return but(
        ledgers={**RICH.ledgers, "t0": records},
        seen=tuple(each for each in RICH.seen if each.record["seq"] != seq),
        reads=(),
        waits=(),
        broadcasts=(),
        answers={},
        handoffs=(),
    )


def with_answer(index: int, answer: Answer) -> Evidence:
    return but(answers={PM: (*ANSWERS[:index], answer, *ANSWERS[index + 1 :])})


def with_messages(index: int, *messages: Mapping[str, Any], limit: int | None = None) -> Evidence:
    """Return the run with the messages of one answer replaced, and its limit unknown."""
    return with_answer(index, attrs.evolve(ANSWERS[index], messages=messages, limit=limit))


def without(message: Mapping[str, Any]) -> Evidence:
    """Return the run in which this message was never shown."""
    answers = (
        attrs.evolve(each, messages=tuple(m for m in each.messages if m != message), limit=None)
        for each in ANSWERS
    )
    return but(answers={PM: tuple(answers)})


def ask(*outcomes: Outcome, **fields: Any) -> Ask:
    return Ask(
        client="ann",
        what="run",
        outcomes=outcomes,
        **{"life": 2, "span": at(88) if outcomes else Span(88), **fields},
    )


def read(since: int, *records: Mapping[str, Any], **fields: Any) -> Evidence:
    """Return a read of the records of t0 at the end."""
    fields = {"terminal": "t0", "span": at(98), **fields}
    return added("reads", RecordsRead(since_seq=since, records=records, **fields))


UNFINISHED = RecordsRead(
    terminal="t0", span=at(52), since_seq=4, records=({**T0[5], "end": None, "stdout": ""},)
)
STORAGE = Outcome(kind="refused", code="storage", sentence="the disk is full")
CRASHED = Outcome(kind="crashed", sentence="the front crashed")
CRASH = Disturbance(kind="crash", terminal="t0", span=at(30))
DISK = Disturbance(kind="disk fault", terminal=None, span=at(85))
POWER = (Death(life=1, kind="power loss", moment=54), Death(life=2, kind="stop", moment=140))
LOST = command(30, 1, span=at(47))

BROKEN: dict[str, tuple[str, Evidence]] = {
    # Records.
    "shown after a purge, and missing": (
        "told and gone",
        added("seen", SeenRecord("tmp", {**TMP[0], "seq": 2}, at(100))),
    ),
    "began after the purge, and has no record": (
        "unrecorded",
        added(
            "commands",
            fresh := command(20, 2, terminal="tmp", span=at(98)),
            begun=(*RICH.begun, fresh.token),
        ),
    ),
    "never shown, and gone with the power long after it should be recorded": (
        "unrecorded",
        added(
            "commands",
            LOST,
            begun=(*RICH.begun, LOST.token),
            deaths=(Death(life=3, kind="power loss", moment=160),),
            lives=(*RICH.lives, Life(number=3, killed=True, ready=150)),
        ),
    ),
    "never shown, and gone though the disk failed only before it was sent": (
        "unrecorded",
        added(
            "commands",
            LOST,
            begun=(*RICH.begun, LOST.token),
            disturbances=(*RICH.disturbances, attrs.evolve(DISK, span=at(40))),
        ),
    ),
    "sent later, and has a lower number": (
        "out of turn",
        but(commands=(*COMMANDS[:2], attrs.evolve(COMMANDS[2], span=at(5)), *COMMANDS[3:])),
    ),
    # How commands end.
    "interrupted, and another exit": ("outcome", with_t0(4, exit=1)),
    "interrupted, and lines of nowhere": (
        "outcome",
        with_t0(4, stdout="@t0.1.4@\n@t0.1.4@ early\n"),
    ),
    "lines in another order": (
        "outcome",
        with_t0(4, stdout="@t0.1.4@ late\n@t0.1.4@\n@t0.1.4@ late\n"),
    ),
    "exit 130 without an interrupt": ("outcome", with_t0(0, exit=130)),
    "closed without a close": ("outcome", with_t0(3, end="closed", exit=None)),
    "killed, and prints what it did not": ("outcome", with_t0(5, stdout="???")),
    "a noted end, and no output though the disk took all": (
        "outcome",
        with_t0(5, exit=0, stdout="", end="exited", killed_by_restart=False),
    ),
    "output that the disk refused, though the daemon continued": (
        "outcome",
        attrs.evolve(
            with_t0(3, stdout=""),
            seen=(SeenRecord("t0", {**T0[3], "stdout": ""}, at(42)),),
            disturbances=(*RICH.disturbances, attrs.evolve(DISK, span=at(40))),
        ),
    ),
    "killed though its successor was not": (
        "killed too early",
        with_t0(3, **KILLED),
    ),
    # Terminals.
    "open and not listed": (
        "wrongly listed",
        added("listings", Listing(span=at(90), terminals=("tmp",))),
    ),
    "purged and listed": (
        "wrongly listed",
        added("listings", Listing(span=at(80), terminals=("t0", "tmp"))),
    ),
    "never spawned and listed": (
        "wrongly listed",
        added("listings", Listing(span=at(90), terminals=("t0", "tmp", "new"))),
    ),
    "purged last, and records there": (
        "purged and kept",
        added("changes", change("purge", 132), answers={}, handoffs=(), ids={"t0": "abc"}),
    ),
    "one life id before and after a purge": (
        "life id",
        but(
            changes=(*CHANGES[:3], attrs.evolve(CHANGES[3], id="xyz")),
            ids={"t0": "abc"},
            answers={},
            handoffs=(),
        ),
    ),
    "another life id without a purge": (
        "life id",
        added("changes", change("spawn", 100, "t0", id="new")),
    ),
    # Reading.
    "a gap in what was read": ("catch up", read(2, T0[3], T0[5])),
    "not from where it was asked": ("catch up", read(2, T0[2], T0[3], T0[4], T0[5], T0[6])),
    "a missing record that was shown before": ("catch up", read(2, T0[3])),
    "nothing, though there is something": ("catch up", read(-1)),
    "one that has not ended": (
        "catch up",
        but(reads=(UNFINISHED,)),
    ),
    "output that begins at another place": (
        "output gap",
        added("outputs", output(30, 60, 112, from_cursor=10)),
    ),
    "output with a wrong gap": (
        "output gap",
        added("outputs", output(30, 60, 112, from_cursor=10, dropped=19)),
    ),
    "more output than was asked for": (
        "output gap",
        added("outputs", output(0, 330, 112)),
    ),
    "output that goes back": (
        "output gap",
        added("outputs", output(300, 299, 112)),
    ),
    "other output at the same place": (
        "output changed",
        added("outputs", output(0, 120, 112, text="other")),
    ),
    "other output in steps": (
        "output changed",
        added("outputs", output(0, 60, 112, text="one"), output(60, 120, 114)),
    ),
    "other bytes where two overlap": (
        "output changed",
        added("outputs", output(40, 70, 112, plain=False, text="x" * 30)),
    ),
    "other output after a kill": (
        "output changed",
        added("outputs", output(0, 120, 52, text="before")),
    ),
    "ended without an end": (
        "wait",
        added("waits", waited("ended", record={**T0[6], "end": None})),
    ),
    "ended, and it is another": ("wait", added("waits", waited("ended", record=T0[6], seq=5))),
    "matched what does not match": (
        "wait",
        added("waits", waited("matched", pattern="^b", match="ab")),
    ),
    "matched without a pattern": ("wait", added("waits", waited("matched", match="ab"))),
    "quiet for too short a time": ("wait", added("waits", waited("idle", idle_s=2.0))),
    "quiet, though nobody asked": ("wait", added("waits", waited("idle"))),
    "out of time too early": ("wait", added("waits", waited("timeout"))),
    "closed and was open": ("wait", added("waits", waited("closed"))),
    "waits for input and has ended": (
        "wait",
        added("waits", waited("needs_input", record=T0[6])),
    ),
    "waits for input of nothing": ("wait", added("waits", waited("needs_input"))),
    "ended for a reason that is none": ("wait", added("waits", waited("bored"))),
    "a broadcast that forgot a terminal": (
        "broadcast",
        but(
            broadcasts=(
                attrs.evolve(
                    CAST, answered=("t0", "tmp"), records=CAST.records[:2], errors=CAST.errors[:2]
                ),
            )
        ),
    ),
    "a broadcast without a reason": (
        "broadcast",
        but(broadcasts=(attrs.evolve(CAST, errors=(None, None, None)),)),
    ),
    "a record and a reason": (
        "broadcast",
        but(broadcasts=(attrs.evolve(CAST, errors=("no", None, "no")),)),
    ),
    # Wakes.
    "a wake lost while subscribed": (
        "wake lost",
        without(WAKES[0]),
    ),
    "a failure that no subscriber got": (
        "wake lost",
        without(WAKES[5]),
    ),
    "a success though only failures were asked for": (
        "wake needless",
        but(
            answers={
                PM: (
                    ANSWERS[0],
                    attrs.evolve(ANSWERS[1], messages=WAKES[:3]),
                    attrs.evolve(ANSWERS[2], acknowledged=WAKES[2]["id"]),
                    *ANSWERS[3:],
                )
            }
        ),
    ),
    "a wake after the end of the subscription": (
        "wake needless",
        with_messages(4, NEWS, WAKES[3], WAKES[4]),
    ),
    "a command that the pattern does not fit": (
        "wake needless",
        with_messages(6, LATER_NEWS, WAKES[6]),
    ),
    "a wake of a terminal that nobody purged": (
        "wake needless",
        but(former={}),
    ),
    "a wake of its own command, purged": (
        "wake needless",
        with_messages(
            5,
            *ANSWERS[5].messages[:3],
            wake({**GONE, "writer": "agent:pm"}, PM, terminal="tmp", life="xyz"),
        ),
    ),
    "a wake with another exit": (
        "wake wrong",
        but(
            answers={
                PM: tuple(
                    attrs.evolve(
                        each,
                        messages=tuple(
                            {**m, "body": m["body"].replace("exit 130", "exit 0")}
                            for m in each.messages
                        ),
                    )
                    for each in ANSWERS
                )
            }
        ),
    ),
    "wakes in another order": (
        "out of order",
        with_messages(4, NEWS, WAKES[5], WAKES[4]),
    ),
    "wakes in another order, of a terminal that crashed": (
        "out of order",
        attrs.evolve(
            with_messages(4, NEWS, WAKES[5], WAKES[4]),
            disturbances=(*RICH.disturbances, CRASH),
        ),
    ),
    # Inboxes.
    "shown, not acknowledged, and not shown again": (
        "not shown",
        with_answer(1, attrs.evolve(ANSWERS[1], messages=WAKES[1:2])),
    ),
    "an empty answer, and something unread": (
        "not shown",
        with_answer(1, attrs.evolve(ANSWERS[1], messages=())),
    ),
    "shown again after it was acknowledged": (
        "shown again",
        with_messages(4, WAKES[0], NEWS, WAKES[4]),
    ),
    "what was handed on later came first": (
        "handoffs out of turn",
        but(
            handoffs=(
                Handoff(PM, NEWS["body"], "h1", "ann", at(86)),
                Handoff(PM, LATER_NEWS["body"], "h2", "ann", at(46)),
            )
        ),
    ),
    # Calls and lives.
    "two outcomes": (
        "one outcome",
        added("asks", ask(Outcome(kind="value"), Outcome(kind="value"))),
    ),
    "no outcome, and the daemon lived": ("one outcome", added("asks", ask())),
    "a disk that refuses, and nothing was done to it": (
        "unexplained",
        added("asks", ask(STORAGE)),
    ),
    "a crash that nobody caused": ("unexplained", added("asks", ask(CRASHED))),
    "a crash before what caused it": (
        "unexplained",
        added("asks", ask(CRASHED, span=at(16), life=1), disturbances=(*RICH.disturbances, CRASH)),
    ),
    "a deadline for no reason": (
        "unexplained",
        added("asks", ask(Outcome(kind="deadline"), span=at(16), life=1)),
    ),
    "an actor that forgot to answer": (
        "unexplained",
        added("asks", ask(Outcome(kind="no reply"))),
    ),
    "a task is left": (
        "left behind",
        added("remains", Remains(life=2, kind="task", what="courier")),
    ),
}

BROKEN_TWICE: dict[str, tuple[set[str], Evidence]] = {
    "shown before the power was lost, and missing": (
        {"unrecorded", "told and gone"},
        added(
            "commands",
            LOST,
            begun=(*RICH.begun, LOST.token),
            deaths=POWER,
            seen=(*RICH.seen, SeenRecord("t0", {**record_of(LOST, 5), "end": None}, at(48))),
            ledgers={"t0": T0[:5], "tmp": TMP},
            answers={},
            handoffs=(),
        ),
    ),
    "a purged record shown": (
        {"purged and there", "told and gone"},
        added("seen", SeenRecord("tmp", GONE, Span(80, 81))),
    ),
}

ALLOWED: dict[str, Evidence] = {
    "nothing wrong": RICH,
    "recorded before a purge, and gone": added(
        "commands", command(21, 2, terminal="tmp", span=at(75)), begun=(*RICH.begun, "@tmp.2.21@")
    ),
    "a record shown while it is purged": added("seen", SeenRecord("tmp", GONE, Span(78, 80))),
    "never shown, and lost with the power": added(
        "commands", LOST, begun=(*RICH.begun, LOST.token), deaths=POWER
    ),
    "never shown, and lost with the power of the life that recovered it": added(
        "commands",
        LOST,
        begun=(*RICH.begun, LOST.token),
        deaths=(
            Death(life=1, kind="kill", moment=54),
            Death(life=2, kind="power loss", moment=140),
        ),
    ),
    "never shown, and lost with the pages of a sync that failed before the kill": added(
        "commands",
        LOST,
        begun=(*RICH.begun, LOST.token),
        disturbances=(*RICH.disturbances, attrs.evolve(DISK, span=at(50))),
    ),
    "other output after a loss of power": added(
        "outputs", output(0, 120, 52, text="before"), deaths=POWER
    ),
    "output of a killed command that the power took": attrs.evolve(
        with_t0(5, stdout="\0\0\0"), deaths=POWER
    ),
    "an interrupt that came to nothing": with_t0(4, exit=0, stdout=COMMANDS[4].stdout),
    "killed by a crash though its successor was not": attrs.evolve(
        with_t0(3, **KILLED),
        disturbances=(*RICH.disturbances, attrs.evolve(CRASH, span=at(40))),
    ),
    "a noted end, and output that the disk refused before the kill": attrs.evolve(
        with_t0(5, exit=0, stdout="", end="exited", killed_by_restart=False),
        disturbances=(*RICH.disturbances, attrs.evolve(DISK, span=at(52))),
    ),
    "a noted end, and output that the power took": attrs.evolve(
        with_t0(5, exit=0, stdout="", end="exited", killed_by_restart=False),
        deaths=POWER,
        ended=(*RICH.ended, LONG.token),
    ),
    "a wake of a life with an unreported id": but(
        former={}, changes=(CHANGES[0], attrs.evolve(CHANGES[1], id=None), *CHANGES[2:])
    ),
    "killed by a stop, which knows how long it ran": attrs.evolve(
        with_t0(5, **{**KILLED, "duration_s": 0.5}),
        lives=(Life(number=1, killed=False, ready=1), RICH.lives[1]),
        asks=(),
    ),
    "typed, and the shell ended: its history was not reported": attrs.evolve(
        with_t0(3, cmd=None, end="shell_exit"),
        commands=tuple(
            attrs.evolve(each, typed=True, end="shell_exit") if each is UNHEARD else each
            for each in COMMANDS
        ),
        asks=(),
    ),
    "killed by what came of an earlier crash": attrs.evolve(
        with_t0(3, **KILLED), disturbances=(*RICH.disturbances, CRASH)
    ),
    "a shell that was killed": attrs.evolve(
        with_t0(3, end="shell_exit", exit=137, stdout=""),
        disturbances=(
            *RICH.disturbances,
            Disturbance(kind="shell killed", terminal="t0", span=at(40)),
        ),
    ),
    "closed by who closed it": attrs.evolve(
        with_t0(3, end="closed", exit=None),
        changes=(*CHANGES, change("close", 40, "t0"), change("spawn", 42, "t0", id="abc")),
        listings=(),
    ),
    "typed meanwhile and echoed": attrs.evolve(
        with_t0(3, stdout="@t0.1.3@\n@typed.0@"),
        disturbances=(
            *RICH.disturbances,
            Disturbance(kind="keys", terminal="t0", span=at(40), text="echo @typed.0@"),
        ),
    ),
    "a spawn that may have been carried out": added(
        "changes",
        change("spawn", 100, "new", done=None),
        listings=(
            Listing(span=at(110), terminals=("t0", "tmp", "new")),
            Listing(span=at(112), terminals=("t0", "tmp")),
        ),
    ),
    "a spawn that was refused": added("changes", change("spawn", 86, done=False)),
    "a purge of which nobody heard": added(
        "changes",
        attrs.evolve(change("purge", 52, "t0", done=None), span=Span(52)),
    ),
    "unsubscribed before it came": but(
        subscriptions=(
            *SUBSCRIPTIONS,
            Subscribing(handle=PM, terminal="t0", span=at(64), done=True, on=False),
        ),
        answers=without(WAKES[5]).answers,
    ),
    "a subscription of which nobody heard": but(
        subscriptions=tuple(
            attrs.evolve(each, done=None) if each.pattern else each for each in SUBSCRIPTIONS
        ),
    ),
    "the empty answer to a wait that was replaced": with_answer(
        4, Answer((), None, Span(60, 77), 50)
    ),
    "what was handed on at once may come in any order": but(
        handoffs=(
            Handoff(PM, NEWS["body"], "h1", "ann", Span(86, 96)),
            Handoff(PM, LATER_NEWS["body"], "h2", "ann", Span(85, 96)),
        )
    ),
    "what two handed on may come in any order": but(
        handoffs=(
            Handoff(PM, NEWS["body"], "h1", "bob", at(86)),
            Handoff(PM, LATER_NEWS["body"], "h2", "ann", at(46)),
        )
    ),
    "wakes in another order where an inbox failed": attrs.evolve(
        with_messages(4, NEWS, WAKES[5], WAKES[4]), disturbances=(*RICH.disturbances, DISK)
    ),
    "wakes in another order behind a hole in the inbox": attrs.evolve(
        with_messages(4, NEWS, WAKES[5], WAKES[4]),
        damaged_inboxes=frozenset({PM}),
        deaths=(*RICH.deaths, Death(life=1, kind="power loss", moment=1)),
    ),
    "a crash that was caused": added(
        "asks", ask(CRASHED), disturbances=(*RICH.disturbances, CRASH)
    ),
    "a disk that was made to refuse": added(
        "asks", ask(STORAGE), disturbances=(*RICH.disturbances, DISK)
    ),
    "no outcome in a life that was killed": added("asks", ask(span=Span(50), life=1)),
}


@pytest.mark.parametrize("evidence", ALLOWED.values(), ids=ALLOWED)
def test_what_may_be_is_no_violation(evidence: Evidence) -> None:
    assert violations(evidence) == []


@pytest.mark.parametrize(("rule", "evidence"), BROKEN.values(), ids=BROKEN)
def test_one_thing_wrong_is_named_by_its_own_rule(rule: str, evidence: Evidence) -> None:
    found = violations(evidence)
    assert {each.rule for each in found} == {rule}, found


@pytest.mark.parametrize(("rules", "evidence"), BROKEN_TWICE.values(), ids=BROKEN_TWICE)
def test_what_breaks_two_promises_is_named_by_both_rules(
    rules: set[str], evidence: Evidence
) -> None:
    assert {each.rule for each in violations(evidence)} == rules


def test_each_rule_is_broken_by_some_case() -> None:
    broken = {rule for rule, _ in (*BROKEN.values(), *test_checker.BROKEN.values())}
    broken |= {rule for rule, _ in test_tasks.BROKEN.values()}
    several = (
        *BROKEN_TWICE.values(),
        *test_agents.BROKEN.values(),
        *test_groups.BROKEN.values(),
        *test_canvases.BROKEN.values(),
        *test_workflows.BROKEN.values(),
        *(({rule}, ()) for rule, _ in test_workflow_calls.BROKEN.values()),
        *(({rule}, ()) for rule, _ in test_canvas_wakes.BROKEN.values()),
        ({"workflow unreported"}, ()),  # by a test of its own
    )
    assert broken.union(*(rules for rules, _ in several)) == set(RULES)


def test_every_rule_names_the_guarantee_that_it_holds() -> None:
    known = {TERMINALS, *(f"G{number}" for number in range(1, 22))}
    assert {rule.guarantee for rule in RULES.values()} <= known
