"""The metrics of a session: sums over turns, costs over kills, a gauge that is no sum."""

from __future__ import annotations

import json
import math
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.sessions.metrics import Meter, Metrics, budget_crossed
from aegis.protocol.agent_events import (
    AgentEvent,
    AssistantText,
    Result,
    StateChanged,
    SystemInit,
    Usage,
)

END = Result(messages=["u"], ok=True, reason="completed")


def measured(*events: AgentEvent | str | float) -> Metrics:
    """The metrics after events; a number sets the clock, "begin" and "kill" are what they say."""
    meter, now = Meter(), 0.0
    for event in events:
        if isinstance(event, float):
            now = event
        elif event == "begin":
            meter.begin_turn(now)
        elif event == "kill":
            meter.end_process(now)
        elif not isinstance(event, str):
            meter.take(event, now)
    return meter.metrics


def test_a_session_without_reports_has_none() -> None:
    found = measured(AssistantText(text="Hello"), "begin", 5.0, END)
    assert found == Metrics(turns=1, turns_s=5.0, last_turn_s=5.0)
    assert (found.cached_percent, found.context_percent) == (None, None)


def test_tokens_are_summed_over_turns_and_the_cached_share_is_of_all_input() -> None:
    found = measured(
        Usage(input_tokens=3690, cached_tokens=600, output_tokens=5),
        END,
        Usage(input_tokens=310, cached_tokens=200, output_tokens=7),
        END,
    )
    assert (found.input_tokens, found.cached_tokens, found.output_tokens) == (4000, 800, 12)
    assert (found.turns, found.cached_percent) == (2, 20.0)


def test_the_context_is_the_size_of_the_last_request_and_no_sum() -> None:
    found = measured(
        Usage(context_tokens=3167, context_limit=10_000),
        Usage(context_tokens=3690),
        Usage(input_tokens=9000),
        END,
    )
    assert (found.context_tokens, found.context_percent) == (3690, 36.9)


def test_the_requests_of_a_turn_count_until_the_turn_reports_itself() -> None:
    first = Usage(request="m1", input_tokens=1000, cached_tokens=900, output_tokens=1)
    longer, second = attrs.evolve(first, output_tokens=40), attrs.evolve(first, request="m2")
    turn = Usage(input_tokens=2000, cached_tokens=1800, output_tokens=80)

    def tokens(*events: AgentEvent | str) -> tuple[int | None, ...]:
        found = measured(*events)
        return found.input_tokens, found.cached_tokens, found.output_tokens

    assert tokens("begin", first, longer) == (1000, 900, 40)
    assert tokens("begin", first, longer, second) == (2000, 1800, 41)
    assert tokens("begin", first, longer, second, turn, END) == (2000, 1800, 80)
    assert tokens("begin", first, longer, second, "kill", "kill") == (2000, 1800, 41)
    assert tokens("begin", first, "kill", "begin", second, turn, END) == (3000, 2700, 81)


def test_a_meter_with_an_open_request_continues_as_the_other_would() -> None:
    meter = Meter()
    for number in ("m1", "m2"):
        meter.take(Usage(request=number, input_tokens=10, output_tokens=2), 0.0)
    again = Meter.of(json.loads(json.dumps(meter.fields())))
    for each in (meter, again):
        each.end_process(1.0)
        assert (each.metrics.input_tokens, each.metrics.output_tokens) == (20, 4)
    older = {name: value for name, value in meter.fields().items() if name != "requests"}
    assert Meter.of(older).metrics.input_tokens == 20


def test_another_conversation_has_no_context_yet() -> None:
    first, same = SystemInit(conversation="a"), SystemInit(conversation="a", mode="plan")
    usage = Usage(context_tokens=5, context_limit=10)
    assert measured(first, usage, same).context_tokens == 5
    assert measured(first, usage, SystemInit(conversation="")).context_tokens == 5
    found = measured(first, usage, SystemInit(conversation="b"))
    assert (found.context_tokens, found.context_limit) == (None, 10)


def test_the_cost_is_the_sum_of_the_turns() -> None:
    found = measured(
        Usage(process_cost_usd=0.5, turn_cost_usd=0.5),
        END,
        Usage(process_cost_usd=0.8, turn_cost_usd=0.3),
        END,
    )
    assert found.cost_usd == pytest.approx(0.8)


@pytest.mark.parametrize("resumed_at", [0.0, 0.5])
def test_the_cost_is_carried_over_a_kill(resumed_at: float) -> None:
    """After kill -9 a process counts from zero; after a clean end it counts on."""
    found = measured(
        Usage(process_cost_usd=0.5, turn_cost_usd=0.5),
        END,
        "kill",
        Usage(process_cost_usd=resumed_at + 0.2, turn_cost_usd=0.2),
        END,
    )
    assert found.cost_usd == pytest.approx(0.7)


