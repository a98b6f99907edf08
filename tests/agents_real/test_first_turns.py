"""The first turn of each agent CLI in a real daemon: our tools are offered in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.agents_real.clis import Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.team import new_team
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]


def test_our_tools_are_offered_in_the_first_turn(cli: Cli, tmp_path: Path) -> None:
    try:
        cli.command()
    except NotInstalled as error:
        pytest.skip(str(error))
    profiles = {"agent": {"provider": cli.name, "permission": "ask"}}
    with new_team(tmp_path, [cli], profiles) as team:
        handle = team.call("spawn", profile="agent", prompt="SAY hello")["handle"]
        until(lambda: team.outcomes(handle) == ["completed"], "the turn is completed")
        [request, *_] = team.model.requests()
        assert [each for each in request["tools"] if each.endswith("aegis_term_run")]
        [*_, init] = team.events(handle, "system_init")
        assert init["mcp_servers"] == {"aegis": "connected"}
