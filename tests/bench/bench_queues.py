"""Queues: tasks on the disk beside lone appends and SQLite, many pending ones, and dispatches.

The sessions of workers are played by one actor, so that the figures are those of the queue itself.

python tests/bench/bench_queues.py
"""

from __future__ import annotations

import gc
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Actor, ChildSpec, Ref, Reply, Request, SupervisorSpec, open_system
from aegis.daemon import resident_bytes
from aegis.errors import NotFound
from aegis.journal.appender import Appender
from aegis.journal.disk import OsDisk
from aegis.journal.flusher import Flusher
from aegis.journal.ledger import encode_line
from aegis.protocol.agents import AgentInfo, CloseAgent, ShowAgent, SpawnWorker, TranscriptEntry
from aegis.protocol.feeds import FollowSession, SessionNews
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.protocol.queues import Delegate, Enqueue, ListQueues
from aegis.protocol.requests import ListRequests, RequestList
from aegis.protocol.terminals import ListTerminals, TerminalList
from aegis.queues.desk import QueueDesk
from aegis.queues.tasks import QueueSettings
from tests.bench.table import Row, print_rows

ROUNDS = 300
SLOW_S = 0.0005
PENDING = 10_000
PAYLOAD = "Fix the failing test of the parser, and say what was wrong. " * 5

SETTINGS = {
    "paused": QueueSettings(name="paused", agent="a", account="a", paused=True),
    "build": QueueSettings(name="build", agent="a", account="a"),
}


LINE: dict[str, object] = {
    "id": "0" * 26,
    "set": {
        "type": "task",
        "queue": "paused",
        "number": 1,
        "payload": PAYLOAD,
        "sender": "human",
        "callback": True,
        **dict.fromkeys(("key", "not_before", "max_runtime_s")),
        "after": [],
        "priority": 0,
        "attempts": 1,
        "max_attempts": 1,
        "enqueued": "2026-05-22T14:03:25.120Z",
    },
}
"""The line of a new task, so that the lone append is as long."""


class NoLimits:
    """All agents may give work to all queues."""

    def refuse_work(self, sender: str, agent: str) -> None:
        del sender, agent


Asked = (
    SpawnWorker | ShowAgent | CloseAgent | FollowSession | Deliver | ListTerminals | ListRequests
)


class Played(Actor[Asked]):
    """The services that a desk asks: each worker completes its only turn at once.

    ``ended`` gets the time of each end, ``spawned`` that of each spawn.
    """

    def __init__(self, *, ended: list[float], spawned: list[float]) -> None:
        self._ended, self._spawned = ended, spawned
        self._workers: dict[str, str] = {}

    async def setup(self) -> None:
        for service in ("agents", "inboxes", "requests", "terminals"):
            self.context.register("service", service)

    async def receive(self, message: Asked) -> None:
        match message:
            case SpawnWorker(handle=str(handle)):
                self._spawned.append(time.perf_counter())
                self._workers[handle] = "idle"
                self.reply(message, self._info(handle))
            case ShowAgent(handle=handle):
                if handle not in self._workers:
                    raise NotFound(f"there is no agent {handle!r}")
                self.reply(message, self._info(handle))
            case CloseAgent(handle=handle):
                self._workers[handle] = "closed"
                self.reply(message, self._info(handle))
            case FollowSession(place=place):
                if place is None or place.seq:
                    self.defer(message)
                    return
                self._ended.append(time.perf_counter())
                entries = [entry(1, "turn_opened"), entry(2, "turn_ended", outcome="completed")]
                after = type(place)(seq=2)
                self.reply(message, SessionNews(entries=entries, place=after, newest=2))
            case Deliver(id=message_id):
                self.reply(message, Receipt(id=message_id, status="queued", position=0))
            case ListRequests():
                self.reply(message, RequestList(requests=[]))
            case ListTerminals():
                self.reply(message, TerminalList(result=[]))

    def _info(self, handle: str) -> AgentInfo:
        return AgentInfo(
            id=handle,
            handle=handle,
            profile="a",
            provider="claude",
            state="idle" if self._workers[handle] == "idle" else "closed",
            since="",
            reason="",
            cwd="/",
            spawned_by="",
            model="",
            turn=1,
            waiting=0,
            quiet_s=0.0,
            tools=[],
            blocked=None,
            limited_until=None,
            conversation=None,
        )


def entry(seq: int, kind: str, **fields: object) -> TranscriptEntry:
    return TranscriptEntry(seq=seq, kind=kind, at="", fields={"turn": 1, "text": "done", **fields})


