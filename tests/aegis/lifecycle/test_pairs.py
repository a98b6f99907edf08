"""Pairs of sources that disagree: the decision of each, and the moment at which a claim ends."""

from __future__ import annotations

import itertools

import pytest

from aegis.lifecycle import events as ev
from aegis.lifecycle.notices import Notice, ProgressNotice
from aegis.lifecycle.states import Evidence, Need, NeedKind, State
from aegis.lifecycle.tty_facts import TtyFact
from tests.aegis.lifecycle.playing import (
    BELL,
    BLINK,
    BYTES,
    IS_BUSY,
    LINE_READ,
    NO_READ,
    TEXT,
    given,
    hook,
    keys,
    report,
    title,
)

S = State
RUNNING, NEEDS_INPUT, STALE = S.RUNNING, S.NEEDS_INPUT, S.STALE
BASH = '"tool_name": "Bash", "tool_input": {"command": "touch y.txt"}'

WORKS: dict[Evidence, ev.Event] = {
    Evidence.REPORT: report("state=working"),
    Evidence.HOOK: hook("UserPromptSubmit"),
    Evidence.TITLE: title("⠋ w"),
    Evidence.PROGRESS: ProgressNotice(in_progress=True),
}
NEEDS: dict[Evidence, ev.Event] = {
    Evidence.REPORT: report("state=blocked:kind=question:msg=UT8="),
    Evidence.HOOK: hook("PermissionRequest", BASH),
    Evidence.TITLE: title("✋  Action Required (w)"),
    Evidence.NOTICE: Notice("look"),
    Evidence.TTY: LINE_READ,
}
ORDER = [
    *(Evidence.REPORT, Evidence.HOOK, Evidence.TITLE),
    *(Evidence.NOTICE, Evidence.PROGRESS, Evidence.TTY),
]
PAIRS = list(itertools.combinations(ORDER, 2))


# The order.


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("stronger", "weaker"), PAIRS)
def test_the_stronger_of_two_claims_decides(
    stronger: Evidence, weaker: Evidence, order: int
) -> None:
    cases = [(WORKS, NEEDS, RUNNING), (NEEDS, WORKS, NEEDS_INPUT), (NEEDS, NEEDS, NEEDS_INPUT)]
    for strong, weak, state in cases:
        if stronger not in strong or weaker not in weak:
            continue
        if stronger is Evidence.NOTICE and weaker is Evidence.PROGRESS and order == 1:
            continue  # progress after a notification refutes it
        player = given(*[strong[stronger], weak[weaker]][::order])
        assert player.shown == (state, stronger)


@pytest.mark.parametrize("source", NEEDS)
def test_a_need_holds_against_silence_and_blinks(source: Evidence) -> None:
    player = given(NEEDS[source])
    for tick in range(2, 100):
        assert player.at(0.6 * tick, BLINK).state is NEEDS_INPUT
        assert player.verdict.source is source
    assert player.at(60.9).state is NEEDS_INPUT
    assert player.at(61.0).state is STALE
    assert player.verdict.source is source


@pytest.mark.parametrize("source", [Evidence.REPORT, Evidence.HOOK, Evidence.TITLE])
def test_a_need_that_the_program_states_holds_against_text(source: Evidence) -> None:
    player = given(NEEDS[source])
    for moment in (2.0, 3.0, 70.0, 71.0):
        player.at(moment, TEXT, BYTES)
        assert player.verdict.source is source
    assert player.verdict.state is STALE  # the claim holds, and so does the time


@pytest.mark.parametrize("source", [Evidence.HOOK, Evidence.TITLE, Evidence.PROGRESS])
@pytest.mark.parametrize("output", [BLINK, BYTES, TEXT])
def test_work_without_a_heartbeat_is_believed_while_bytes_flow(
    source: Evidence, output: ev.Output
) -> None:
    player = given(WORKS[source])
    for moment in (5.0, 9.0, 13.0):
        player.at(moment, output)
        assert player.shown == (RUNNING, source)
    assert player.at(17.9).state is RUNNING
    assert player.at(18.0).state is NEEDS_INPUT
    assert player.verdict.source is Evidence.SILENCE
    # A static title of an agent that was stopped for a while is right again.
    player.at(30.0, BLINK)
    assert player.shown == (RUNNING, source)


