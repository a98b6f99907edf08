"""Agents, their guards and their daemon are killed: no turn is lost silently, and none runs twice.

``just chaos --real --agents`` does this for as long as you like, ``just crash`` with more kills.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.chaos.real.agents.campaign import AgentCampaign
from tests.chaos.real.agents.kills import endless_lives
from tests.chaos.real.agents.run import figures
from tests.chaos.real.scratch import free_port
from tests.crash.test_kills import summary

pytestmark = [pytest.mark.real, pytest.mark.long]

LIVES = 3
"""Incarnations of a daemon in the ordinary tests, and for each of the requested kills."""

PROPERTY = "agents killed"


@pytest.fixture
def campaign(tmp_path: Path, chance: random.Random) -> Iterator[AgentCampaign]:
    campaign = AgentCampaign(tmp_path, chance, port=free_port(chance))
    yield campaign
    campaign.clean_up()


def test_whatever_kills_agents_every_message_gets_one_turn_and_every_loss_a_report(
    campaign: AgentCampaign,
    chance: random.Random,
    pytestconfig: pytest.Config,
    record_property: Callable[[str, object], None],
) -> None:
    campaign.prepare()
    for life in islice(endless_lives(chance), LIVES * (pytestconfig.getoption("--kills") or 1)):
        campaign.live(life)
    evidence = campaign.finish()
    found = campaign.violations(evidence)
    record_property(PROPERTY, figures(evidence.agents, campaign.kills, found))
    assert sum(campaign.kills.values()) >= LIVES
    assert len(evidence.agents.frames) > LIVES
    assert not found, summary(found)
