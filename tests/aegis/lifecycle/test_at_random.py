"""The life cycle under events of chance: against a model of the rules, and its invariants."""

from __future__ import annotations

import itertools
import pickle
import random
from collections.abc import Iterable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from aegis.lifecycle import events as ev
from aegis.lifecycle.hooks import Hook
from aegis.lifecycle.keys import KeyInput
from aegis.lifecycle.machine import LifeCycle
from aegis.lifecycle.notices import Notice, ProgressNotice
from aegis.lifecycle.reports import Report
from aegis.lifecycle.states import Evidence, State, Verdict
from tests.aegis.lifecycle.model import Model
from tests.aegis.lifecycle.playing import (
    BELL,
    BLINK,
    BYTES,
    IS_BUSY,
    LINE_READ,
    NO_READ,
    SMALL,
    TEXT,
    Player,
    hook,
    keys,
    report,
    title,
)

IDLE_S, STALE_S, TICK_S = 4.0, 12.0, 0.25  # exact in binary, so that all sums are
WAITING = (State.NEEDS_INPUT, State.STALE)

BASH = '"tool_name": "Bash", "tool_input": {"command": "x"}'
OUTPUTS: list[ev.Event] = [TEXT, BLINK, BYTES]
STATEMENTS: list[ev.Event] = [
    *(report(f"state={each}") for each in ("working", "blocked", "idle", "done", "clear")),
    report("state=blocked:kind=permission:msg=UT8="),
    *(hook(each, BASH) for each in ("PreToolUse", "PostToolUse", "PermissionRequest")),
    *(hook(each) for each in ("UserPromptSubmit", "Stop", "SessionStart", "SessionEnd")),
    hook("PostToolUse", '"tool_name": "Read"'),
    hook("Notification", '"notification_type": "permission_prompt", "message": "m"'),
    *(title(each) for each in ("⠋ w", "✳ w", "✋ w", "w")),
    *(BELL, Notice("text")),
    *(ProgressNotice(in_progress=True), ProgressNotice(in_progress=False)),
    *(LINE_READ, NO_READ, IS_BUSY),
    *(ev.PromptBegun(), ev.TerminalReset(), ev.Resized()),
]
KEYS: list[ev.Event] = [keys(each) for each in (b"y", b"\r", b"\x1b", b"\x1b[A")]
CHILDREN: list[ev.Event] = [
    *(report(f"state={each}:id=c") for each in ("working", "blocked", "done", "clear")),
    report("state=blocked:id=c/d:kind=auth"),
    *(hook(each, BASH, session="child") for each in ("PermissionRequest", "Stop", "SessionEnd")),
]
ENDS: list[ev.Event] = [ev.ProcessExited(), ev.ProcessStarted()]

Step = tuple[int, ev.Event]
"""Ticks to wait, and the event after them."""


def steps(*groups: Iterable[ev.Event], max_size: int = 30) -> st.SearchStrategy[list[Step]]:
    events = st.one_of(*(st.sampled_from(list(group)) for group in groups))
    ticks = st.sampled_from([0, 0, 1, 1, 2, 3, 4, 8, 16, 50])
    return st.lists(st.tuples(ticks, events), max_size=max_size)


def timed(history: Sequence[Step]) -> list[tuple[float, ev.Event]]:
    moments = itertools.accumulate(ticks for ticks, _ in history)
    return [(tick * TICK_S, event) for tick, (_, event) in zip(moments, history, strict=True)]


def player() -> Player:
    return Player(idle_s=IDLE_S, stale_s=STALE_S)


def is_child(event: ev.Event) -> bool:
    return (isinstance(event, Report) and event.id != "") or (
        isinstance(event, Hook) and event.session == "child"
    )


@given(steps(OUTPUTS, STATEMENTS), st.integers(0, 60))
def test_the_verdict_is_that_of_the_model(history: list[Step], rest: int) -> None:
    events = [step for step in timed(history) if not _ends_session(step[1])]
    model = Model(IDLE_S, 1.0)
    played = player()
    seen: list[tuple[float, ev.Event]] = [(0.0, ev.ProcessStarted())]
    for moment, event in [*events, ((events[-1][0] if events else 0) + rest * TICK_S, None)]:
        played.at(moment, *([] if event is None else [event]))
        seen += [] if event is None else [(moment, event)]
        state = State.NEEDS_INPUT if played.verdict.state is State.STALE else played.verdict.state
        assert (state, played.verdict.source) == model.judge(seen, moment)


def _ends_session(event: ev.Event) -> bool:
    return isinstance(event, Hook) and event.kind == "ends"


@given(steps(OUTPUTS, STATEMENTS, KEYS, [SMALL], CHILDREN, ENDS))
def test_a_verdict_is_consistent_and_exited_is_final(history: list[Step]) -> None:
    played = player()
    for moment, event in timed(history):
        before = played.verdict
        verdict = played.at(moment, event)
        check(verdict)
        if before.state is State.EXITED and not isinstance(event, ev.ProcessStarted):
            assert verdict is before
        if isinstance(event, ev.ProcessStarted):
            assert verdict == Verdict(state=State.STARTING, since=moment, source=Evidence.START)
    waits_since: float | None = None
    previous = State.EXITED
    for verdict in played.verdicts:
        # ``stale`` follows only the stale time of the other state, without another in between.
        if verdict.state is State.NEEDS_INPUT:
            waits_since = verdict.since
        elif verdict.state is State.STALE and previous is not State.STALE:
            assert previous is State.NEEDS_INPUT
            assert waits_since is not None
            assert verdict.since >= waits_since + STALE_S
        previous = verdict.state


