"""The transitions between the states, each by its least evidence."""

from __future__ import annotations

import pytest

from aegis.lifecycle import events as ev
from aegis.lifecycle.machine import LifeCycle
from aegis.lifecycle.states import Evidence, Need, State, Verdict
from tests.aegis.lifecycle.playing import (
    BLINK,
    BYTES,
    LINE_READ,
    SMALL,
    TEXT,
    TURN,
    Player,
    hook,
    keys,
    report,
    title,
)

S = State


def test_without_a_process_an_agent_is_exited() -> None:
    cycle = LifeCycle()
    assert (cycle.verdict.state, cycle.verdict.source) == (S.EXITED, Evidence.EXIT)
    assert cycle.handle(TEXT, 1.0) == []


def test_a_started_agent_is_starting() -> None:
    cycle = LifeCycle()
    judged, wake = cycle.handle(ev.ProcessStarted(), 100.0)
    assert judged == ev.VerdictChanged(cycle.verdict)
    assert wake == ev.StartTimer(5.0)
    assert (cycle.verdict.state, cycle.verdict.since) == (S.STARTING, 100.0)


@pytest.mark.parametrize("output", [TEXT, BLINK, BYTES])
def test_the_first_output_makes_it_running(output: ev.Output) -> None:
    player = Player()
    assert player.at(1.0, output).state is S.RUNNING
    assert player.verdict.since == 1.0


def test_a_glyph_that_turns_steadily_is_work_and_a_single_turn_is_nothing() -> None:
    player = Player()
    player.at(1.0, TEXT)
    for tenth in range(20, 200):
        player.at(tenth / 10, TURN)
    assert player.verdict.state is S.RUNNING
    assert player.at(24.8).state is S.RUNNING
    assert player.at(25.0).state is S.NEEDS_INPUT
    for moment in (26.0, 29.0, 32.0, 35.0):
        assert player.at(moment, TURN).state is S.NEEDS_INPUT


def test_a_turning_glyph_answers_no_prompt() -> None:
    player = Player()
    player.at(1.0, TEXT)
    player.at(1.1, report("state=blocked"))
    for tenth in range(20, 100):
        assert player.at(tenth / 10, TURN).state is S.NEEDS_INPUT


def test_a_silent_start_needs_input_after_the_idle_time() -> None:
    player = Player()
    assert player.at(4.9).state is S.STARTING
    assert player.at(5.0).state is S.NEEDS_INPUT
    assert player.verdict.source is Evidence.SILENCE
    assert player.verdict.need == Need(kind="input")


def test_it_needs_input_after_the_idle_time_without_output() -> None:
    player = Player()
    for moment in (1.0, 5.0, 9.0):
        assert player.at(moment, TEXT).state is S.RUNNING
    assert player.at(13.9).state is S.RUNNING
    assert player.at(14.0).state is S.NEEDS_INPUT
    assert player.verdict.since == 14.0


def test_new_output_makes_it_running_again() -> None:
    player = Player()
    player.at(1.0, TEXT)
    assert player.at(10.0).state is S.NEEDS_INPUT
    assert player.at(11.0, TEXT).state is S.RUNNING
    assert player.verdict.since == 11.0
    assert player.verdict.need is None


def test_it_is_stale_after_the_stale_time_from_the_begin_of_its_need() -> None:
    player = Player()
    player.at(1.0, TEXT)  # needs input at 6
    assert player.at(65.9).state is S.NEEDS_INPUT
    assert player.at(66.0).state is S.STALE
    assert (player.verdict.since, player.verdict.source) == (66.0, Evidence.SILENCE)
    assert player.at(10_000.0).since == 66.0


def test_output_ends_stale() -> None:
    player = Player()
    assert player.at(100.0).state is S.STALE
    assert player.at(101.0, TEXT).state is S.RUNNING
    assert player.at(106.0).state is S.NEEDS_INPUT
    assert player.at(165.9).state is S.NEEDS_INPUT
    assert player.at(166.0).state is S.STALE


def test_keys_before_the_first_output_leave_it_starting() -> None:
    player = Player()
    player.at(1.0, keys(b"order\r"))
    assert player.at(1.1, BYTES).state is S.STARTING  # their echo
    assert player.at(4.9).state is S.STARTING
    assert player.at(5.0).state is S.NEEDS_INPUT


@pytest.mark.parametrize("key", [b"y", b"\r", b"\x1b", b"1", b"\x1b[27u"])
@pytest.mark.parametrize("moment", [10.0, 100.0])
def test_a_key_that_answers_makes_it_running_at_once(key: bytes, moment: float) -> None:
    player = Player()
    player.at(moment, keys(key))
    assert player.shown == (S.RUNNING, Evidence.KEYS)
    assert player.at(moment + 4.9).state is S.RUNNING
    assert player.at(moment + 5.0).state is S.NEEDS_INPUT


@pytest.mark.parametrize("key", [b"\x1b[A", b"\x1bOB", b"\t", b"\x1b[I", b"\x1b[<0;3;4M"])
def test_a_key_that_only_moves_answers_nothing(key: bytes) -> None:
    player = Player()
    player.at(10.0, keys(key))
    assert player.at(10.1, TEXT).state is S.NEEDS_INPUT  # the repaint of the selection
    assert player.at(12.0, TEXT).state is S.RUNNING


def test_the_echo_of_keys_is_no_output() -> None:
    player = Player()
    player.at(1.0, TEXT)
    for moment in (2.0, 3.0, 4.0):
        player.at(moment, keys(b"\x1b[C"))
        player.at(moment + 0.5, TEXT)
    assert player.at(6.0).state is S.NEEDS_INPUT


