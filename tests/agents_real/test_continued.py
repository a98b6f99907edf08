"""Real Claude Code: a closed session continues, and a fork begins with a copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents_real.clis import CLIS
from tests.agents_real.installed import NotInstalled
from tests.agents_real.team import Team, new_team
from tests.resources.waiting import until

pytestmark = [pytest.mark.real, pytest.mark.agents]

[CLAUDE] = [cli for cli in CLIS if cli.name == "claude"]


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    try:
        with new_team(tmp_path, [CLAUDE], {"builder": {"provider": "claude"}}) as made:
            yield made
    except NotInstalled as reason:
        pytest.skip(str(reason))


def asked(team: Team, text: str) -> str:
    """The whole request to the model whose newest message has this text."""
    found = [each for each in team.model.requests() if text in str(each["messages"][-1])]
    assert found, f"the model was not asked {text!r}"
    return str(found[-1]["messages"])


def test_claude_code_continues_a_closed_session_and_copies_one(team: Team) -> None:
    handle = team.call("spawn", profile="builder", prompt="SAY the first answer")["handle"]
    until(lambda: team.outcomes(handle) == ["completed"], "the first turn has ended")
    conversation = team.info(handle)["conversation"]
    team.call("close", handle=handle)
    team.call("agent_resume", handle=handle, prompt="SAY the second answer")
    until(lambda: team.outcomes(handle) == ["completed"] * 2, "it continues")
    assert team.info(handle)["conversation"] == conversation
    assert "the first answer" in asked(team, "SAY the second answer")
    team.call("agent_fork", handle=handle, prompt="SAY the third answer", new_handle="copy")
    until(lambda: team.outcomes("copy") == ["completed"], "the copy works")
    assert team.info("copy")["conversation"] not in (None, conversation)
    assert "the second answer" in asked(team, "SAY the third answer")
    assert team.info(handle)["conversation"] == conversation
    assert "the third answer" not in team.text(handle)
    for each in (handle, "copy"):
        team.call("close", handle=each)
    assert team.pids() == []
