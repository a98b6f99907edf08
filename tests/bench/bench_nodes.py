"""What it costs that a terminal is in a worker process, and what it gains.

Each is compared with the same in the daemon's own process. Two real daemons, one with two workers,
do the same in turn: `true` again and again, two floods at once, and `true` beside these.

python tests/bench/bench_nodes.py
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import ActorError, Ref
from aegis.client.line import LineClient
from tests.actors.nodes.hosted import open_hosting
from tests.actors.nodes.pair import Add, Sum
from tests.bench.bench_start import process_s
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess

RUNS = 300
WARM_UP = 40
FLOOD_ROUNDS = 3
BESIDE = 20
MESSAGES = 20_000
ASKS = 2_000
KILLS = 5
TIMEOUT_S = 300.0
LIBRARIES = "import trio, attrs, cattrs, structlog"


@contextmanager
def daemon(*options: str) -> Iterator[DaemonProcess]:
    """A daemon with these options."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        process = DaemonProcess(Path(directory))
        process.start("--port", "0", "--log-level", "error", *options)
        try:
            yield process
        finally:
            process.stop()


def run_ms(client: LineClient, name: str) -> float:
    """Milliseconds of one command, over the Unix socket."""
    begin = time.perf_counter()
    record = client.call("term_run", {"name": name, "cmd": "true", "timeout": TIMEOUT_S})
    assert record["exit"] == 0
    return (time.perf_counter() - begin) * 1000


def hop(process: DaemonProcess) -> list[Row]:
    """`true` on a worker and in the daemon's own process, in turn."""
    process.call("term_spawn", name="near", node="local", shell="/bin/bash")
    process.call("term_spawn", name="far", node="w1", shell="/bin/bash")
    near, far = [], []
    with process.connect() as client:
        for number in range(WARM_UP + RUNS):
            taken = run_ms(client, "near"), run_ms(client, "far")
            if number >= WARM_UP:
                near.append(taken[0])
                far.append(taken[1])
    near_ms, far_ms = statistics.median(near), statistics.median(far)
    return [
        ("run('true') on a worker / in the daemon's process", far_ms / near_ms, "ratio"),
        ("  on a worker, ms", far_ms, "median, over the Unix socket"),
        ("  in the daemon's process, ms", near_ms, "median, over the Unix socket"),
        ("  on a worker, ms, 95th percentile", statistics.quantiles(far, n=20)[-1], ""),
    ]


