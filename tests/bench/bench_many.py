"""A thousand live terminals in one daemon: how fast they come, and what each costs when idle.

The baseline for the speed is the same shells, with the same hook, started by a bare loop: a PTY,
``setsid -c`` and a read up to the prompt's mark, as many at a time.

python tests/bench/bench_many.py
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from pathlib import Path

import trio

from aegis.processes.pty import open_pty_process
from aegis.terminals.hooks import bash
from tests.bench.bench_mcp import HttpSocket, LegacyClient
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess

TERMINALS = 1000
AT_ONCE = 16
IDLE_S = 5.0
SETTLE_S = 12.0
"""Then every terminal is idle: nobody waits for a prompt (10 s), no log waits to be closed."""
GUARD_S = 300.0
BARE_SHELLS = 200


def spawn_all(daemon: DaemonProcess, first: int, last: int) -> float:
    """Seconds to spawn the terminals of these numbers, some at a time, over one connection."""
    begin = time.perf_counter()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(GUARD_S)
        connection.connect(daemon.endpoint.socket)
        lines = connection.makefile("rb")
        for number in range(first, last + AT_ONCE):
            if number >= first + AT_ONCE:
                answer = json.loads(lines.readline())
                assert answer["type"] == "reply", answer
                assert answer["result"]["state"] == "idle", answer
            if number < last:
                arguments = {"name": f"t{number}", "shell": "/bin/bash"}
                request = {"type": "request", "id": number, "command": "term_spawn"}
                frame = json.dumps({**request, "arguments": arguments})
                connection.sendall(frame.encode() + b"\n")
        lines.close()
    return time.perf_counter() - begin


async def bare_shells(directory: Path) -> float:
    """Seconds for the same shells with nothing around them."""
    limiter = trio.CapacityLimiter(AT_ONCE)
    done = []

    async def start(number: int) -> None:
        async with limiter:
            own = directory / f"b{number}"
            own.mkdir(mode=0o700)
            bash.write_startup(own)
            process = await open_pty_process(
                bash.argv("/bin/bash", own),
                cwd=str(directory),
                env={**os.environ, "TERM": "xterm-256color", "HOME": str(directory)},
                rows=24,
                cols=80,
            )
            seen = b""
            while b"\x1b]133;B" not in seen:
                seen += await process.read()
            done.append(process)

    begin = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for number in range(BARE_SHELLS):
            nursery.start_soon(start, number)
    took = time.perf_counter() - begin
    for process in done:
        process.close()
        await process.wait()
    return took


def resident_kb(pid: int) -> int:
    """Resident memory of a process that is not shared with other files."""
    status = Path("/proc", str(pid), "status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])


def descriptors(pid: int) -> int:
    """How many files a process has open."""
    return len(list(Path("/proc", str(pid), "fd").iterdir()))


def cpu_s(pid: int) -> float:
    """Seconds of CPU that a process has taken."""
    fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure() -> list[Row]:
    """Rate, memory, descriptors and idle CPU; takes about a minute."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        bare_s = trio.run(bare_shells, Path(directory))
        daemon = DaemonProcess(Path(directory))
        daemon.start("--port", "0", "--log-level", "warning")
        try:
            pid = daemon.process.pid
            spawn_all(daemon, 0, AT_ONCE)
            # The daemon imports the SDK of MCP, 22 MB, in the first seconds: no terminal's memory.
            with HttpSocket(daemon.call("session_new", handle="bench")["url"]) as http:
                LegacyClient(http)
            memory, files = resident_kb(pid), descriptors(pid)
            took = spawn_all(daemon, AT_ONCE, AT_ONCE + TERMINALS)
            time.sleep(SETTLE_S)
            memory, files = resident_kb(pid) - memory, descriptors(pid) - files
            before = cpu_s(pid)
            time.sleep(IDLE_S)
            idle = (cpu_s(pid) - before) / IDLE_S * 100
        finally:
            begin = time.perf_counter()
            daemon.stop()
            stop_s = time.perf_counter() - begin
    rate, bare_rate = TERMINALS / took, BARE_SHELLS / bare_s
    return [
        ("spawns, rate / bare shells'", rate / bare_rate, "ratio"),
        ("  terminals a second", rate, f"{AT_ONCE} at a time, to the first prompt"),
        ("  bare shells a second", bare_rate, "the same"),
        (f"{TERMINALS} idle terminals: KB each", memory / TERMINALS, "in the daemon, goal ≤ 64"),
        ("  descriptors each", files / TERMINALS, "in the daemon, goal ≤ 4"),
        ("  CPU of the daemon, %", idle, f"of one core, over {IDLE_S:g} s"),
        ("  stop of all, s", stop_s, ""),
    ]


if __name__ == "__main__":
    print_rows(measure())
