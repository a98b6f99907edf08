"""Agent sessions in a daemon: a turn, the first event, a flood with watchers, fifty idle ones.

The agent is a stand-in of Claude Code's protocol. The bare stand-in is the same program, started
directly and read by a loop that does nothing else. Both are measured in turn.

python tests/bench/bench_agents.py
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import attrs
import trio
import yaml

import aegis
from aegis.client.agent_kinds import SessionEvent
from aegis.client.client import Client
from aegis.protocol.agent_events import AssistantText
from aegis.protocol.streams import MAX_CREDIT
from tests.aegis.agents.drivers.driving import MAIN
from tests.bench.bare_websocket import TEXT, BareWebSocket
from tests.bench.bench_drivers import bare, processor_s, resident
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess
from tests.e2e.mcp_client import connect_mcp_to
from tests.e2e.streams import Stream, StreamClient, StreamEnded, stream_client

TURNS = 60
PAUSE_S = 0.15
STARTS = 12
IDLE = 50
IDLE_S = 5.0
EVENTS = 3_000
RATE = 1_000
WATCHERS = 10
ROUNDS = 3


@contextmanager
def daemon_with_agents(directory: Path) -> Iterator[DaemonProcess]:
    """Run a daemon whose default profile starts the stand-in."""
    directory.mkdir()
    daemon = DaemonProcess(directory)
    program = [sys.executable, "-S", str(MAIN), "claude"]
    profile = {"provider": "claude", "permission": "full", "command": program}
    limits = {"sessions": 2 * IDLE + STARTS + 10}
    configuration = {"agents": {"a": profile}, "default_agent": "a", "limits": limits}
    (daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(configuration))
    daemon.start("--port", "0", "--trust")
    try:
        yield daemon
    finally:
        daemon.stop()


async def until(values: AsyncIterator[Any], kind: str) -> SessionEvent:
    """Return the next entry of a kind; an assistant's text counts as "text"."""
    async for value in values:
        assert isinstance(value, SessionEvent), value
        if value.kind == kind or (kind == "text" and isinstance(value.event, AssistantText)):
            return value
    raise AssertionError(f"the stream ended before {kind}")


@attrs.define
class Turns:
    """The seconds of turns: of the bare stand-in, of a session, and of the syncs in each.

    ``session`` is measured by a client that does next to nothing, ``client`` by the Python client.
    """

    bare: list[float] = attrs.field(factory=list)
    session: list[float] = attrs.field(factory=list)
    client: list[float] = attrs.field(factory=list)
    syncs: list[float] = attrs.field(factory=list)

    def median_ms(self, figures: str) -> float:
        seconds: list[float] = getattr(self, figures)
        return 1000 * statistics.median(seconds)

    def longer_ms(self, figures: str) -> float:
        """Return by how much such turns are longer than those of the bare stand-in."""
        return self.median_ms(figures) - self.median_ms("bare")


class BareFollower:
    """A stream of a session's entries over a WebSocket that is next to nothing."""

    def __init__(self, daemon: DaemonProcess, handle: str) -> None:
        self._socket = BareWebSocket(daemon)
        self._handle = handle
        self._last = 1
        arguments = {"handle": handle}
        self._send(type="open", stream="session", arguments=arguments, credit=MAX_CREDIT)
        self.until(b'"opened"')

    def turn(self) -> None:
        """Hand a message off and return once the end of its turn is shown."""
        self._last += 1
        arguments = {"target_handle": self._handle, "context": "SAY x"}
        self._send(type="request", command="handoff", arguments=arguments)
        self.until(b'"turn_ended"')

    def _send(self, **frame: object) -> None:
        self._socket.send(TEXT, json.dumps({"id": self._last, **frame}).encode())

    def until(self, text: bytes) -> None:
        """Read up to a message that contains ``text``."""
        while text not in self._socket.message()[1]:
            pass

    def close(self) -> None:
        self._socket.close()