@asynccontextmanager
async def desk(
    directory: Path, ended: list[float], spawned: list[float], disk: OsDisk | None = None
) -> AsyncIterator[tuple[Ref[Any], Ref[Any]]]:
    """Run a desk of queues, and a bare actor, on real files in ``directory``."""
    disk = disk or OsDisk()
    children = (
        ChildSpec.of("played", Played, ended=ended, spawned=spawned),
        ChildSpec.of(
            "queues",
            QueueDesk,
            directory=directory,
            archive=directory / "archive",
            settings=SETTINGS,
            flusher=Flusher(disk),
            rights=NoLimits(),
        ),
        ChildSpec.of("bare", Bare, path=directory / "bare.jsonl", disk=disk),
    )
    async with open_system(SupervisorSpec(name="root", children=children)) as system:
        yield system.ref("root/queues"), system.ref("root/bare")


class SlowDisk(OsDisk):
    """The real disk with a sync of ``SLOW_S`` more, as that of a laptop or of a cloud."""

    def fdatasync(self, fd: int) -> None:
        super().fdatasync(fd)
        time.sleep(SLOW_S)


@attrs.frozen
class Put(Request[None]):
    """Append the line."""


class Bare(Actor[Put]):
    """An actor without rules: it appends the line of a task, and answers when it is synced."""

    def __init__(self, *, path: Path, disk: OsDisk) -> None:
        self._path, self._disk = path, disk
        self._replies: list[Reply[None]] = []

    async def setup(self) -> None:
        self._appender = await Appender.open(self._path, Flusher(self._disk))
        self._appender.start(self.context.start_soon)
        self._appender.on_outcome = self._answer

    async def teardown(self) -> None:
        self._appender.close()

    async def receive(self, message: Put) -> None:
        self._replies.append(self.defer(message))
        self._appender.append(encode_line(LINE))
        self._appender.request_sync()

    def _answer(self) -> None:
        while self._replies:
            self._replies.pop().send(None)


async def enqueue(queues: Ref[Any], queue: str, number: int = 0) -> None:
    await queues.ask(Enqueue(queue=queue, payload=f"{number} {PAYLOAD}"))


