"""What a warm ping and a warm run cost over MCP, in calls and steps: no clock is read."""

from __future__ import annotations

import pytest

from tests.bench.bench_steps import LIMITS, costs

pytestmark = pytest.mark.real


@pytest.mark.long
def test_a_ping_and_a_run_cost_no_more_calls_and_steps_than_they_may() -> None:
    found = costs()
    beyond = {
        name: (cost, LIMITS[name])
        for name, cost in found.items()
        if cost.calls > LIMITS[name].calls or cost.steps > LIMITS[name].steps
    }
    assert beyond == {}
