"""The cost of a driver and its guard: a turn, a start, a flood of events, and fifty idle ones.

The agent is a stand-in of Claude Code's protocol, read by the real machine. The bare stand-in is
the same program, started directly: frames are written and read by a loop that parses each line and
does nothing else. Both are measured in turn, in one process.

python tests/bench/bench_drivers.py
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from aegis.agents.drivers.claude.machine import Claude
from aegis.agents.messages import DriverReady
from aegis.processes.environment import process_environment
from aegis.processes.reaper import find_processes
from tests.aegis.agents.drivers.driving import MAIN, Driven, driven, plan_for
from tests.bench.table import Row, print_rows

TURNS = 200
STARTS = 15
FLOOD = 20_000
FLOODS = 5
IDLE = 50
IDLE_S = 5.0

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@attrs.define
class Bare:
    """The stand-in without a driver."""

    process: trio.Process
    _data: bytes = b""

    async def send(self, frame: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send_all(json.dumps(frame).encode() + b"\n")

    async def until(self, kind: str) -> int:
        """Read frames up to one of this type; return their number."""
        assert self.process.stdout is not None
        count = 0
        while True:
            *lines, self._data = self._data.split(b"\n")
            for line in lines:
                count += 1
                if json.loads(line)["type"] == kind:
                    return count
            self._data += await self.process.stdout.receive_some(65_536)

    async def turn(self, text: str, uuid: str) -> int:
        """Run one turn; return the number of its frames."""
        content = [{"type": "text", "text": text}]
        message = {"role": "user", "content": content}
        await self.send({"type": "user", "message": message, "uuid": uuid})
        return await self.until("result")


@asynccontextmanager
async def bare(directory: Path) -> AsyncIterator[Bare]:
    """Run a stand-in until the end of the block."""
    environment = process_environment(
        {"PATH": os.environ["PATH"]}, {}, cwd=str(directory), cookie="bench"
    )
    process = await trio.lowlevel.open_process(
        [sys.executable, "-S", str(MAIN), "claude"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=directory,
        env=environment,
    )
    it = Bare(process)
    request = {"subtype": "initialize", "mcpServers": {}}
    await it.send({"type": "control_request", "request_id": "1", "request": request})
    await it.until("control_response")
    try:
        yield it
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdin.aclose()
        await process.wait()
        await process.stdout.aclose()


def drive(directory: Path) -> Any:
    """Run a driver until the end of the block."""
    return driven(plan_for(directory, make_harness=Claude))


async def turn(it: Driven, text: str, uuid: str) -> None:
    """Run one turn of a driven agent."""
    known = len(it.log.results)
    await it.turn(text, uuid)
    await it.log.until(lambda: len(it.log.results) > known)


async def seconds(work: Callable[[], Awaitable[object]]) -> float:
    """Return the time that ``work`` takes."""
    begin = time.perf_counter()
    await work()
    return time.perf_counter() - begin


async def turns(directory: Path) -> list[Row]:
    """Return the rows of one short turn."""
    plain: list[float] = []
    through: list[float] = []
    async with bare(directory) as alone, drive(directory) as it:
        for number in range(TURNS):
            uuid = f"u{number}"
            plain.append(await seconds(lambda: alone.turn("SAY x", uuid)))  # noqa: B023
            through.append(await seconds(lambda: turn(it, "SAY x", uuid)))  # noqa: B023
    one, other = statistics.median(plain) * 1000, statistics.median(through) * 1000
    return [
        ("a driven turn / a turn of the bare stand-in", other / one, "ratio"),
        ("  a driven turn, longer by ms", other - one, "median of the turns, goal ≤ 5"),
        ("  a turn of the bare stand-in, ms", one, "median of the turns"),
    ]


async def starts(directory: Path) -> list[Row]:
    """Return the rows of a start, up to the agent's first answer."""

    async def start_bare() -> None:
        async with bare(directory):
            plain.append(time.perf_counter() - begin)

    async def start_driven() -> None:
        async with drive(directory) as it:
            await it.log.first(DriverReady)
            through.append(time.perf_counter() - begin)

    plain: list[float] = []
    through: list[float] = []
    for _ in range(STARTS):
        begin = time.perf_counter()
        await start_bare()
        begin = time.perf_counter()
        await start_driven()
    one, other = statistics.median(plain) * 1000, statistics.median(through) * 1000
    return [
        ("start of a driven agent, later by ms", other - one, "median, goal ≤ 60"),
        ("  start of the bare stand-in, ms", one, "median"),
    ]


async def floods(directory: Path) -> list[Row]:
    """Return the rows of a flood of events."""
    plain: list[float] = []
    through: list[float] = []
    text = f"FLOOD {FLOOD}"
    async with bare(directory) as alone, drive(directory) as it:
        for number in range(FLOODS):
            uuid = f"u{number}"
            plain.append(FLOOD / await seconds(lambda: alone.turn(text, uuid)))  # noqa: B023
            it.log.reports[1:] = []
            it.log.events.clear()
            through.append(FLOOD / await seconds(lambda: turn(it, text, uuid)))  # noqa: B023
    one, other = statistics.median(plain), statistics.median(through)
    return [
        ("events a second of a driven agent / of the bare loop", other / one, "ratio, goal ≥ 0.2"),
        ("  events a second of a driven agent", other, "median of the floods, goal ≥ 1000"),
        ("  events a second of the bare loop", one, "median of the floods"),
    ]


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def unshared(pid: int) -> int:
    """Return the memory of a process, with its part of what it shares (PSS), in bytes."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


async def idle(directory: Path) -> list[Row]:
    """Return the rows of idle drivers."""
    async with AsyncExitStack() as stack:
        await ready(stack, directory)  # so that what is loaded once is not counted
        gc.collect()
        before = resident(os.getpid())
        many = [await ready(stack, directory) for _ in range(IDLE)]
        gc.collect()
        grown = resident(os.getpid()) - before
        guards = [each.pid_of_guard() for each in many]
        memory = statistics.median(map(unshared, guards))
        largest = max(map(resident, guards))
        used = {pid: processor_s(pid) for pid in (os.getpid(), *guards)}
        await trio.sleep(IDLE_S)
        spent = {pid: processor_s(pid) - begun for pid, begun in used.items()}
        assert all(find_processes([], [each.plan.cookie]) for each in many)
    ours = spent.pop(os.getpid())
    return [
        ("memory of an idle driver, KB", grown / IDLE / 1000, "resident, goal ≤ 200"),
        ("  memory of its guard, KB", memory / 1000, "with its part of what is shared"),
        ("  resident memory of its guard, KB", largest / 1000, "the largest, goal ≤ 12288"),
        (f"  CPU of {IDLE} idle drivers, %", 100 * ours / IDLE_S, "of one core"),
        (f"  CPU of their {IDLE} guards, %", 100 * sum(spent.values()) / IDLE_S, "of one core"),
    ]


async def ready(stack: AsyncExitStack, directory: Path) -> Driven:
    it: Driven = await stack.enter_async_context(drive(directory))
    await it.log.first(DriverReady)
    return it


async def measured() -> list[Row]:
    """Return all rows."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as name:
        for each in (idle, turns, starts, floods):  # idle: the heap is small yet
            rows += await each(Path(name))
    return rows


def measure() -> list[Row]:
    """Thirteen rows; takes half a minute."""
    return trio.run(measured)


if __name__ == "__main__":
    print_rows(measure())
