"""A model or an effort that an agent does not offer is refused at its start, with its own list."""

from __future__ import annotations

import pytest

from aegis.configuration.agents import AgentSection
from tests.agents_real.bench import Bench
from tests.agents_real.clis import Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.sessions import AgentRefused, real_session

pytestmark = [pytest.mark.real, pytest.mark.agents]


@pytest.mark.parametrize("setting", ["model", "effort"])
async def test_a_setting_that_is_not_offered_is_refused_with_the_list(
    cli: Cli, bench: Bench, setting: str
) -> None:
    try:
        cli.command()
    except NotInstalled as error:
        pytest.skip(str(error))
    url = bench.daemon.call("session_new", handle="tried")["url"]
    model, effort = ("nonsense", None) if setting == "model" else (None, "silly")
    section = AgentSection(provider=cli.name, model=model, effort=effort)
    with pytest.raises(AgentRefused, match=f"has no {setting} '(nonsense|silly)'.*it offers"):
        async with real_session(cli, bench, url, section=section):
            pass
