"""A transcript as a document: whole, by pages, for people and for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from aegis.client.line import CommandFailed
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team, open_request
from tests.resources.waiting import until

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()


def exported(team: Team, *words: str) -> str:
    found = team.daemon.cli("agent", "export", *words)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_a_document_has_what_was_asked_said_and_done(team: Team) -> None:
    team.spawn("SAY I **look**.\nASK git push\nSAY Done.", handle="ann")
    request = open_request(team)
    team.call(
        "request_answer", id=request["id"], answer="allow", scope="once", digest=request["digest"]
    )
    team.has_outcomes("ann", "completed")
    text = exported(team, "ann")
    assert text.startswith("# ann\n\n## Turn 1 · ")
    order = ["> SAY I **look**.", "\nI **look**.\n", '"command": "git push"', "\nDone.\n"]
    places = [text.index(each) for each in order]
    assert places == sorted(places)
    assert re.search(r"\n\*Turn 1 completed · [-0-9T:.]+Z\*\n", text)


def rests(team: Team, handle: str) -> bool:
    """Whether all entries of the only turn are there."""
    events = [each["event"] for each in team.entries(handle, "event")]
    states = [each["state"] for each in events if each["type"] == "state_changed"]
    return states[-1:] == ["idle"] and len(team.entries(handle, "notified")) == 1


def test_lines_are_the_entries_that_read_shows(team: Team) -> None:
    team.spawn("SAY one", handle="ann")
    # Entries after the end of the turn: the agent reports that it is idle, and the person's inbox
    # has its news, each a moment later.
    until(lambda: rests(team, "ann"), "the transcript is at rest")
    read = team.call("session_read", handle="ann", since=0)["result"]
    lines = exported(team, "ann", "--format", "jsonl").splitlines()
    assert [json.loads(each) for each in lines] == read


def test_a_closed_session_is_exported_too_and_one_that_never_was_is_named(team: Team) -> None:
    team.spawn("SAY one", handle="ann")
    team.has_outcomes("ann", "completed")
    team.call("close", handle="ann")
    assert "*Closed by human · " in exported(team, "ann")
    failed = team.daemon.cli("agent", "export", "nobody")
    assert failed.returncode != 0
    assert "there is no agent 'nobody'" in failed.stderr
    with pytest.raises(CommandFailed, match="there is no agent"):
        team.call("session_export", handle="nobody")
