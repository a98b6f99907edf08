"""The tools that a real daemon offers at the MCP addresses of agents, with the official client."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.mcp_client import connect_mcp_to
from tests.resources.waiting import until

pytestmark = pytest.mark.real

STAND_IN = Path(__file__).parents[1] / "fakes" / "agents" / "main.py"
PROFILES = {
    "plain": {
        "provider": "acp",
        "asking_mode": "default",
        "command": [sys.executable, str(STAND_IN), "acp"],
    }
}

each_era = pytest.mark.parametrize("era", ["legacy", "auto"])


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[DaemonProcess]:
    """A daemon with profiles whose sessions are stand-ins."""
    (own_daemon.root / ".aegis.yaml").write_text(yaml.safe_dump({"agents": PROFILES}))
    own_daemon.start("--port", "0", "--trust")
    yield own_daemon
    own_daemon.stop()


def entries(daemon: DaemonProcess, handle: str, kind: str) -> list[dict[str, Any]]:
    """The durable entries of this kind in a session's transcript."""
    found = daemon.call("session_read", handle=handle, last_n=1000)["result"]
    return [each["fields"] for each in found if each["kind"] == kind]


def send(daemon: DaemonProcess, handle: str, turn: int) -> None:
    """Have the session's agent do its turn number ``turn``."""
    daemon.call("handoff", target_handle=handle, context="SAY hello", from_handle="pm")

    until(lambda: len(entries(daemon, handle, "turn_ended")) == turn, f"turn {turn} has ended")


def servers(daemon: DaemonProcess, handle: str) -> list[dict[str, Any]]:
    """The states of MCP servers that the session's agent had, in order."""
    events = [each["event"] for each in entries(daemon, handle, "event")]
    return [each["mcp_servers"] for each in events if each["type"] == "system_init"]


@each_era
async def test_a_driver_learns_once_that_its_agent_has_listed_our_tools(
    team: DaemonProcess, era: str
) -> None:
    handle = team.call("spawn", profile="plain")["handle"]
    with trio.fail_after(GUARD_S):
        await trio.to_thread.run_sync(send, team, handle, 1)
        async with connect_mcp_to(team, era, handle) as client:
            await trio.to_thread.run_sync(send, team, handle, 2)
            assert servers(team, handle) == [{}]
            for _ in range(3):
                await client.list_tools()
            await trio.to_thread.run_sync(send, team, handle, 3)
    assert servers(team, handle) == [{}, {"aegis": "connected"}]
