"""How many kills, with which seed, and the table that tells what they showed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.campaign import Campaign

KILLS, RANDOM_KILLS = 2, 20
"""By default few: the ordinary suite has to stay short. ``just crash`` asks for more."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crash")
    group.addoption("--kills", type=int, help="kills at each fault point")
    group.addoption("--random-kills", type=int, help="kills at random moments, in all")
    group.addoption("--crash-seed", type=int, help="the seed that a failure printed")


@pytest.fixture
def kills(pytestconfig: pytest.Config) -> int:
    """How often each fault point kills the daemon."""
    return int(pytestconfig.getoption("--kills", None) or KILLS)


@pytest.fixture
def random_kills(pytestconfig: pytest.Config) -> int:
    """How often it is killed at a random moment, in all tests together."""
    return int(pytestconfig.getoption("--random-kills", None) or RANDOM_KILLS)


@pytest.fixture
def chance(pytestconfig: pytest.Config) -> random.Random:
    """Decides when and what; a failure prints its seed."""
    seed = pytestconfig.getoption("--crash-seed", None)
    seed = random.SystemRandom().randrange(2**32) if seed is None else seed
    print(f"again with: --crash-seed {seed}")  # noqa: T201
    return random.Random(seed)


@pytest.fixture
def campaign(tmp_path: Path, chance: random.Random) -> Iterator[Campaign]:
    """A daemon that will be killed."""
    campaign = Campaign(tmp_path, chance)
    yield campaign
    campaign.clean_up()
