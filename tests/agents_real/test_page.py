"""The page of the agents that were tried."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aegis.agents.drivers.providers import BY_NAME
from aegis.configuration.file import read_configuration
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


HOW_TO = Path(__file__).parents[2] / "docs" / "how-to" / "agents"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("tried", CLIS, ids=[cli.name for cli in CLIS])
def test_the_page_of_a_provider_has_its_install_line_its_profile_and_the_doctors_words(
    tried: Cli, tmp_path: Path
) -> None:
    provider = BY_NAME[tried.name]
    blocks = BLOCK.findall((HOW_TO / f"{tried.name}.md").read_text("utf-8"))
    text = dict(blocks)
    assert provider.install in text["sh"]
    assert text[""].startswith(
        f"ok       agent {tried.name}: {provider.title} {provider.oldest} (/"
    )
    (tmp_path / ".aegis.yaml").write_text(text["yaml"])
    [profile] = read_configuration(tmp_path / ".aegis.yaml").configuration.agents.values()
    assert (profile.provider, profile.permission) == (tried.name, "ask")