@attrs.frozen
class Flood:
    """What two terminals print at once: ``megabytes`` each, by a ``cmd`` that names the file."""

    what: str
    cmd: str
    megabytes: int
    note: str

    def run(self, process: DaemonProcess, during: Callable[[], object]) -> float:
        """Megabytes a second of both; ``during`` goes on beside."""
        cmd = self.cmd.format(file=process.root / "flood")
        begin = time.perf_counter()
        pending = [
            process.send("term_run", name=name, cmd=cmd, timeout=TIMEOUT_S) for name in ("f1", "f2")
        ]
        during()
        for each in pending:
            assert each.result()["exit"] == 0
        return 2 * self.megabytes / (time.perf_counter() - begin)

    def prepare(self, process: DaemonProcess) -> None:
        """Two terminals that can flood, each where there is room, and one that is quiet."""
        line = b"a" * 79 + b"\n"
        (process.root / "flood").write_bytes(line * (self.megabytes * 1_000_000 // len(line)))
        for name in ("f1", "f2", "quiet"):
            process.call("term_spawn", name=name, shell="/bin/bash")


FULL_SCREEN = r"printf '\033[?1049h'; cat {file}; printf '\033[?1049l'"

FLOODS = (
    Flood("two floods", "cat {file}", 60, "the kernel's part is the larger one"),
    Flood("two full-screen floods", FULL_SCREEN, 20, "each is drawn"),
)


def floods(flood: Flood, one: DaemonProcess, two: DaemonProcess) -> list[Row]:
    """Two floods in one process and on two workers, in turn; and `true` beside them."""
    daemons = {"one": one, "two": two}
    rates: dict[str, list[float]] = {name: [] for name in daemons}
    beside: dict[str, list[float]] = {name: [] for name in daemons}
    for process in daemons.values():
        flood.prepare(process)
    for _ in range(FLOOD_ROUNDS):
        for name, process in daemons.items():
            rates[name].append(flood.run(process, lambda: None))
            with process.connect() as client:
                beside[name] += runs_beside(flood, process, client)
    for process in daemons.values():
        for name in ("f1", "f2", "quiet"):
            process.call("term_close", name=name, purge=True)
    alone, spread = statistics.median(rates["one"]), statistics.median(rates["two"])
    latency = [statistics.median(beside[name]) for name in daemons]
    what = flood.what
    return [
        (f"{what} on two workers / in one process", spread / alone, "ratio, goal ≥ 1.6"),
        ("  on two workers, MB/s", spread, f"both together; {flood.note}"),
        ("  in one process, MB/s", alone, "both together"),
        (f"run('true') beside {what}: on workers / in one", latency[1] / latency[0], "ratio"),
        ("  on workers, ms", latency[1], "median"),
        ("  in one process, ms", latency[0], "median"),
    ]


def runs_beside(flood: Flood, process: DaemonProcess, client: LineClient) -> list[float]:
    """Milliseconds of each of a few commands on the quiet terminal, in a flood."""
    taken: list[float] = []
    flood.run(process, lambda: taken.extend(run_ms(client, "quiet") for _ in range(BESIDE)))
    return taken


def all_floods() -> list[Row]:
    """Each flood, on workers and in one process."""
    rows = []
    with daemon("--workers", "2") as two, daemon() as one:
        for flood in FLOODS:
            rows += floods(flood, one, two)
    return rows


def restarts(process: DaemonProcess) -> list[Row]:
    """From the kill of a worker until a terminal that was there has run a command again."""
    process.call("term_spawn", name="moved", node="w2", shell="/bin/bash")
    taken = []
    with process.connect() as client:
        for _ in range(KILLS):
            node = client.call("term_list", {})["result"]
            place = next(each["node"] for each in node if each["name"] == "moved")
            begin = time.perf_counter()
            os.kill(pid_of(client, place), signal.SIGKILL)
            until_it_runs(client)
            taken.append(time.perf_counter() - begin)
            until_up(client)
    return [("from kill -9 of a worker to the next run there, s", statistics.median(taken), "")]


def pid_of(client: LineClient, node: str) -> int:
    """The process of a worker."""
    nodes = client.call("status", {})["nodes"]
    return next(int(each["pid"]) for each in nodes if each["name"] == node)


def until_it_runs(client: LineClient) -> None:
    """Try again and again, as somebody would who waits for it."""
    while True:
        try:
            run_ms(client, "moved")
        except Exception:
            time.sleep(0.005)
        else:
            return


def until_up(client: LineClient) -> None:
    """Wait until every worker is there again."""
    while any(each["state"] != "up" for each in client.call("status", {})["nodes"]):
        time.sleep(0.05)


async def messages() -> dict[str, float]:
    """A second: told and asked, to an actor of this process and of a worker."""
    async with open_hosting("w1") as system:
        here, there = system.ref("root/a"), system.ref("root/workers/w1/x")
        found = {}
        for name, ref in (("here", here), ("there", there)):
            found[f"told {name}"] = await told(ref)
            found[f"asked {name}"] = await asked(ref)
        return found


async def told(ref: Ref[Any]) -> float:
    """Messages a second that are handled, sent in one go."""
    before = await ref.ask(Sum())
    begin = time.perf_counter()
    for _ in range(MESSAGES):
        await ref.send(Add(1))
    while await ref.ask(Sum()) != before + MESSAGES:
        pass
    return MESSAGES / (time.perf_counter() - begin)


async def asked(ref: Ref[Any]) -> float:
    """Questions a second that are answered, one after the other."""
    begin = time.perf_counter()
    for _ in range(ASKS):
        await ref.ask(Sum())
    return ASKS / (time.perf_counter() - begin)


async def started() -> float:
    """Seconds until a system with one worker is up."""
    begin = time.perf_counter()
    async with open_hosting("w1"):
        return time.perf_counter() - begin


def actors() -> list[Row]:
    """What a process between costs actors."""
    rate = trio.run(messages)
    start = statistics.median(trio.run(started) for _ in range(5))
    python = statistics.median(
        process_s([sys.executable, "-c", LIBRARIES], os.environ) for _ in range(5)
    )
    return [
        (
            "messages to a worker / within the process",
            rate["told there"] / rate["told here"],
            "ratio, goal ≥ 0.05",
        ),
        ("  told to a worker, a second", rate["told there"], "in one go, all handled"),
        ("  told within the process, a second", rate["told here"], ""),
        ("  asked of a worker, a second", rate["asked there"], "one after the other"),
        ("  asked within the process, a second", rate["asked here"], ""),
        ("start of a worker / Python with its libraries", start / python, "ratio"),
        ("  start of a worker with two actors, s", start, ""),
    ]


def measure() -> list[Row]:
    """All of it; takes about a minute."""
    rows = actors()
    with daemon("--workers", "2") as process:
        rows += hop(process)
        rows += restarts(process)
    return rows + all_floods()


if __name__ == "__main__":
    try:
        print_rows(measure())
    except ActorError as error:
        sys.exit(str(error))
