"""Files that an ACP agent reads and writes through its client, in sessions of a real daemon."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team, open_request
from tests.resources.waiting import until

pytestmark = pytest.mark.real

PERMISSIONS = ("read", "ask", "write")


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    profiles = {
        f"acp-{permission}": {
            "provider": "acp",
            "permission": permission,
            "command": [sys.executable, str(STAND_IN), "acp"],
            "asking_mode": "default",
        }
        for permission in PERMISSIONS
    }
    yield Team(own_daemon, more=profiles)
    own_daemon.stop()


def root_of(team: Team) -> Path:
    return Path(team.daemon.root)


def says(team: Team, handle: str, text: str) -> None:
    until(lambda: text in "\n".join(team.texts(handle)), f"{handle} says {text!r}")


def test_a_write_is_a_request_and_is_made_once_a_person_has_approved_it(team: Team) -> None:
    file = root_of(team) / "made"
    handle = team.spawn(f"WRITE {file} two words", profile="acp-ask")
    request = open_request(team)
    assert (request["handle"], request["tool"]) == (handle, "fs/write_text_file")
    assert request["input"] == {"path": str(file), "content": "two words"}
    assert not file.exists()
    team.call("request_answer", id=request["id"], digest=request["digest"], answer="allow")
    says(team, handle, f"wrote {file}")
    assert file.read_text() == "two words"
    team.has_outcomes(handle, "completed")


def test_a_refused_write_is_not_made_and_the_agent_gets_the_reason(team: Team) -> None:
    file = root_of(team) / "made"
    handle = team.spawn(f"WRITE {file} x", profile="acp-ask")
    request = open_request(team)
    team.call("request_answer", id=request["id"], digest=request["digest"], answer="deny")
    says(team, handle, "refused")
    assert not file.exists()


def test_a_profile_that_only_reads_reads_and_writes_nothing(team: Team) -> None:
    root = root_of(team)
    (root / "there").write_text("text of the file")
    handle = team.spawn(f"READ {root}/there\nWRITE {root}/there x", profile="acp-read")
    says(team, handle, "text of the file")
    says(team, handle, "the permission of the profile 'read'")
    assert (root / "there").read_text() == "text of the file"


def test_a_profile_that_may_write_writes_inside_the_directory_only(team: Team) -> None:
    root = root_of(team)
    outside = root.parent / "outside"
    handle = team.spawn(
        f"WRITE {root}/made x\nWRITE {outside} x\nREAD {root}/.aegis/state/keys.json",
        profile="acp-write",
    )
    says(team, handle, "belongs to the daemon")
    says(team, handle, "is not inside the session's directory")
    assert (root / "made").read_text() == "x"
    assert not outside.exists()
    assert team.entries(handle, "decided")
