"""The metrics of recorded sessions, against the figures that the agent printed itself."""

from __future__ import annotations

import pytest

from aegis.agents.sessions.metrics import Meter, Metrics
from tests.aegis.agents.drivers.claude.playback import NAMES, Player, frames_of_agent


def metrics_of(*names: str) -> Metrics:
    """The metrics of processes one after the other, each killed at the end of its recording."""
    meter = Meter()
    for name in names:
        for event in Player(name).play().events:
            meter.take(event, 0.0)
        meter.end_process(0.0)
    return meter.metrics


def printed_cost(name: str) -> float | None:
    """The cost of the process in its last result; None if it printed no result."""
    costs = [
        frame["total_cost_usd"] for frame in frames_of_agent(name) if "total_cost_usd" in frame
    ]
    return costs[-1] if costs else None


def test_three_turns_with_usage_are_summed_and_the_context_is_the_last_request() -> None:
    found = metrics_of("claude_usage")
    results = [frame for frame in frames_of_agent("claude_usage") if frame["type"] == "result"]
    usages = [frame["usage"] for frame in results]
    cached = sum(usage["cache_read_input_tokens"] for usage in usages)
    written = sum(usage["cache_creation_input_tokens"] for usage in usages)
    assert found.turns == len(results) == 3
    assert found.cached_tokens == cached
    assert found.input_tokens == sum(usage["input_tokens"] for usage in usages) + cached + written
    assert found.output_tokens == sum(usage["output_tokens"] for usage in usages)
    assert found.context_tokens == 3690
    assert found.cost_usd == pytest.approx(printed_cost("claude_usage"))


@pytest.mark.parametrize("name", NAMES)
def test_the_cost_is_the_sum_of_what_each_result_added(name: str) -> None:
    """Also where the printed total began again, or continued a process before."""
    added = [
        model["costUSD"]
        for frame in frames_of_agent(name)
        if frame.get("type") == "result"
        for model in frame.get("model_usage_since_last_result", {}).values()
    ]
    assert (metrics_of(name).cost_usd or 0.0) == pytest.approx(sum(added))


@pytest.mark.parametrize(
    "name", ["claude_usage", "claude_turn", "claude_queue", "claude_background"]
)
def test_the_cost_of_a_whole_process_is_the_total_that_it_printed(name: str) -> None:
    assert metrics_of(name).cost_usd == pytest.approx(printed_cost(name))


def test_the_cost_of_two_processes_is_the_sum_of_both_after_a_kill() -> None:
    first, second = "claude_usage", "claude_turn"
    both = metrics_of(first, second).cost_usd
    assert both == pytest.approx((printed_cost(first) or 0) + (printed_cost(second) or 0))
