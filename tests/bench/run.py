"""Runs the benches, each in a process of its own, and prints one table.

    python tests/bench/run.py                   all of them
    python tests/bench/run.py --only run        one (repeat for more)
    python tests/bench/run.py --json FILE       the rows into a file too
    python tests/bench/run.py --check           exit 1 if a ratio became worse by more than 30 %
    python tests/bench/run.py --store           keep the ratios of this run for later checks

A goal that is missed does not fail a run: a table is to be read. ``--check`` compares with the
ratios in ``baseline.json``. Measure on a quiet machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import structlog

from tests.bench.table import Row, ratios, regressions, render
from tests.e2e.harness import DaemonProcess

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "baseline.json"
NAMES = (
    "run",
    "hook",
    "mcp",
    "steps",
    "websocket",
    "sessions",
    "throughput",
    "start",
    "actors",
    "journal",
    "acks",
    "inboxes",
    "wakes",
    "text",
    "screen",
    "beside",
    "many",
    "peers",
    "upstream",
    "watchers",
    "attach",
    "nodes",
    "drivers",
    "agents",
    "real_agents",
    "terminal_agents",
    "queues",
    "canvases",
    "workflows",
    "tui",
    "web",
)


def measured(name: str) -> list[Row]:
    """The rows of one bench, measured in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--rows", name], stdout=subprocess.PIPE, check=True
    )
    return [(what, figure, note) for what, figure, note in json.loads(done.stdout)]


def machine() -> str:
    """What the figures depend on."""
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    return (
        f"Python {platform.python_version()}, Linux {platform.release()}, {cores} cores, "
        f"load {load:.2f} at the start"
    )


def check(rows: list[Row], names: list[str]) -> int:
    """Print what became worse; gives the exit code."""
    stored = json.loads(BASELINE.read_text())
    worse = regressions(rows, stored)
    for sentence in worse:
        sys.stdout.write(f"worse: {sentence}\n")
    if not worse:
        sys.stdout.write(f"no ratio of {', '.join(names)} is worse than stored\n")
    return 1 if worse else 0


def store(rows: list[Row]) -> None:
    """Put the ratios of ``rows`` in the place of those stored under the same names."""
    stored = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    text = json.dumps({**stored, **ratios(rows)}, indent=1, ensure_ascii=False)
    BASELINE.write_text(text + "\n")


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description="Run the benches and print one table.")
    parser.add_argument("--only", metavar="NAME", action="append", choices=NAMES)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows there too")
    parser.add_argument("--check", action="store_true", help="fail if a ratio became worse")
    parser.add_argument("--store", action="store_true", help="keep the ratios for later checks")
    parser.add_argument("--rows", choices=NAMES, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    """Run; gives the exit code."""
    given = arguments()
    with tempfile.TemporaryDirectory(prefix="aegis-registry-") as registry:
        # Of daemons and clients alike: not the user's own, where trusted states are remembered.
        os.environ["XDG_STATE_HOME"] = registry
        return bench(given)


def bench(given: argparse.Namespace) -> int:
    """Run what is asked for; gives the exit code."""
    if given.rows:
        module = importlib.import_module(f"tests.bench.bench_{given.rows}")
        # Forked from a process that has imported it, it would start and use memory otherwise.
        DaemonProcess.is_installed = True
        # Actors in this process may log: the rows alone are read from standard output.
        structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
        json.dump(module.measure(), sys.stdout)
        return 0
    sys.stdout.write(f"{machine()}\n\n")
    sys.stdout.flush()
    names: list[str] = given.only or list(NAMES)
    rows, failed = [], []
    for name in names:
        try:
            rows += measured(name)
        except (
            subprocess.CalledProcessError
        ):  # it has said why; the others are measured all the same
            failed.append(name)
    sys.stdout.write(render(rows))
    for name in failed:
        sys.stdout.write(f"failed: {name}\n")
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    if given.store:
        store(rows)
    return (check(rows, names) if given.check else 0) or bool(failed)


if __name__ == "__main__":
    sys.exit(main())
