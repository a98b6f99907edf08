"""The MCP conformance suite against a real daemon: what applies passes, what does not is listed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.e2e import conformance
from tests.e2e.conformance import EXTENSION, NOT_APPLICABLE, VERSIONS
from tests.e2e.harness import DaemonProcess
from tests.npm.tools import HERE as NPM
from tests.npm.tools import NpmTools, tools_or_skip

pytestmark = pytest.mark.real

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "mcp-conformance.md"
ROW = re.compile(r"^\| `([a-z0-9-]+)` \| (.+) \| (.+) \|$", re.MULTILINE)

BY_SCENARIO = {each.scenario: each for each in NOT_APPLICABLE}

Run = Callable[[str], dict[str, set[str]]]


@pytest.fixture(scope="module")
def tools() -> NpmTools:
    return tools_or_skip()


@pytest.fixture(scope="module")
def listed(tools: NpmTools) -> dict[str, set[str]]:
    return conformance.listed(tools)


@pytest.fixture(scope="module")
def run(tools: NpmTools, daemon: DaemonProcess, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs all scenarios of a version, once; gives those checks of each that failed."""
    url = daemon.call("session_new", handle="conformance")["url"]

    @cache
    def run_once(version: str) -> dict[str, set[str]]:
        return conformance.run(tools, url, version, tmp_path_factory.mktemp("results"))

    return run_once


@pytest.mark.long
@pytest.mark.parametrize("version", [*VERSIONS, EXTENSION])
def test_every_scenario_runs_and_only_listed_checks_fail(
    run: Run, listed: dict[str, set[str]], version: str
) -> None:
    outcomes = run(version)
    assert listed[version]
    assert outcomes.keys() >= listed[version]
    if version != EXTENSION:
        assert outcomes.keys() == listed[version]
    unexpected = {
        scenario: failed - BY_SCENARIO[scenario].checks if scenario in BY_SCENARIO else failed
        for scenario, failed in outcomes.items()
    }
    assert {scenario: failed for scenario, failed in unexpected.items() if failed} == {}


@pytest.mark.long
def test_every_listed_check_really_fails(run: Run, listed: dict[str, set[str]]) -> None:
    failed: dict[str, set[str]] = {each.scenario: set() for each in NOT_APPLICABLE}
    for version in (*VERSIONS, EXTENSION):
        for scenario, checks in run(version).items():
            if scenario in failed and scenario in listed[version]:
                failed[scenario] |= checks
    assert failed == {each.scenario: set(each.checks) for each in NOT_APPLICABLE}


def test_the_page_names_the_version_that_is_installed() -> None:
    wanted = json.loads((NPM / "package.json").read_text())["dependencies"]
    version = wanted["@modelcontextprotocol/conformance"]
    assert f"`@modelcontextprotocol/conformance`, {version})" in PAGE.read_text("utf-8")


def test_the_page_lists_the_same_scenarios_checks_and_reasons() -> None:
    described = {
        scenario: (set(re.findall(r"`([a-z0-9-]+)`", checks)), reason)
        for scenario, checks, reason in ROW.findall(PAGE.read_text("utf-8"))
    }
    assert described == {each.scenario: (set(each.checks), each.reason) for each in NOT_APPLICABLE}
