"""Past findings of the scenario of an agent session."""

from __future__ import annotations

import pytest

from tests.chaos.exhaustive import Exploration
from tests.chaos.strikes import Kind, Strike
from tests.faults.sessions import Turns


@pytest.mark.parametrize(
    "strike",
    [
        # The session was closed while its driver was being started: nothing ended the driver.
        Strike("agent.start.before", 2, Kind.STALL),
        Strike("agent.start.after", 2, Kind.STALL),
        # The agent was ready before its session knew the driver: its turn was sent to nobody.
        Strike("agent.start.after", 1, Kind.STALL),
        # The start was taken for failed though the driver ran, and both ends were handled.
        Strike("agent.start.after", 1, Kind.CRASH),
    ],
    ids=str,
)
def test_a_session_ends_its_turns_and_closes_though_its_start_takes_long(strike: Strike) -> None:
    findings = Exploration(Turns()).examine(strike)
    assert not findings.violations, "\n".join(map(str, findings.violations[:2]))
