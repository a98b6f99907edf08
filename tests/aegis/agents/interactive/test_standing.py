"""The state of a terminal agent: launches, verdicts, ends, and the messages to people."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.interactive.standing import (
    BURST,
    REFILL_S,
    AgentStanding,
    Wake,
    need_text,
    wake_body,
)
from aegis.lifecycle.states import Evidence, Need, State, Verdict

ASKS = Need(kind="permission", text="Bash: make", tool="Bash", tool_input='{"command": "make"}')


def new() -> AgentStanding:
    return AgentStanding(terminal="pm", life="l", since=0.0)


def launching() -> AgentStanding:
    standing = new()
    standing.launching(1.0)
    return standing


def running(raw_start: int = 10, seq: int = 3) -> AgentStanding:
    standing = launching()
    assert standing.launched(1.0, seq=seq, raw_start=raw_start) is None
    return standing


def judge(
    standing: AgentStanding,
    now: float,
    state: State = State.RUNNING,
    need: Need | None = None,
    *,
    since: float = 2.0,
    raw_start: int = 10,
    source: Evidence = Evidence.REPORT,
) -> Wake | None:
    verdict = Verdict(state=state, since=since, source=source, need=need)
    return standing.judged(now, raw_start, verdict, 1000 + since)


def asks(standing: AgentStanding, now: float, since: float = 2.0, **changed: Any) -> Wake | None:
    return judge(standing, now, State.NEEDS_INPUT, ASKS, since=since, **changed)


def relaunch(standing: AgentStanding, raw_start: int) -> None:
    standing.ended(4.0, seq=3, exit_code=0, end="exited")
    standing.launching(4.0)
    standing.launched(5.0, seq=5, raw_start=raw_start)


def test_an_agent_begins_without_a_process() -> None:
    assert (new().state, new().runs, new().launches) == ("exited", False, 0)


def test_a_launch_is_starting_and_then_runs() -> None:
    standing = new()
    before = standing.shown
    standing.launching(5.0)
    assert standing.shown != before
    assert (standing.state, standing.since, standing.runs) == ("starting", 5.0, False)
    standing.launched(6.0, seq=3, raw_start=10)
    assert (standing.state, standing.runs, standing.launches) == ("starting", True, 1)


def test_a_launch_that_failed_leaves_the_reason() -> None:
    standing = launching()
    standing.not_launched(1.0, "no such directory")
    assert (standing.state, standing.reason) == ("exited", "no such directory")


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (State.STARTING, "starting"),
        (State.RUNNING, "running"),
        (State.NEEDS_INPUT, "needs_input"),
        (State.STALE, "stale"),
    ],
)
def test_a_verdict_is_the_state_since_its_moment(state: State, shown: str) -> None:
    standing = running()
    before = standing.shown
    judge(standing, 3.0, state)
    assert standing.shown != before
    assert (standing.state, standing.since) == (shown, 1002.0)


def test_the_same_verdict_again_is_no_change() -> None:
    standing = running()
    judge(standing, 3.0)
    before = standing.shown
    assert judge(standing, 4.0) is None
    assert standing.shown == before


def test_a_verdict_about_another_command_is_ignored() -> None:
    standing = running(raw_start=10)
    before = standing.shown
    assert asks(standing, 3.0, raw_start=11) is None
    assert standing.shown == before
    assert standing.state == "starting"


def test_a_verdict_that_comes_before_the_launch_is_confirmed_counts_then() -> None:
    standing = launching()
    assert asks(standing, 1.0, raw_start=10) is None
    assert standing.need is None
    assert standing.launched(3.0, seq=3, raw_start=10) is not None
    assert standing.state == "needs_input"


def test_an_early_verdict_about_the_separator_does_not_count() -> None:
    standing = launching()
    asks(standing, 1.0, raw_start=9)
    assert standing.launched(1.0, seq=3, raw_start=10) is None
    assert standing.state == "starting"


def test_an_early_verdict_of_the_launch_before_does_not_count() -> None:
    standing = running(raw_start=10)
    standing.ended(4.0, seq=3, exit_code=0, end="exited")
    asks(standing, 4.0, raw_start=10)
    standing.launching(4.0)
    assert standing.launched(5.0, seq=5, raw_start=10) is None
    assert standing.state == "starting"


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("exited", ""),
        ("killed_by_restart", "its terminal was restarted"),
        ("closed", "its terminal was closed"),
        ("shell_exit", "the shell of its terminal has ended"),
        ("lost", "its end was not seen"),
    ],
)
def test_an_end_is_shown_with_its_reason(end: Any, reason: str) -> None:
    standing = running()
    asks(standing, 3.0)
    standing.ended(4.0, seq=3, exit_code=7, end=end)
    assert (standing.state, standing.exit_code, standing.reason) == ("exited", 7, reason)
    assert standing.need is None
    assert not standing.runs


def test_the_end_of_another_process_is_ignored() -> None:
    standing = running(seq=3)
    before = standing.shown
    standing.ended(4.0, seq=2, exit_code=0, end="exited")
    assert standing.shown == before
    assert standing.runs


def test_the_exit_in_a_verdict_waits_for_the_record() -> None:
    standing = running()
    before = standing.shown
    assert judge(standing, 3.0, State.EXITED, source=Evidence.EXIT) is None
    assert standing.shown == before
    assert standing.runs


def test_a_stop_is_shown_until_the_end() -> None:
    standing = running()
    before = standing.shown
    standing.stopping()
    assert standing.shown != before
    assert standing.reason == "it is being stopped"
    standing.ended(4.0, seq=3, exit_code=143, end="exited")
    assert standing.reason == ""


def test_a_stop_without_a_process_changes_nothing() -> None:
    standing = new()
    standing.stopping()
    assert standing.shown == new().shown


def test_a_closed_agent_has_no_process() -> None:
    standing = running()
    standing.closed(5.0)
    assert (standing.state, standing.runs) == ("closed", False)


def test_people_are_woken_once_for_a_need() -> None:
    standing = running()
    assert asks(standing, 3.0, since=2.0) is not None
    fuller = Need(kind="permission", text="Bash: make, in the project's directory")
    assert judge(standing, 3.5, State.NEEDS_INPUT, fuller, since=2.0) is None
    assert judge(standing, 63.0, State.STALE, ASKS, since=62.0) is None


def test_another_question_wakes_again_with_another_key() -> None:
    standing = running()
    wakes = [asks(standing, 3.0, since=2.0), asks(standing, 9.0, since=9.0)]
    assert [each[0] for each in wakes if each is not None] == ["l/1/1", "l/1/2"]


def test_a_need_after_work_wakes_again() -> None:
    standing = running()
    asks(standing, 3.0, since=2.0)
    judge(standing, 4.0, since=4.0)
    assert asks(standing, 6.0, since=6.0) is not None


def test_keys_of_two_launches_differ() -> None:
    standing = running()
    first = asks(standing, 3.0)
    relaunch(standing, raw_start=20)
    second = asks(standing, 6.0, since=6.0, raw_start=20)
    assert first is not None
    assert second is not None
    assert first[0] != second[0]


def test_the_end_of_an_earlier_daemon_is_shown_until_there_is_a_launch() -> None:
    standing = new()
    standing.remembered(7.0, exit_code=3, end="closed")
    assert (standing.state, standing.since, standing.exit_code) == ("exited", 7.0, 3)
    assert standing.reason == "its terminal was closed"
    standing = launching()
    before = standing.shown
    standing.remembered(7.0, exit_code=3, end="closed")
    assert standing.shown == before


def test_a_program_that_asks_without_end_wakes_at_a_bounded_rate() -> None:
    standing = running()
    wakes = [asks(standing, 100.0, since=float(at)) for at in range(100)]
    assert sum(each is not None for each in wakes) == BURST
    later = 100.0 + 3 * REFILL_S
    wakes = [asks(standing, later, since=200.0 + at) for at in range(100)]
    assert sum(each is not None for each in wakes) == 3


def test_the_message_names_the_question_the_tool_and_the_remedy() -> None:
    assert wake_body(ASKS, Evidence.HOOK, "pm").split("\n") == [
        "asks for a permission: Bash: make",
        "──",
        'Bash {"command": "make"}',
        "──",
        "answer with: aegis-actors term attach pm",
    ]


def test_silence_is_called_silence() -> None:
    need = Need(kind="input")
    assert need_text(need, Evidence.SILENCE) == "is silent, and may wait for input"
    assert need_text(need, Evidence.TTY) == "waits for input"