async def turns(daemon: DaemonProcess, client: Client, directory: Path) -> list[Row]:
    """Return the rows of one short turn: from the call of a handoff to the shown end.

    Between the turns the daemon serves another client, or does nothing. A processor that has slept
    takes twice as long for the same work, in the stand-in too.
    """
    # Two sessions: each has one stream only.
    info, other = [await client.agents.spawn() for _ in range(2)]

    async def serve() -> None:
        until_then = time.perf_counter() + PAUSE_S
        while time.perf_counter() < until_then:
            await client.agents.show(info.handle)

    async def sleep() -> None:
        await trio.sleep(PAUSE_S)

    async with bare(directory) as alone, client.agents.events(other.handle) as events:

        async def by_client() -> None:
            await client.inboxes.handoff(other.handle, "SAY x")
            await until(events, "turn_ended")

        await by_client()
        follower = BareFollower(daemon, info.handle)
        follower.turn()
        pairs = [(Turns(), serve), (Turns(), sleep)]
        for number in range(TURNS):
            for taken, pause in pairs:
                await pause()
                taken.syncs.append(three_syncs(directory))
                begin = time.perf_counter()
                await alone.turn("SAY x", f"u{number}")
                taken.bare.append(time.perf_counter() - begin)
                await pause()
                begin = time.perf_counter()
                follower.turn()
                taken.session.append(time.perf_counter() - begin)
                await pause()
                begin = time.perf_counter()
                await by_client()
                taken.client.append(time.perf_counter() - begin)
        used = processor_s(daemon.endpoint.pid)
        for _ in range(TURNS):
            follower.turn()
            await trio.sleep(PAUSE_S / 3)
        spent = (processor_s(daemon.endpoint.pid) - used) / TURNS
        follower.close()
    in_use, at_rest = pairs[0][0], pairs[1][0]
    slow = tenth(in_use.session) * 1000 - in_use.median_ms("bare")
    ratio = in_use.median_ms("session") / in_use.median_ms("bare")
    return [
        ("a turn of a session / of the bare stand-in", ratio, "ratio"),
        ("  a turn of a session, longer by ms", in_use.longer_ms("session"), "median, goal ≤ 5"),
        ("  three fdatasyncs, which it contains, ms", in_use.median_ms("syncs"), "median"),
        ("  processor time of the daemon for it, ms", 1000 * spent, "mean"),
        ("  the slowest tenth of them, longer by ms", slow, ""),
        ("  by the Python client, longer by ms", in_use.longer_ms("client"), "median"),
        ("  after a pause of the daemon, longer by ms", at_rest.longer_ms("session"), "median"),
    ]


def three_syncs(directory: Path) -> float:
    """Return the seconds of the syncs of a turn: its message, its beginning, its end."""
    begin = time.perf_counter()
    with (directory / "synced").open("ab") as file:
        for _ in range(3):
            file.write(b"x" * 300)
            file.flush()
            os.fdatasync(file.fileno())
    return time.perf_counter() - begin


