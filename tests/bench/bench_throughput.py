"""How fast a flood goes through a terminal, against a bare read loop, and what memory it takes.

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

from aegis.client.line import LineClient
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess

FLOOD = r"head -c 50M /dev/zero | tr '\0' a | fold -w 80"
FLOOD_BYTES = 50 * 2**20
ROUNDS = 3
TIMEOUT_S = 300.0

_RESET_PEAK = "5"  # proc(5), clear_refs


def bare_loop_s() -> float:
    """Seconds of the flood, read by nothing but a loop."""
    master, slave = os.openpty()
    begin = time.perf_counter()
    process = subprocess.Popen(
        ["setsid", "-c", "/bin/bash", "-c", FLOOD], stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    count = 0
    while data := _read(master):
        count += len(data)
    took = time.perf_counter() - begin
    os.close(master)
    process.wait()
    assert count >= FLOOD_BYTES, f"only {count} bytes came"
    return took


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65_536)
    except OSError:  # EIO: nobody holds the other side any more
        return b""


def terminal_s(client: LineClient) -> float:
    """Seconds of the flood, run on the terminal."""
    begin = time.perf_counter()
    arguments = {"name": "bench", "cmd": FLOOD, "timeout": TIMEOUT_S}
    record = client.call("term_run", arguments)
    took = time.perf_counter() - begin
    assert record["exit"] == 0, record
    return took


def resident_growth_mb(daemon: DaemonProcess, client: LineClient) -> float:
    """How far the daemon's resident memory rises above where it was, during one flood."""
    process = Path("/proc", str(daemon.process.pid))
    (process / "clear_refs").write_text(_RESET_PEAK)
    before = _status_kb(process, "VmRSS")
    terminal_s(client)
    return (_status_kb(process, "VmHWM") - before) / 1024


def _status_kb(process: Path, field: str) -> int:
    found = re.search(rf"^{field}:\s+(\d+) kB$", (process / "status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def measure() -> list[Row]:
    """Speed as a ratio, both rates, and the growth of memory; takes about half a minute."""
    bare, ours = [], []
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = DaemonProcess(Path(directory))
        daemon.start("--port", "0", "--log-level", "warning")
        try:
            daemon.call("term_spawn", name="bench", shell="/bin/bash")
            with daemon.connect() as client:
                terminal_s(client)
                for _ in range(ROUNDS):
                    bare.append(bare_loop_s())
                    ours.append(terminal_s(client))
                growth = resident_growth_mb(daemon, client)
        finally:
            daemon.stop()
    floor_s, ours_s = statistics.median(bare), statistics.median(ours)
    megabytes = FLOOD_BYTES / 1e6
    return [
        ("50 MB flood, rate / bare loop's", floor_s / ours_s, "ratio, goal ≥ 0.9"),
        ("  through a terminal, MB/s", megabytes / ours_s, "median"),
        ("  bare loop, MB/s", megabytes / floor_s, "median"),
        ("  resident memory of the daemon, MB", growth, "growth to its peak, goal ≤ 4"),
    ]


if __name__ == "__main__":
    print_rows(measure())
