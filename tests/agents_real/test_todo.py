"""The list of what is to do, of the agents that keep one in tools of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.agents_real.clis import CLIS, Cli
from tests.agents_real.installed import NotInstalled
from tests.agents_real.team import Team, new_team
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

CALLS: Mapping[str, str] = {
    "claude": 'CALL TaskCreate {"subject": "Write code", "description": "d"}\n'
    'CALL TaskUpdate {"taskId": "1", "status": "in_progress"}\nSAY done',
    "opencode": 'CALL todowrite {"todos": [{"content": "Write code", "status": "in_progress", '
    '"priority": "high", "id": "1"}]}\nSAY done',
}
LATER: Mapping[str, str] = {
    "claude": 'CALL TaskUpdate {"taskId": "1", "status": "completed"}\nSAY done',
    "opencode": CALLS["opencode"].replace("in_progress", "completed"),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize the tests with the CLIs that have such tools."""
    wanted = metafunc.config.getoption("--agent", None) or list(CALLS)
    chosen = [each for each in CLIS if each.name in CALLS and each.name in wanted]
    metafunc.parametrize("planner", chosen, ids=[each.name for each in chosen])


def test_the_list_is_in_the_state_of_the_session_and_continues_after_a_restart(
    planner: Cli, tmp_path: Path
) -> None:
    profiles = {"plans": {"provider": planner.name, "permission": "ask"}}
    try:
        with new_team(tmp_path, [planner], profiles) as team:
            check(planner, team)
    except NotInstalled as error:
        pytest.skip(str(error))


def check(planner: Cli, team: Team) -> None:
    team.call("spawn", profile="plans", handle="ann", prompt=CALLS[planner.name])
    until(lambda: len(team.outcomes("ann")) == 1, "the first turn has ended")
    assert steps(team) == [("Write code", "in_progress")]
    team.call("agent_restart", handle="ann")
    team.call("handoff", target_handle="ann", context=LATER[planner.name], from_handle="pm")
    until(lambda: len(team.outcomes("ann")) == 2, "the second turn has ended")
    assert steps(team) == [("Write code", "completed")]


def steps(team: Team) -> list[tuple[str, str]]:
    return [(each["text"], each["status"]) for each in team.info("ann")["plan"]]
