"""How far the journal is from the disk's own speed, as ratios measured in one process.

Run it on a quiet machine, on the disk that is meant: ``python tests/bench/bench_journal.py DIR``.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import trio

from aegis.journal.appender import Appender
from aegis.journal.flusher import MAX_THREADS, Flusher
from aegis.journal.ledger import encode_line
from aegis.journal.note import Note
from aegis.journal.raw_log import RawLog
from aegis.journal.reader import LedgerReader
from tests.bench.table import Row, print_rows

RECORD = {"seq": 1, "cmd": "pytest -q", "exit": 0, "stdout": "x" * 300}
LINE = encode_line(RECORD)
ROUNDS = 400
FILES = 64
PER_FILE = 20


def write_and_sync(fd: int) -> None:
    os.write(fd, LINE)
    os.fdatasync(fd)


async def raw_once(fd: int, limiter: trio.CapacityLimiter) -> None:
    await trio.to_thread.run_sync(write_and_sync, fd, limiter=limiter)


async def ledger_once(appender: Appender) -> None:
    await appender.wait_synced(appender.append(LINE))


async def seconds(work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def lone(directory: Path, flusher: Flusher) -> list[Row]:
    """One append at a time; the two kinds in turn, so that both meet the same weather."""
    limiter = trio.CapacityLimiter(MAX_THREADS)
    fd = os.open(directory / "raw", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    appender = await Appender.open(directory / "lone.jsonl", flusher)
    raw, ledger = [], []
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        for _ in range(ROUNDS):
            raw.append(await seconds(partial(raw_once, fd, limiter)))
            ledger.append(await seconds(partial(ledger_once, appender)))
        appender.close()
        nursery.cancel_scope.cancel()
    os.close(fd)
    floor, ours = statistics.median(raw) * 1e6, statistics.median(ledger) * 1e6
    return [
        ("lone append / write and sync in a thread", ours / floor, "ratio"),
        ("  lone append, µs", ours, f"write and sync {floor:.0f} µs"),
    ]


async def repeat(work: Callable[[], Awaitable[object]]) -> None:
    for _ in range(PER_FILE):
        await work()


async def all_at_once(works: Sequence[Callable[[], Awaitable[object]]]) -> None:
    async with trio.open_nursery() as nursery:
        for work in works:
            nursery.start_soon(repeat, work)


async def parallel(directory: Path, flusher: Flusher) -> list[Row]:
    """Many files, each with one append after the other."""
    limiter = trio.CapacityLimiter(MAX_THREADS)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    fds = [os.open(directory / f"raw-{n}", flags, 0o600) for n in range(FILES)]
    appenders = [await Appender.open(directory / f"{n}.jsonl", flusher) for n in range(FILES)]
    floor_works = [partial(raw_once, fd, limiter) for fd in fds]
    ledger_works = [partial(ledger_once, appender) for appender in appenders]
    raw, ledger = [], []
    async with trio.open_nursery() as nursery:
        for appender in appenders:
            appender.start(nursery.start_soon)
        for _ in range(5):
            raw.append(await seconds(lambda: all_at_once(floor_works)))
            ledger.append(await seconds(lambda: all_at_once(ledger_works)))
        for appender in appenders:
            appender.close()
        nursery.cancel_scope.cancel()
    for fd in fds:
        os.close(fd)
    count = FILES * PER_FILE
    floor, ours = count / statistics.median(raw), count / statistics.median(ledger)
    return [
        (f"time of {FILES} ledgers / of {FILES} plain files", floor / ours, "ratio"),
        (f"  {FILES} ledgers, appends/s", ours, f"plain files {floor:.0f}/s"),
    ]


async def shared(directory: Path, flusher: Flusher) -> list[Row]:
    """Many writers of one ledger, each waiting for its own line."""
    appender = await Appender.open(directory / "shared.jsonl", flusher)
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        took = await seconds(lambda: all_at_once([partial(ledger_once, appender)] * FILES))
        appender.close()
        nursery.cancel_scope.cancel()
    return [(f"  one ledger, {FILES} writers, appends/s", FILES * PER_FILE / took, "group commit")]


def writing(directory: Path, flusher: Flusher) -> list[Row]:
    """What is written without a thread: lines encoded, notes, raw bytes."""
    note = Note.open(directory / "note", flusher)
    small = {"seq": 1, "cmd": "pytest -q", "writer": "agent:alice"}
    large = {"seq": 1, "cmd": "x" * 1_000_000}
    raw = RawLog.open(directory)
    chunk = b"x" * 16_384
    took = microseconds(lambda: raw.write(chunk), 10_000)
    rows: list[Row] = [
        ("  encode one line, µs", microseconds(lambda: encode_line(RECORD)), "mean"),
        ("  note, µs", microseconds(lambda: note.write(small)), "mean"),
        ("  note of 1 MB, µs", microseconds(lambda: note.write(large), 50), "mean"),
        ("  raw log, MB/s", len(chunk) / took, "rotations included"),
    ]
    raw.close()
    note.close()
    return rows


def reading(directory: Path) -> list[Row]:
    """The end of a long ledger."""
    path = directory / "big.jsonl"
    path.write_bytes(b"".join(encode_line(RECORD | {"seq": seq}) for seq in range(100_000)))
    reader = LedgerReader(path)
    return [
        ("  last 5 records of 100,000, µs", microseconds(lambda: reader.last_n(5)), "mean"),
        ("  last 500 records, µs", microseconds(lambda: reader.last_n(500), 50), "mean"),
    ]


def microseconds(work: Callable[[], object], rounds: int = 2000) -> float:
    """The mean over the rounds."""
    work()
    start = time.perf_counter()
    for _ in range(rounds):
        work()
    return (time.perf_counter() - start) / rounds * 1e6


async def _measure(directory: Path) -> list[Row]:
    flusher = Flusher()
    return [
        *await lone(directory, flusher),
        *await parallel(directory, flusher),
        *await shared(directory, flusher),
        *writing(directory, flusher),
        *reading(directory),
    ]


def measure(where: str | None = None) -> list[Row]:
    """All rows, on the disk that holds ``where``, by default the one for temporary files."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-", dir=where) as directory:
        return trio.run(_measure, Path(directory))


if __name__ == "__main__":
    print_rows(measure(sys.argv[1] if len(sys.argv) > 1 else None))
