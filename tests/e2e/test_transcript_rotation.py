"""Transcripts of a real daemon that are rotated: followers, kills, a full disk, closed sessions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import trio

import aegis
from aegis.client.agent_kinds import SessionEvent
from aegis.client.line import CommandFailed
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.streams import stream_client
from tests.e2e.test_agent_streams import ends, entries_to_the_end, numbers, off, take, texts
from tests.e2e.test_agents import Team, agents_of

pytestmark = pytest.mark.real

LIMIT = 65_536
LIMITS = {"transcript_bytes": LIMIT}
TURN = "FLOOD 20 200"
"""A turn that writes about 10 KB."""

POINTS = (
    "ledger.rotate.before",
    "ledger.rename.before",
    "ledger.rename.after",
    "ledger.rotate.after",
)


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon, limits=LIMITS)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


def files(team: Team) -> dict[str, int]:
    found = team.daemon.root.glob(".aegis/state/agents/*/transcript.jsonl*")
    return {each.name: each.stat().st_size for each in found}


def read(team: Team, handle: str, **arguments: Any) -> dict[str, Any]:
    return team.call("session_read", handle=handle, **arguments)


def lasting(info: dict[str, Any]) -> dict[str, Any]:
    """The parts of a state that a restart keeps."""
    kept = {name: info[name] for name in ("id", "turn", "waiting", "conversation")}
    # Times are measured to the microsecond and stored to the millisecond.
    usage = {name: figure for name, figure in info["usage"].items() if not name.endswith("_s")}
    return kept | {"usage": usage}


async def fill(team: Team, handle: str, stream: Any, turns: int) -> list[dict[str, Any]]:
    """The entries of some turns, as a follower gets them. Fails at a gap."""
    found: list[dict[str, Any]] = []
    for _ in range(turns):
        await off(team.send, handle, TURN)
        found += await take(stream, lambda found: ends(found) == 1 and is_at_rest(found[-1]))
    return found


def is_at_rest(entry: dict[str, Any]) -> bool:
    """Whether it is the last entry of a turn: the agent's own state follows the end of the turn."""
    event = entry["fields"].get("event", {})
    return (event.get("type"), event.get("state")) == ("state_changed", "idle")


async def test_a_follower_gets_every_entry_across_rotations_and_a_late_one_a_gap(
    team: Team,
) -> None:
    handle = await off(team.spawn)
    async with stream_client(team.daemon) as client:
        stream = await client.open("session", handle=handle, since=0)
        found = await fill(team, handle, stream, 10)
        assert numbers(found) == list(range(1, found[-1]["seq"] + 1))
        assert len(texts(found)) == 200
        assert set(files(team)) == {"transcript.jsonl", "transcript.jsonl.1"}
        assert sum(files(team).values()) < LIMIT + 16_384
        late = await client.open("session", handle=handle, since=3)
        gap = await late.next()
        assert gap["type"] == "gap"
        rest = await take(late, lambda rest: rest[-1:] == found[-1:])
        assert rest[0]["seq"] == 3 + gap["dropped"] + 1
        assert numbers(rest) == list(range(rest[0]["seq"], found[-1]["seq"] + 1))
        stored = await off(read, team, handle, since=0)
        assert stored["result"] == rest
        assert stored["missed"] == 3 + gap["dropped"]


async def test_the_python_client_and_the_command_line_show_the_gap(team: Team) -> None:
    handle = await off(team.spawn)
    async with stream_client(team.daemon) as client:
        stream = await client.open("session", handle=handle, since=0)
        await fill(team, handle, stream, 10)
    await off(team.call, "close", handle=handle)
    async with (
        aegis.connect(team.daemon.root) as connected,
        connected.agents.events(handle, since=5) as events,
    ):
        with trio.fail_after(GUARD_S):
            gap, *rest = [each async for each in events]
    assert isinstance(gap, aegis.Gap)
    assert isinstance(rest[0], SessionEvent)
    assert rest[0].seq == 5 + (gap.dropped or 0) + 1
    shown = await off(team.daemon.cli, "agent", "read", handle, "--follow", "--since", "5")
    assert shown.stdout.startswith(f"[{gap.dropped} entries are missing: they are no longer kept")
    shown = await off(team.daemon.cli, "agent", "read", handle, "--since", "5")
    assert f"{gap.dropped} entries before these are no longer kept" in shown.stdout + shown.stderr


