"""How long a record takes to its acknowledgement, against plain files that are written and synced.

The records go to real ledger writers, each in its own subtree, and come back as what the front of a
terminal is told. Many at once: all writers get a record in the same moment; the plain files are
written and synced by as many threads as the flusher may use. Both are measured in turn.

python tests/bench/bench_acks.py [DIR]
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import attrs
import trio

from actors import ChildSpec, SupervisorSpec, open_system
from aegis.journal.flusher import MAX_THREADS, Flusher
from aegis.protocol.terminals import CommandRecord
from aegis.terminals import messages as msg
from aegis.terminals.front.writer import LedgerWriter
from aegis.terminals.front_port import Front, FrontMessage
from aegis.terminals.record import record_line
from aegis.terminals.settings import TerminalFiles
from tests.aegis.terminals.samples import RECORD
from tests.bench.table import Row, print_rows

TERMINALS = 64
ROUNDS = 40
LONE_ROUNDS = 400


@attrs.define(eq=False)
class Round:
    """When the records were sent, and how long each took to be acknowledged, in seconds."""

    expected: int
    began: float = 0.0
    took: list[float] = attrs.field(factory=list)
    is_over: trio.Event = attrs.field(factory=trio.Event)

    def acknowledged(self) -> None:
        """One more is."""
        self.took.append(time.perf_counter() - self.began)
        if len(self.took) == self.expected:
            self.is_over.set()


@attrs.define(eq=False)
class Stage:
    """What the fronts share: the round that is played."""

    now: Round


class Finishing(Front):
    """A front, all of whose commands end when it is told to try its appends again."""

    def __init__(self, *, stage: Stage) -> None:
        self._stage = stage
        self._seq = -1

    async def setup(self) -> None:
        """Know the writer."""
        self._writer = self.context.sibling("writer", LedgerWriter)

    async def receive(self, message: FrontMessage) -> None:
        """Send a record, or hear that it is durable."""
        if isinstance(message, msg.RetryAppends):
            self._seq += 1
            self._writer.tell(msg.AppendRecord(record=record(self._seq), after=self._seq - 1))
        elif isinstance(message, msg.RecordAppended):
            self._stage.now.acknowledged()


def record(seq: int) -> CommandRecord:
    """One of a usual size."""
    return attrs.evolve(RECORD, seq=seq, stdout="x" * 300, output_bytes=300, raw_end=300)


def subtree(name: str, directory: Path, flusher: Flusher, stage: Stage) -> SupervisorSpec:
    """A terminal without a shell."""
    return SupervisorSpec(
        name=name,
        children=(
            ChildSpec.of(
                "writer", LedgerWriter, files=TerminalFiles(directory / name), flusher=flusher
            ),
            ChildSpec.of("terminal", Finishing, stage=stage),
        ),
    )


LINE = record_line(record(0))


class PlainFiles:
    """Files that threads append to and sync."""

    def __init__(self, directory: Path, count: int) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._fds = [os.open(directory / f"plain-{n}", flags, 0o600) for n in range(count)]
        self._limiter = trio.CapacityLimiter(MAX_THREADS)

    async def play(self, now: Round) -> None:
        """A line into each, all at once."""
        now.began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for fd in self._fds:
                nursery.start_soon(self._append, fd, now)

    async def _append(self, fd: int, now: Round) -> None:
        await trio.to_thread.run_sync(partial(_write_and_sync, fd), limiter=self._limiter)
        now.acknowledged()

    def close(self) -> None:
        """Close them."""
        for fd in self._fds:
            os.close(fd)


def _write_and_sync(fd: int) -> None:
    os.write(fd, LINE)
    os.fdatasync(fd)


async def latencies(
    directory: Path, terminals: int, rounds: int
) -> tuple[list[float], list[float]]:
    """Of the plain files and of the ledgers, in seconds, of all rounds together."""
    await trio.Path(directory).mkdir()
    stage, flusher, names = Stage(Round(0)), Flusher(), [f"t{n}" for n in range(terminals)]
    children = tuple(subtree(name, directory, flusher, stage) for name in names)
    plain, ours = list[float](), list[float]()
    files = PlainFiles(directory, terminals)
    async with open_system(SupervisorSpec(name="root", children=children)) as system:
        fronts = [system.ref(f"root/{name}/terminal") for name in names]
        for _ in range(rounds):
            now = Round(terminals)
            await files.play(now)
            plain += now.took
            now = stage.now = Round(terminals, began=time.perf_counter())
            for front in fronts:
                front.tell(msg.RetryAppends())
            await now.is_over.wait()
            ours += now.took
    files.close()
    return plain, ours


def p95(values: list[float]) -> float:
    """The value that 95 of 100 do not exceed."""
    return statistics.quantiles(values, n=20)[-1]


async def _measure(directory: Path) -> list[Row]:
    plain, ours = await latencies(directory / "lone", 1, LONE_ROUNDS)
    floor, lone = statistics.median(plain) * 1e6, statistics.median(ours) * 1e6
    rows: list[Row] = [
        ("a lone record to its acknowledgement, µs", lone, f"p50, goal ≤ 1000 (file {floor:.0f})")
    ]
    plain, ours = await latencies(directory / "many", TERMINALS, ROUNDS)
    what = f"{TERMINALS} records at once"
    rows += [
        (f"{what}, p95 / of {TERMINALS} plain files", p95(ours) / p95(plain), "ratio, goal ≤ 1.3"),
        (f"  {what}, ms", p95(ours) * 1e3, f"p95, plain files {p95(plain) * 1e3:.1f} ms"),
    ]
    return rows


def measure(where: str | None = None) -> list[Row]:
    """All rows, on the disk that holds ``where``, by default the one for temporary files."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-", dir=where) as directory:
        return trio.run(_measure, Path(directory))


if __name__ == "__main__":
    print_rows(measure(sys.argv[1] if len(sys.argv) > 1 else None))
