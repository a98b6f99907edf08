"""How long a start takes: of the daemon, until it says that it is ready, and of a one-shot verb.

What the daemon's start is compared with is Python importing the libraries that it cannot do
without; what a verb's is compared with, is Python doing nothing. Measured in turn. A cold start is
one without compiled bytecode, as the first one after an installation.

python tests/bench/bench_start.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tests.bench.bench_mcp import RUN, HttpSocket, LegacyClient
from tests.bench.table import Row, print_rows
from tests.e2e.harness import PROGRAM, DaemonProcess

COLD_ROUNDS = 3
WARM_ROUNDS = 7
VERB_ROUNDS = 15
RESTORE_ROUNDS = 3
RESTORED = 50
LIBRARIES = "import mcp.server, trio"


class FreshDaemon(DaemonProcess):
    """A daemon with more variables in its environment."""

    def __init__(self, directory: Path, variables: Mapping[str, str]) -> None:
        super().__init__(directory)
        self._variables = variables

    @property
    def environment(self) -> dict[str, str]:
        """As a daemon's, with the variables."""
        return {**super().environment, **self._variables}


def up_s(variables: Mapping[str, str]) -> float:
    """Seconds from starting the daemon's process to the line that says it is ready."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = FreshDaemon(Path(directory), variables)
        begin = time.perf_counter()
        daemon.start("--port", "0", "--log-level", "warning")
        took = time.perf_counter() - begin
        daemon.stop()
        return took


def first_mcp_run_s() -> tuple[float, float]:
    """Seconds until a daemon is ready, and until a client that then comes has run ``true``."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = DaemonProcess(Path(directory))
        begin = time.perf_counter()
        daemon.start("--port", "0", "--log-level", "warning")
        ready_s = time.perf_counter() - begin
        try:
            url = daemon.call("session_new", handle="bench")["url"]
            daemon.call("term_spawn", name="bench")
            with HttpSocket(url) as http:
                client = LegacyClient(http)
                client.call(client.prepared(RUN[0], **RUN[1]))
            return ready_s, time.perf_counter() - begin
        finally:
            daemon.stop()


def mcp_rows() -> list[Row]:
    """How long the first MCP client waits that comes as soon as the daemon is ready."""
    rounds = [first_mcp_run_s() for _ in range(WARM_ROUNDS)]
    ready_s, run_s = (statistics.median(each) for each in zip(*rounds, strict=True))
    return [
        ("up to the first MCP run / up to ready", run_s / ready_s, "ratio"),
        ("  up to the first MCP run, s", run_s, "median, goal ≤ 0.8"),
        ("  of that after ready, s", run_s - ready_s, "of the medians"),
    ]


def python_s(code: str, variables: Mapping[str, str] | None = None) -> float:
    """Seconds that Python takes for ``code``."""
    return process_s([sys.executable, "-c", code], {**os.environ, **(variables or {})})


def process_s(command: list[str], environment: Mapping[str, str]) -> float:
    """Seconds from start to end of a process that must succeed."""
    nowhere = subprocess.DEVNULL
    begin = time.perf_counter()
    subprocess.run(command, env=dict(environment), check=True, stdout=nowhere, stderr=nowhere)
    return time.perf_counter() - begin


def cold(work: Callable[[Mapping[str, str]], float]) -> float:
    """Seconds of ``work``, given variables that make Python find no compiled bytecode."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        return work({"PYTHONPYCACHEPREFIX": directory})


def in_turn(rounds: int, *works: Callable[[], float]) -> list[float]:
    """The median seconds of each, measured in turn."""
    taken = [[work() for work in works] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*taken, strict=True)]


def start_rows(name: str, floor_s: float, start_s: float, note: str) -> list[Row]:
    """A start and its floor as rows."""
    return [
        (f"up to ready, {name} / import of its libraries", start_s / floor_s, "ratio"),
        (f"  up to ready, {name}, s", start_s, note),
        (f"  import of its libraries, {name}, s", floor_s, note),
    ]


LEAST = "import socket, json"
"""What no client of the daemon can do without."""

QUIET_S = 0.1
"""How long the command takes that is shown as it runs: left out of the figure."""


def verb_rows() -> list[Row]:
    """Verbs of a running daemon, against Python doing nothing, and against the least they need.

    ``term run`` of a command that is over at once is a call and a sync; one that goes on is shown.
    """
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = DaemonProcess(Path(directory))
        daemon.start("--port", "0", "--log-level", "warning")
        daemon.call("term_spawn", name="t")
        verbs = (
            ["status"],
            ["term", "list"],
            ["term", "run", "t", "true"],
            ["term", "run", "t", f"sleep {QUIET_S}"],
        )
        commands = [[str(PROGRAM), "--root", str(daemon.root), *words] for words in verbs]
        try:
            floor_s, least_s, verb_s, list_s, run_s, shown_s = in_turn(
                VERB_ROUNDS,
                lambda: python_s("pass"),
                lambda: python_s(LEAST),
                *(partial(process_s, command, daemon.environment) for command in commands),
            )
        finally:
            daemon.stop()
    return [
        ("one-shot verb (status) / Python doing nothing", verb_s / floor_s, "ratio"),
        ("one-shot verb (term list) / import of socket, json", list_s / least_s, "ratio, goal ≤ 2"),
        ("  one-shot verb (status), s", verb_s, "median"),
        ("  one-shot verb (term list), s", list_s, "median"),
        ("  import of socket, json, s", least_s, "median"),
        ("  term run true, s", run_s, "median"),
        ("  term run, shown as it runs, s", shown_s - QUIET_S, "median, goal ≤ 0.4"),
        ("  Python doing nothing, s", floor_s, "median"),
    ]


def restore_rows() -> list[Row]:
    """A start that brings terminals back after a kill, against one that has none to bring back."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = DaemonProcess(Path(directory))
        daemon.start("--port", "0", "--log-level", "warning")
        spawns = [daemon.send("term_spawn", name=f"t{number}") for number in range(RESTORED)]
        for spawn in spawns:
            spawn.result()
        restore_s = statistics.median(_again_s(daemon) for _ in range(RESTORE_ROUNDS))
        daemon.stop()
    none_s = statistics.median(up_s({}) for _ in range(RESTORE_ROUNDS))
    return [
        (f"up to ready, {RESTORED} terminals / none", restore_s / none_s, "ratio"),
        (f"  up to ready, {RESTORED} terminals to restore, s", restore_s, "median, after kill -9"),
    ]


def _again_s(daemon: DaemonProcess) -> float:
    daemon.kill()
    begin = time.perf_counter()
    daemon.start("--port", "0", "--log-level", "warning")
    return time.perf_counter() - begin


def measure() -> list[Row]:
    """Cold start, warm start, one with terminals, and a verb; takes about half a minute."""
    cold_floor_s, cold_up_s = in_turn(
        COLD_ROUNDS,
        lambda: cold(lambda variables: python_s(LIBRARIES, variables)),
        lambda: cold(up_s),
    )
    warm_floor_s, warm_up_s = in_turn(WARM_ROUNDS, lambda: python_s(LIBRARIES), lambda: up_s({}))
    return [
        *start_rows("warm", warm_floor_s, warm_up_s, "median"),
        *start_rows("cold", cold_floor_s, cold_up_s, "median, without compiled bytecode"),
        *mcp_rows(),
        *restore_rows(),
        *verb_rows(),
    ]


if __name__ == "__main__":
    print_rows(measure())
