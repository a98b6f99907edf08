"""What a command costs over the WebSocket, against a request that does nothing.

A real daemon in a process of its own and Debian's stock ``.bashrc``. Two clients: a bare socket, so
that next to nothing of what is measured is the client; and the Python client, on Trio. The empty
request is ``term_unsubscribe`` of a handle that is not subscribed: it goes the whole way to the
terminal's actor and back, and changes nothing there. It is measured against an answer of the
daemon that takes no actor: that of a request for a command that does not exist. All in turn; before
each empty request goes one that is not measured, so that the prompt that bash prints after a
command is not charged to it.

python tests/bench/bench_websocket.py
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import trio

import aegis
from tests.bench.bare_websocket import TEXT, BareWebSocket, framed
from tests.bench.bench_mcp import ROUNDS, STOCK_BASHRC, WARM_UP
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess


def request(command: str, **arguments: object) -> bytes:
    """A request as it is sent."""
    frame = {"type": "request", "id": 1, "command": command, "arguments": arguments}
    return framed(TEXT, json.dumps(frame).encode())


RUN = request("term_run", name="bench", cmd="true")
EMPTY = request("term_unsubscribe", name="bench")
UNKNOWN = request("no_such_command")


def call_s(client: BareWebSocket, frame: bytes) -> float:
    """Seconds from the request to its whole answer."""
    begin = time.perf_counter()
    client.socket.sendall(frame)
    client.message()
    return time.perf_counter() - begin


def bare_ms(daemon: DaemonProcess) -> list[float]:
    """Medians of a run, of an empty request and of an unknown one."""
    client = BareWebSocket(daemon)
    try:
        rounds = []
        for _ in range(WARM_UP + ROUNDS):
            run_s = call_s(client, RUN)
            call_s(client, EMPTY)
            rounds.append((run_s, call_s(client, EMPTY), call_s(client, UNKNOWN)))
    finally:
        client.close()
    return medians_ms(rounds)


async def client_ms(root: Path) -> list[float]:
    """Medians of a run and of an empty request of the Python client."""
    rounds = []
    async with aegis.connect(root) as client:
        for _ in range(WARM_UP + ROUNDS):
            begin = time.perf_counter()
            record = await client.terminals.run("bench", "true")
            run_s = time.perf_counter() - begin
            assert record.exit == 0
            await client.terminals.unsubscribe("bench")
            begin = time.perf_counter()
            await client.terminals.unsubscribe("bench")
            rounds.append((run_s, time.perf_counter() - begin))
    return medians_ms(rounds)


def medians_ms(rounds: Sequence[tuple[float, ...]]) -> list[float]:
    """Of each column, without the first rounds, in milliseconds."""
    columns = zip(*rounds[WARM_UP:], strict=True)
    return [statistics.median(column) * 1000 for column in columns]


def measure() -> list[Row]:
    """Rows for the table; takes a few seconds."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = DaemonProcess(Path(directory), STOCK_BASHRC.read_text())
        daemon.start("--port", "0", "--log-level", "warning")
        try:
            daemon.call("term_spawn", name="bench", shell="/bin/bash")
            run_ms, empty_ms, unknown_ms = bare_ms(daemon)
            own_run_ms, own_empty_ms = trio.run(client_ms, daemon.root)
        finally:
            daemon.stop()
    return [
        ("WebSocket: run('true') / empty request", run_ms / empty_ms, "ratio"),
        ("WebSocket: empty request / one that no actor answers", empty_ms / unknown_ms, "ratio"),
        ("  run('true'), ms", run_ms, "median, a bare socket"),
        ("  empty request, ms", empty_ms, "median, a bare socket"),
        ("  one that no actor answers, ms", unknown_ms, "median, a bare socket"),
        (
            "WebSocket, Python client: run('true') / empty request",
            own_run_ms / own_empty_ms,
            "ratio",
        ),
        ("  run('true'), ms", own_run_ms, "median"),
        ("  empty request, ms", own_empty_ms, "median"),
    ]


if __name__ == "__main__":
    print_rows(measure())