# Status reports.


def test_a_report_of_work_holds_in_silence() -> None:
    player = given(report("state=working"))
    assert player.at(100_000.0).state is RUNNING
    assert player.verdict.since == 0.5


@pytest.mark.parametrize("event", [report("state=clear"), ev.PromptBegun(), ev.TerminalReset()])
@pytest.mark.parametrize("state", ["working", "blocked"])
def test_the_end_of_a_report_leaves_the_decision_to_weaker_evidence(
    state: str, event: ev.Event
) -> None:
    player = given(report(f"state={state}"))
    assert player.at(3.0, event).source is Evidence.SCREEN
    player = given(report(f"state={state}"))
    assert player.at(60.0, event).source is Evidence.SILENCE


@pytest.mark.parametrize(
    ("state", "kind"), [("idle", "ready"), ("done", "ready"), ("error", "failed")]
)
def test_a_result_survives_a_prompt_but_no_reset(state: str, kind: NeedKind) -> None:
    player = given(report(f"state={state}:msg=bXNn"))
    assert player.at(3.0, ev.PromptBegun()).source is Evidence.REPORT
    assert player.verdict.need == Need(kind=kind, text="msg")
    assert player.at(3.1, ev.TerminalReset()).source is Evidence.SCREEN


def test_a_prompt_ends_the_claims_of_the_program_that_was_in_front() -> None:
    for event in (WORKS[Evidence.TITLE], WORKS[Evidence.HOOK], WORKS[Evidence.PROGRESS], BELL):
        player = given(event)
        assert player.at(3.0, ev.PromptBegun()).source is Evidence.SCREEN


def test_a_program_that_reported_once_is_stale_not_forgotten() -> None:
    player = given(report("state=blocked:kind=auth"))
    assert player.at(61.0).state is STALE
    assert player.at(10_000.0).need == Need(kind="auth")


def test_an_answered_program_that_never_reports_again_runs_by_its_text() -> None:
    player = given(report("state=blocked:kind=question:msg=UT8="))
    player.at(3.0, keys(b"yes\r"))
    assert player.shown == (RUNNING, Evidence.KEYS)
    player.at(3.5, TEXT)  # echo
    player.at(4.5, TEXT)
    assert player.shown == (RUNNING, Evidence.SCREEN)
    player.at(9.5)
    assert player.shown == (NEEDS_INPUT, Evidence.SILENCE)
    assert player.verdict.need == Need(kind="input")


def test_a_question_that_was_not_answered_after_all_is_asked_again() -> None:
    player = given(report("state=blocked:kind=question:msg=UT8="))
    player.at(3.0, keys(b"x"))
    for tick in range(1, 8):
        player.at(3.0 + 0.6 * tick, BLINK)
    assert player.shown == (RUNNING, Evidence.KEYS)
    player.at(8.0)
    assert player.shown == (NEEDS_INPUT, Evidence.REPORT)
    assert player.verdict.since == 8.0
    assert player.at(67.9).state is NEEDS_INPUT
    assert player.at(68.0).state is STALE


def test_the_same_report_just_after_the_answer_is_an_old_one() -> None:
    player = given(report("state=blocked"))
    player.at(3.0, keys(b"y"))
    assert player.at(3.2, report("state=blocked")).state is RUNNING
    assert player.at(3.3, report("state=blocked:msg=bmV4dA==")).state is NEEDS_INPUT
    player.at(3.4, keys(b"y"))
    assert player.at(4.4, report("state=blocked:msg=bmV4dA==")).state is NEEDS_INPUT


@pytest.mark.parametrize("state", ["idle", "done", "error"])
def test_a_draft_is_no_answer_to_an_agent_that_takes_an_order(state: str) -> None:
    player = given(report(f"state={state}"))
    for number, key in enumerate((b"f", b"i", b"x", b"\x1b", b"\x1b[200~a\nb\x1b[201~")):
        player.at(2.0 + number, keys(key))
        assert player.at(2.1 + number, TEXT).state is NEEDS_INPUT
    assert player.at(9.0, keys(b"\r")).state is RUNNING


