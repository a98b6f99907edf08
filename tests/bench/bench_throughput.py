"""How fast floods go through a terminal, against a bare read loop, and what memory they take.

Both read the same command on a PTY of the same kind; they are measured in turn. The bare loop is
``os.read`` in this process and keeps nothing. The terminal is one of a real daemon, with all that
it does to the bytes: log, capture, record. Its process has a whole flood behind it before memory
is looked at: growth is from what was resident before one more to the peak during it.

python tests/bench/bench_throughput.py
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import attrs

from aegis.client.line import LineClient
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess

ROUNDS = 3
TIMEOUT_S = 300.0


@attrs.frozen
class Flood:
    """A command that prints ``size`` bytes or more; ``goal`` is for the rate / the bare loop's."""

    name: str
    command: str
    size: int
    goal: str = ""


def floods(file: Path) -> list[Flood]:
    """What is measured; ``file`` holds 200 MB of short lines."""
    zeros = r"head -c 50M /dev/zero | tr '\0' a"
    return [
        Flood("50 MB flood", f"{zeros} | fold -w 80", 50 * 2**20, ", goal ≥ 0.9"),
        Flood("200 MB through cat", f"cat {file}", 200 * 10**6, ", goal ≥ 0.6"),
        Flood("one line of 50 MB", zeros, 50 * 2**20),
    ]


_RESET_PEAK = "5"  # proc(5), clear_refs


def bare_loop_s(flood: Flood) -> float:
    """Seconds of the flood, read by nothing but a loop."""
    master, slave = os.openpty()
    begin = time.perf_counter()
    process = subprocess.Popen(
        ["setsid", "-c", "/bin/bash", "-c", flood.command], stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    count = 0
    while data := _read(master):
        count += len(data)
    took = time.perf_counter() - begin
    os.close(master)
    process.wait()
    assert count >= flood.size, f"only {count} bytes came"
    return took


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # EIO: nobody holds the other side any more
        return b""


def terminal_s(client: LineClient, flood: Flood) -> float:
    """Seconds of the flood, run on the terminal."""
    begin = time.perf_counter()
    arguments = {"name": "bench", "cmd": flood.command, "timeout": TIMEOUT_S}
    record = client.call("term_run", arguments)
    took = time.perf_counter() - begin
    assert record["exit"] == 0, record
    return took


def resident_growth_mb(daemon: DaemonProcess, client: LineClient, flood: Flood) -> float:
    """How far the daemon's resident memory rises above where it was, during one flood."""
    process = Path("/proc", str(daemon.process.pid))
    (process / "clear_refs").write_text(_RESET_PEAK)
    before = _status_kb(process, "VmRSS")
    terminal_s(client, flood)
    return (_status_kb(process, "VmHWM") - before) / 1024


def _status_kb(process: Path, field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", (process / "status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def measure() -> list[Row]:
    """Speed as a ratio, both rates, and the growth of memory; takes about a minute and a half."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        file = Path(directory, "lines")
        file.write_bytes(b"".join(b"line %091d\n" % number for number in range(2_062_000)))
        daemon = DaemonProcess(Path(directory))
        daemon.start("--port", "0", "--log-level", "warning")
        try:
            daemon.call("term_spawn", name="bench", shell="/bin/bash")
            with daemon.connect() as client:
                return [row for flood in floods(file) for row in _measure(daemon, client, flood)]
        finally:
            daemon.stop()


def _measure(daemon: DaemonProcess, client: LineClient, flood: Flood) -> list[Row]:
    bare, ours = [], []
    terminal_s(client, flood)
    for _ in range(ROUNDS):
        bare.append(bare_loop_s(flood))
        ours.append(terminal_s(client, flood))
    growth = resident_growth_mb(daemon, client, flood)
    floor_s, ours_s = statistics.median(bare), statistics.median(ours)
    megabytes = flood.size / 1e6
    return [
        (f"{flood.name}, rate / bare loop's", floor_s / ours_s, f"ratio{flood.goal}"),
        ("  through a terminal, MB/s", megabytes / ours_s, "median"),
        ("  bare loop, MB/s", megabytes / floor_s, "median"),
        ("  resident memory of the daemon, MB", growth, "growth to its peak, goal ≤ 4"),
    ]


if __name__ == "__main__":
    print_rows(measure())
