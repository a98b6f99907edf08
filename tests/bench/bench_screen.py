"""What a look at the screen costs, and what following a program costs others.

The looks go through a real daemon, over the Unix socket. The rate is that of the emulator alone,
fed as the daemon feeds it.

python tests/bench/bench_screen.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aegis.client.line import LineClient
from aegis.terminals.screen.choice import new_emulator
from aegis.terminals.screen.feeding import SLICE_BYTES
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess
from tests.e2e.screens import wait_screen

FLOOD = r"head -c 100M /dev/zero | tr '\0' a | fold -w 79"
MORE = "seq 20000"
"""More than is fed of a stretch: each look after it begins anew with the newest."""
LOOKS = 40
ROUNDS = 3
COMMANDS = 80
TIMEOUT_S = 600.0
GOAL_MS = 50
GOAL_BESIDE = 1.5

DRAW = (
    r"printf '\e[?1049h\e[2J'; while :; do for row in {{1..24}}; do printf "
    r"'\e[%d;1H\e[3%dmrow %d: %d %d\e[K' $row $((row % 8)) $row $RANDOM $RANDOM; done; {pause} done"
)
NOW_AND_THEN, ALL_THE_TIME = DRAW.format(pause="read -t 0.02;"), DRAW.format(pause="")

ON_MAIN = ALL_THE_TIME.replace(r"\e[?1049h", "")

COLOURED = b"".join(
    b"\x1b[3%dmname%d.py\x1b[0m  %d\r\n" % (number % 8, number, number * 7919)
    for number in range(60_000)
)


@contextmanager
def running() -> Iterator[DaemonProcess]:
    """A daemon."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = DaemonProcess(Path(directory))
        daemon.start("--port", "0", "--log-level", "warning")
        try:
            yield daemon
        finally:
            daemon.stop()


def timed_ms(call: Callable[[], object]) -> float:
    """How long it takes."""
    begin = time.perf_counter()
    call()
    return (time.perf_counter() - begin) * 1000


def run(client: LineClient, name: str, cmd: str) -> None:
    """Run a command to its end."""
    client.call("term_run", {"name": name, "cmd": cmd, "timeout": TIMEOUT_S})


def look(client: LineClient) -> None:
    """Look at the screen of the terminal that shows something."""
    client.call("term_screen", {"name": "shown"})


def looks_after_output(client: LineClient) -> tuple[float, list[float]]:
    """The first look after 100 MB, and looks after 100 KB each."""
    run(client, "shown", FLOOD)
    first = timed_ms(lambda: look(client))
    later = []
    for _ in range(LOOKS):
        run(client, "shown", MORE)
        later.append(timed_ms(lambda: look(client)))
    return first, later


def looks_at_a_program(daemon: DaemonProcess, client: LineClient) -> list[float]:
    """Looks at a full-screen program that draws some fifty times a second."""
    terminal = daemon.terminal("shown")
    terminal.keys(f"{NOW_AND_THEN}\r")
    wait_screen(terminal, "row 24")
    looks = [timed_ms(lambda: look(client)) for _ in range(LOOKS)]
    terminal.keys("\x03")
    return looks


def beside_a_program(daemon: DaemonProcess, client: LineClient) -> tuple[float, float]:
    """What a command costs beside a program that draws all the time on the alternate screen.

    As a part of what it costs alone, and beside the same program on the main screen, where nothing
    is fed: most of it is what the program itself takes. Measured in turn.
    """
    daemon.call("term_spawn", name="quiet", shell="/bin/bash")
    drawing = daemon.terminal("drawing")
    costs: dict[str, list[float]] = {"": [], ON_MAIN: [], ALL_THE_TIME: []}
    for _ in range(ROUNDS):
        for program, taken in costs.items():
            if program:
                drawing.keys(f"{program}\r")
                wait_screen(drawing, "row 24")
            taken += [timed_ms(lambda: run(client, "quiet", "true")) for _ in range(COMMANDS)]
            if program:
                drawing.keys("\x03")
                drawing.run(r"printf '\e[?1049l\e[H\e[2J'")
    alone, on_main, followed = (statistics.median(taken) for taken in costs.values())
    return followed / alone, followed / on_main


def rate() -> float:
    """Megabytes of coloured lines a second through an emulator."""
    emulator = new_emulator(24, 80)
    begin = time.perf_counter()
    for start in range(0, len(COLOURED), SLICE_BYTES):
        emulator.feed(COLOURED[start : start + SLICE_BYTES])
    return len(COLOURED) / (time.perf_counter() - begin) / 1e6


def p95(costs: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(costs, n=20)[-1]


def measure() -> list[Row]:
    """All rows; takes about half a minute."""
    goal = f"95th percentile, goal ≤ {GOAL_MS}"
    beside = f"ratio, goal ≤ {GOAL_BESIDE}"
    with running() as daemon, daemon.connect() as client:
        daemon.call("term_spawn", name="shown", shell="/bin/bash")
        first, later = looks_after_output(client)
        program = looks_at_a_program(daemon, client)
        to_alone, to_main = beside_a_program(daemon, client)
    return [
        ("screen after 100 MB, ms", first, f"the first, goal ≤ {GOAL_MS}"),
        ("  after 100 KB more, ms", p95(later), goal),
        ("  in a full-screen program, ms", p95(program), goal),
        ("  run('true') beside a program that is followed / not", to_main, beside),
        ("  run('true') beside a program that is followed / alone", to_alone, "ratio"),
        ("  coloured lines through the emulator, MB/s", rate(), ""),
    ]


if __name__ == "__main__":
    print_rows(measure())
