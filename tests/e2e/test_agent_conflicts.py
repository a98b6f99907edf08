"""Two agents that changed the same file hear of it with their next messages, and so do people."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.aegis.agents.directory.test_checkout import git
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team
from tests.resources.waiting import until

pytestmark = pytest.mark.real

HEAD = "These files that you changed were changed by other agents too; read them again:"


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()


def conflicts(team: Team, handle: str) -> list[tuple[str, list[str]]]:
    return [(each["path"], each["handles"]) for each in team.info(handle)["conflicts"]]


def turns(team: Team, handle: str) -> list[str]:
    return [each["text"] for each in team.entries(handle, "turn_opened")]


def test_both_hear_of_it_with_their_next_message_and_people_see_it(team: Team) -> None:
    file = team.daemon.root / "shared.txt"
    (team.daemon.root / "link").symlink_to(team.daemon.root)
    ann = team.spawn(f"EDIT {file}", handle="ann")
    team.has_outcomes(ann, "completed")
    assert conflicts(team, ann) == []
    bob = team.spawn(f"EDIT {team.daemon.root}/link/shared.txt", handle="bob")
    team.has_outcomes(bob, "completed")
    until(lambda: conflicts(team, ann) == [(str(file), ["bob"])], "ann has it")
    assert conflicts(team, bob) == [(str(file), ["ann"])]
    shown = team.daemon.cli("agent", "show", ann).stdout
    assert f"changed too by    bob: {file}" in shown
    assert (team.info(ann)["turn"], team.info(bob)["turn"]) == (1, 1), "no turn of its own"
    for handle, other in ((ann, "bob"), (bob, "ann")):
        team.send(handle, "SAY x")
        team.has_outcomes(handle, "completed", "completed")
        note = f"> from substrate\n{HEAD}\n- '{file}': {other}\n\n> from "
        assert turns(team, handle)[1].startswith(note)
        team.send(handle, "SAY y")
        team.has_outcomes(handle, "completed", "completed", "completed")
        assert HEAD not in turns(team, handle)[2], "once"
    team.call("close", handle=bob)
    until(lambda: conflicts(team, ann) == [], "a closed session is no conflict")


def test_worktrees_failed_edits_and_commands_are_apart(team: Team) -> None:
    root = team.daemon.root
    git(root, "init", "-q")
    (root / "a.txt").write_text("x")
    git(root, "add", "a.txt")
    git(root, "commit", "-q", "-m", "first")
    ann = team.spawn(f"EDIT {root}/a.txt", handle="ann")
    eve = team.spawn(worktree=True, handle="eve")
    tree = Path(team.info(eve)["cwd"])
    team.send(eve, f"EDIT {tree}/a.txt")
    bob = team.spawn(f"EDIT {root}/no/such.txt\nRUN echo x >> {root}/a.txt", handle="bob")
    for handle in (ann, eve, bob):
        team.has_outcomes(handle, "completed")
        team.send(handle, "SAY x")
        team.has_outcomes(handle, "completed", "completed")
        assert (conflicts(team, handle), HEAD in str(turns(team, handle))) == ([], False)
