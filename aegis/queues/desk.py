"""``QueueDesk``: the actor of all queues, between enqueuers and the sessions of agents.

The rules decide (``rules``); this actor appends their lines, and has ``workers`` open, follow and
close sessions. The ledger of a queue is created with its first task.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import attrs
from ulid import ULID

from actors import Actor, Reply
from aegis.errors import AegisError, StorageError
from aegis.following import Followers
from aegis.journal.appender import Appender
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.folding import exists, load
from aegis.journal.line_writer import LineWriter
from aegis.protocol.feeds import FollowQueues, QueuesNews, StatesPlace
from aegis.protocol.naming import is_name
from aegis.protocol.queues import (
    CancelTask,
    Delegate,
    Enqueue,
    GetTask,
    ListQueues,
    ListTasks,
    PauseQueue,
    QueueList,
    ResumeQueue,
    RetryTask,
    TaskInfo,
    TaskList,
)
from aegis.protocol.resources import QueueResource
from aegis.publishing import publish_change
from aegis.queues import events as e
from aegis.queues import faults
from aegis.queues.ledger import Fold
from aegis.queues.rules import Queues
from aegis.queues.tasks import QueueSettings
from aegis.queues.workers import Workers

SUFFIX = ".jsonl"

MAX_LIST_BYTES = 256 * 1024
"""The size of the results in one list of tasks."""


READ_AGAIN_S = 5.0
"""Seconds until a ledger that the disk refused is read again."""


class WorkRights(Protocol):
    """The rights of sessions to give work to other profiles."""

    def refuse_work(self, sender: str, agent: str) -> AegisError | None:
        """Return why the session ``sender`` may not have a worker of the profile ``agent``."""
        ...


@attrs.frozen(kw_only=True)
class TimeIsUp:
    """The caller with this number has waited long enough for the end of its task."""

    id: str
    caller: int


@attrs.frozen(kw_only=True)
class ReadAgain:
    """The ledger of this queue could not be read: it is tried again."""

    queue: str


DeskMessage = (
    Enqueue
    | Delegate
    | GetTask
    | CancelTask
    | RetryTask
    | ListQueues
    | ListTasks
    | PauseQueue
    | ResumeQueue
    | FollowQueues
    | TimeIsUp
    | ReadAgain
    | e.Tick
)


class QueueDesk(Actor[DeskMessage]):
    """The queues ``settings`` of a daemon, whose ledgers are in ``directory``."""

    def __init__(
        self,
        *,
        directory: Path,
        settings: Mapping[str, QueueSettings],
        flusher: Flusher,
        rights: WorkRights,
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._flusher = flusher
        self._rights = rights
        self._is_loaded = False
        self._rules = Queues()
        self._writers: dict[str, LineWriter] = {}
        self._callers: dict[int, Reply[Any]] = {}
        self._count = 0
        self._followers = Followers("the queues", self._news)

    async def setup(self) -> None:
        """Register the desk and read the ledgers."""
        self.context.register("service", "queues")
        self._workers = Workers(self.context.system, self._handle, time.time)
        await self._load()

    async def teardown(self) -> None:
        for writer in self._writers.values():
            writer.close()

    async def receive(self, message: DeskMessage) -> None:
        """Handle a message of a client or a timer."""
        match message:
            case Enqueue() | Delegate():
                await self._enqueue(message)
            case CancelTask(task_id=task_id, from_handle=by):
                caller = self._keep(self.defer(message))
                self._handle(e.Cancelling(id=task_id, by=by, caller=caller))
            case RetryTask(task_id=task_id):
                self._handle(e.Retrying(id=task_id, caller=self._keep(self.defer(message))))
            case PauseQueue(queue=name) | ResumeQueue(queue=name):
                await self._pause(message, name)
            case TimeIsUp(id=task_id, caller=caller):
                self._handle(e.GivingUp(id=task_id, caller=caller))
            case ReadAgain(queue=name):
                settings = self._rules.state.queue(name).settings
                self._handle(e.Recovering(queues=[await self._loaded(settings)]))
            case e.Tick():
                self._handle(message)
            case FollowQueues(place=place):
                self._followers.take(place, self.defer(message))
            case GetTask() | ListQueues() | ListTasks():
                self._read(message)

    def _read(self, message: GetTask | ListQueues | ListTasks) -> None:
        state = self._rules.state
        match message:
            case GetTask(task_id=task_id):
                self.reply(message, state.info(task_id))
            case ListQueues():
                names = sorted(state.queues)
                self.reply(message, QueueList(result=[state.queue_info(each) for each in names]))
            case ListTasks():
                self.reply(message, self._tasks(message))

    def _tasks(self, message: ListTasks) -> TaskList:
        state, size = self._rules.state, 0
        found: list[TaskInfo] = []
        for task in state.in_order(message.queue):
            info = state.info(task.id)
            size += len(info.result or "") + 1_000
            if len(found) >= message.limit or size > MAX_LIST_BYTES:
                return TaskList(result=found, more=True)
            found.append(info)
        return TaskList(result=found)

    # Clients.

    async def _enqueue(self, request: Enqueue | Delegate) -> None:
        queue = self._rules.state.queue(request.queue)
        by = request.from_handle
        refusal = None if by is None else self._rights.refuse_work(by, queue.settings.agent)
        if refusal is not None:
            raise refusal
        sender = "human" if by is None else f"agent:{by}"
        if queue.settings.name not in self._writers:
            self._rules.state.check(request, sender)  # a refused task leaves no ledger
            await self._open_ledger(queue.settings.name)
        caller = self._keep(self.defer(request))
        task_id = str(ULID())
        self._handle(e.Enqueuing(request=request, id=task_id, sender=sender, caller=caller))
        if isinstance(request, Delegate) and caller in self._callers:
            known = self._rules.state.tasks.of_key(queue.settings.name, sender, request.key)
            waits_for = task_id if known is None else known.id
            self.context.after(request.timeout, TimeIsUp(id=waits_for, caller=caller))

    async def _pause(self, message: PauseQueue | ResumeQueue, name: str) -> None:
        queue = self._rules.state.queue(name).settings.name
        await self._open_ledger(queue)
        paused, caller = isinstance(message, PauseQueue), self._keep(self.defer(message))
        self._handle(e.Pausing(queue=queue, paused=paused, caller=caller))

    # The rules.

    def _keep(self, reply: Reply[Any]) -> int:
        self._count += 1
        self._callers[self._count] = reply
        return self._count

    def _handle(self, event: e.Event) -> None:
        for action in self._rules.handle(event, time.time()):
            self._perform(action)
        self._followers.look()

    def _perform(self, action: e.Action) -> None:
        match action:
            case e.Write(queue=queue, append=append):
                self._writers[queue].append(append)
            case e.Open(task=task, agent=agent, is_new=is_new):
                run = partial(self._workers.run, task, agent, is_new=is_new)
                self.context.start_soon(run)
            case e.GoOn(task=task):
                self.context.start_soon(self._workers.go_on, task)
            case e.Stop(worker=worker):
                self.context.start_soon(self._workers.close, worker)
            case e.Settle(task=task, notify=notify, unless=callers):
                notify = notify and not any(self._waits(each) for each in callers)
                self.context.start_soon(partial(self._workers.settle, task, notify=notify))
            case e.Wake(at=at):
                self.context.after(max(0.0, at - time.time()), e.Tick())
            case e.Changed(queue=queue):
                self._followers.changed(queue)
                publish_change(self.context.system, QueueResource(queue))
            case e.Return() | e.Fail():
                self._answer(action)

    def _waits(self, caller: int) -> bool:
        reply = self._callers.get(caller)
        return reply is not None and not reply.is_settled

    def _answer(self, action: e.Return | e.Fail) -> None:
        reply = self._callers.pop(action.caller, None)
        if reply is None:
            return
        if isinstance(action, e.Return):
            reply.send(action.value)
        else:
            reply.fail(action.error)

    def _news(self, names: list[str] | None, place: StatesPlace) -> QueuesNews:
        state = self._rules.state
        queues = [state.queue_info(each) for each in names or sorted(state.queues)]
        return QueuesNews(queues=queues, place=place, is_all=names is None)

    # The ledgers.

    async def _load(self) -> None:
        """Read the ledgers of all queues, of those without configuration too."""
        settings = {**self._settings}
        for name in self._stored():
            settings.setdefault(name, QueueSettings(name=name))
        loaded = [await self._loaded(each) for each in settings.values()]
        self._handle(e.Recovering(queues=loaded))
        for name in self._rules.state.queues:  # after a crash a change may not have been published
            publish_change(self.context.system, QueueResource(name))

    def _stored(self) -> list[str]:
        """Return the names of the queues that have a ledger. Raises ``StorageError``."""
        names = stored_names(self._flusher.disk, self._directory)
        queues = [each.removesuffix(SUFFIX) for each in names if each.endswith(SUFFIX)]
        return [each for each in queues if is_name(each)]

    async def _loaded(self, settings: QueueSettings) -> e.Loaded:
        path = self._path(settings.name)
        try:
            if not await self._flusher.look(partial(exists, self._flusher.disk, path)):
                return e.Loaded(settings=settings)
            fold = await self._open_ledger(settings.name)
        except StorageError as error:
            self.context.after(READ_AGAIN_S, ReadAgain(queue=settings.name))
            problem = f"its ledger cannot be read, which is tried again every 5 seconds: {error}"
            return e.Loaded(settings=settings, problem=problem)
        return e.Loaded(
            settings=settings,
            tasks=[*fold.tasks],
            dropped=fold.tasks.dropped,
            numbers=fold.numbers,
            paused=fold.paused,
        )

    async def _open_ledger(self, queue: str) -> Fold:
        """Open or create the ledger of a queue; return its tasks. Raises ``StorageError``."""
        if queue in self._writers:
            return Fold()
        appender = await Appender.open(self._path(queue), self._flusher)
        with contextlib.ExitStack() as undo:
            undo.callback(appender.close)
            read = partial(load, self._flusher.disk, self._path(queue), appender.synced, Fold())
            fold = await self._flusher.look(read)
            undo.pop_all()
        self._writers[queue] = LineWriter(
            appender,
            self.context.start_soon,
            synced=lambda number: self._handle(e.Synced(number=number)),
            refused=lambda why: self._handle(e.Refused(queue=queue, sentence=why)),
            before=faults.APPEND_BEFORE.hit,
            after=faults.APPEND_AFTER.hit,
        )
        return fold

    def _path(self, queue: str) -> Path:
        return self._directory / f"{queue}{SUFFIX}"
