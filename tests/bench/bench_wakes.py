"""What a subscriber adds to a command, and what an idle inbox with unread messages costs in memory.

The same terminal runs the same command without subscribers and with them, in turn, in one process.
The baseline of the processor time appends the same messages to as many open files and does nothing
else: no actors, no ids, no rules. Nobody reads the inboxes meanwhile.

The memory is that of inboxes which were opened, read once, and left alone.

python tests/bench/bench_wakes.py
"""

from __future__ import annotations

import gc
import os
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Ref
from aegis.journal.disk import OsDisk
from aegis.journal.ledger import encode_line
from aegis.protocol.inboxes import Deliver, ReadInbox
from aegis.protocol.terminals import RunCommand, Subscribe, Unsubscribe
from aegis.protocol.wakes import wake_id
from tests.aegis.inboxes.harness import line_of, open_inboxes, router
from tests.bench.bench_run import open_terminal
from tests.bench.table import Row, print_rows

SUBSCRIBERS = 100
RUNS = 20
ROUNDS = 5
COMMAND = "seq -f 'test %g passed in 0.05s' 12"

INBOXES = 10
UNREAD = 1_000
LINES = "tests/unit/test_one.py::test_that_something_holds PASSED in 0.05s, as it should be\n" * 12


class CountingDisk(OsDisk):
    """Counts the syncs of file data."""

    def __init__(self) -> None:
        self.syncs = 0
        self._lock = threading.Lock()

    def fdatasync(self, fd: int) -> None:
        """See ``Disk``."""
        with self._lock:
            self.syncs += 1
        super().fdatasync(fd)


@attrs.define
class Cost:
    """Processor time in seconds, syncs, and seconds, each of one run."""

    cpu: float
    syncs: float
    took: float


async def cost_of_runs(front: Ref[Any], disk: CountingDisk) -> Cost:
    """What one of ``RUNS`` runs costs, with all that follows it within a tenth of a second."""
    gc.collect()
    syncs, cpu, begin = disk.syncs, time.process_time(), time.perf_counter()
    for _ in range(RUNS):
        await front.ask(RunCommand(name="bench", cmd=COMMAND), timeout=60)
    took = time.perf_counter() - begin
    await trio.sleep(0.1)
    return Cost(
        cpu=(time.process_time() - cpu) / RUNS, syncs=(disk.syncs - syncs) / RUNS, took=took / RUNS
    )


def cost_of_bare_writes(directory: Path) -> float:
    """Processor seconds to encode and append one usual wake, without a sync."""
    fds = [
        os.open(directory / f"bare{number}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for number in range(SUBSCRIBERS)
    ]
    begin = time.process_time()
    for seq in range(RUNS):
        for number, fd in enumerate(fds):
            os.write(fd, encode_line(line_of(delivery(seq, f"agent{number}"), seq + 1)))
    cost = (time.process_time() - begin) / (RUNS * SUBSCRIBERS)
    for fd in fds:
        os.close(fd)
    return cost


def delivery(seq: int, handle: str) -> Deliver:
    """A usual wake."""
    return Deliver(
        handle=handle,
        id=wake_id("bench", "0123456789ab", seq, handle),
        sender="term:bench",
        body="$ pytest -q · run by agent:alice\nexit 0 · 4.20s\n──\n" + LINES,
        timestamp="2026-05-22T14:03:25.000Z",
    )


async def costs(root: Path) -> tuple[list[Cost], list[Cost], list[float]]:
    """Without subscribers, with them, and of the bare writes."""
    alone, subscribed, bare = [], [], []
    disk = CountingDisk()
    async with open_terminal(root, disk) as front:
        for number in range(ROUNDS + 1):
            without = await cost_of_runs(front, disk)
            for each in range(SUBSCRIBERS):
                await front.ask(Subscribe(name="bench", from_handle=f"agent{each}"), timeout=60)
            await front.ask(RunCommand(name="bench", cmd="true"), timeout=60)
            await trio.sleep(0.5)  # each inbox is opened
            with_them = await cost_of_runs(front, disk)
            for each in range(SUBSCRIBERS):
                await front.ask(Unsubscribe(name="bench", from_handle=f"agent{each}"), timeout=60)
            if number:  # the first round warms up
                alone.append(without)
                subscribed.append(with_them)
                bare.append(cost_of_bare_writes(root))
    return alone, subscribed, bare


def fill(directory: Path) -> None:
    """Inboxes with unread messages, each as long as a wake's usually is."""
    for number in range(INBOXES):
        handle = f"agent{number}"
        lines = [encode_line(line_of(delivery(seq, handle), seq + 1)) for seq in range(UNREAD)]
        (directory / f"{handle}.jsonl").write_bytes(b"".join(lines))


async def memory_of_inbox(directory: Path) -> float:
    """Resident KiB that one idle inbox takes once it is open and was read."""
    fill(directory)
    async with open_inboxes(directory) as system:
        await router(system).ask(ReadInbox(from_handle="warm", limit=1))
        gc.collect()
        before = resident_kib()
        for number in range(INBOXES):
            await router(system).ask(ReadInbox(from_handle=f"agent{number}", limit=1), timeout=60)
        gc.collect()
        return (resident_kib() - before) / INBOXES


def resident_kib() -> float:
    """What of this process is in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


def measure() -> list[Row]:
    """Rows for the table: what, figure, and its baseline and goal."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-") as place:
        root = Path(place)
        memory = trio.run(memory_of_inbox, _made(root / "idle"))
        alone, subscribed, bare = trio.run(costs, _made(root / "root"))
    added = [(two.cpu - one.cpu) / SUBSCRIBERS for one, two in zip(alone, subscribed, strict=True)]
    ours, floor = statistics.median(added), statistics.median(bare)
    extra = statistics.median(
        two.syncs - one.syncs for one, two in zip(alone, subscribed, strict=True)
    )
    return [
        ("one subscriber / append of its message", ours / floor, "ratio"),
        ("  processor time for one subscriber of a run, µs", ours * 1e6, "median, goal ≤ 100"),
        ("  append of its message alone, µs", floor * 1e6, "median"),
        (f"  syncs that {SUBSCRIBERS} subscribers add to a run", extra, "median, goal ≤ 1"),
        ("  syncs of a run without", statistics.median(each.syncs for each in alone), "median"),
        ("  the run with them, ms", statistics.median(c.took for c in subscribed) * 1e3, "median"),
        ("  the run without, ms", statistics.median(c.took for c in alone) * 1e3, "median"),
        (f"an idle inbox, {UNREAD} unread wakes, KiB", memory, f"mean of {INBOXES}"),
    ]


def _made(directory: Path) -> Path:
    directory.mkdir(mode=0o700)
    return directory


if __name__ == "__main__":
    print_rows(measure())
