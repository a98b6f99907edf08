"""Plan mode of the agents that have one, with the real programs."""

from __future__ import annotations

from typing import Any

import pytest

from aegis.client.line import CommandFailed
from tests.agents_real.clis import Cli
from tests.agents_real.model_server.script import Json
from tests.agents_real.results import keep
from tests.agents_real.scripts import call, script
from tests.agents_real.team import Team
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

AGENT = "planner"

PLANS = ("claude", "claude-agent-acp")
"""The agents that have their plan approved."""

HAVE_A_MODE = (*PLANS, "opencode")


def has(team: Team, **wanted: str) -> None:
    until(
        lambda: {name: team.info(AGENT)[name] for name in wanted} == wanted,
        f"the agent has {wanted}",
    )


def open_request(team: Team) -> Json:
    """Wait for the only open request."""
    found: list[Json] = []

    def look() -> bool:
        found[:] = team.call("request_list")["requests"]
        return len(found) == 1

    until(look, "a request is open")
    return found[0]


def answer(team: Team, request: Json, decision: str, **more: Any) -> None:
    given = {"id": request["id"], "digest": request["digest"], "answer": decision, **more}
    assert team.call("request_answer", **given)["outcome"] == "applied"


def test_a_plan_is_approved_or_the_permission_is_refused_in_a_sentence(
    cli: Cli, team: Team
) -> None:
    if cli.name not in HAVE_A_MODE:
        with pytest.raises(CommandFailed, match="no plan that can be approved") as refused:
            team.call("spawn", profile="asks", handle=AGENT, permission="plan")
        keep(cli.name, "plan", {"version": cli.package.version, "plan": str(refused.value)})
        return
    team.call("spawn", profile="asks", handle=AGENT, permission="plan", prompt="SAY ready")
    until(lambda: len(team.outcomes(AGENT)) == 1, "the first turn has ended")
    has(team, permission="plan", mode="plan")
    if cli.name in PLANS:
        seen = plan_and_approve(cli, team)
    else:
        team.call("agent_set", handle=AGENT, permission="ask")
        has(team, permission="ask")
        seen = {"leaves": "agent set --permission ask"}
    keep(cli.name, "plan", {"version": cli.package.version, "plan": "works", **seen})


def plan_and_approve(cli: Cli, team: Team) -> Json:
    if cli.name == "claude":
        # In the mode for plans, Bash is asked of a person too, not of a model.
        team.call("handoff", target_handle=AGENT, context=call("Bash", command="touch made.txt"))
        request = open_request(team)
        assert (request["tool"], request["tool_kind"]) == ("Bash", "execute")
        answer(team, request, "deny")
        until(lambda: len(team.outcomes(AGENT)) == 2, "the turn with a command has ended")
    turns = len(team.outcomes(AGENT))
    lines = script(call("ExitPlanMode", plan="# The plan"), "SAY planned")
    team.model.requests()
    team.call("handoff", target_handle=AGENT, context=written_plan(team) + lines)
    request = open_request(team)
    assert (request["kind"], request["tool_kind"]) == ("permission", "plan")
    assert "The plan" in request["input"]["plan"]
    options = [each["id"] for each in request["options"]]
    assert not [each for each in options if "auto" in each or "bypass" in each]
    answer(team, request, "deny", message="Add tests")
    until(lambda: len(team.outcomes(AGENT)) > turns, "it keeps planning")
    has(team, permission="plan", mode="plan")
    team.call("handoff", target_handle=AGENT, context=lines)
    request = open_request(team)
    edited = {"values": {"plan": "# Another plan"}} if request["takes_edit"] else {}
    answer(team, request, "allow", **({"scope": "session"} | edited))
    has(team, permission="write", mode="default")
    if edited:
        asked = str(team.model.requests()[-1]["messages"])
        until(lambda: "Another plan" in str(team.model.requests()[-1]["messages"]), asked)
    return {"options": ", ".join(options), "edited": bool(edited)}


def written_plan(team: Team) -> str:
    """Return the line by which the model writes its plan into the file that it is named."""
    import re

    asked = str(team.model.requests()[-1])
    found = re.search(r"(/[^\s\"'\\]+/plans/[A-Za-z0-9-]+\.md)", asked)
    return "" if found is None else call("Write", file_path=found[1], content="# The plan\n") + "\n"
