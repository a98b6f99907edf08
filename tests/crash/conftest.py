"""The number of kills, their seed, and the table of their results."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.real.campaign import Campaign
from tests.chaos.real.deaths import Death, Numbers, Part, deaths
from tests.chaos.real.scratch import free_port
from tests.chaos.real.table import PROPERTY, table
from tests.chaos.real.tracing import reason_not_to_trace
from tests.e2e.conftest import gate, new_gate, own_daemon

__all__ = ["gate", "new_gate", "own_daemon"]
"""Fixtures of the tests from outside that are used here too."""

KILLS_PER_TEST = 40

KILLS, RANDOM_KILLS, SLICE = 1, 20, 8
"""By default each test takes a slice of these: the ordinary suite has to stay short. ``just crash``
asks for more, and for all of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("crash")
    group.addoption("--kills", type=int, help="kills at each fault point, and at each call")
    group.addoption("--random-kills", type=int, help="kills at random moments, in all")
    group.addoption("--crash-seed", type=int, help="the seed that a failure printed")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests that take a ``part`` of the kills."""
    if "part" in metafunc.fixturenames:
        count = max(2, numbers(metafunc.config, at_calls=True).total // KILLS_PER_TEST)
        metafunc.parametrize("part", [Part(index, count) for index in range(count)], ids=str)


def numbers(config: pytest.Config, *, at_calls: bool) -> Numbers:
    """Return the requested number of kills of each kind."""
    kills = config.getoption("--kills", None)
    kills = KILLS if kills is None else int(kills)
    at_random = config.getoption("--random-kills", None)
    return Numbers(
        at_points=kills,
        at_random=RANDOM_KILLS if at_random is None else int(at_random),
        at_calls=kills if at_calls else 0,
    )


@pytest.fixture
def my_deaths(pytestconfig: pytest.Config, chance: random.Random, part: Part) -> list[Death]:
    """Return the kills of this part, in a random order."""
    reason = reason_not_to_trace()
    mine = part.of(deaths(numbers(pytestconfig, at_calls=reason is None), chance))
    chance.shuffle(mine)
    return mine if pytestconfig.getoption("--kills", None) is not None else mine[:SLICE]


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Return the random source of kills; a failure prints its seed. By default it is fixed."""
    given = request.config.getoption("--crash-seed", None)
    is_asked_for = request.config.getoption("--kills", None) is not None
    drawn = random.SystemRandom() if is_asked_for else random.Random(request.node.name)
    seed = drawn.randrange(2**32) if given is None else given
    print(f"again with: --crash-seed {seed}")  # noqa: T201
    return random.Random(seed)


@pytest.fixture
def campaign(tmp_path: Path, chance: random.Random) -> Iterator[Campaign]:
    """A daemon to be killed."""
    campaign = Campaign(tmp_path, chance, port=free_port(chance))
    yield campaign
    campaign.clean_up()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Add up the figures of the tests."""
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