def tenth(figures: list[float]) -> float:
    return sorted(figures)[len(figures) * 9 // 10]


async def starts(client: Client, directory: Path) -> list[Row]:
    """Return the rows of the first text after a spawn with a prompt."""
    plain: list[float] = []
    through: list[float] = []
    for number in range(STARTS):
        begin = time.perf_counter()
        async with bare(directory) as alone:
            await alone.send(user_frame("SAY x", f"u{number}"))
            await alone.until("assistant")
            plain.append(time.perf_counter() - begin)
        begin = time.perf_counter()
        info = await client.agents.spawn(prompt="SAY x")
        async with client.agents.events(info.handle, since=0) as events:
            await until(events, "text")
        through.append(time.perf_counter() - begin)
        await client.agents.close(info.handle)
    one, other = statistics.median(plain) * 1000, statistics.median(through) * 1000
    return [
        ("first event of a spawned session / of the bare stand-in", other / one, "ratio"),
        ("  first event of a session, later by ms", other - one, "median"),
        ("  first event of the bare stand-in, ms", one, "median"),
    ]


def user_frame(text: str, uuid: str) -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return {"type": "user", "message": message, "uuid": uuid}


async def watched(daemon: DaemonProcess, client: Client, watchers: int) -> dict[str, float]:
    """Return the seconds, CPU and lost entries of a paced flood with so many watchers."""
    info = await client.agents.spawn()
    async with client.agents.events(info.handle) as events, AsyncExitStack() as stack:
        await client.inboxes.handoff(info.handle, "SAY ready")
        await until(events, "turn_ended")
        streams = [await opened(stack, daemon, info.handle) for _ in range(watchers)]
        pid = daemon.endpoint.pid
        lost: list[int] = []
        delays: list[float] = []
        used, begin = processor_s(pid), time.perf_counter()
        await client.inboxes.handoff(info.handle, f"DRIP {EVENTS} {RATE}")
        async with trio.open_nursery() as nursery:
            for stream in streams:
                nursery.start_soon(count_lost, stream, lost)
            await until(events, "turn_ended")
            delays.append(time.perf_counter() - begin)
        spent = processor_s(pid) - used
    await client.agents.close(info.handle)
    return {
        "rate": EVENTS / delays[0],
        "cpu": 100 * spent / delays[0],
        "lost": sum(lost),
        "watchers": len(lost),
    }


async def opened(stack: AsyncExitStack, daemon: DaemonProcess, handle: str) -> Stream:
    client: StreamClient = await stack.enter_async_context(stream_client(daemon))
    return await client.open("session", handle=handle)


async def count_lost(stream: Stream, lost: list[int]) -> None:
    """Read up to the end of the turn; note how many of its texts did not come."""
    last, texts, missing = stream.opened["since"], 0, 0
    while True:
        try:
            frame = await stream.next()
        except StreamEnded as ended:
            raise AssertionError(ended.frame) from None
        if frame["type"] == "gap":
            missing += frame["dropped"]
            continue
        for entry in frame["item"]["entries"]:
            missing += entry["seq"] - last - 1
            last = entry["seq"]
            texts += entry["fields"].get("event", {}).get("type") == "assistant_text"
            if entry["kind"] == "turn_ended":
                # The stand-in repeats the header of the message as one text more.
                lost.append(missing + max(0, EVENTS - texts))
                return


async def floods(daemon: DaemonProcess, client: Client) -> list[Row]:
    """Return the rows of events at a steady rate, without and with watchers."""
    rounds = [
        (await watched(daemon, client, 0), await watched(daemon, client, WATCHERS))
        for _ in range(ROUNDS)
    ]
    alone, many = (
        {key: statistics.mean(each[side][key] for each in rounds) for key in rounds[0][side]}
        for side in (0, 1)
    )
    assert many["watchers"] == WATCHERS
    return [
        (f"events a second with {WATCHERS} watchers", many["rate"], "offered: 1000, goal ≥ 900"),
        (f"  entries that {WATCHERS} watchers lost", many["lost"], "all together, goal ≤ 0"),
        ("  CPU of the daemon with one reader, %", alone["cpu"], "of one core"),
        (f"  CPU of the daemon with {WATCHERS + 1} readers, %", many["cpu"], "of one core"),
        ("  CPU with eleven readers / with one", many["cpu"] / alone["cpu"], "ratio"),
    ]


async def idle(daemon: DaemonProcess, client: Client) -> list[Row]:
    """Return the rows of idle sessions, each of which has had a turn."""
    pid = daemon.endpoint.pid
    # What is loaded once is not counted: the MCP SDK is imported in the background after the start,
    # for seconds on a busy machine, and takes as much memory as hundreds of sessions.
    async with connect_mcp_to(daemon, "auto") as agent:
        await agent.list_tools()
    await ready(client, IDLE // 5)
    before = resident(pid)
    await ready(client, IDLE)
    await trio.sleep(1)
    grown, used = resident(pid) - before, processor_s(pid)
    await trio.sleep(IDLE_S)
    spent = processor_s(pid) - used
    return [
        ("memory of an idle session in the daemon, KB", grown / IDLE / 1000, "goal ≤ 200"),
        (f"  CPU of {IDLE + IDLE // 5} idle sessions, %", 100 * spent / IDLE_S, "goal ≤ 1"),
    ]


async def ready(client: Client, count: int) -> None:
    """Spawn sessions and wait for the end of the first turn of each."""
    handles = [(await client.agents.spawn(prompt="SAY x")).handle for _ in range(count)]
    for handle in handles:
        async with client.agents.events(handle, since=0) as events:
            await until(events, "turn_ended")


@asynccontextmanager
async def scene(directory: Path) -> AsyncIterator[tuple[DaemonProcess, Client]]:
    with daemon_with_agents(directory) as daemon:
        async with aegis.connect(daemon.root) as client:
            yield daemon, client


async def measured() -> list[Row]:
    """Return all rows."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as name:
        directory = Path(name)
        async with scene(directory / "idle") as (daemon, client):  # its heap is small yet
            rows += await idle(daemon, client)
        async with scene(directory / "work") as (daemon, client):
            rows += await turns(daemon, client, directory)
            rows += await starts(client, directory)
            rows += await floods(daemon, client)
    return rows


def measure() -> list[Row]:
    """Sixteen rows; takes a minute and a half."""
    return trio.run(measured)


if __name__ == "__main__":
    print_rows(measure())
