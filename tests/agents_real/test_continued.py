"""A session that continues; with real Claude Code also one that was closed, and a copy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents_real.clis import CLIS, Cli
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


@pytest.mark.long
def test_an_agent_that_is_restarted_repeats_nothing_in_the_transcript(
    cli: Cli, tmp_path: Path
) -> None:
    try:
        with new_team(tmp_path, [cli], {"tried": {"provider": cli.name}}) as team:
            check_restart(cli, team)
    except NotInstalled as reason:
        pytest.skip(str(reason))


def check_restart(cli: Cli, team: Team) -> None:
    team.call("term_spawn", name="build")
    handle = team.call("spawn", profile="tried", prompt="SAY the first answer")["handle"]
    until(lambda: team.outcomes(handle) == ["completed"], "the first turn has ended")
    text = 'CALL aegis_term_read {"name": "build"}\nSAY the second answer'
    team.call("handoff", target_handle=handle, context=text, from_handle="pm")
    until(lambda: team.outcomes(handle) == ["completed"] * 2, "the second turn has ended")
    if cli.forgets:  # it deletes a conversation that it loads in the minute of its beginning
        time.sleep(60 - time.time() % 60)
    known = team.entries(handle, "started", "event")
    team.call("agent_restart", handle=handle)
    team.call("handoff", target_handle=handle, context="SAY the third answer", from_handle="pm")
    until(lambda: team.outcomes(handle) == ["completed"] * 3, "the third turn has ended")
    new = team.entries(handle, "started", "event")[len(known) :]
    assert [each["rung"] for each in new if "rung" in each] == [1], "it was not loaded"
    assert "the second answer" in asked(team, "SAY the third answer")
    events = [each["event"] for each in new if "event" in each]
    text = "".join(each["text"] for each in events if each["type"] == "assistant_text")
    assert text.endswith("the third answer")  # codex begins with a warning
    assert [each for each in ("first answer", "second answer") if each in text] == []
    assert [each for each in events if each["type"] in ("tool_use", "tool_result")] == []
    team.call("close", handle=handle)
