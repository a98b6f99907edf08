"""The page of the agents that were tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents_real.clis import CLIS, Cli
from tests.agents_real.page import COSTS, ENDS, IN_SESSIONS, page
from tests.agents_real.results import PARTS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "tried-agents.md"


def test_the_page_is_written_from_the_results() -> None:
    seen = {key: f"<{key}>" for key in (*COSTS, *ENDS, *IN_SESSIONS)}
    text = page({part: {cli.name: seen for cli in CLIS} for part in PARTS})
    for keys in (COSTS, ENDS, IN_SESSIONS):
        cells = " | ".join(f"<{key}>" for key in keys)
        assert text.count(f" | {cells} |\n") >= len(CLIS)


@pytest.mark.parametrize("tried", CLIS, ids=[cli.name for cli in CLIS])
def test_the_page_has_the_versions_that_the_tests_install(tried: Cli) -> None:
    rows = [
        line
        for line in PAGE.read_text("utf-8").splitlines()
        if line.startswith(f"| `{tried.name}`")
    ]
    assert f"`{tried.package.name}` {tried.package.version} |" in rows[0]
