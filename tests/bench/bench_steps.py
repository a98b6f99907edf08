"""Python calls and Trio steps of warm calls over MCP, in both eras: figures without noise.

A daemon counts them (``tests/traced_daemon.py``) for one client: three requests, and a pause behind
them for the prompt of the last run. The smallest figures count, as a busy machine splits what a
shell writes, and have limits, which a test holds (``tests/e2e/test_call_steps.py``).

python tests/bench/bench_steps.py
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.bench.bench_mcp import RUN, HttpSocket, LegacyClient, ModernClient
from tests.bench.table import Row, print_rows
from tests.journeys import TracedDaemon

ROUNDS = 20
REQUESTS = 3
PAUSE_S = 0.2


class Cost(NamedTuple):
    """Calls of Python functions, and steps of Trio's tasks."""

    calls: int
    steps: int


LIMITS = {
    "ping": Cost(200, 3),
    "run": Cost(2_000, 22),
    "sessionless list": Cost(1_300, 20),
    "sessionless run": Cost(2_000, 22),
}
"""The most that a warm request may cost."""


def costs() -> dict[str, Cost]:
    """Return the costs in a new daemon."""
    with tempfile.TemporaryDirectory(prefix="aegis-steps-") as directory:
        daemon = TracedDaemon(Path(directory))
        daemon.variables["AEGIS_TRACE"] = f"{directory}/trace"
        daemon.start("--port", "0", "--log-level", "warning")
        try:
            daemon.call("term_spawn", name="bench")
            with HttpSocket(daemon.call("session_new", handle="bench")["url"]) as http:
                client, sessionless = LegacyClient(http), ModernClient(http)
                requests = {
                    "ping": client.ping(),
                    "run": client.prepared(RUN[0], **RUN[1]),
                    "sessionless list": sessionless.prepared("aegis_term_list"),
                    "sessionless run": sessionless.prepared(RUN[0], **RUN[1]),
                }
                return {name: _cost(daemon, http, each) for name, each in requests.items()}
        finally:
            daemon.stop()


def _cost(daemon: TracedDaemon, http: HttpSocket, request: bytes) -> Cost:
    found = []
    for _ in range(ROUNDS + 1):
        for _ in range(REQUESTS):
            http.exchange(request)
        time.sleep(PAUSE_S)
        record = daemon.record()
        found.append(Cost(record["calls"] // REQUESTS, record["steps"] // REQUESTS))
    calls, steps = zip(*found[1:], strict=True)  # the first is a warm-up
    return Cost(min(calls), min(steps))


def measure() -> list[Row]:
    """Two rows for each request; takes some seconds."""
    rows: list[Row] = []
    for name, cost in costs().items():
        limit = LIMITS[name]
        rows += [
            (f"MCP, a warm {name}: Python calls", cost.calls, f"smallest, limit {limit.calls}"),
            (f"MCP, a warm {name}: Trio steps", cost.steps, f"smallest, limit {limit.steps}"),
        ]
    return rows


if __name__ == "__main__":
    print_rows(measure())
