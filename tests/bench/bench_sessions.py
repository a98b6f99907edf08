"""What MCP sessions cost: two hundred at once against one, in both eras, in the same run.

A real daemon in a process of its own. Each session has a raw socket of its own, and one thread
drives them all: so that next to nothing of what is measured is the client. The two hundred ask at
once and are then read in turn. The call is the empty one of ``bench_mcp``: it goes the whole way to
the terminal's actor and back, and changes nothing there.

python tests/bench/bench_sessions.py
"""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from tests.bench.bench_mcp import EMPTY, HttpSocket, LegacyClient, ModernClient
from tests.bench.table import Row, print_rows
from tests.e2e.harness import PLAIN_BASHRC, DaemonProcess

SESSIONS = 200
ROUNDS = 12
CALLS_OF_ONE = 50
WARM_UP = 40

ERAS: dict[str, type[LegacyClient] | type[ModernClient]] = {
    "sessions": LegacyClient,
    "sessionless": ModernClient,
}


@attrs.frozen
class Asker:
    """A session that makes the empty call again and again."""

    http: HttpSocket
    request: bytes

    def ask(self) -> None:
        """Send the call, and do not wait."""
        self.http.send(self.request)

    def hear(self) -> None:
        """Wait for the answer."""
        _, body = self.http.receive()
        assert b'"structuredContent"' in body, body


def calls_per_second(askers: Sequence[Asker], rounds: int) -> float:
    """The median over the rounds, in each of which all ask at once."""
    rates = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for asker in askers:
            asker.ask()
        for asker in askers:
            asker.hear()
        rates.append(len(askers) / (time.perf_counter() - begin))
    return statistics.median(rates)


def measured(daemon: DaemonProcess, era: str) -> list[Row]:
    """The rows of one era."""
    urls = [daemon.call("session_new", handle=f"a{each}")["url"] for each in range(SESSIONS)]
    with contextlib.ExitStack() as connected:

        def joined(url: str) -> Asker:
            http = connected.enter_context(HttpSocket(url))
            return Asker(http, ERAS[era](http).prepared(EMPTY[0], **EMPTY[1]))

        alone = joined(urls[0])
        calls_per_second([alone], WARM_UP)
        before = daemon.call("status")["rss_bytes"]
        askers = [alone, *map(joined, urls[1:])]
        for asker in askers:
            asker.http.reconnect()
        calls_per_second(askers, 1)
        grown = daemon.call("status")["rss_bytes"] - before
        # In turn: the load of the machine is the same for both.
        rates = [
            (calls_per_second([alone], CALLS_OF_ONE), calls_per_second(askers, 1))
            for _ in range(ROUNDS)
        ]
    one, many = (statistics.median(each) for each in zip(*rates, strict=True))
    return [
        (
            f"MCP, {era}: {SESSIONS} at once / one, calls per second",
            many / one,
            "ratio, goal ≥ 0.9",
        ),
        (f"  {SESSIONS} at once, calls per second", many, "median of the rounds"),
        ("  one, calls per second", one, "median of the rounds"),
        (
            "  memory of a session, KB",
            grown / (SESSIONS - 1) / 1000,
            "resident, and its connection",
        ),
    ]


def measure() -> list[Row]:
    """Four rows for each era; takes some seconds."""
    rows: list[Row] = []
    for era in ERAS:
        with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
            daemon = DaemonProcess(Path(directory), PLAIN_BASHRC)
            daemon.start("--port", "0", "--log-level", "warning")
            try:
                daemon.call("term_spawn", name="bench", shell="/bin/bash")
                rows += measured(daemon, era)
            finally:
                daemon.stop()
    return rows


if __name__ == "__main__":
    print_rows(measure())
