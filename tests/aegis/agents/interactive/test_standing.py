"""The state of a terminal agent: launches, verdicts, ends, and the messages to people."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.agents.interactive.standing import (
    BURST,
    REFILL_S,
    Action,
    AgentClosed,
    AgentStanding,
    AgentStopping,
    Event,
    Launched,
    LaunchEnded,
    Launching,
    NotLaunched,
    ReportState,
    VerdictReported,
    WakePeople,
    need_text,
    wake_body,
)
from aegis.lifecycle.states import Evidence, Need, State, Verdict

ASKS = Need(kind="permission", text="Bash: make", tool="Bash", tool_input='{"command": "make"}')


def new() -> AgentStanding:
    return AgentStanding(terminal="pm", life="l", since=0.0)


def given(*events: Event) -> AgentStanding:
    standing = new()
    for event in events:
        standing.handle(event, 1.0)
    return standing


def running(raw_start: int = 10, seq: int = 3) -> AgentStanding:
    return given(Launching(), Launched(seq=seq, raw_start=raw_start))


def judged(
    state: State = State.RUNNING,
    need: Need | None = None,
    *,
    since: float = 2.0,
    raw_start: int = 10,
    source: Evidence = Evidence.REPORT,
) -> VerdictReported:
    verdict = Verdict(state=state, since=since, source=source, need=need)
    return VerdictReported(raw_start=raw_start, verdict=verdict, since=1000 + since)


def asks(since: float = 2.0, **changed: Any) -> VerdictReported:
    return judged(State.NEEDS_INPUT, ASKS, since=since, **changed)


def wakes(actions: list[Action]) -> list[WakePeople]:
    return [each for each in actions if isinstance(each, WakePeople)]


def test_an_agent_begins_without_a_process() -> None:
    assert (new().state, new().runs, new().launches) == ("exited", False, 0)


def test_a_launch_is_starting_and_then_runs() -> None:
    standing = new()
    assert standing.handle(Launching(), 5.0) == [ReportState()]
    assert (standing.state, standing.since, standing.runs) == ("starting", 5.0, False)
    standing.handle(Launched(seq=3, raw_start=10), 6.0)
    assert (standing.state, standing.runs, standing.launches) == ("starting", True, 1)


def test_a_launch_that_failed_leaves_the_reason() -> None:
    standing = given(Launching(), NotLaunched("no such directory"))
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
    assert standing.handle(judged(state), 3.0)[0] == ReportState()
    assert (standing.state, standing.since) == (shown, 1002.0)


def test_the_same_verdict_again_is_no_change() -> None:
    standing = running()
    standing.handle(judged(), 3.0)
    assert standing.handle(judged(), 4.0) == []


def test_a_verdict_about_another_command_is_ignored() -> None:
    standing = running(raw_start=10)
    assert standing.handle(asks(raw_start=11), 3.0) == []
    assert standing.state == "starting"


def test_a_verdict_that_comes_before_the_launch_is_confirmed_counts_then() -> None:
    standing = given(Launching(), asks(raw_start=10))
    assert standing.need is None
    actions = standing.handle(Launched(seq=3, raw_start=10), 3.0)
    assert standing.state == "needs_input"
    assert len(wakes(actions)) == 1


def test_an_early_verdict_about_the_separator_does_not_count() -> None:
    standing = given(Launching(), asks(raw_start=9), Launched(seq=3, raw_start=10))
    assert standing.state == "starting"


def test_an_early_verdict_of_the_launch_before_does_not_count() -> None:
    standing = running(raw_start=10)
    for event in (LaunchEnded(seq=3, exit_code=0, end="exited"), asks(raw_start=10), Launching()):
        standing.handle(event, 4.0)
    standing.handle(Launched(seq=5, raw_start=10), 5.0)
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
    standing.handle(asks(), 3.0)
    standing.handle(LaunchEnded(seq=3, exit_code=7, end=end), 4.0)
    assert (standing.state, standing.exit_code, standing.reason) == ("exited", 7, reason)
    assert standing.need is None
    assert not standing.runs


def test_the_end_of_another_process_is_ignored() -> None:
    standing = running(seq=3)
    assert standing.handle(LaunchEnded(seq=2, exit_code=0, end="exited"), 4.0) == []
    assert standing.runs


def test_the_exit_in_a_verdict_waits_for_the_record() -> None:
    standing = running()
    assert standing.handle(judged(State.EXITED, source=Evidence.EXIT), 3.0) == []
    assert standing.runs


def test_a_stop_is_shown_until_the_end() -> None:
    standing = running()
    assert standing.handle(AgentStopping(), 3.0) == [ReportState()]
    assert standing.reason == "it is being stopped"
    standing.handle(LaunchEnded(seq=3, exit_code=143, end="exited"), 4.0)
    assert standing.reason == ""


def test_a_stop_without_a_process_changes_nothing() -> None:
    assert new().handle(AgentStopping(), 3.0) == []


def test_a_closed_agent_has_no_process() -> None:
    standing = running()
    standing.handle(AgentClosed(), 5.0)
    assert (standing.state, standing.runs) == ("closed", False)


def test_people_are_woken_once_for_a_need() -> None:
    standing = running()
    assert len(wakes(standing.handle(asks(since=2.0), 3.0))) == 1
    fuller = Need(kind="permission", text="Bash: make, in the project's directory")
    again = judged(State.NEEDS_INPUT, fuller, since=2.0)
    assert wakes(standing.handle(again, 3.5)) == []
    assert wakes(standing.handle(judged(State.STALE, ASKS, since=62.0), 63.0)) == []


def test_another_question_wakes_again_with_another_key() -> None:
    standing = running()
    first = wakes(standing.handle(asks(since=2.0), 3.0))
    second = wakes(standing.handle(asks(since=9.0), 9.0))
    assert [each.key for each in first + second] == ["l/1/1", "l/1/2"]


def test_a_need_after_work_wakes_again() -> None:
    standing = running()
    standing.handle(asks(since=2.0), 3.0)
    standing.handle(judged(since=4.0), 4.0)
    assert len(wakes(standing.handle(asks(since=6.0), 6.0))) == 1


def test_keys_of_two_launches_differ() -> None:
    standing = running()
    first = wakes(standing.handle(asks(), 3.0))
    for event in (LaunchEnded(seq=3, exit_code=0, end="exited"), Launching()):
        standing.handle(event, 4.0)
    standing.handle(Launched(seq=5, raw_start=20), 5.0)
    second = wakes(standing.handle(asks(since=6.0, raw_start=20), 6.0))
    assert {each.key for each in first} != {each.key for each in second}


def test_a_program_that_asks_without_end_wakes_at_a_bounded_rate() -> None:
    standing = running()
    found = [wakes(standing.handle(asks(since=float(at)), 100.0)) for at in range(100)]
    assert sum(map(len, found)) == BURST
    later = 100.0 + 3 * REFILL_S
    found = [wakes(standing.handle(asks(since=200.0 + at), later)) for at in range(100)]
    assert sum(map(len, found)) == 3


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
