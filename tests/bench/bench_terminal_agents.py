"""Agents that are their terminal, and agents that have commands run: many at once.

The baseline of terminal agents is the same program in terminals of the same daemon, unwatched.

python tests/bench/bench_terminal_agents.py
"""

from __future__ import annotations

import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio
import yaml

import aegis
from aegis.client.client import Client
from aegis.protocol.agent_streams import AgentItem, AgentsItem
from aegis.protocol.agents import AgentInfo
from tests.aegis.agents.drivers.driving import MAIN
from tests.bench.bench_drivers import processor_s, resident
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess, processes_with

TUI = Path(__file__).parents[1] / "fakes" / "agents" / "tui.py"
STAND_IN = [sys.executable, "-S", str(MAIN), "acp"]
AGENTS = 50
SESSIONS, COMMANDS = 10, 10
REST_S = 5.0
BLOCKS = 30


@contextmanager
def running_daemon(directory: Path) -> Iterator[DaemonProcess]:
    """Run a daemon that allows so many agents."""
    directory.mkdir()
    daemon = DaemonProcess(directory)
    profile = {"provider": "acp", "permission": "full", "command": STAND_IN}
    configuration = {
        "agents": {"acp": profile},
        "default_agent": "acp",
        "limits": {"sessions": 2 * AGENTS},
    }
    (daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(configuration))
    daemon.start("--port", "0", "--trust")
    try:
        yield daemon
    finally:
        if daemon.is_running:
            daemon.stop()


def program(mode: str = "reports") -> str:
    return shlex.join([sys.executable, "-S", str(TUI), mode])


async def plain(client: Client, count: int) -> list[str]:
    """Start the program in terminals that nobody watches; return their names."""
    names = [f"plain{number}" for number in range(count)]
    for name in names:
        await client.terminals.spawn(name)
        await client.terminals.run(name, program(), until="started")
    return names


async def launched(client: Client, count: int) -> list[str]:
    """Launch agents; return their handles."""
    return [(await client.agents.launch(program())).handle for _ in range(count)]


async def orders(client: Client, names: list[str], order: str) -> None:
    for name in names:
        await client.terminals.keys(name, f"{order}\r")


async def spent(daemon: DaemonProcess) -> float:
    """Return the daemon's share of a processor in the next seconds, in percent."""
    pid = daemon.endpoint.pid
    used = processor_s(pid)
    await trio.sleep(REST_S)
    return 100 * (processor_s(pid) - used) / REST_S


def infos(item: object) -> list[AgentInfo]:
    """Return the agents in an item of the stream."""
    match item:
        case AgentsItem(agents=agents):
            return agents
        case AgentItem(agent=agent):
            return [agent]
        case _:
            return []


async def are_in(client: Client, handles: list[str], state: str) -> None:
    async with client.agents.follow() as changes:
        left = set(handles)
        async for item in changes:
            left -= {each.handle for each in infos(item) if each.state == state}
            if not left:
                return


async def many(daemon: DaemonProcess, client: Client) -> list[Row]:
    """Return the rows of fifty agents beside fifty plain terminals."""
    pid = daemon.endpoint.pid
    await launched(client, 2)  # so that what is loaded once is not counted
    before = resident(pid)
    names = await plain(client, AGENTS)
    await trio.sleep(2)
    of_plain, idle_plain = resident(pid) - before, await spent(daemon)
    await orders(client, names, "ask x")
    await trio.sleep(2)
    asking_plain = await spent(daemon)
    for name in names:
        await client.terminals.close(name, purge=True)
    before = resident(pid)
    handles = await launched(client, AGENTS)
    await are_in(client, handles, "needs_input")
    await trio.sleep(2)
    of_agents, idle = resident(pid) - before, await spent(daemon)
    await orders(client, handles, "ask x")
    await trio.sleep(2)
    asking = await spent(daemon)
    return [
        ("memory of a terminal agent in the daemon, KB", of_agents / AGENTS / 1000, ""),
        ("  of a terminal with the same program, KB", of_plain / AGENTS / 1000, ""),
        (f"CPU of {AGENTS} agents that are ready, %", idle, "goal ≤ 2"),
        ("  of as many terminals, %", idle_plain, ""),
        (f"CPU of {AGENTS} agents that ask, with a dot that blinks, %", asking, ""),
        ("  of as many terminals, %", asking_plain, ""),
    ]


async def blocks(daemon: DaemonProcess, client: Client) -> list[Row]:
    """Return the row of the time from the answer's key to the next block that is seen."""
    info = await client.agents.launch(program())
    figures = []
    async with client.agents.follow() as changes:

        async def until(kind: str) -> None:
            async for item in changes:
                programs = [each.program for each in infos(item) if each.handle == info.handle]
                needs = [each.need.kind for each in programs if each and each.need]
                if kind in needs:
                    return

        await until("ready")
        for number in range(BLOCKS):
            began = time.perf_counter()
            await client.terminals.keys(info.handle, f"ask {number}\r")
            await until("permission")
            figures.append(1000 * (time.perf_counter() - began))
            await client.terminals.keys(info.handle, "y")
            await until("ready")
    return [("a block that is reported, seen after ms", statistics.median(figures), "median")]


async def commands(daemon: DaemonProcess, client: Client) -> list[Row]:
    """Return the rows of a hundred commands that ten ACP agents have run."""
    pid = daemon.endpoint.pid
    await opened(client, 1)
    before = resident(pid)
    for _ in range(SESSIONS):
        await opened(client, 0)
    of_sessions = resident(pid) - before
    before = resident(pid)
    for _ in range(SESSIONS):
        await opened(client, COMMANDS)
    grown = resident(pid) - before - of_sessions
    count = SESSIONS * COMMANDS
    return [
        (f"memory of a command of an ACP agent, of {count}, KB", grown / count / 1000, ""),
        ("  CPU of all of them, %", await spent(daemon), "goal ≤ 2"),
    ]


async def opened(client: Client, count: int) -> None:
    """Spawn an ACP agent that has so many commands run, and wait until all of them do."""
    prompt = "\n".join([*["OPEN sleep 1000"] * count, "HANG"])
    info = await client.agents.spawn(prompt=prompt)
    async with client.agents.follow() as changes:
        async for item in changes:
            found = [each for each in infos(item) if each.handle == info.handle]
            if found and len(found[0].terminals) >= count:
                return


async def stopped(daemon: DaemonProcess, what: str) -> list[Row]:
    """Stop the daemon; return the rows of its time and of what it has left."""
    began = time.perf_counter()
    await trio.to_thread.run_sync(daemon.stop)
    took_s = time.perf_counter() - began
    left = processes_with(f"AEGIS_TERMINAL={daemon.root}")
    return [
        (f"the daemon stops with {what}, s", took_s, "goal ≤ 3"),
        ("  processes left", len(left), "goal 0"),
    ]


async def measured() -> list[Row]:
    """Return all rows."""
    with (
        tempfile.TemporaryDirectory(prefix="aegis-bench-") as name,
        running_daemon(Path(name) / "terminals") as first,
        running_daemon(Path(name) / "commands") as second,
    ):
        async with aegis.connect(first.root) as client:
            rows = await many(first, client)
            rows += await blocks(first, client)
        rows += await stopped(first, f"{AGENTS} terminal agents")
        async with aegis.connect(second.root) as client:
            rows += await commands(second, client)
        rows += await stopped(second, f"{SESSIONS * COMMANDS} commands of agents")
    return rows


def measure() -> list[Row]:
    """Thirteen rows; takes a minute."""
    return trio.run(measured)


if __name__ == "__main__":
    print_rows(measure())
