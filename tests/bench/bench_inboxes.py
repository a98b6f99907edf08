"""How many messages a second one inbox accepts from many senders, against a bare group commit.

Accepted is what its sender was told of: written, synced, confirmed, through the real router. The
bare group commit writes the same lines, encoded before, and shares syncs in the same way; it has no
actors, no ids and no state. Both are measured in turn. A sender that pipelines has several messages
under way, as a terminal has that catches up with its subscribers.

python tests/bench/bench_inboxes.py [DIR]
"""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path

import trio

from actors import Ref, Reply
from aegis.journal.ledger import encode_line
from aegis.protocol.inboxes import Deliver, ReadInbox, Receipt
from tests.aegis.inboxes.harness import line_of, open_inboxes
from tests.aegis.inboxes.harness import router as inbox_router
from tests.bench.table import Row, print_rows

SENDERS = 64
MESSAGES = 9_600
"""Of one round; the inbox is emptied between rounds."""
ROUNDS = 5
PIPELINED = 8
"""Messages that a sender which does not wait for each has under way: 512 of all senders."""
BODY = "$ pytest -q · run by agent:alice\nexit 0 · 4.20s\n──\n" + "12 passed in 4.05s\n" * 4


def delivery(number: int) -> Deliver:
    """One message, of the size of a usual wake."""
    return Deliver(
        handle="pm",
        id=f"bench:{number}",
        sender="agent:alice",
        body=BODY,
        timestamp="2026-05-22T14:03:25.000Z",
    )


class GroupCommit:
    """Lines at the end of one file, and syncs that all their writers share."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._written = self._synced = 0
        self._demand = trio.Event()
        self._waiters = trio.lowlevel.ParkingLot()

    def append(self, line: bytes) -> int:
        """Write a line; the number to wait for."""
        os.write(self._fd, line)
        self._written += 1
        self._demand.set()
        return self._written

    async def wait_synced(self, number: int) -> None:
        """Return when that line is on the medium."""
        while self._synced < number:
            await self._waiters.park()

    async def run(self) -> None:
        """Sync whenever there is something to, until cancelled."""
        while True:
            await self._demand.wait()
            self._demand = trio.Event()
            target = self._written
            await trio.to_thread.run_sync(os.fdatasync, self._fd)
            self._synced = target
            self._waiters.unpark_all()


async def send_lines(commit: GroupCommit, lines: list[bytes], outstanding: int) -> None:
    """One writer, with so many lines under way."""
    under_way: deque[int] = deque()
    for line in lines:
        if len(under_way) == outstanding:
            await commit.wait_synced(under_way.popleft())
        under_way.append(commit.append(line))
    for number in under_way:
        await commit.wait_synced(number)


async def send_messages(ref: Ref[Deliver], messages: list[Deliver], outstanding: int) -> None:
    """One sender, with so many messages under way."""
    under_way: deque[Reply[Receipt]] = deque()
    for message in messages:
        if len(under_way) == outstanding:
            await under_way.popleft().wait()
        under_way.append(ref.send_request(message))
    for reply in under_way:
        await reply.wait()


async def rate(share: Callable[[int], Awaitable[None]]) -> float:
    """Messages a second of all senders together; ``share`` sends what one of them has."""
    gc.collect()
    begin = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for sender in range(SENDERS):
            nursery.start_soon(share, sender)
    return MESSAGES / (time.perf_counter() - begin)


async def rates(directory: Path, outstanding: int) -> tuple[list[float], ...]:
    """Of the bare group commit and of the inbox, round by round in turn; and how long it was busy.

    The last is processor time of this process for one message, all its threads together.
    """
    bare, ours, busy = [], [], []
    async with open_inboxes(directory) as system, trio.open_nursery() as nursery:
        router = inbox_router(system)
        commit = GroupCommit(directory / "bare")
        nursery.start_soon(commit.run)
        for number in range(ROUNDS):
            messages = [delivery(number * MESSAGES + each) for each in range(MESSAGES)]
            lines = [encode_line(line_of(message, 1)) for message in messages]

            async def share_of_lines(sender: int, lines: list[bytes] = lines) -> None:
                await send_lines(commit, lines[sender::SENDERS], outstanding)

            async def share_of_messages(sender: int, messages: list[Deliver] = messages) -> None:
                await send_messages(router, messages[sender::SENDERS], outstanding)

            bare.append(await rate(share_of_lines))
            begin = time.process_time()
            ours.append(await rate(share_of_messages))
            busy.append((time.process_time() - begin) / MESSAGES)
            await empty(router)
        nursery.cancel_scope.cancel()
    return bare, ours, busy


async def empty(router: Ref[ReadInbox]) -> None:
    """Acknowledge all that is there."""
    got = await router.ask(ReadInbox(from_handle="pm", limit=1000), timeout=60)
    while got.next is not None:
        got = await router.ask(ReadInbox(from_handle="pm", limit=1000, after=got.next), timeout=60)


async def _measure(directory: Path) -> list[Row]:
    rows: list[Row] = []
    for outstanding, what, note in (
        (PIPELINED, f"one inbox, {SENDERS} senders, {PIPELINED} under way each", ", goal ≥ 30000"),
        (1, f"one inbox, {SENDERS} senders, one under way each", ""),
    ):
        place = directory / str(outstanding)
        place.mkdir()
        bare, ours, busy = map(statistics.median, await rates(place, outstanding))
        rows += [
            (f"{what}: bare group commit / inbox", bare / ours, "ratio"),
            ("  messages accepted/s", ours, f"median{note}"),
            ("  processor time for one message, senders included, µs", busy * 1e6, "median"),
            ("  lines of the bare group commit/s", bare, "median"),
        ]
    return rows


def measure(where: str | None = None) -> list[Row]:
    """All rows, on the disk that holds ``where``, by default the one for temporary files."""
    with tempfile.TemporaryDirectory(prefix="aegis-bench-", dir=where) as directory:
        return trio.run(_measure, Path(directory))


if __name__ == "__main__":
    print_rows(measure(sys.argv[1] if len(sys.argv) > 1 else None))
