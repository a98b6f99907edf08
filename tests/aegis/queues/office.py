"""The queues of a daemon on a simulated disk and clock, with agent sessions that a test directs.

The desk is the real one and gets the commands of clients. Sessions, inboxes and terminals are
played by one actor that loses nothing: it takes the place of durable transcripts and inboxes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import attrs

from actors import Actor, ChildSpec, Reply
from actors.simulate import Simulation, simulate
from aegis.errors import AegisError, AlreadyExists, Forbidden, NotFound, Unavailable
from aegis.journal.archive import Keep
from aegis.protocol.agents import AgentInfo, CloseAgent, ShowAgent, SpawnWorker, TranscriptEntry
from aegis.protocol.feeds import FollowQueues, FollowSession, QueuesNews, SessionNews
from aegis.protocol.inboxes import Deliver, Receipt
from aegis.protocol.queues import (
    CancelTask,
    Delegate,
    Enqueue,
    Enqueued,
    GetTask,
    ListQueues,
    ListTasks,
    QueueInfo,
    RetryTask,
    TaskInfo,
)
from aegis.protocol.requests import ASK_HUMAN, ListRequests, RequestInfo, RequestList
from aegis.protocol.terminals import ListTerminals, TerminalInfo, TerminalList
from aegis.queues.desk import QueueDesk
from aegis.queues.tasks import QueueSettings
from tests.aegis.simulated_daemon import EMPTY, Answer, SimulatedDaemon
from tests.aegis.tui.examples import request, terminal
from tests.chaos.machine.simulated_disk import SimulatedDisk
from tests.chaos.machine.simulated_flusher import SimulatedFlusher
from tests.chaos.reproducible import reproducible

DIRECTORY = Path("/state/queues")
ARCHIVE = Path("/state/archive")
BUILD = QueueSettings(name="build", agent="claude", account="claude")


@attrs.define
class Session:
    """A session: its transcript, and the part of its state that is not in the transcript.

    The first ``dropped`` entries are not kept any more.
    """

    prompt: str
    entries: list[TranscriptEntry] = attrs.field(factory=list)
    dropped: int = 0
    state: str = "idle"
    turn: int = 0
    limited_until: str | None = None


class Agents:
    """All sessions by their handles, and all messages by their ids.

    ``refuses_spawn`` is why no session can be opened; ``busy`` and ``asks`` have handles whose
    terminal runs a command, or that wait for a person's answer.
    """

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.opened: list[str] = []
        self.messages: dict[str, Deliver] = {}
        self.refuses_spawn = ""
        self.busy: set[str] = set()
        self.asks: set[str] = set()
        self.begins_late: set[str] = set()
        self.closing_fails = False
        self.spawned: Callable[[SpawnWorker], None] = lambda _: None
        self.waiting: list[tuple[FollowSession, Reply[SessionNews]]] = []

    def open(self, request: SpawnWorker) -> None:
        handle = request.handle or ""
        if self.refuses_spawn:
            raise Unavailable(self.refuses_spawn)
        if handle in self.sessions:
            raise AlreadyExists(f"handle {handle!r} is or was used")
        self.sessions[handle] = Session(request.prompt or "")
        self.opened.append(handle)
        self.spawned(request)

    def add(self, handle: str, kind: str, **fields: object) -> None:
        """Add an entry to a transcript, and publish it."""
        session = self.sessions[handle]
        entry = TranscriptEntry(
            seq=len(session.entries) + 1,
            kind=kind,
            at="",
            fields={"turn": session.turn, **fields},
        )
        session.entries.append(entry)
        waiting, self.waiting = self.waiting, []
        for follow, reply in waiting:
            self.follow(follow, reply)

    def begin(self, handle: str) -> None:
        session = self.sessions[handle]
        session.turn, session.state = session.turn + 1, "working"
        self.add(handle, "turn_opened")

    def end(self, handle: str, outcome: str = "completed", text: str = "done") -> None:
        self.sessions[handle].state = "idle"
        self.add(handle, "turn_ended", outcome=outcome, text=text, reason="it said so")

    def limit(self, handle: str, until: str) -> None:
        self.sessions[handle].limited_until = until
        self.end(handle, "limited", "")

    def close(self, handle: str) -> None:
        session = self.sessions[handle]
        if handle in self.begins_late and not session.turn:
            self.begin(handle)
            self.end(handle)
        if session.state != "closed":
            session.state = "closed"
            self.add(handle, "closed")

    def follow(self, request: FollowSession, reply: Reply[SessionNews]) -> None:
        assert request.place is not None
        session = self.sessions[request.handle]
        entries = session.entries[max(request.place.seq, session.dropped) :]
        if not entries:
            self.waiting.append((request, reply))
            return
        place = attrs.evolve(request.place, seq=entries[-1].seq)
        reply.send(SessionNews(entries=entries, place=place, newest=place.seq))

    def info(self, handle: str) -> AgentInfo:
        if handle not in self.sessions:
            raise NotFound(f"there is no agent {handle!r}")
        session = self.sessions[handle]
        state: Any = session.state
        return AgentInfo(
            id=handle,
            handle=handle,
            profile="a",
            provider="claude",
            state=state,
            since="",
            reason="",
            cwd="/",
            spawned_by="queue:build",
            model="",
            turn=session.turn,
            waiting=0,
            quiet_s=0.0,
            tools=[],
            blocked=None,
            limited_until=session.limited_until,
            conversation=None,
        )

    def is_open(self, handle: str) -> bool:
        return handle in self.sessions and self.sessions[handle].state != "closed"


Asked = (
    SpawnWorker | ShowAgent | CloseAgent | FollowSession | Deliver | ListTerminals | ListRequests
)


class PlayedServices(Actor[Asked]):
    """The services that a desk asks."""

    def __init__(self, *, agents: Agents) -> None:
        self._agents = agents

    async def setup(self) -> None:
        for service in ("agents", "inboxes", "requests", "terminals"):
            self.context.register("service", service)

    async def receive(self, message: Asked) -> None:
        agents = self._agents
        match message:
            case SpawnWorker(handle=str(handle)):
                agents.open(message)
                self.reply(message, agents.info(handle))
            case ShowAgent(handle=handle):
                self.reply(message, agents.info(handle))
            case CloseAgent(handle=handle):
                agents.info(handle)
                if agents.closing_fails:
                    raise Unavailable("it is not possible now")
                agents.close(handle)
                self.reply(message, agents.info(handle))
            case FollowSession():
                agents.follow(message, self.defer(message))
            case Deliver():
                agents.messages.setdefault(message.id, message)
                self.reply(message, Receipt(id=message.id, status="queued", position=0))
            case ListTerminals():
                self.reply(message, TerminalList(result=[_terminal(each) for each in agents.busy]))
            case ListRequests(handle=handle):
                asks = [_question(each) for each in agents.asks if each == handle]
                self.reply(message, RequestList(requests=asks))


class Rights:
    """All agents may give work to all queues, except for those named."""

    def __init__(self) -> None:
        self.refused: set[str] = set()

    def refuse_work(self, sender: str, agent: str) -> AegisError | None:
        return Forbidden(f"{sender} may not use {agent}") if sender in self.refused else None


class Office(SimulatedDaemon):
    """A daemon with queues, its sessions, and a client of it."""

    def __init__(
        self, simulation: Simulation, settings: tuple[QueueSettings, ...], keep: Keep
    ) -> None:
        super().__init__(simulation, "root/queues")
        self.settings, self.keep = settings, keep
        self.agents = Agents()
        self.rights = Rights()

    def actors(self) -> tuple[ChildSpec, ...]:
        played = ChildSpec.of("played", PlayedServices, agents=self.agents)
        desk = ChildSpec.of(
            "queues",
            QueueDesk,
            directory=DIRECTORY,
            archive=ARCHIVE,
            keep=self.keep,
            settings={each.name: each for each in self.settings},
            flusher=SimulatedFlusher(self.disk),
            rights=self.rights,
        )
        return played, desk

    def dies(self) -> None:
        self.agents.waiting = []

    # Clients.

    async def enqueued(
        self, payload: str = "work", *, by: str | None = None, **fields: Any
    ) -> Enqueued:
        made = {"queue": "build", "payload": payload, "from_handle": by, **fields}
        return await self.ask(Enqueue(**made))

    async def enqueue(self, payload: str = "work", *, by: str | None = None, **fields: Any) -> str:
        """Enqueue a task, and wait until it has begun if it can; return its id."""
        task = (await self.enqueued(payload, by=by, **fields)).task_id
        await self.settles()
        return task

    def delegate(
        self, *, by: str | None = None, timeout: float = 600, **fields: Any
    ) -> Answer[TaskInfo]:
        made = {"queue": "build", "payload": "work", "from_handle": by, **fields}
        return self.ask_soon(Delegate(timeout=timeout, **made))

    async def cancel(self, task: str, by: str | None = None) -> TaskInfo:
        info = await self.ask(CancelTask(task_id=task, from_handle=by))
        await self.settles()
        return info

    async def retry(self, task: str) -> TaskInfo:
        info = await self.ask(RetryTask(task_id=task))
        await self.settles()
        return info

    async def show(self, task: str) -> TaskInfo:
        return await self.ask(GetTask(task_id=task))

    async def status(self, *tasks: str) -> list[str]:
        return [(await self.show(each)).status for each in tasks]

    async def listed(self, queue: str | None = None, limit: int = 1000) -> list[TaskInfo]:
        return (await self.ask(ListTasks(queue=queue, limit=limit))).result

    async def queue(self, name: str = "build") -> QueueInfo:
        queues = (await self.ask(ListQueues())).result
        return next(each for each in queues if each.queue == name)

    async def news(self, after: QueuesNews | None = None) -> QueuesNews:
        """Return the next news of the queues."""
        return await self.ask(FollowQueues(place=None if after is None else after.place))

    # Workers, by the ids of their tasks.

    async def worker(self, task: str) -> str:
        worker = (await self.show(task)).worker
        assert worker is not None
        return worker

    async def begins(self, task: str) -> None:
        self.agents.begin(await self.worker(task))
        await self.settles()

    async def ends(self, task: str, outcome: str = "completed", text: str = "done") -> None:
        """Let the worker of a task end its turn, which it begins before if it has not."""
        worker = await self.worker(task)
        if self.agents.sessions[worker].state != "working":
            self.agents.begin(worker)
        self.agents.end(worker, outcome, text)
        await self.settles()

    def message(self, task: str, retries: int = 0) -> Deliver | None:
        """Return the message about the end of a task to its sender."""
        return self.agents.messages.get(f"task:{task}/end" + (f"/{retries}" if retries else ""))

    def does_at_once(self, request: SpawnWorker) -> None:
        """Let the session that is being opened begin and complete its task."""
        assert request.handle is not None
        self.agents.begin(request.handle)
        self.agents.end(request.handle)

    def disk_with(self, ledger: bytes) -> SimulatedDisk:
        """Return a disk with this ledger of the queue ``build``."""
        image = {**EMPTY, str(DIRECTORY): None, str(DIRECTORY / "build.jsonl"): ledger}
        return SimulatedDisk(image, self.plan)


def play(
    story: Callable[[Office], Awaitable[None]],
    *settings: QueueSettings,
    seed: int = 1,
    keep: Keep | None = None,
) -> None:
    """Run a story of an office with these queues."""

    async def run(simulation: Simulation) -> None:
        with reproducible(simulation.chance):
            async with Office(simulation, settings or (BUILD,), keep or Keep()).opened() as office:
                await story(office)

    simulate(run, seed=seed)


def _terminal(subscriber: str) -> TerminalInfo:
    return terminal(name=f"of-{subscriber}", state="running", subscribers=[subscriber])


def _question(handle: str) -> RequestInfo:
    return request(handle=handle, tool=ASK_HUMAN)
