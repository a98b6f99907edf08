"""The message with which a person resumes a session that is open."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import Team

pytestmark = pytest.mark.real


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()


@pytest.mark.long
def test_a_message_that_resumes_an_open_session_is_delivered_beside_its_first_one(
    team: Team,
) -> None:
    handle = team.spawn("SAY ready", profile="asks")
    team.has_outcomes(handle, "completed")
    team.call("agent_resume", handle=handle, prompt="SAY again")
    team.has_turns(handle, 2)
    assert team.texts(handle)[-1] == "again"
    assert [each["sender"] for each in team.entries(handle, "turn_opened")[-1]["messages"]] == [
        "human"
    ]