def test_the_reports_of_children_decide_nothing() -> None:
    for root in ("working", "blocked", "done"):
        player = given(report(f"state={root}"))
        before = player.verdict
        for state in ("working", "blocked", "done", "error", "idle", "clear"):
            assert player.at(player.now + 1, report(f"state={state}:id=hook")) is before
    player = given(report("state=blocked:id=hook"))
    assert player.shown == (RUNNING, Evidence.SCREEN)


def test_a_flood_of_children_cannot_evict_their_parent() -> None:
    player = given(report("state=blocked:kind=permission"))
    before = player.verdict
    for number in range(500):
        player.give(report(f"state=working:id=c{number}"))
    assert player.verdict is before


# Titles, notifications, progress.


def test_a_title_that_is_ready_holds_while_output_flows() -> None:
    player = given(title("◇  Ready (w)"))
    for moment in (2.0, 3.0, 4.0):
        player.at(moment, TEXT)
        assert player.shown == (NEEDS_INPUT, Evidence.TITLE)


def test_a_static_title_yields_to_text_after_an_order() -> None:
    player = given(title("✳ notes"))
    player.at(2.0, keys(b"go\r"))
    player.at(4.0, TEXT)
    assert player.shown == (RUNNING, Evidence.SCREEN)
    player.at(9.0)
    assert player.shown == (NEEDS_INPUT, Evidence.SILENCE)


def test_a_title_without_a_class_ends_the_claim() -> None:
    player = given(title("⠋ w"))
    assert player.at(2.0, title("w")).source is Evidence.SCREEN
    assert player.verdict.title == "w"


def test_a_blinking_title_is_one_question() -> None:
    player = given(title("[ ! ] Action Required | w"))
    before = player.verdict
    for tick in range(1, 50):
        mark = "!."[tick % 2]
        assert player.at(1.0 + tick, title(f"[ {mark} ] Action Required | w"), BLINK) is before
    assert player.at(61.0).state is STALE


@pytest.mark.parametrize("notice", [BELL, Notice("done")])
def test_a_notification_is_refuted_by_later_text(notice: Notice) -> None:
    player = given(notice)
    assert player.shown == (NEEDS_INPUT, Evidence.NOTICE)
    assert player.at(1.5, TEXT).state is NEEDS_INPUT  # the prompt that it belongs to
    assert player.at(2.0, TEXT).state is RUNNING


def test_a_bell_for_a_key_is_no_notification() -> None:
    player = given(TEXT)
    player.at(2.0, keys(b"\t"))
    assert player.at(2.1, BELL).state is RUNNING
    assert player.at(2.2, Notice("it failed")).state is NEEDS_INPUT


def test_a_notification_gives_its_text_to_a_title() -> None:
    player = given(title("✳ Claude Code"), Notice("Claude needs your permission"))
    assert player.shown == (NEEDS_INPUT, Evidence.TITLE)
    assert player.verdict.need == Need(kind="input", text="Claude needs your permission")
    assert player.at(3.0, keys(b"1")).state is RUNNING


def test_progress_refutes_an_earlier_notification() -> None:
    player = given(Notice("half done"))
    assert player.at(2.0, ProgressNotice(in_progress=True)).state is RUNNING
    assert player.at(2.1, Notice("look")).state is NEEDS_INPUT
    assert player.at(2.2, ProgressNotice(in_progress=False)).state is NEEDS_INPUT


def test_progress_ends_when_it_is_removed() -> None:
    player = given(ProgressNotice(in_progress=True, percent=40))
    assert player.verdict.progress == 40
    assert player.at(2.0, ProgressNotice(in_progress=False)).source is Evidence.SCREEN
    assert player.verdict.progress is None


def test_the_progress_of_a_report_comes_first() -> None:
    player = given(ProgressNotice(in_progress=True, percent=40), report("state=working:progress=7"))
    assert player.verdict.progress == 7
    assert player.at(2.0, report("state=working")).progress == 40


# The tty.


def test_a_read_of_a_line_needs_input_at_once() -> None:
    player = given(TEXT)
    assert player.at(1.1, LINE_READ).state is NEEDS_INPUT
    assert player.at(1.2, keys(b"y")).state is NEEDS_INPUT  # no line yet
    assert player.at(1.3, keys(b"\r")).state is RUNNING


def test_a_read_ends_with_output_or_when_it_has_its_line() -> None:
    player = given(LINE_READ)
    assert player.at(2.0, TEXT).state is RUNNING
    player = given(LINE_READ)
    assert player.at(60.0, NO_READ).source is Evidence.TTY
    assert player.verdict.state is RUNNING
    assert player.at(65.0).state is NEEDS_INPUT


