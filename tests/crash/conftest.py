"""How many kills, with which seed, and the table that tells what they showed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.campaign import Campaign
from tests.crash.deaths import POINTS, Death, Part, deaths
from tests.crash.table import PROPERTY, table
from tests.e2e.conftest import gate, new_gate, own_daemon

__all__ = ["gate", "new_gate", "own_daemon"]
"""Fixtures of the tests from outside that are used here too."""

KILLS_PER_TEST = 40

KILLS, RANDOM_KILLS = 1, 8
"""By default few: the ordinary suite has to stay short. ``just crash`` asks for more."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crash")
    group.addoption("--kills", type=int, help="kills at each fault point")
    group.addoption("--random-kills", type=int, help="kills at random moments, in all")
    group.addoption("--crash-seed", type=int, help="the seed that a failure printed")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes a ``part`` of the kills runs once for each part."""
    if "part" in metafunc.fixturenames:
        count = max(2, number_of_kills(metafunc.config) // KILLS_PER_TEST)
        metafunc.parametrize("part", [Part(index, count) for index in range(count)], ids=str)


def number_of_kills(config: pytest.Config) -> int:
    return len(POINTS) * _kills(config) + _random_kills(config)


def _kills(config: pytest.Config) -> int:
    return int(config.getoption("--kills", None) or KILLS)


def _random_kills(config: pytest.Config) -> int:
    return int(config.getoption("--random-kills", None) or RANDOM_KILLS)


@pytest.fixture
def my_deaths(pytestconfig: pytest.Config, chance: random.Random, part: Part) -> list[Death]:
    """The kills of this part, in a random order."""
    mine = part.of(deaths(_kills(pytestconfig), _random_kills(pytestconfig), chance))
    chance.shuffle(mine)
    return mine


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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add up what the tests have shown."""
    figures = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if figures:
        terminalreporter.section("kills")
        terminalreporter.write_line(table(figures))
