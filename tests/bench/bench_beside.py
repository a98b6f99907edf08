"""What a command costs on one terminal while another floods, and what that does to the flood.

Both terminals belong to one real daemon. The flood is measured alone and beside the commands by
what it has printed when a fixed time is over.

python tests/bench/bench_beside.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from aegis.client.line import LineClient
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess

FLOOD = r"head -c 2000M /dev/zero | tr '\0' a | fold -w 80"
COMMANDS = 300
WARM_UP = 40
ALONE_S = 4.0
PACE_S = 0.1
"""Between the commands of somebody who also thinks: 40 of them in four seconds."""
TIMEOUT_S = 300.0


def run_ms(client: LineClient) -> float:
    """Milliseconds of one command, over the Unix socket."""
    begin = time.perf_counter()
    record = client.call("term_run", {"name": "quiet", "cmd": "true", "timeout": TIMEOUT_S})
    assert record["exit"] == 0
    return (time.perf_counter() - begin) * 1000


def commands_ms(client: LineClient) -> list[float]:
    """Of many commands, one after the other."""
    return [run_ms(client) for _ in range(COMMANDS)]


def paced_commands(client: LineClient) -> None:
    """Commands one at a time with pauses between, for ``ALONE_S``."""
    begin = time.perf_counter()
    while time.perf_counter() - begin < ALONE_S:
        run_ms(client)
        time.sleep(PACE_S)


def flood_rate(daemon: DaemonProcess, during: Callable[[], object]) -> float:
    """Megabytes a second that the flood prints while ``during`` is called."""
    raw = daemon.state.terminals / "flood"
    begin, before = time.perf_counter(), printed(daemon)
    during()
    took, after = time.perf_counter() - begin, printed(daemon)
    assert raw.is_dir()
    return (after - before) / took / 1e6


def printed(daemon: DaemonProcess) -> int:
    """How many bytes the flood has printed so far: its record so far tells."""
    record = daemon.call("term_read", name="flood", last_n=1)["result"]
    assert record == [], "the flood came to its end: make it longer"
    base = (daemon.state.terminals / "flood" / "raw.base").read_text()
    current = int(base.partition('"current":')[2].partition(",")[0])
    return current + (daemon.state.terminals / "flood" / "raw.log").stat().st_size


def measure() -> list[Row]:
    """Both ratios; takes about half a minute."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = DaemonProcess(Path(directory))
        daemon.start("--port", "0", "--log-level", "warning")
        try:
            daemon.call("term_spawn", name="quiet", shell="/bin/bash")
            daemon.call("term_spawn", name="flood", shell="/bin/bash")
            with daemon.connect() as client:
                for _ in range(WARM_UP):
                    run_ms(client)
                quiet = commands_ms(client)
                pending = daemon.send("term_run", name="flood", cmd=FLOOD, timeout=TIMEOUT_S)
                pending.has_arrived()
                alone = flood_rate(daemon, lambda: time.sleep(ALONE_S))
                paced = flood_rate(daemon, lambda: paced_commands(client))
                beside: list[float] = []
                together = flood_rate(daemon, lambda: beside.extend(commands_ms(client)))
                daemon.call("term_keys", name="flood", keys="\x03")
                pending.result()
        finally:
            daemon.stop()
    return _rows(quiet, beside, (alone, paced, together))


def _rows(quiet: list[float], beside: list[float], rates: tuple[float, float, float]) -> list[Row]:
    alone, paced, together = rates
    quiet_ms, beside_ms = statistics.median(quiet), statistics.median(beside)
    return [
        ("run('true') beside a flood / alone", beside_ms / quiet_ms, "ratio, goal ≤ 3"),
        ("  beside, ms", beside_ms, "median"),
        ("  beside, ms, 95th percentile", statistics.quantiles(beside, n=20)[-1], ""),
        ("  alone, ms", quiet_ms, "median, over the Unix socket"),
        ("flood beside ten commands a second / alone", paced / alone, "ratio, goal ≥ 0.8"),
        ("flood beside commands without a pause / alone", together / alone, "ratio"),
        ("  alone, MB/s", alone, ""),
        ("  beside ten commands a second, MB/s", paced, ""),
        ("  beside commands without a pause, MB/s", together, ""),
    ]


if __name__ == "__main__":
    print_rows(measure())