def test_the_cost_of_a_turn_that_was_killed_counts_as_far_as_it_was_reported() -> None:
    running: list[Any] = [
        Usage(process_cost_usd=0.5, turn_cost_usd=0.5),
        END,
        Usage(process_cost_usd=0.6),
        Usage(process_cost_usd=0.7),
    ]
    assert measured(*running).cost_usd == pytest.approx(0.7)
    assert measured(*running, "kill").cost_usd == pytest.approx(0.7)
    again = Usage(process_cost_usd=0.1, turn_cost_usd=0.1)
    assert measured(*running, "kill", again, END).cost_usd == pytest.approx(0.8)


def test_a_report_of_the_process_and_then_of_the_turn_is_counted_once() -> None:
    found = measured(
        Usage(process_cost_usd=0.4),
        Usage(process_cost_usd=0.5),
        Usage(process_cost_usd=0.5, turn_cost_usd=0.5),
        END,
        "kill",
    )
    assert found.cost_usd == pytest.approx(0.5)


def test_a_cost_that_begins_again_without_a_kill_is_added() -> None:
    found = measured(
        Usage(process_cost_usd=0.5, turn_cost_usd=0.5),
        END,
        Usage(process_cost_usd=0.1),
        Usage(process_cost_usd=0.3, turn_cost_usd=0.3),
        END,
    )
    assert found.cost_usd == pytest.approx(0.8)


def test_a_cost_of_zero_is_a_report() -> None:
    assert measured(Usage(process_cost_usd=0.0, turn_cost_usd=0.0), END).cost_usd == 0.0


def test_a_turn_begins_once_and_lasts_until_its_result_or_the_end_of_the_process() -> None:
    running = StateChanged(state="running")
    found = measured(10.0, "begin", 11.0, running, "begin", 14.0, END, 15.0, END)
    assert (found.turns, found.turns_s, found.last_turn_s) == (2, 4.0, 4.0)
    found = measured(10.0, running, 12.0, "kill", 20.0, "kill", 30.0, END)
    assert (found.turns, found.turns_s, found.last_turn_s) == (1, 2.0, 2.0)


def test_a_clock_that_is_set_back_gives_no_negative_time() -> None:
    assert measured(10.0, "begin", 3.0, END).turns_s == 0.0


BAD: list[Any] = [math.nan, math.inf, -1.0, -1, True, "5", []]


@pytest.mark.parametrize("bad", BAD, ids=lambda each: repr(each)[:10])
def test_a_figure_that_is_none_is_left_out(bad: Any) -> None:
    good = Usage(input_tokens=5, context_tokens=5, process_cost_usd=0.5, turn_cost_usd=0.5)
    found = measured(good, Usage(input_tokens=bad, context_tokens=bad, turn_cost_usd=bad))
    assert found == measured(good)
    assert measured(good, Usage(process_cost_usd=bad)) == measured(good)


@pytest.mark.parametrize(
    ("before", "after", "budget", "mark"),
    [
        (None, None, 1.0, None),
        (None, 0.5, None, None),
        (None, 0.5, 1.0, None),
        (0.5, 0.79, 1.0, None),
        (0.5, 0.8, 1.0, "warning"),
        (None, 0.8, 1.0, "warning"),
        (0.8, 0.9, 1.0, None),
        (0.9, 1.0, 1.0, "reached"),
        (0.5, 2.0, 1.0, "reached"),
        (None, 2.0, 1.0, "reached"),
        (1.0, 2.0, 1.0, None),
    ],
)
def test_a_budget_warns_once_at_80_percent_and_is_reached_once(
    before: float | None, after: float | None, budget: float | None, mark: str | None
) -> None:
    assert budget_crossed(before, after, budget) == mark


CENTS = st.integers(0, 50)


@given(st.lists(st.lists(st.tuples(CENTS, CENTS), max_size=4), max_size=4), st.booleans())
def test_the_cost_of_any_processes_is_the_sum_of_what_was_spent(
    processes: list[list[tuple[int, int]]], continues: bool
) -> None:
    """Each process is a list of turns: the cents before and after a report in the turn."""
    meter, spent, total = Meter(), 0, 0
    for turns in processes:
        total = total if continues else 0
        for first, second in turns:
            began = total
            meter.take(Usage(process_cost_usd=(began + first) / 100), 0.0)
            total, spent = began + first + second, spent + first + second
            cost = Usage(process_cost_usd=total / 100, turn_cost_usd=(total - began) / 100)
            meter.take(cost, 0.0)
            meter.take(END, 0.0)
            assert meter.metrics.cost_usd == pytest.approx(spent / 100, abs=1e-6)
        meter.end_process(0.0)
    assert (meter.metrics.cost_usd or 0.0) == pytest.approx(spent / 100, abs=1e-6)
