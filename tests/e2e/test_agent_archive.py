"""Closed sessions whose transcripts are in the archive, with a real daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team, agents_of
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    """A daemon that keeps the transcript of the last closed session."""
    found = Team(own_daemon)
    path = own_daemon.root / ".aegis.yaml"
    configuration = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump({**configuration, "keep": {"newest": 1, "days": 0}}))
    own_daemon.stop()
    own_daemon.start("--port", "0", "--trust")
    yield found
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def files(team: Team, id_: str) -> Path:
    return team.daemon.root / ".aegis" / "state" / "agents" / id_


def parts(team: Team, id_: str) -> list[str]:
    archive = team.daemon.root / ".aegis" / "state" / "archive" / "transcripts"
    return sorted(each.name for each in archive.glob(f"*-{id_}-*.jsonl.gz"))


def ended(team: Team, handle: str) -> str:
    """Spawn a session, have it say its handle, and close it; return its id."""
    team.spawn(f"SAY I am {handle}", handle=handle)
    team.has_turns(handle, 1)
    id_: str = team.info(handle)["id"]
    team.call("close", handle=handle)
    return id_


def test_a_closed_session_is_read_found_and_resumed_from_the_archive(team: Team) -> None:
    one = ended(team, "one")
    before = team.call("session_read", handle="one", last_n=1000)
    used = team.call("agent_usage", handle="one")["result"]
    printed = team.daemon.cli("agent", "read", "one").stdout
    two = ended(team, "two")
    until(lambda: not files(team, one).exists(), "the older one is archived")
    assert files(team, two).is_dir()
    assert len(parts(team, one)) == 2
    for kills in (False, True):
        if kills:
            team.daemon.kill()
            team.daemon.start("--port", "0", "--trust")
        assert team.call("session_read", handle="one", last_n=1000) == before
        some = team.call("session_read", handle="one", since=1, last_n=2)
        assert (some["result"], some["more"]) == (before["result"][1:3], True)
        assert team.call("agent_usage", handle="one")["result"] == used
        assert team.daemon.cli("agent", "read", "one").stdout == printed
        assert team.daemon.cli("agent", "read", "--follow", "one").stdout == printed
        found = team.call("history", kind="transcript", word="i am")["result"]
        assert [(each["name"], each["outcome"], each["archived"]) for each in found] == [
            ("two", "text", False),
            ("two", "message", False),
            ("one", "text", True),
            ("one", "message", True),
        ]
        assert team.daemon.refusal("spawn", handle="One").code == "already_exists"
    team.call("agent_resume", handle="one", prompt="SAY again")
    team.has_turns("one", 2)
    assert files(team, one).is_dir()
    read = team.call("session_read", handle="one", last_n=1000)["result"]
    assert read[: len(before["result"])] == before["result"]
    assert "again" in json.dumps(read)
    team.call("close", handle="one")
    until(lambda: not files(team, two).exists(), "the other one is older now")
    lines = team.daemon.cli("history", "--kind", "transcript", "--name", "two", "i am").stdout
    assert "transcript two" in lines


def test_a_purge_deletes_an_archived_transcript(team: Team) -> None:
    one, two = ended(team, "one"), ended(team, "two")
    until(lambda: not files(team, one).exists(), "the older one is archived")
    team.call("agent_purge", handle="one")
    assert parts(team, one) == []
    assert "was purged" in str(team.daemon.refusal("session_read", handle="one"))
    three = ended(team, "three")
    until(lambda: not files(team, two).exists(), "another is archived")
    for name in parts(team, two):
        (team.daemon.root / ".aegis/state/archive/transcripts" / name).unlink()
    for command in ("session_read", "agent_resume"):
        assert "was deleted with the archive" in str(team.daemon.refusal(command, handle="two"))
    assert files(team, three).is_dir()
