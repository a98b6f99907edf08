"""The scenario of queues: tasks that complete, fail, wait for others, are cancelled and awaited.

The desk and its ledger are the real ones. Sessions and inboxes are played by one actor that loses
nothing: it stands for durable transcripts and inboxes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import trio

from actors import Actor, ChildSpec, Reply, SupervisorSpec, System
from actors.faults import RUNTIME, FaultTable
from aegis.errors import AlreadyExists, InvalidRequest, NotFound
from aegis.journal.faults import JOURNAL
from aegis.journal.opening import open_ledger
from aegis.journal.table import read_rows
from aegis.protocol.agents import AgentInfo, CloseAgent, ShowAgent, SpawnWorker, TranscriptEntry
from aegis.protocol.feeds import FollowSession, SessionNews
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.protocol.queues import CancelTask, Delegate, Enqueue, GetTask, TaskInfo
from aegis.protocol.requests import ListRequests, RequestList
from aegis.protocol.terminals import ListTerminals, TerminalList
from aegis.queues.desk import QueueDesk
from aegis.queues.faults import QUEUES
from aegis.queues.tasks import QueueSettings, Switch, Task
from tests.chaos.exhaustive import Evidence, World
from tests.chaos.machine.disk_model import Image
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.reproducible import reproducible
from tests.faults.retrying import PAUSE_S, ask_until_answered, until_done

DIRECTORY = Path("/state/queues")
LEDGER = DIRECTORY / "build.jsonl"
BUILD = QueueSettings(name="build", agent="a", account="a", max_parallel=2)
SENDER = "pm"
PATIENCE = 300
"""The most looks at a task, a second apart."""


@attrs.frozen
class Acked:
    """A task that was acknowledged."""

    id: str


@attrs.frozen
class Opened:
    """A session that was opened for a task, and began its turn."""

    worker: str


@attrs.frozen
class Told:
    """The end of a task, as a message to its sender or as the answer to a waiting caller."""

    id: str
    is_ok: bool


@attrs.frozen
class Cancelled:
    """A task whose cancellation was acknowledged."""

    id: str


@attrs.define
class Sessions:
    """All sessions and messages: transcripts by handle, closed handles, and ids of messages."""

    world: World
    entries: dict[str, list[TranscriptEntry]] = attrs.field(factory=dict)
    closed: set[str] = attrs.field(factory=set)
    messages: dict[str, Deliver] = attrs.field(factory=dict)

    def open(self, request: SpawnWorker) -> None:
        """Open a session; it does its order at once."""
        handle = request.handle or ""
        if handle in self.entries:
            raise AlreadyExists(f"handle {handle!r} is or was used")
        self.world.confirm(Opened(handle))
        found = self.entries[handle] = []
        self._add(found, "turn_opened")
        order = request.prompt or ""
        if order == "never":
            return
        is_lost = order == "twice" and not handle.endswith("-2")
        self._add(found, "turn_ended", outcome="failed" if is_lost else "completed", text="done")

    def close(self, handle: str) -> None:
        """Close a session."""
        if handle not in self.closed:
            self.closed.add(handle)
            self._add(self.entries[handle], "closed")

    def _add(self, entries: list[TranscriptEntry], kind: str, **fields: object) -> None:
        seq = len(entries) + 1
        entries.append(TranscriptEntry(seq=seq, kind=kind, at="", fields={"turn": 1, **fields}))


Asked = (
    SpawnWorker | ShowAgent | CloseAgent | FollowSession | Deliver | ListTerminals | ListRequests
)


class Played(Actor[Asked]):
    """The services that a desk asks."""

    def __init__(self, *, sessions: Sessions) -> None:
        self._sessions = sessions
        self._waiting: list[tuple[FollowSession, Reply[SessionNews]]] = []

    async def setup(self) -> None:
        for service in ("agents", "inboxes", "requests", "terminals"):
            self.context.register("service", service)

    async def receive(self, message: Asked) -> None:
        sessions = self._sessions
        match message:
            case SpawnWorker(handle=str(handle)):
                sessions.open(message)
                self.reply(message, self._info(handle))
            case ShowAgent(handle=handle):
                self.reply(message, self._info(handle))
            case CloseAgent(handle=handle):
                self._info(handle)
                sessions.close(handle)
                self.reply(message, self._info(handle))
                waiting, self._waiting = self._waiting, []
                for request, reply in waiting:
                    self._follow(request, reply)
            case FollowSession():
                self._follow(message, self.defer(message))
            case Deliver():
                self._deliver(message)
            case ListTerminals():
                self.reply(message, TerminalList(result=[]))
            case ListRequests():
                self.reply(message, RequestList(requests=[]))

    def _follow(self, request: FollowSession, reply: Reply[SessionNews]) -> None:
        assert request.place is not None
        entries = self._sessions.entries[request.handle][request.place.seq :]
        if not entries:
            self._waiting.append((request, reply))
            return
        place = attrs.evolve(request.place, seq=entries[-1].seq)
        reply.send(SessionNews(entries=entries, place=place, newest=place.seq))

    def _deliver(self, message: Deliver) -> None:
        sessions = self._sessions
        if message.handle == SENDER and message.id not in sessions.messages:
            sessions.messages[message.id] = message
            task = message.id.removeprefix("task:").removesuffix("/end")
            sessions.world.confirm(Told(task, message.status == "ok"))
        self.reply(message, Receipt(id=message.id, status="queued", position=0))

    def _info(self, handle: str) -> AgentInfo:
        if handle not in self._sessions.entries:
            raise NotFound(f"there is no agent {handle!r}")
        return AgentInfo(
            id=handle,
            handle=handle,
            profile="a",
            provider="claude",
            state="closed" if handle in self._sessions.closed else "idle",
            since="",
            reason="",
            cwd="/",
            spawned_by="queue:build",
            model="",
            turn=1,
            waiting=0,
            quiet_s=0.0,
            tools=[],
            blocked=None,
            limited_until=None,
            conversation=None,
        )


class AllRights:
    """All agents may give work to all queues."""

    def refuse_work(self, sender: str, agent: str) -> None:
        del sender, agent


@attrs.frozen
class Held:
    """The tasks after recovery."""

    tasks: tuple[Task, ...]


@attrs.frozen
class Tasks:
    """Tasks of one queue through the real desk."""

    name: str = "queues"
    image: Image = attrs.field(factory=lambda: {"/": None, "/state": None})
    tables: tuple[FaultTable, ...] = (JOURNAL, QUEUES, RUNTIME)
    subjects: tuple[str, ...] = ("QueueDesk",)
    recovers_durably: bool = False
    shows_only_durable: bool = True

    async def play(self, world: World) -> None:
        sessions = Sessions(world)
        spec = SupervisorSpec(
            name="root",
            children=(
                ChildSpec.of("played", Played, sessions=sessions),
                ChildSpec.of(
                    "queues",
                    QueueDesk,
                    directory=DIRECTORY,
                    archive=Path("/state/archive"),
                    settings={"build": BUILD},
                    flusher=world.flusher,
                    rights=AllRights(),
                ),
            ),
        )

        async def live() -> None:
            async with world.simulation.open_system(spec) as system:
                await _Client(world, system, sessions).play()

        with reproducible(world.simulation.chance):
            await until_done(live)

    def recover(self, disk: SimulatedDisk) -> Held:
        opened = open_ledger(disk, LEDGER)
        disk.close(opened.fd)
        rows = read_rows(disk, LEDGER, opened.length, Task | Switch)
        return Held(tuple(rows.values()))

    def check(self, evidence: Evidence, found: Held, *, killed: bool) -> Iterator[str]:
        tasks = {each.id: each for each in found.tasks}
        workers = {
            task.handle_of(number): task
            for task in found.tasks
            for number in range(1, task.dispatches + 1)
        }
        keys = Counter(each.key for each in found.tasks)
        if keys.total() > len(keys):
            yield f"a key has two tasks: {keys}"
        opened = [each.worker for each in evidence.confirmed if isinstance(each, Opened)]
        begun = Counter(workers[each].id for each in opened if each in workers)
        for id_, times in begun.items():
            if times > tasks[id_].max_attempts:
                yield f"task {id_} was begun {times} times"
        yield from (f"no task knows that {each} was opened" for each in {*opened} - workers.keys())
        yield from self._lost(evidence, tasks)

    def _lost(self, evidence: Evidence, tasks: Mapping[str, Task]) -> Iterator[str]:
        for each in evidence.confirmed:
            match each:
                case Acked(id=id_) if id_ not in tasks:
                    yield f"task {id_} was acknowledged and is lost"
                case Told(id=id_, is_ok=is_ok):
                    phase = tasks[id_].phase if id_ in tasks else "lost"
                    if phase not in (("completed",) if is_ok else ("failed", "cancelled")):
                        yield f"the end of {id_} was told as ok={is_ok}, and it is {phase}"
                case Cancelled(id=id_) if id_ not in tasks or tasks[id_].phase != "cancelled":
                    yield f"task {id_} was cancelled and is {tasks.get(id_)}"


class _Client:
    """The client of one incarnation: it does everything again under the same keys."""

    def __init__(self, world: World, system: System, sessions: Sessions) -> None:
        self._world = world
        self._desk = system.ref("root/queues")
        self._sessions = sessions

    async def play(self) -> None:
        first = await self._enqueue("first", "ok")
        second = await self._enqueue("second", "ok", after=[first])
        twice = await self._enqueue("twice", "twice", max_attempts=2)
        never = await self._enqueue("never", "never")
        await self._cancel(never)
        last = await self._enqueue("last", "ok", after=[never])
        done = await ask_until_answered(
            self._desk,
            Delegate(queue="build", payload="ok", key="d", timeout=600.0, from_handle=SENDER),
        )
        if done.ended:
            self._world.confirm(Told(done.task_id, done.status == "completed"))
        for task in (first, second, twice, never, last):
            await self._is_told(task)

    async def _enqueue(self, key: str, payload: str, **fields: Any) -> str:
        request = Enqueue(queue="build", payload=payload, key=key, from_handle=SENDER, **fields)
        enqueued = await ask_until_answered(self._desk, request)
        self._world.confirm(Acked(enqueued.task_id))
        return enqueued.task_id

    async def _cancel(self, task: str) -> None:
        async def cancel() -> None:
            try:
                await self._desk.ask(CancelTask(task_id=task))
            except InvalidRequest:
                return  # an earlier try has done it, or it has failed with its session

        await until_done(cancel)
        if (await self._show(task)).status == "cancelled":
            self._world.confirm(Cancelled(task))

    async def _show(self, task: str) -> TaskInfo:
        return await ask_until_answered(self._desk, GetTask(task_id=task))

    async def _is_told(self, task: str) -> None:
        for _ in range(PATIENCE):
            if f"task:{task}/end" in self._sessions.messages and (await self._show(task)).ended:
                return
            await trio.sleep(PAUSE_S)
        raise AssertionError(f"the end of task {task} is not told: {await self._show(task)}")
