"""What an agent has noted to do: in its state, on the command line, through each end."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN, Team

pytestmark = pytest.mark.real

PROFILE = {
    "provider": "acp",
    "permission": "ask",
    "command": [sys.executable, str(STAND_IN), "acp"],
    "asking_mode": "default",
}


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon, more={"acp": PROFILE})
    own_daemon.stop()


def plan(**states: str) -> str:
    """An order of the stand-in: the steps by their texts, with their states."""
    return (
        f"PLAN {json.dumps([{'content': text, 'status': each} for text, each in states.items()])}"
    )


def shown(team: Team) -> list[tuple[str, str]]:
    steps: list[dict[str, Any]] = team.info("ann")["plan"]
    return [(each["text"], each["status"]) for each in steps]


def test_the_newest_plan_of_an_agent_is_in_its_state_and_survives_a_kill(team: Team) -> None:
    team.spawn(plan(look="in_progress", test="pending"), profile="acp", handle="ann")
    team.has_outcomes("ann", "completed")
    assert shown(team) == [("look", "in_progress"), ("test", "pending")]
    team.send("ann", plan(look="completed", test="in_progress"))
    team.has_outcomes("ann", "completed", "completed")
    after = [("look", "completed"), ("test", "in_progress")]
    assert shown(team) == after
    printed = team.daemon.cli("agent", "show", "ann").stdout
    assert "\nplan              ☑ look\n                  ▶ test\n" in printed
    team.daemon.stop(signal.SIGKILL)
    team.daemon.start("--port", "0", "--trust")
    assert shown(team) == after