async def test_after_a_rotation_and_a_kill_the_session_continues_as_it_was(team: Team) -> None:
    handle = await off(team.spawn)
    async with stream_client(team.daemon) as client:
        stream = await client.open("session", handle=handle, since=0)
        found = await fill(team, handle, stream, 6)
    before = await off(team.info, handle)
    assert "transcript.jsonl.1" in files(team)
    team.daemon.kill()
    await off(team.daemon.start, "--port", "0", "--trust")
    after = await off(team.info, handle)
    assert lasting(after) == lasting(before)
    assert after["usage"]["turns"] == 6
    async with stream_client(team.daemon) as client:
        stream = await client.open("session", handle=handle, since=found[-1]["seq"])
        more = await fill(team, handle, stream, 2)
        assert numbers(more)[0] == found[-1]["seq"] + 1
        opened = [each["fields"] for each in more if each["kind"] == "turn_opened"]
        assert [each["turn"] for each in opened] == [7, 8]
        started = [each["fields"] for each in more if each["kind"] == "started"]
        assert [each["conversation"] for each in started] == [before["conversation"]]


@pytest.mark.parametrize("point", POINTS)
def test_a_daemon_that_is_killed_inside_a_rotation_loses_no_entry_and_no_turn(
    own_daemon: DaemonProcess, point: str
) -> None:
    team = Team(own_daemon, faults=f"{point}[transcript.jsonl]@1=kill", limits=LIMITS)
    handle = team.spawn("SAY one")
    team.has_outcomes(handle, "completed")
    team.send(handle, "FLOOD 120 200\nSAY two")
    own_daemon.wait_stopped()
    own_daemon.start("--port", "0", "--trust")
    team.send(handle, "SAY three")
    team.has_outcomes(handle, "completed", "interrupted", "completed")
    assert team.texts(handle)[0] == "one"
    assert team.texts(handle)[-1] == "three"
    found = read(team, handle, since=0)
    assert "missed" not in found
    assert "more" not in found
    assert numbers(found["result"]) == list(range(1, found["result"][-1]["seq"] + 1))
    assert [each["turn"] for each in team.entries(handle, "turn_opened")] == [1, 2, 3]
    assert set(files(team)) - {"transcript.jsonl", "transcript.jsonl.1"} == set()


@pytest.mark.parametrize("point", POINTS[:3])
def test_a_full_disk_delays_a_rotation_and_costs_nothing(
    own_daemon: DaemonProcess, point: str
) -> None:
    team = Team(own_daemon, faults=f"{point}[transcript.jsonl]@1=enospc", limits=LIMITS)
    handle = team.spawn("FLOOD 120 200\nSAY two")
    team.has_outcomes(handle, "completed")
    found = read(team, handle, since=0)
    assert "missed" not in found
    assert numbers(found["result"]) == list(range(1, found["result"][-1]["seq"] + 1))
    assert len(team.texts(handle)) == 121
    [line] = [each for each in own_daemon.log.splitlines() if "transcript not rotated" in each]
    assert "No space left on device; free some space, then try again" in line
    assert set(files(team)) == {"transcript.jsonl", "transcript.jsonl.1"}


def test_a_closed_session_is_read_by_those_who_could_read_it_before(team: Team) -> None:
    parent = team.spawn("SAY ready")
    team.has_outcomes(parent, "completed")
    child = team.spawn("SAY one", from_handle=parent)
    other = team.spawn()
    team.has_outcomes(child, "completed")
    team.call("close", handle=child)
    whole = read(team, child, last_n=1000)
    assert {each["kind"] for each in whole["result"]} >= {"started", "closed"}
    assert texts(whole["result"]) == ["one"]
    for _ in range(2):
        assert read(team, child, last_n=1000, from_handle=parent) == whole
        assert read(team, child, since=2, from_handle=parent)["result"] == whole["result"][2:]
        assert read(team, child, last_n=1)["result"] == whole["result"][-1:]
        assert read(team, child, since=1, last_n=2)["result"] == whole["result"][1:3]
        assert read(team, child, since=1, last_n=2)["more"] is True
        assert "more" not in read(team, child, since=1, last_n=len(whole["result"]) - 1)
        with pytest.raises(CommandFailed, match="you did not spawn it"):
            read(team, child, from_handle=other)
        team.daemon.stop()
        team.daemon.start("--port", "0", "--trust")


async def test_a_closed_session_is_the_same_by_the_stream_and_by_a_read(team: Team) -> None:
    handle = await off(team.spawn)
    async with stream_client(team.daemon) as client:
        stream = await client.open("session", handle=handle, since=0)
        await fill(team, handle, stream, 10)
        await off(team.call, "close", handle=handle)
        late = await client.open("session", handle=handle, last_n=1000)
        first = await late.next()
        stored = await off(read, team, handle, since=0)
        assert (first["type"], first["dropped"]) == ("gap", stored["missed"])
        found, ended = await entries_to_the_end(late)
        assert ended["code"] == "closed"
        assert found == stored["result"]