def sqlite_queue(path: Path) -> sqlite3.Connection:
    """Return an embedded queue as an expert would tune it, with the same durability."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("PRAGMA synchronous=FULL")
    database.execute("CREATE TABLE tasks (id INTEGER PRIMARY KEY, state INTEGER, payload TEXT)")
    database.execute("CREATE INDEX pending ON tasks (state, id)")
    return database


def sqlite_dequeue(database: sqlite3.Connection) -> None:
    database.execute(
        "UPDATE tasks SET state = 1 WHERE id = "
        "(SELECT id FROM tasks WHERE state = 0 ORDER BY id LIMIT 1) RETURNING id, payload"
    ).fetchall()


def huey_queue(path: Path) -> Any:
    """Return huey on SQLite with the same durability; None if it is not installed."""
    try:
        from huey import SqliteHuey
    except ImportError:
        return None
    return SqliteHuey(filename=str(path), fsync=True, journal_mode="wal", results=False)


def median_ms(figures: list[float]) -> float:
    return statistics.median(figures) * 1000


async def append(appender: Appender) -> None:
    await appender.wait_synced(appender.append(encode_line(LINE)))


@asynccontextmanager
async def lone_appender(directory: Path, disk: OsDisk) -> AsyncIterator[Appender]:
    """Yield an appender without an actor."""
    appender = await Appender.open(directory / "lone.jsonl", Flusher(disk))
    async with trio.open_nursery() as nursery:
        appender.start(nursery.start_soon)
        yield appender
        nursery.cancel_scope.cancel()
    appender.close()


async def on_a_slower_disk(directory: Path) -> list[Row]:
    """One task at a time and one lone append, in turn, where a sync takes ``SLOW_S`` more."""
    ours, lone, disk = list[float](), list[float](), SlowDisk()
    async with (
        desk(directory, [], [], disk) as (queues, _),
        lone_appender(directory, disk) as appender,
    ):
        await enqueue(queues, "paused")
        for _ in range(ROUNDS):
            await timed(ours, partial(enqueue, queues, "paused"))
            await timed(lone, partial(append, appender))
    return [
        (
            "  where a lone append takes longer",
            median_ms(ours) / median_ms(lone),
            f"ratio of medians, {median_ms(lone):.2f} ms, goal ≤ 1.3",
        )
    ]


async def timed(figures: list[float], act: Callable[[], Awaitable[object]]) -> None:
    begin = time.perf_counter()
    await act()
    figures.append(time.perf_counter() - begin)


async def enqueues(directory: Path) -> list[Row]:
    """One task at a time; the kinds in turn, so that all meet the same machine."""
    ours, lone, bare = list[float](), list[float](), list[float]()
    sqlite, dequeue = list[float](), list[float]()
    database = sqlite_queue(directory / "sqlite")
    other, huey, taken = huey_queue(directory / "huey"), list[float](), list[float]()
    disk, place = OsDisk(), directory / "one"
    async with desk(place, [], [], disk) as (queues, actor), lone_appender(place, disk) as appender:
        await enqueue(queues, "paused")

        async def insert() -> None:
            database.execute("INSERT INTO tasks (state, payload) VALUES (0, ?)", (PAYLOAD,))

        kinds: list[tuple[list[float], Callable[[], Awaitable[object]]]]
        kinds = [
            (lone, partial(append, appender)),
            (bare, partial(actor.ask, Put())),
            (ours, partial(enqueue, queues, "paused")),
            (sqlite, insert),
        ]
        if other is not None:
            work = other.task()(str)

            async def give() -> None:
                work(PAYLOAD)

            kinds.append((huey, give))
        for _ in range(ROUNDS):
            # In any order: a sync takes longer or shorter after that of another file.
            random.shuffle(kinds)
            for figures, act in kinds:
                await timed(figures, act)
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            sqlite_dequeue(database)
            dequeue.append(time.perf_counter() - begin)
            if other is not None:
                begin = time.perf_counter()
                assert other.dequeue() is not None
                taken.append(time.perf_counter() - begin)
    database.close()
    return [
        (
            "a task acknowledged / a lone append",
            median_ms(ours) / median_ms(lone),
            "ratio of medians, goal ≤ 1.3",
        ),
        ("  a task acknowledged, ms", median_ms(ours), "median"),
        ("  a lone append, ms", median_ms(lone), "median"),
        (
            "  an actor without rules that appends / a lone append",
            median_ms(bare) / median_ms(lone),
            "ratio of medians: the least that an actor takes",
        ),
        *(await on_a_slower_disk(directory / "slow")),
        (
            "a task acknowledged / an insert into SQLite, FULL",
            median_ms(ours) / median_ms(sqlite),
            "ratio of medians",
        ),
        ("  an insert into SQLite, ms", median_ms(sqlite), "median, on the event loop's thread"),
        ("  a task taken from SQLite, ms", median_ms(dequeue), "median"),
        *of_huey(ours, huey, taken),
    ]


def of_huey(ours: list[float], huey: list[float], taken: list[float]) -> list[Row]:
    """The rows of huey, if it was measured."""
    if not huey:
        return []
    return [
        (
            "a task acknowledged / one of huey, SQLite, FULL",
            median_ms(ours) / median_ms(huey),
            "ratio of medians",
        ),
        ("  a task given to huey, ms", median_ms(huey), "median, on the event loop's thread"),
        ("  a task taken from huey, ms", median_ms(taken), "median"),
    ]


async def dispatches(directory: Path) -> list[Row]:
    """From the end of a worker's turn to the spawn of the next worker."""
    ended: list[float] = []
    spawned: list[float] = []
    async with desk(directory / "dispatch", ended, spawned) as (queues, _):
        for _ in range(ROUNDS):
            await enqueue(queues, "build")
        await queues.ask(Delegate(queue="build", payload=PAYLOAD, timeout=600), timeout=600)
    # Those that were enqueued meanwhile began earlier: the last two thirds only wait.
    pauses = [after - end for end, after in zip(ended, spawned[1:], strict=False)][ROUNDS // 3 :]
    return [
        ("a completion to the next worker's spawn, ms", median_ms(pauses), "median, goal ≤ 2"),
    ]


def resident_mb() -> float:
    gc.collect()
    return resident_bytes() / 1_000_000


async def pending(directory: Path) -> list[Row]:
    """Many pending tasks: memory, and the time until a restarted desk answers."""
    before = resident_mb()
    async with desk(directory / "many", [], []) as (queues, _):
        for number in range(0, PENDING, 100):
            async with trio.open_nursery() as nursery:
                for each in range(number, number + 100):
                    nursery.start_soon(enqueue, queues, "paused", each)
        grown = resident_mb() - before
    begin = time.perf_counter()
    async with desk(directory / "many", [], []) as (queues, _):
        found = {each.queue: each for each in (await queues.ask(ListQueues(), timeout=60)).result}
        took = time.perf_counter() - begin
    assert found["paused"].pending == PENDING
    return [
        ("10,000 pending tasks: memory, MB", grown, "payloads of 300 characters each included"),
        ("  a restart until it answers, s", took, "goal ≤ 1"),
    ]


async def measured() -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for each in ("one", "slow"):
            (directory / each).mkdir()
        rows = [*(await enqueues(directory)), *(await dispatches(directory))]
        return [*rows, *(await pending(directory))]


def measure() -> list[Row]:
    """Return the rows."""
    return trio.run(measured)


if __name__ == "__main__":
    print_rows(measure())
