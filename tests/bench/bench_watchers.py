"""What watching costs: one flooding terminal shown to many, and the echo of a key over a stream.

Fifty clients watch one terminal; three of them have all the credit there is and never read. The
clients are bare sockets in this process that count bytes, so that they take little of the machine.
A stream of a flood is held to one message of 64 KiB in 16 ms, 4.1 MB/s, and all of them together to
16.8 MB/s: nobody reads faster.

python tests/bench/bench_watchers.py
"""

from __future__ import annotations

import json
import os
import selectors
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from aegis.client.line import LineClient
from aegis.protocol.streams import (
    MAX_CREDIT,
    pack_keys,
)
from tests.bench.bare_websocket import BINARY, TEXT, BareWebSocket
from tests.bench.table import Row, print_rows
from tests.e2e.harness import DaemonProcess

LIVE, DEAD = 47, 3
ROUNDS = 3
KEYS = 200
KEY_PAUSE_S = 0.025
FLOOD = r"head -c 50M /dev/zero | tr '\0' a | fold -w 80"
TIMEOUT_S = 300.0


class Watcher(BareWebSocket):
    """A client of one stream of output on a connection of its own."""

    def __init__(self, daemon: DaemonProcess, *, credit: int = MAX_CREDIT) -> None:
        super().__init__(daemon)
        self.received = 0
        self._owed = 0
        frame = {"type": "open", "id": 1, "stream": "terminal_output", "credit": credit}
        self.send(TEXT, json.dumps({**frame, "arguments": {"name": "bench"}}).encode())
        self.channel = json.loads(self.message()[1])["channel"]

    def take(self) -> None:
        """Read what is there, and give credit back."""
        count = len(self.socket.recv(262_144))
        self.received += count
        self._owed += count
        if self._owed > MAX_CREDIT // 4:
            amount, self._owed = self._owed, 0
            frame = {"type": "credit", "id": 1, "amount": amount}
            self.send(TEXT, json.dumps(frame).encode())

    def echo_s(self, key: bytes) -> float:
        """Seconds from a key typed to its echo received."""
        begin = time.perf_counter()
        self.send(BINARY, pack_keys(self.channel, key))
        while True:
            kind, data = self.message()
            if kind == BINARY and key in data[12:]:
                return time.perf_counter() - begin


@contextmanager
def reading(watchers: list[Watcher]) -> Iterator[None]:
    """Let these read whatever comes, in a thread, for the time of the block."""
    selector = selectors.DefaultSelector()
    for watcher in watchers:
        selector.register(watcher.socket, selectors.EVENT_READ, watcher)
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            for key, _ in selector.select(timeout=0.05):
                key.data.take()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        selector.close()


def flood_s(client: LineClient) -> float:
    """Seconds of the flood, run on the terminal."""
    begin = time.perf_counter()
    record = client.call("term_run", {"name": "bench", "cmd": FLOOD, "timeout": TIMEOUT_S})
    assert record["exit"] == 0, record
    return time.perf_counter() - begin


def watched(daemon: DaemonProcess, client: LineClient, live: int, dead: int) -> tuple[float, float]:
    """Seconds of the flood while so many watch it, and MB/s of each of them that reads."""
    watchers = [Watcher(daemon) for _ in range(live)]
    deaf = [Watcher(daemon) for _ in range(dead)]
    with reading(watchers):
        took = flood_s(client)
        received = [watcher.received for watcher in watchers]
    for watcher in watchers + deaf:
        watcher.close()
    return took, min(received) / 1e6 / took


def bare_echo_s(key: bytes, master: int) -> float:
    """Seconds from a key typed to its echo read, on a PTY with nothing between."""
    begin = time.perf_counter()
    os.write(master, key)
    while key not in os.read(master, 4096):
        pass
    return time.perf_counter() - begin


def echoes(type_key: Callable[[bytes], float]) -> list[float]:
    """Keys as fast as a person's keyboard repeats them."""
    found = []
    for number in range(KEYS):
        time.sleep(KEY_PAUSE_S)
        found.append(type_key(b"abcdefghij"[number % 10 :][:1]))
    return found


def echo_rows(daemon: DaemonProcess) -> list[Row]:
    """The echo of a key by a shell, over a stream and on a bare PTY, in turn."""
    pid, master = os.forkpty()
    if pid == 0:
        os.execv("/bin/bash", ["bash", "--norc"])
    time.sleep(0.5)
    os.read(master, 4096)
    watcher = Watcher(daemon)
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare += echoes(lambda key: bare_echo_s(key, master))
        os.write(master, b"\x15")
        ours += echoes(watcher.echo_s)
        watcher.send(BINARY, pack_keys(watcher.channel, b"\x15"))
    watcher.close()
    os.close(master)
    os.waitpid(pid, 0)
    floor_s, ours_s = statistics.median(bare), statistics.median(ours)
    return [
        ("echo of a key over a stream, ms", ours_s * 1e3, "median"),
        ("  on a bare PTY, ms", floor_s * 1e3, "median"),
        ("  added by the daemon, ms", (ours_s - floor_s) * 1e3, "median, goal ≤ 5"),
        ("  95th percentile over a stream, ms", statistics.quantiles(ours, n=20)[18] * 1e3, ""),
    ]


def resident_mb(daemon: DaemonProcess) -> float:
    """Resident memory of the daemon."""
    return float(daemon.call("status")["rss_bytes"]) / 1e6


def measure() -> list[Row]:
    """Rates, the time of the run, memory, and latency; takes about two minutes."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as directory:
        daemon = DaemonProcess(Path(directory))
        daemon.start("--port", "0", "--log-level", "warning")
        try:
            daemon.call("term_spawn", name="bench", shell="/bin/bash")
            with daemon.connect() as client:
                flood_s(client)
                rows = flood_rows(daemon, client)
            return rows + echo_rows(daemon)
        finally:
            daemon.stop()


def flood_rows(daemon: DaemonProcess, client: LineClient) -> list[Row]:
    """The flood with nobody, one, and many who watch, in turn."""
    alone, one, many = [], [], []
    before = resident_mb(daemon)
    for _ in range(ROUNDS):
        alone.append(flood_s(client))
        one.append(watched(daemon, client, 1, 0))
        many.append(watched(daemon, client, LIVE, DEAD))
    growth = resident_mb(daemon) - before
    alone_s = statistics.median(alone)
    one_s, one_rate = (statistics.median(column) for column in zip(*one, strict=True))
    many_s, many_rate = (statistics.median(column) for column in zip(*many, strict=True))
    number = LIVE + DEAD
    return [
        (
            f"rate of each of {number} watchers / of one alone",
            many_rate / one_rate,
            "more is better",
        ),
        (
            f"  each of {number} ({DEAD} of them dead), MB/s",
            many_rate,
            "slowest, median; 0.36 at most",
        ),
        ("  one alone, MB/s", one_rate, "median; 4.1 at most"),
        (f"run of a flood with {number} watchers / without", many_s / alone_s, "ratio, goal ≤ 2"),
        ("run of a flood with one watcher / without", one_s / alone_s, "ratio, goal ≤ 1.3"),
        ("  without, s", alone_s, "median"),
        ("  resident memory of the daemon, MB", growth, "growth by all of it, goal ≤ 60"),
    ]


if __name__ == "__main__":
    print_rows(measure())
