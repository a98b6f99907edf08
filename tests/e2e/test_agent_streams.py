"""Streams of agent sessions of a real daemon, with a stand-in for the agent's program."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio

import aegis
from aegis.agents.drivers.reporter import GATHER_S
from aegis.client.agent_kinds import SessionEvent
from aegis.client.errors import CommandFailed
from aegis.protocol.agent_events import AssistantText
from aegis.protocol.agent_streams import AgentItem, AgentsItem
from tests.e2e.harness import GUARD_S, DaemonProcess
from tests.e2e.streams import Refused, Stream, StreamEnded, cost, stream_client
from tests.e2e.test_agents import Team, acp_profile, agents_of, open_request
from tests.resources.waiting import until

pytestmark = pytest.mark.real

FLOOD = 3_000

Entry = dict[str, Any]


@pytest.fixture
def team(own_daemon: DaemonProcess) -> Iterator[Team]:
    yield Team(own_daemon)
    own_daemon.stop()
    assert agents_of(own_daemon) == []


async def off(work: Any, *arguments: Any, **named: Any) -> Any:
    """Call the blocking ``work`` in a thread."""
    return await trio.to_thread.run_sync(lambda: work(*arguments, **named))


async def take(stream: Stream, is_enough: Callable[[list[Entry]], bool]) -> list[Entry]:
    """The entries until they are enough. Fails at a gap."""
    found: list[Entry] = []
    while not is_enough(found):
        frame = await stream.next()
        assert frame["type"] == "item", frame
        found += frame["item"]["entries"]
    return found


async def through(stream: Stream, seq: int) -> list[Entry]:
    """The entries up to the one with this seq, and those that came with it."""
    return await take(stream, lambda found: bool(found) and found[-1]["seq"] >= seq)


async def entries_to_the_end(stream: Stream) -> tuple[list[Entry], Entry]:
    """All entries that follow, and the frame that ends the stream. Fails at a gap."""
    found: list[Entry] = []
    try:
        while True:
            frame = await stream.next()
            assert frame["type"] == "item", frame
            found += frame["item"]["entries"]
    except StreamEnded as ended:
        return found, ended.frame


def numbers(entries: list[Entry]) -> list[int]:
    return [each["seq"] for each in entries]


def texts(entries: list[Entry]) -> list[str]:
    events = [each["fields"]["event"] for each in entries if each["kind"] == "event"]
    found = [each["text"] for each in events if each["type"] == "assistant_text"]
    return [each for each in found if not each.startswith("> from ")]


async def sees(stream: Stream, handle: str, state: str, ended: int) -> None:
    """Wait until a session is shown in this state, after so many turns: that is a moment late."""

    def fits(item: dict[str, Any]) -> bool:
        shown = item["agents"] if "agents" in item else [item["agent"]]
        wanted = (handle, state, ended)
        return wanted in [(each["handle"], each["state"], each["usage"]["turns"]) for each in shown]

    await stream.item_where(fits)


def has_ended(team: Team, handle: str, turn: int) -> bool:
    """Whether the end of this turn is among the newest entries."""
    return any(each["turn"] == turn for each in team.entries(handle, "turn_ended"))


def ends(entries: list[Entry]) -> int:
    return sum(each["kind"] == "turn_ended" for each in entries)


async def test_entries_follow_since_a_seq_without_a_gap_or_a_repetition(team: Team) -> None:
    handle = await off(team.spawn, "SAY one")
    await off(team.has_outcomes, handle, "completed")
    async with stream_client(team.daemon) as client:
        whole = await client.open("session", handle=handle, since=0)
        assert whole.opened["since"] == 0
        before = await take(whole, lambda found: ends(found) == 1)
        part = await client.open("session", handle=handle, since=3)
        newest = await client.open("session", handle=handle, last_n=2)
        now = await client.open("session", handle=handle)
        assert now.opened["since"] == now.opened["newest"]
        await off(team.send, handle, "SAY two")
        after = await take(whole, lambda found: ends(found) == 1)
        last = after[-1]["seq"]
        assert numbers(before + after) == list(range(1, last + 1))
        assert texts(before + after) == ["one", "two"]
        for stream, first in (
            (part, 4),
            (newest, newest.opened["newest"] - 1),
            (now, now.opened["newest"] + 1),
        ):
            found = numbers(await through(stream, last))
            assert found == list(range(first, found[-1] + 1))
        stored = (await off(team.call, "session_read", handle=handle, last_n=1000))["result"]
        shared = min(len(stored), last)
        assert (before + after)[:shared] == stored[:shared]


async def test_a_place_that_the_transcript_does_not_have_is_refused(team: Team) -> None:
    handle = await off(team.spawn)
    async with stream_client(team.daemon) as client:
        for arguments, words in (
            ({"handle": handle, "since": 10_000}, "leave since out, or read the newest"),
            ({"handle": handle, "since": 1, "last_n": 1}, "give since or last_n, not both"),
            ({"handle": "nobody"}, "there is no agent 'nobody'"),
        ):
            with pytest.raises(Refused, match=words):
                await client.open("session", **arguments)


async def test_a_reader_that_sleeps_in_a_flood_gets_every_entry_and_the_end(team: Team) -> None:
    handle = await off(team.spawn, "SAY ready")
    await off(team.has_outcomes, handle, "completed")
    async with (
        stream_client(team.daemon) as quick,
        stream_client(team.daemon) as slow,
    ):
        reader = await quick.open("session", handle=handle)
        sleeper = await slow.open("session", handle=handle, credit=1, returns_credit=False)
        await off(team.send, handle, f"FLOOD {FLOOD} 200\nSAY after")
        first = await through(sleeper, sleeper.opened["since"] + 1)  # its credit is spent
        seen = await take(reader, lambda found: ends(found) == 1)  # it delayed nobody
        assert len(texts(seen)) == FLOOD + 1
        await off(team.call, "close", handle=handle)
        sleeper.returns_credit = True
        await sleeper.give(100_000)
        rest, ended = await entries_to_the_end(sleeper)
        tail, _ = await entries_to_the_end(reader)
        assert ended["code"] == "closed"
        assert numbers(rest)[-1] == tail[-1]["seq"]
        assert {each["kind"] for each in rest} >= {"turn_ended", "closed"}
        assert numbers(rest) == list(range(first[-1]["seq"] + 1, rest[-1]["seq"] + 1))
        assert len(texts([*first, *rest])) == FLOOD + 1
        late = await quick.open("session", handle=handle, since=2)  # of a closed session
        whole, ended = await entries_to_the_end(late)
        assert numbers(whole) == list(range(3, tail[-1]["seq"] + 1))
        assert ended["code"] == "closed"


@pytest.mark.long
async def test_a_client_that_does_not_read_its_socket_delays_no_turn(team: Team) -> None:
    handle = await off(team.spawn, "SAY ready")
    await off(team.has_outcomes, handle, "completed")
    async with stream_client(team.daemon) as client:
        stream = await client.open("session", handle=handle)
        await client.open("agents", credit=16_000_000, returns_credit=False)
        client.stop_reading()
        await off(team.send, handle, "FLOOD 10000 300")
        await off(until, lambda: has_ended(team, handle, 2), "the flood has ended")
        await off(team.call, "close", handle=handle)
        await trio.sleep(2)  # a client that sleeps, not a wait for something
        client.go_on()
        found, ended = await entries_to_the_end(stream)
        assert ended["code"] == "closed"
        assert len(texts(found)) == 10_000


async def test_half_a_surrogate_pair_of_an_agent_ends_no_stream(team: Team) -> None:
    handle = await off(team.spawn)
    async with stream_client(team.daemon) as client:
        stream = await client.open("session", handle=handle)
        await off(team.send, handle, "HALF")
        found = await take(stream, lambda found: ends(found) == 1)
        assert texts(found) == ["half \ufffd"]


async def test_session_urls_are_hidden_in_streams_and_transcripts(team: Team) -> None:
    handle = await off(team.spawn)
    url = (await off(team.call, "session_new", handle="someone"))["url"]
    async with stream_client(team.daemon) as client:
        stream = await client.open("session", handle=handle, since=0)
        await off(team.send, handle, f"SAY see {url} and\nASK curl {url}/mcp")
        found = await take(stream, lambda found: "tool_use" in json.dumps(found))
    hidden = url.rpartition("/")[0] + "/\u2039secret\u203a"
    assert f"see {hidden} and" in texts(found)
    stored = team.daemon.root.glob(".aegis/state/agents/*/transcript.jsonl")
    for shown in (json.dumps(found), *(each.read_text() for each in stored)):
        assert url.rpartition("/")[2] not in shown
        assert "mcp/s/" in shown


async def test_agents_are_shown_as_they_are_and_then_as_they_change(team: Team) -> None:
    first = await off(team.spawn, "HANG")
    async with stream_client(team.daemon) as client:
        await sees(await client.open("agents"), first, "working", 0)
        stream = await client.open("agents")
        [known] = (await stream.item())["agents"]
        assert (known["handle"], known["state"], known["turn"]) == (first, "working", 1)

        async def becomes(handle: str, state: str) -> dict[str, Any]:
            def fits(item: dict[str, Any]) -> bool:
                agent = item["agent"]
                return bool((agent["handle"], agent["state"]) == (handle, state))

            found: dict[str, Any] = (await stream.item_where(fits))["agent"]
            return found

        await off(team.send, first, "SAY later")
        while (await becomes(first, "working"))["waiting"] != 1:
            pass
        await off(team.call, "interrupt", handle=first)
        while (await becomes(first, "idle"))["turn"] != 2:
            pass
        second = await off(team.spawn, "ASK ls", profile="asks")
        blocked = await becomes(second, "blocked")
        while not blocked["blocked"]["request_id"]:
            blocked = await becomes(second, "blocked")
        [request] = (await off(team.call, "request_list"))["requests"]
        assert blocked["blocked"]["request_id"] == request["id"]
        await off(team.call, "close", handle=second)
        await becomes(second, "closed")
        again = await client.open("agents")
        assert [each["handle"] for each in (await again.item())["agents"]] == [first]


async def test_a_slow_reader_gets_the_newest_state_of_each_agent(team: Team) -> None:
    handle = await off(team.spawn, "SAY ready")
    await off(team.has_outcomes, handle, "completed")
    async with stream_client(team.daemon) as client:
        quick = await client.open("agents")
        await sees(quick, handle, "idle", 1)
        stream = await client.open("agents", credit=1, returns_credit=False)
        first = await stream.next()
        assert "agents" in first["item"]
        for number in range(5):
            await off(team.send, handle, f"SAY {number}")
            await off(team.has_turns, handle, number + 2)
        await sees(quick, handle, "idle", 6)
        await stream.give(cost(first))  # it may send one more item now
        agent = (await stream.item())["agent"]
        assert (agent["turn"], agent["state"]) == (6, "idle")
        assert stream.got == []


async def test_a_session_follows_itself_and_its_own_and_no_other(team: Team) -> None:
    own = await off(team.spawn, profile="all")
    child = await off(team.spawn, profile="all", from_handle=own)
    stranger = await off(team.spawn, profile="all")
    url = (await off(team.call, "session_new", handle=own))["url"]
    async with stream_client(team.daemon, session=url.rpartition("/")[2]) as client:
        for handle in (own, child):
            stream = await client.open("session", handle=handle)
            await off(team.send, handle, "SAY heard", "human")
            assert texts(await take(stream, lambda found: ends(found) == 1)) == ["heard"]
        with pytest.raises(Refused, match="you did not spawn it"):
            await client.open("session", handle=stranger)
        agents = await client.open("agents")
        shown = {each["handle"] for each in (await agents.item())["agents"]}
        assert shown == {own, child}
        await off(team.send, stranger, "SAY hidden", "human")
        await off(team.has_outcomes, stranger, "completed")
        await off(team.send, child, "SAY shown", "human")
        assert (await agents.item())["agent"]["handle"] == child


async def test_streams_go_on_after_the_actors_of_sessions_were_killed_by_a_restart(
    team: Team,
) -> None:
    handle = await off(team.spawn, "SAY one")
    await off(team.has_outcomes, handle, "completed")
    async with stream_client(team.daemon) as client:
        stream = await client.open("session", handle=handle, since=0)
        before = await take(stream, lambda found: ends(found) == 1)
    team.daemon.kill()
    await off(team.daemon.start, "--port", "0", "--trust")
    async with stream_client(team.daemon) as client:
        stream = await client.open("session", handle=handle, since=before[-1]["seq"])
        agents = await client.open("agents")
        assert [each["state"] for each in (await agents.item())["agents"]] == ["dormant"]
        await off(team.send, handle, "SAY two")
        after = await take(stream, lambda found: ends(found) == 1)
        assert after[0]["seq"] == before[-1]["seq"] + 1
        assert texts(after) == ["two"]


async def test_the_python_client_follows_through_a_kill_of_the_daemon(team: Team) -> None:
    handle = await off(team.spawn, "SAY one")
    await off(team.has_outcomes, handle, "completed")
    async with (
        aegis.connect(team.daemon.root) as client,
        client.agents.events(handle, since=0) as events,
        client.agents.follow() as agents,
    ):
        first = await anext(agents)
        assert isinstance(first, AgentsItem)
        assert [each.handle for each in first.agents] == [handle]
        found: list[SessionEvent] = []

        async def through_turn(turn: int) -> None:
            while not found or found[-1].kind != "turn_ended" or found[-1].fields["turn"] != turn:
                value = await anext(events)
                assert isinstance(value, SessionEvent), value
                found.append(value)

        with trio.fail_after(GUARD_S):
            await through_turn(1)
            team.daemon.kill()
            await off(team.daemon.start, "--port", "0", "--trust")
            await off(team.send, handle, "SAY two")
            await through_turn(2)
        assert [each.seq for each in found] == list(range(1, len(found) + 1))
        said = [each.event.text for each in found if isinstance(each.event, AssistantText)]
        assert [each for each in said if not each.startswith("> ")] == ["one", "two"]
        assert isinstance(await anext(agents), AgentItem | aegis.Gap)
        await client.agents.close(handle)
        rest = [each async for each in events]
        assert "closed" in [each.kind for each in rest if isinstance(each, SessionEvent)]


def test_read_follow_prints_entries_until_the_session_is_closed(team: Team) -> None:
    handle = team.spawn("SAY one")
    team.has_outcomes(handle, "completed")
    daemon = team.daemon
    commands = [[*daemon.program, "agent", "read", handle, "--follow", *each] for each in OPTIONS]
    followers = [
        subprocess.Popen(
            each,
            env=daemon.environment,
            cwd=daemon.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for each in commands
    ]
    try:
        for each in followers:
            assert each.stdout is not None
            assert each.stdout.readline()
        team.send(handle, "SAY two")
        team.has_outcomes(handle, "completed", "completed")
        team.call("close", handle=handle)
        shown, lines = (each.communicate(timeout=GUARD_S)[0] for each in followers)
    finally:
        for each in followers:
            each.kill()
            each.wait()
    assert [each.returncode for each in followers] == [0, 0]
    assert "two" in shown
    entries = [json.loads(each) for each in lines.splitlines()]
    assert numbers(entries) == list(range(entries[0]["seq"], entries[-1]["seq"] + 1))
    assert "closed" in [each["kind"] for each in entries]


OPTIONS = ((), ("--json", "--since", "0"))


@pytest.mark.long
def test_the_blocking_client_yields_each_entry_until_the_session_is_closed(team: Team) -> None:
    handle = team.spawn("SAY one")
    team.has_turns(handle, 1)
    root, values, texts = team.daemon.root, [], []
    with aegis.connect_sync(root) as client, aegis.connect_sync(root) as other:
        for value in client.agents.events(handle, since=0):
            assert isinstance(value, SessionEvent)
            values.append(value)
            if not isinstance(value.event, AssistantText):
                continue
            texts.append(value.event.text.splitlines()[-1])
            if "two" in texts[-1]:
                other.agents.close(handle)
            elif "one" in texts[-1]:
                other.inboxes.handoff(handle, "SAY two")
        assert [each.seq for each in values] == [*range(1, len(values) + 1)]
        assert [text for text in texts if text in ("one", "two")] == ["one", "two"]
        assert "closed" in [each.kind for each in values]
        assert list(client.agents.events(handle, last_n=2)) == values[-2:]
        with pytest.raises(CommandFailed, match="not both"):
            next(client.agents.events(handle, since=0, last_n=1))
        with pytest.raises(CommandFailed, match="no agent 'nobody'"):
            next(client.agents.events("nobody"))


@pytest.mark.long
def test_the_blocking_client_yields_the_sessions_and_then_each_that_changes(team: Team) -> None:
    first, second = team.spawn(handle="ann"), team.spawn(handle="ben")
    root = team.daemon.root
    with aegis.connect_sync(root) as client, aegis.connect_sync(root) as other:
        watching = client.agents.follow()
        listed = next(watching)
        assert isinstance(listed, AgentsItem)
        assert [each.handle for each in listed.agents] == [first, second]

        def next_of(handle: str, state: str) -> None:
            for value in watching:
                assert isinstance(value, AgentItem)
                if (value.agent.handle, value.agent.state) == (handle, state):
                    return

        other.agents.spawn(handle="cleo", prompt="HANG")
        next_of("cleo", "working")
        other.agents.close(first)
        next_of(first, "closed")
        other.agents.purge(second)
        next_of(second, "closed")


def words(count: int) -> str:
    return "".join(f"w{number} " for number in range(count))


def test_a_text_that_comes_word_by_word_is_stored_in_few_entries_and_before_what_follows(
    own_daemon: DaemonProcess,
) -> None:
    team = Team(own_daemon, more={"acp": acp_profile("ask")})
    begun = time.monotonic()
    handle = team.spawn("WORDS 100 40\nASK touch x\nSAY done", profile="acp")
    request = open_request(team)
    parts = team.texts(handle)
    assert "".join(parts) == words(100)  # all of it, once the agent asks
    assert len(parts) <= (time.monotonic() - begun) / GATHER_S + 2
    fields = {"digest": request["digest"], "answer": "allow", "scope": "once"}
    team.call("request_answer", id=request["id"], **fields)
    team.has_outcomes(handle, "completed")
    assert team.texts(handle) == [*parts, "done"]
    own_daemon.stop()


def test_the_parts_of_a_text_that_were_shown_are_there_after_a_kill(
    own_daemon: DaemonProcess,
) -> None:
    team = Team(own_daemon, more={"acp": acp_profile("ask")})
    handle = team.spawn("WORDS 4000 40", profile="acp")
    until(lambda: len(team.texts(handle)) >= 5, "several parts are shown")
    shown = team.texts(handle)
    own_daemon.kill()
    own_daemon.start("--port", "0", "--trust")
    kept = team.texts(handle)
    assert kept[: len(shown)] == shown
    assert words(4000).startswith("".join(kept))
    own_daemon.stop()