def check(verdict: Verdict) -> None:
    assert (verdict.need is not None) == (verdict.state in WAITING)
    assert (verdict.source is Evidence.EXIT) == (verdict.state is State.EXITED)
    assert (verdict.source is Evidence.START) == (verdict.state is State.STARTING)
    if verdict.state in WAITING:
        assert verdict.source not in (
            Evidence.KEYS,
            Evidence.OUTPUT,
            Evidence.SCREEN,
            Evidence.PROGRESS,
        )
    if verdict.state is State.RUNNING:
        assert verdict.source not in (Evidence.SILENCE, Evidence.NOTICE)


@given(steps(OUTPUTS, STATEMENTS, KEYS, [SMALL], CHILDREN))
def test_nothing_weaker_overrides_a_report_until_a_key(history: list[Step]) -> None:
    played = player()
    root: Report | None = None
    key_at = -100.0
    for moment, event in timed(history):
        verdict = played.at(moment, event)
        if isinstance(event, ev.PromptBegun | ev.TerminalReset):
            root = None
        if isinstance(event, KeyInput):
            key_at = moment
            root = root if root is not None and root.state == "working" else None
        if isinstance(event, Report) and not event.id:
            # Just after a key, the report that it answers may be repeated.
            is_sure = event.state == "working" or moment >= key_at + 1.0
            root = event if event.state != "clear" and is_sure else None
        if root is not None:
            assert verdict.source is Evidence.REPORT
            states = (State.RUNNING,) if root.state == "working" else WAITING
            assert verdict.state in states


@given(steps(OUTPUTS, STATEMENTS, KEYS, [SMALL], CHILDREN))
def test_the_events_of_children_change_no_verdict(history: list[Step]) -> None:
    # The session is known by its first hook.
    events = [(0.0, hook("SessionStart")), *timed(history)]
    with_children, without = player(), player()
    for moment, event in events:
        if _ends_session(event) and not is_child(event):
            continue
        with_children.at(moment, event)
        without.at(moment, *([] if is_child(event) else [event]))
        assert with_children.verdict == without.verdict


@given(steps(OUTPUTS, STATEMENTS, KEYS, [SMALL], ENDS), st.integers(0, 120))
def test_its_own_timers_are_enough(history: list[Step], rest: int) -> None:
    """A life cycle that is asked at every tick says nothing else than one with its timer only."""
    events = timed(history)
    end = (events[-1][0] if events else 0.0) + rest * TICK_S
    played = player()
    asked = LifeCycle(idle_s=IDLE_S, stale_s=STALE_S)
    asked.handle(ev.ProcessStarted(), 0.0)
    for tick in range(round(end / TICK_S) + 1):
        now = tick * TICK_S
        asked.handle(ev.TimerExpired(), now)
        played.at(now)
        for _, event in [each for each in events if each[0] == now]:
            asked.handle(event, now)
            played.give(event)
        assert played.verdict == asked.verdict


@given(steps(OUTPUTS, STATEMENTS, KEYS, [SMALL]))
def test_in_silence_every_agent_waits_unless_it_reports_work(history: list[Step]) -> None:
    played = player()
    for moment, event in timed(history):
        played.at(moment, event)
    played.give(NO_READ)  # a check of the tty that found a program at work is not its last
    root = played.cycle._root
    assert root is None or root.id == ""
    verdict = played.at(played.now + 2 * IDLE_S)
    if root is not None and root.state == "working":
        assert (verdict.state, verdict.source) == (State.RUNNING, Evidence.REPORT)
    else:
        assert verdict.state in WAITING
        assert played.at(played.now + STALE_S).state is State.STALE
    assert played.cycle.due(played.now) is None  # no timer for ever


def test_a_hostile_program_cannot_make_it_grow() -> None:
    chance = random.Random(7)
    played = player()
    events = [*OUTPUTS, *STATEMENTS, *KEYS, *CHILDREN]

    def size() -> int:
        cycle = played.cycle
        return len(pickle.dumps((cycle._root, cycle._claims, cycle.verdict)))

    text = "4oCu" * 400
    for number in range(3000):
        played.at(number * 0.01, chance.choice(events))
        played.give(report(f"state=blocked:id=r{number}:msg={text}"))
        played.give(report(f"state=blocked:msg={text}"), title(f"✋ {'x' * 4000}{number}"))
        played.give(Notice("n" * 2048), hook("Stop", session=f"s{number}"))
        played.verdicts.clear()
        if number % 20 == 0:
            assert size() < 30_000  # six claims with messages of 2 KB each


def test_chance_reaches_every_state_and_source() -> None:
    """Without this the tests above could hold because nothing happens."""
    chance = random.Random(3)
    seen: set[tuple[State, Evidence]] = set()
    for _ in range(60):
        played = player()
        for _ in range(200):
            groups: list[list[ev.Event]] = [OUTPUTS, STATEMENTS, KEYS, [SMALL]]
            events = chance.choice(groups)
            played.at(played.now + chance.choice([0, 0.25, 1, 2, 5, 20]), chance.choice(events))
            seen.add((played.verdict.state, played.verdict.source))
            if chance.random() < 0.005:
                played.give(ev.ProcessExited(), ev.ProcessStarted())
    works = {Evidence.REPORT, Evidence.HOOK, Evidence.TITLE, Evidence.PROGRESS}
    works |= {Evidence.SCREEN, Evidence.OUTPUT, Evidence.KEYS, Evidence.TTY}
    needs = {
        Evidence.REPORT,
        Evidence.HOOK,
        Evidence.TITLE,
        Evidence.NOTICE,
        Evidence.TTY,
        Evidence.SILENCE,
    }
    assert {source for state, source in seen if state is State.RUNNING} == works
    assert {source for state, source in seen if state is State.NEEDS_INPUT} == needs
    assert {source for state, source in seen if state is State.STALE} == needs
