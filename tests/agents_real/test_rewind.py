"""A person sets the files of the real Claude Code back to before a turn, offline."""

from __future__ import annotations

import json
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
        with new_team(
            tmp_path,
            [CLAUDE],
            {
                "writes": {"provider": "claude", "permission": "write"},
                "all": {"provider": "claude", "permission": "full"},
            },
        ) as made:
            yield made
    except NotInstalled as reason:
        pytest.skip(str(reason))


def write(path: Path, text: str) -> str:
    given = json.dumps({"file_path": str(path), "content": text})
    return f"CALL Write {given}"


@pytest.mark.parametrize("is_resumed", [False, True])
def test_files_are_set_back_and_those_of_others_are_left(team: Team, is_resumed: bool) -> None:
    root = team.daemon.root
    own, shared, fresh = (root / each for each in ("own.txt", "shared.txt", "fresh.txt"))
    first = f"{write(own, 'first')}\n{write(shared, 'first')}\nSAY done"
    handle = team.call("spawn", prompt=first, profile="writes")["handle"]
    until(lambda: team.outcomes(handle) == ["completed"], "the first turn has ended")
    second = f"{write(own, 'second')}\n{write(shared, 'second')}\n{write(fresh, 'new')}\nSAY done"
    team.call("handoff", target_handle=handle, context=second, from_handle="pm")
    until(lambda: team.outcomes(handle) == ["completed"] * 2, "the second turn has ended")
    until(lambda: len(team.entries(handle, "edited")) == 5, "the digests are stored")
    if is_resumed:
        team.call("agent_restart", handle=handle)
    until(lambda: team.info(handle)["state"] == "idle", "it is idle")
    shared.write_text("a person's")
    done = team.call("agent_rewind", handle=handle, turn=2)
    assert {*done["files"]} == {str(own), str(fresh)}
    assert done["left"] == [str(shared)]
    assert own.read_text() == "first"
    assert shared.read_text() == "a person's"
    assert not fresh.exists()
    team.call("close", handle=handle)


def test_what_a_command_did_stays_and_an_older_conversation_is_refused(team: Team) -> None:
    root = team.daemon.root
    both, made = root / "both.txt", root / "made.txt"
    shell = json.dumps({"command": f"echo more >> {both}; echo x > {made}", "description": "w"})
    orders = f"{write(root / 'own.txt', 'new')}\n{write(both, 'new')}\nCALL Bash {shell}\nSAY done"
    handle = team.call("spawn", prompt=orders, profile="all")["handle"]
    until(lambda: team.outcomes(handle) == ["completed"], "the turn has ended")
    until(lambda: team.info(handle)["state"] == "idle", "it is idle")
    done = team.call("agent_rewind", handle=handle)
    assert (done["files"], done["left"]) == ([str(root / "own.txt")], [str(both)])
    assert not (root / "own.txt").exists()
    assert both.read_text() == "newmore\n"
    assert made.exists()
    team.call("agent_send", handle=handle, text="/clear")
    until(lambda: team.outcomes(handle) == ["completed"] * 2, "it is cleared")
    until(lambda: team.info(handle)["state"] == "idle", "it is idle")
    refusal = str(team.daemon.refusal("agent_rewind", handle=handle, turn=1))
    assert "it keeps files for the turns of its current conversation only" in refusal
    team.call("close", handle=handle)