def test_a_check_without_a_read_says_nothing() -> None:
    player = given(TEXT)
    assert player.at(5.9, NO_READ).state is RUNNING
    assert player.at(6.0, NO_READ).state is NEEDS_INPUT
    assert player.at(7.0, NO_READ).source is Evidence.SILENCE


def test_a_password_prompt_is_found_when_a_title_stops_turning() -> None:
    secret = TtyFact(Need(kind="auth", text="sudo reads a line without echo"))
    player = given(title("⠋ build"), secret)
    assert player.verdict.state is RUNNING
    player.at(6.0)
    assert player.shown == (NEEDS_INPUT, Evidence.TTY)
    assert player.verdict.need is not None
    assert player.verdict.need.kind == "auth"


# Another question, and the stale time.


def test_another_question_begins_the_need_anew() -> None:
    player = given(report("state=done"))
    assert player.at(100.0).state is STALE
    player.at(101.0, report("state=blocked:kind=permission"))
    assert player.shown == (NEEDS_INPUT, Evidence.REPORT)
    assert player.verdict.since == 101.0
    assert player.at(160.9).state is NEEDS_INPUT
    assert player.at(161.0).state is STALE


def test_another_question_within_the_stale_time_has_its_own_begin() -> None:
    player = given(report("state=done"))
    assert player.at(30.0, report("state=blocked:kind=permission")).since == 30.0
    assert player.at(89.9).state is NEEDS_INPUT
    assert player.at(90.0).state is STALE


def test_a_question_that_is_withdrawn_in_silence_is_still_the_same_wait() -> None:
    player = given(report("state=blocked:msg=UT8="))
    player.at(100.0, report("state=clear"))
    assert player.shown == (STALE, Evidence.SILENCE)
    assert player.verdict.since == 61.0


def test_a_need_becomes_known_without_another_question() -> None:
    player = given(report("state=blocked:kind=permission"))
    assert player.at(60.0, report("state=blocked:kind=permission:msg=UT8=")).since == 1.0
    assert player.at(61.0).state is STALE
    assert player.at(62.0, report("state=blocked:kind=permission:msg=UTI=")).since == 62.0
    assert player.verdict.state is NEEDS_INPUT


def test_a_question_after_a_long_silence_is_new() -> None:
    player = given(TEXT)
    assert player.at(100.0).state is STALE
    assert player.at(101.0, Notice("ok?"), TEXT).state is NEEDS_INPUT
    assert player.verdict.since == 101.0


def test_a_busy_program_that_is_silent_works_until_a_check_finds_otherwise() -> None:
    player = given(IS_BUSY)
    player.at(40.0)
    assert player.shown == (RUNNING, Evidence.TTY)
    player.at(41.0, IS_BUSY)
    assert player.at(90.0).state is RUNNING
    player.at(91.0, NO_READ)
    assert player.shown == (RUNNING, Evidence.TTY)
    player.at(96.0)
    assert player.shown == (NEEDS_INPUT, Evidence.SILENCE)


def test_a_busy_program_that_begins_to_read_needs_input_at_once() -> None:
    player = given(IS_BUSY)
    player.at(20.0, LINE_READ)
    assert player.shown == (NEEDS_INPUT, Evidence.TTY)


def test_output_ends_what_was_known_of_a_busy_program() -> None:
    player = given(IS_BUSY)
    player.at(20.0, TEXT)
    player.at(25.0)
    assert player.shown == (NEEDS_INPUT, Evidence.SILENCE)


def test_a_program_that_was_busy_when_it_was_looked_at_and_then_blinks_needs_input() -> None:
    player = given(IS_BUSY)
    for tenth in range(200, 249):
        player.at(tenth / 10, BLINK)
        assert player.shown == (RUNNING, Evidence.TTY)
    player.at(25.0, BLINK)
    assert player.shown == (NEEDS_INPUT, Evidence.SILENCE)


def test_a_busy_tty_is_weaker_than_a_report_that_it_is_blocked() -> None:
    player = given(report("state=blocked"), IS_BUSY)
    assert player.shown == (NEEDS_INPUT, Evidence.REPORT)
