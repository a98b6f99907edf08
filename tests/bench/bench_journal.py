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
from aegis.journal.note import InFlightNote
from aegis.journal.raw_log import RawLog
from aegis.journal.reader import LedgerReader

RECORD = {"seq": 1, "cmd": "pytest -q", "exit": 0, "stdout": "x" * 300}
LINE = encode_line(RECORD)
ROUNDS = 400
FILES = 64
PER_FILE = 20


def tell(text: str) -> None:
    sys.stdout.write(text + "\n")


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


async def lone(directory: Path, flusher: Flusher) -> None:
    """One append at a time; the two kinds in turn, so that both meet the same weather."""
    limiter = trio.CapacityLimiter(MAX_THREADS)
    fd = os.open(directory / "raw", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    appender = await Appender.open(directory / "lone.jsonl", flusher)
    raw, ledger = [], []
    async with trio.open_nursery() as nursery:
        await nursery.start(appender.run)
        for _ in range(ROUNDS):
            raw.append(await seconds(partial(raw_once, fd, limiter)))
            ledger.append(await seconds(partial(ledger_once, appender)))
        nursery.cancel_scope.cancel()
    os.close(fd)
    floor, ours = statistics.median(raw) * 1e6, statistics.median(ledger) * 1e6
    tell(f"lone append: raw {floor:.0f} us, ledger {ours:.0f} us, ratio {ours / floor:.2f}")


async def repeat(work: Callable[[], Awaitable[object]]) -> None:
    for _ in range(PER_FILE):
        await work()


async def all_at_once(works: Sequence[Callable[[], Awaitable[object]]]) -> None:
    async with trio.open_nursery() as nursery:
        for work in works:
            nursery.start_soon(repeat, work)


async def parallel(directory: Path, flusher: Flusher) -> None:
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
            await nursery.start(appender.run)
        for _ in range(5):
            raw.append(await seconds(lambda: all_at_once(floor_works)))
            ledger.append(await seconds(lambda: all_at_once(ledger_works)))
        nursery.cancel_scope.cancel()
    for fd in fds:
        os.close(fd)
    count = FILES * PER_FILE
    floor, ours = count / statistics.median(raw), count / statistics.median(ledger)
    tell(f"{FILES} files: raw {floor:.0f}/s, ledgers {ours:.0f}/s, time ratio {floor / ours:.2f}")


async def shared(directory: Path, flusher: Flusher) -> None:
    """Many writers of one ledger, each waiting for its own line."""
    appender = await Appender.open(directory / "shared.jsonl", flusher)
    async with trio.open_nursery() as nursery:
        await nursery.start(appender.run)
        took = await seconds(lambda: all_at_once([partial(ledger_once, appender)] * FILES))
        nursery.cancel_scope.cancel()
    tell(f"one ledger, {FILES} writers: {FILES * PER_FILE / took:.0f}/s")


def on_the_loop(directory: Path, flusher: Flusher) -> None:
    """What is done without a thread: encoding, notes, raw bytes, reading."""
    tell(f"encode one line: {microseconds(lambda: encode_line(RECORD)):.1f} us")
    note = InFlightNote.open(directory / "note", flusher)
    small = {"seq": 1, "cmd": "pytest -q", "writer": "agent:alice"}
    tell(f"note: {microseconds(lambda: note.write(small)):.1f} us")
    large = {"seq": 1, "cmd": "x" * 1_000_000}
    tell(f"note of 1 MB: {microseconds(lambda: note.write(large), 50):.0f} us")
    note.close()
    raw = RawLog.open(directory)
    chunk = b"x" * 16_384
    took = microseconds(lambda: raw.write(chunk), 10_000)
    tell(f"raw log: {len(chunk) / took:.0f} MB/s, {took:.1f} us per 16 KiB (rotations included)")
    raw.close()
    path = directory / "big.jsonl"
    path.write_bytes(b"".join(encode_line(RECORD | {"seq": seq}) for seq in range(100_000)))
    reader = LedgerReader(path)
    tell(f"last 5 of 100,000: {microseconds(lambda: reader.last_n(5)):.0f} us")
    tell(f"the last 190 KiB: {microseconds(lambda: reader.last_n(500), 50):.0f} us")


def microseconds(work: Callable[[], object], rounds: int = 2000) -> float:
    """The mean over the rounds."""
    work()
    start = time.perf_counter()
    for _ in range(rounds):
        work()
    return (time.perf_counter() - start) / rounds * 1e6


async def main(directory: Path) -> None:
    flusher = Flusher()
    await lone(directory, flusher)
    await parallel(directory, flusher)
    await shared(directory, flusher)
    on_the_loop(directory, flusher)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        trio.run(main, Path(name))
