"""Sessions whose files are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team, agents_of

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def files(team: Team, id_: str) -> Path:
    return team.daemon.root / ".aegis" / "state" / "agents" / id_


@pytest.mark.parametrize("is_open", [True, False])
def test_a_purge_closes_the_session_and_deletes_its_files(team: Team, is_open: bool) -> None:
    handle = team.spawn("HANG" if is_open else "SAY x")
    team.is_in(handle, "working") if is_open else team.has_turns(handle, 1)
    before = team.info(handle)
    outside = team.daemon.root / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (files(team, before["id"]) / "link").symlink_to(outside)
    if not is_open:
        team.call("close", handle=handle)
    assert files(team, before["id"]).is_dir()
    done = team.daemon.cli("agent", "stop", "--purge", handle)
    assert (done.returncode, done.stderr) == (0, f"purged {handle}\n")
    assert not files(team, before["id"]).exists()
    assert (outside / "kept").exists()
    assert team.call("list_sessions", closed=True)["result"] == []
    assert team.call("agent_usage", closed=True)["result"] == []
    assert team.call("agent_purge", handle=handle)["state"] == "closed", "again does no harm"
    for command in ("session_read", "agent_resume", "agent_show"):
        assert "was purged" in str(team.daemon.refusal(command, handle=handle)), command
    assert team.daemon.refusal("spawn", handle=handle).code == "already_exists"
    team.daemon.kill()
    team.daemon.start("--port", "0", "--trust")
    assert team.daemon.refusal("spawn", handle=handle).code == "already_exists"
    assert "was purged" in str(team.daemon.refusal("session_read", handle=handle))


def test_what_a_kill_leaves_of_a_purge_is_deleted_by_the_next_start(team: Team) -> None:
    first, second = team.spawn("SAY x"), team.spawn("SAY y")
    ids = [team.info(handle)["id"] for handle in (first, second)]
    for handle in (first, second):
        team.has_turns(handle, 1)
        team.call("agent_purge", handle=handle)
    team.daemon.kill()
    files(team, ids[0]).mkdir()  # as after a kill behind the line of the roster
    (files(team, ids[0]) / "transcript.jsonl").write_text("x")
    remains = files(team, ".purged-0123456789abcdef")
    remains.mkdir()
    team.daemon.start("--port", "0", "--trust")
    assert team.call("list_sessions", closed=True)["result"] == []
    assert not files(team, ids[0]).exists()
    assert not remains.exists()
