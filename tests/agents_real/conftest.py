"""Tests with real agent CLIs: they are run by ``just agents``, and some of them by ``.ci/run``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents_real.bench import Bench, new_bench
from tests.agents_real.clis import CLIS, Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.results import PARTS, kept, table
from tests.agents_real.team import Team, new_team

BEGAN = time.time()


def pytest_addoption(parser: pytest.Parser) -> None:
    names = [cli.name for cli in CLIS]
    group = parser.getgroup("agents")
    group.addoption("--agent", action="append", choices=names, help="only this agent CLI")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize tests that take a ``cli``, or ``other``: one that is not Claude Code itself."""
    wanted = metafunc.config.getoption("--agent", None) or [cli.name for cli in CLIS]
    for name in {"cli", "other"} & {*metafunc.fixturenames}:
        chosen = [
            cli for cli in CLIS if cli.name in wanted and (name, cli.name) != ("other", "claude")
        ]
        metafunc.parametrize(name, chosen, ids=[cli.name for cli in chosen])


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A namespace with a daemon and the scripted model."""
    with new_bench(tmp_path) as made:
        yield made


@pytest.fixture
def team(cli: Cli, tmp_path: Path) -> Iterator[Team]:
    """A daemon with a profile of this provider and the permission ``ask``."""
    try:
        profiles = {"asks": {"provider": cli.name, "permission": "ask"}}
        with new_team(tmp_path, [cli], profiles) as made:
            yield made
    except NotInstalled as error:
        pytest.skip(str(error))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests that install CLIs unless they were asked for: the CLIs take 2 GB."""
    if "agents" in config.getoption("markexpr", ""):
        return
    for item in items:
        if item.get_closest_marker("agents") is not None:
            item.add_marker(pytest.mark.skip(reason="real agent CLIs: run `just agents`"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was seen of each CLI."""
    if hasattr(terminalreporter.config, "workerinput"):
        return
    for part in PARTS:
        if results := kept(part, BEGAN):
            terminalreporter.section(f"agent CLIs: {part}")
            terminalreporter.write(table({"agent": name, **results[name]} for name in results))