def test_the_repaint_after_a_resize_is_no_output() -> None:
    player = Player()
    assert player.at(100.0, ev.Resized()).state is S.STALE
    assert player.at(100.3, TEXT, BYTES).state is S.STALE
    assert player.at(101.0, TEXT).state is S.RUNNING


def test_a_blink_is_no_output_once_it_runs() -> None:
    player = Player()
    player.at(1.0, TEXT)
    for tick in range(2, 20):
        player.at(0.6 * tick, BLINK)
    assert player.shown == (S.NEEDS_INPUT, Evidence.SILENCE)


def test_one_small_change_is_no_output_but_a_counter_is() -> None:
    player = Player()
    player.at(1.0, TEXT)
    player.at(4.0, SMALL)  # a clock
    assert player.at(6.0).state is S.NEEDS_INPUT
    player.at(64.0, SMALL)
    assert player.at(64.1, SMALL).state is S.NEEDS_INPUT  # one repaint in two pieces
    assert player.at(69.1, SMALL).state is S.STALE
    assert player.at(70.0, SMALL).state is S.RUNNING  # counts each second
    for moment in (71.0, 72.0, 73.0):
        player.at(moment, SMALL)
    assert player.at(77.9).state is S.RUNNING
    assert player.at(78.0).state is S.NEEDS_INPUT


def test_bytes_of_unknown_effect_are_output() -> None:
    player = Player()
    for moment in (1.0, 5.0, 9.0):
        player.at(moment, BYTES)
    assert player.shown == (S.RUNNING, Evidence.OUTPUT)
    assert player.at(14.0).state is S.NEEDS_INPUT


@pytest.mark.parametrize(
    "before",
    [
        [],
        [TEXT],
        [report("state=blocked:kind=question")],
        [report("state=working")],
        [hook("Stop"), LINE_READ, title("✋ Action Required")],
    ],
)
def test_a_process_that_ended_is_exited_at_once(before: list[ev.Event]) -> None:
    player = Player()
    player.at(1.0, *before)
    exited = player.at(2.0, ev.ProcessExited())
    assert exited == Verdict(state=S.EXITED, since=2.0, source=Evidence.EXIT)
    assert player.at(200.0, TEXT, keys(b"y")) is exited  # no timer judges a dead process


def test_exited_is_final_until_a_restart() -> None:
    player = Player()
    exited = player.at(1.0, ev.ProcessExited())
    for event in (
        TEXT,
        keys(b"y"),
        report("state=working"),
        hook("Stop"),
        ev.TimerExpired(),
        ev.ProcessExited(),
    ):
        assert player.at(player.now + 100, event) is exited


def test_a_report_replaces_the_one_before_and_one_for_a_child_none() -> None:
    player = Player()
    verdict = player.at(1.0, report("state=working:progress=3:title=b2xk"))
    assert (verdict.state, verdict.progress, verdict.title) == (S.RUNNING, 3, "old")
    children = [report(f"state={each}:id=a:progress=9:title=bmV3") for each in ("blocked", "clear")]
    assert player.at(1.5, *children) is verdict
    verdict = player.at(2.0, report("state=blocked"))
    assert (verdict.state, verdict.progress, verdict.title) == (S.NEEDS_INPUT, None, "")
    assert player.at(2.5, report("state=clear")).source is Evidence.START


@pytest.mark.parametrize("state", ["working", "blocked", "idle", "done", "error"])
def test_a_new_prompt_ends_a_report_of_work_and_a_reset_every_one(state: str) -> None:
    player = Player()
    player.at(1.0, report(f"state={state}:title=b2xk"))
    is_work = state in ("working", "blocked")
    verdict = player.at(2.0, ev.PromptBegun())
    assert (verdict.title, verdict.source is Evidence.REPORT) == (
        "" if is_work else "old",
        not is_work,
    )
    verdict = player.at(3.0, ev.TerminalReset())
    assert (verdict.title, verdict.source is Evidence.REPORT) == ("", False)


def test_a_restart_drops_all_evidence() -> None:
    player = Player()
    player.at(1.0, report("state=blocked:app=old:title=b2xk:progress=3"), title("⠋ old"))
    player.at(1.5, report("state=working:id=a"), hook("PermissionRequest"), LINE_READ)
    player.at(2.0, keys(b"y"), ev.ProcessExited())
    verdict = player.at(9.0, ev.ProcessStarted())
    assert (verdict.state, verdict.since, verdict.source) == (S.STARTING, 9.0, Evidence.START)
    assert (verdict.title, verdict.progress, verdict.need) == ("", None, None)
    assert player.at(13.9).state is S.STARTING
    assert player.at(14.0).state is S.NEEDS_INPUT
    assert player.verdict.source is Evidence.SILENCE
    # Hooks of the new process have another session.
    assert player.at(15.0, hook("UserPromptSubmit", session="s2")).source is Evidence.HOOK


def test_a_restart_without_an_exit_starts_anew_too() -> None:
    player = Player()
    player.at(1.0, TEXT)
    assert player.at(2.0, ev.ProcessStarted()).state is S.STARTING


def test_a_flood_of_output_starts_few_timers() -> None:
    player = Player()
    for number in range(10_000):
        player.at(number / 1000, TEXT)
    assert player.verdict.state is S.RUNNING
    assert player.wakes <= 5
    assert len(player.verdicts) == 2


def test_the_idle_time_can_be_short() -> None:
    player = Player(idle_s=0.5, stale_s=1.0)
    player.at(0.25, TEXT)
    assert player.at(0.75).state is S.NEEDS_INPUT
    player.at(1.0, keys(b"y"))
    assert player.at(1.25, TEXT).state is S.RUNNING  # behind the echo of a quarter of a second
    assert player.at(1.625).state is S.RUNNING
    assert player.at(1.75).state is S.NEEDS_INPUT
    assert player.at(2.75).state is S.STALE
