"""What an attach costs: the echo of a key, and the time until the screen shows.

A key goes from a window through the real command line to the daemon, the PTY and bash, and back. It
is measured against the same bash in a window of its own, in turn. The start is compared with
Python doing nothing.

python tests/bench/bench_attach.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from tests.bench.bench_start import in_turn, python_s
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess
from tests.e2e.window import DETACH, Window, window

KEYS = 300
WARM_UP = 20
KEY_PAUSE_S = 0.01
STARTS = 9
MS = 1000.0


def echo_s(shown: Window) -> float:
    """Seconds until a key that was pressed shows; then it is taken back."""
    begin = time.perf_counter()
    shown.press(b"a")
    shown.wait_for(b"a")
    took = time.perf_counter() - begin
    shown.press(b"\x15")  # Ctrl-U
    shown.wait_for(b"\x1b[K")
    time.sleep(KEY_PAUSE_S)  # as people type: the stream is quiet again
    return took


def start_s(daemon: DaemonProcess) -> float:
    """Seconds from the start of an attach until the screen is drawn."""
    begin = time.perf_counter()
    with window(daemon, "term", "attach", "bench") as shown:
        shown.wait_for(b"J$ ")
        took = time.perf_counter() - begin
        shown.press(DETACH)
        shown.wait_exit()
        return took


def echo_rows(daemon: DaemonProcess) -> list[Row]:
    """Keys through an attach and in a window of its own, in turn."""
    bare = Window(
        ["bash", "--norc"], environment={**daemon.environment, "PS1": "$ "}, directory=daemon.root
    )
    try:
        with window(daemon, "term", "attach", "bench") as shown:
            shown.wait_for(b"J$ ")
            bare.wait_for(b"$ ")
            pairs = [(echo_s(bare), echo_s(shown)) for _ in range(WARM_UP + KEYS)][WARM_UP:]
            shown.press(DETACH)
            shown.wait_exit()
    finally:
        bare.close()
    floors, echoes = (sorted(column) for column in zip(*pairs, strict=True))
    floor_s, attach_s = statistics.median(floors), statistics.median(echoes)
    p95_s = echoes[int(len(echoes) * 0.95)]
    return [
        ("echo of a key, attach / bash in a window of its own", attach_s / floor_s, "ratio"),
        ("  echo of a key, attach, ms", attach_s * MS, f"median of {KEYS}"),
        ("  echo of a key, attach, ms, p95", p95_s * MS, "goal ≤ 50"),
        ("  echo of a key, bash in a window of its own, ms", floor_s * MS, "median"),
    ]


def start_rows(daemon: DaemonProcess) -> list[Row]:
    """The start of an attach, against Python doing nothing."""
    floor_s, attach_s = in_turn(STARTS, lambda: python_s("pass"), lambda: start_s(daemon))
    return [
        ("attach until the screen shows / Python doing nothing", attach_s / floor_s, "ratio"),
        ("  attach until the screen shows, s", attach_s, "median, goal ≤ 0.4"),
    ]


def measure() -> list[Row]:
    """Rows for the table; takes about a quarter of a minute."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = DaemonProcess(Path(directory))
        daemon.start("--port", "0", "--log-level", "warning")
        try:
            daemon.call("term_spawn", name="bench", shell="/bin/bash")
            return [*echo_rows(daemon), *start_rows(daemon)]
        finally:
            daemon.stop()


if __name__ == "__main__":
    print_rows(measure())
