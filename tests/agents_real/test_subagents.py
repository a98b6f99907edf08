"""A call of a subagent names the call that began it, in the events of Claude Code."""

from __future__ import annotations

import pytest

from tests.agents_real.clis import Cli
from tests.agents_real.scripts import call, script
from tests.agents_real.team import Team
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

AGENT = "tried"


def test_a_call_of_a_subagent_is_below_the_call_that_began_it(cli: Cli, team: Team) -> None:
    if cli.name not in ("claude", "claude-agent-acp"):
        pytest.skip("no other CLI names it")
    inner = script(call("Read", file_path=str(team.daemon.root / "cart.py")), "SAY read")
    about = {"description": "look at the cart", "subagent_type": "general-purpose"}
    began = script(call("Agent", **about, prompt=inner), "SAY begun")
    team.call("spawn", profile="asks", handle=AGENT, prompt=began)

    def read() -> list[str]:
        uses = team.events(AGENT, "tool_use")
        return [each["parent"] for each in uses if each["name"] == "Read"]

    until(lambda: bool(read()), "the subagent has read")
    [agent] = [each for each in team.events(AGENT, "tool_use") if each["name"] == "Agent"][-1:]
    assert agent["parent"] == ""
    assert read()[-1] == agent["id"]
    until(lambda: bool(team.outcomes(AGENT)), "the turn has ended")
    shown = team.daemon.cli("agent", "read", AGENT).stdout
    assert "│ ⚙ Read" in shown
