"""The extent of ring 1, and the table of its figures."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.chaos.exhaustive import Effort

PROPERTY = "ring 1"
"""The property name with which a test reports its figures."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("faults")
    group.addoption("--every-fault", action="store_true", help="no fault of ring 1 is left out")
    group.addoption("--fault-seeds", type=int, default=1, help="orders of tasks that are tried")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "order" in metafunc.fixturenames:
        seeds = int(metafunc.config.getoption("--fault-seeds", None) or 1)
        metafunc.parametrize("order", range(1, seeds + 1))


@pytest.fixture
def effort(pytestconfig: pytest.Config) -> Effort | None:
    """Return the effort; None for all strikes and images."""
    every = bool(pytestconfig.getoption("--every-fault", None))
    return None if every else Effort(strike_step=4, image_step=2, second_step=3)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each scenario, and the sums."""
    rows = [
        value
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if rows:
        terminalreporter.section("ring 1")
        terminalreporter.write_line(table(rows))


def table(rows: list[Mapping[str, int | str]]) -> str:
    """Return the figures of all runs of a scenario added up, and a line with the sums."""
    names = [name for name in rows[0] if name != "scenario"]
    sums: dict[str, dict[str, int]] = {}
    for row in rows:
        for line in (str(row["scenario"]), "in all"):
            counted = sums.setdefault(line, dict.fromkeys(names, 0))
            for name in names:
                counted[name] += int(row[name])
    sums["in all"] = sums.pop("in all")
    head = f"{'':<22}" + "".join(f"{name:>{len(name) + 2}}" for name in names)
    lines = [
        f"{line:<22}" + "".join(f"{counted[name]:>{len(name) + 2}}" for name in names)
        for line, counted in sums.items()
    ]
    return "\n".join([head, *lines])
