"""The daemon is killed with SIGKILL many times: all promised data is there, once, and no other.

Each test takes one root through many incarnations, so that each starts from the remains of the last
kill. ``just crash`` runs it with the full numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.chaos.checking.checker import Violation, violations
from tests.chaos.real.campaign import Campaign
from tests.chaos.real.deaths import Death
from tests.chaos.real.table import PROPERTY, figures

pytestmark = [
    pytest.mark.real,
    pytest.mark.long,
    # The client's event streams of the older era are left to the garbage collector on Trio.
    pytest.mark.filterwarnings(r"ignore:Async generator 'http(x|core)2\.:ResourceWarning"),
]

EXAMPLES = 6


def test_nothing_is_lost_doubled_or_mixed_up_however_the_daemon_is_killed(
    campaign: Campaign,
    my_deaths: list[Death],
    record_property: Callable[[str, object], None],
) -> None:
    campaign.prepare()
    for death in my_deaths:
        campaign.live(death)
    evidence = campaign.finish()
    found = violations(evidence)
    counted = figures(evidence, my_deaths, found)
    record_property(PROPERTY, counted)
    # Each life has done something, or nothing was shown.
    assert min(counted["records checked"], counted["wakes checked"]) > len(my_deaths)
    assert not found, summary(found)


def summary(found: list[Violation]) -> str:
    """Return the number of violations of each rule, and the first few of each."""
    lines = []
    for rule, times in Counter(each.rule for each in found).items():
        examples = [each.what for each in found if each.rule == rule][:EXAMPLES]
        lines += [f"{rule}, {times} times:", *(f"    {example}" for example in examples)]
    return "\n".join(lines)
