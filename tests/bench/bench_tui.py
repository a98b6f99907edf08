"""What the terminal interface costs: its CPU while programs draw, its start, its memory.

It runs in tmux, in front of a real daemon. CPU is that of its process alone, as a part of one core.

python tests/bench/bench_tui.py [start] [drawing] [blocks] [idle]
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from aegis import connect_sync
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess
from tests.e2e.test_agents import STAND_IN
from tests.e2e.tmux import Tmux, interface

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
MEASURED_S = 5.0
SETTLED_S = 1.0
AGENTS = 50
BLOCKS = 10_000
MIB = 1024 * 1024
LOADED_S = 60.0
OLDEST = re.compile(r"❯ : 0\b")  # noqa: RUF001
"""The header of the oldest block."""

DRAWER = """
import os, sys, time
rows, rate = int(sys.argv[1]), float(sys.argv[2])
os.write(1, b"\\x1b[?1049h")
size = os.get_terminal_size()
rows, begin, frame = min(rows, size.lines), time.monotonic(), 0
while True:
    frame += 1
    for row in range(rows):
        text = f"\\x1b[{row + 1};1H\\x1b[3{row % 7 + 1}m{frame:8} " + f"{row * frame % 9973:5} " * 9
        os.write(1, text[: size.columns + 14].encode())
    time.sleep(max(0, begin + frame / rate - time.monotonic()))
"""


def pid_of(daemon: DaemonProcess) -> int:
    """The process of the interface of this root."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            is_it = b"tui" in words and b"python" in words[0]
            if is_it and (process / "cwd").resolve() == daemon.root.resolve():
                return int(process.name)
        except OSError:
            continue
    raise AssertionError("the interface does not run")


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def load(pid: int) -> float:
    """The part of a core that the process takes for a while, in percent."""
    time.sleep(SETTLED_S)
    before, began = cpu_s(pid), time.monotonic()
    time.sleep(MEASURED_S)
    return 100 * (cpu_s(pid) - before) / (time.monotonic() - began)


def memory_mib(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / MIB


def drawn(window: Tmux, daemon: DaemonProcess, command: str) -> tuple[float, float]:
    """The load while a command runs, and the seconds until Ctrl-C has ended it."""
    window.type(command)
    window.press("Enter")
    figure = load(pid_of(daemon))
    began = time.perf_counter()
    window.press("C-c")
    while daemon.call("term_list")["result"][0]["state"] == "running":
        time.sleep(0.005)
    return figure, time.perf_counter() - began


def drawing_rows(window: Tmux, daemon: DaemonProcess) -> list[Row]:
    script = daemon.root / "draw.py"
    script.write_text(DRAWER)
    ten, _ = drawn(window, daemon, f"{sys.executable} {script} 10 55")
    every, _ = drawn(window, daemon, f"{sys.executable} {script} 99 55")
    flood, stop_s = drawn(window, daemon, "yes 'a line of a flood that does not end'")
    return [
        ("  terminal interface, ten rows at 55 a second, % of a core", ten, "goal ≤ 17"),
        ("  terminal interface, all rows at 55 a second, % of a core", every, "goal ≤ 22"),
        ("  terminal interface, a flood, % of a core", flood, "goal ≤ 50"),
        ("  Ctrl-C in a flood until the command has ended, s", stop_s, "goal ≤ 0.5"),
    ]


def block_rows(window: Tmux, daemon: DaemonProcess) -> list[Row]:
    """The memory with many blocks, all of them loaded: the oldest is shown at the top."""
    with connect_sync(daemon.root) as client:
        for number in range(BLOCKS):
            client.terminals.run("bench", f": {number}")
    deadline = time.monotonic() + LOADED_S
    while not OLDEST.search(window.screen()):
        assert time.monotonic() < deadline, f"not all blocks are loaded:\n{window.screen()}"
        window.press("C-Home")
        time.sleep(0.1)
    window.press("C-End")
    window.shows(f": {BLOCKS - 1}")
    figure = memory_mib(pid_of(daemon))
    return [(f"  terminal interface with {BLOCKS:,} blocks, MiB", figure, "goal ≤ 150")]


def start_row(daemon: DaemonProcess, directory: Path) -> Row:
    took = []
    for number in range(5):
        began = time.perf_counter()
        with interface(daemon, directory / f"start{number}") as window:
            window.shows("Ctrl-E")
            took.append(time.perf_counter() - began)
    return "  terminal interface until it shows, s", sorted(took)[2], "median of 5, goal ≤ 0.8"


@contextmanager
def at_work(directory: Path) -> Iterator[DaemonProcess]:
    """A daemon with a terminal, whose agents are stand-ins."""
    daemon = DaemonProcess(directory)
    command = [sys.executable, str(STAND_IN), "claude"]
    profile = {"provider": "claude", "permission": "ask", "command": command}
    configuration: dict[str, Any] = {
        "agents": {"asks": profile},
        "default_agent": "asks",
        "limits": {"sessions": 64, "spawns_per_hour": 1000},
    }
    (daemon.root / ".aegis.yaml").write_text(yaml.safe_dump(configuration))
    daemon.start("--port", "0", "--trust", "--log-level", "warning")
    try:
        daemon.call("term_spawn", name="bench")
        yield daemon
    finally:
        daemon.stop()


@contextmanager
def shown(daemon: DaemonProcess, directory: Path) -> Iterator[Tmux]:
    """The interface, with the terminal in front."""
    with interface(daemon, directory / "tmux", cols=110, rows=36) as window:
        window.shows("term:bench")
        window.press("M-1")
        window.shows("── live ──")
        yield window


def idle_row(daemon: DaemonProcess, window: Tmux) -> Row:
    for number in range(AGENTS):
        daemon.call("spawn", handle=f"agent{number}")
    window.shows("agent1")
    figure = load(pid_of(daemon))
    return f"  {AGENTS} agents in the rail, idle, % of a core", figure, "goal ≤ 2"


PARTS = ("start", "drawing", "blocks", "idle")


def measure(*parts: str) -> list[Row]:
    """Rows for the table, of all parts or of these; all take two minutes."""
    rows: list[Row] = []
    for part in parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="aegis-bench-") as name:
            directory = Path(name)
            with at_work(directory) as daemon:
                if part == "start":
                    rows.append(start_row(daemon, directory))
                    continue
                with shown(daemon, directory) as window:
                    match part:
                        case "drawing":
                            rows += drawing_rows(window, daemon)
                        case "blocks":
                            rows += block_rows(window, daemon)
                        case "idle":
                            rows.append(idle_row(daemon, window))
    return rows


if __name__ == "__main__":
    print_rows(measure(*sys.argv[1:]))
