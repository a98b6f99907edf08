"""``QueueDesk``: the actor of all queues: durable tasks, each done by a fresh agent session.

    enqueue   → the row is durable → the caller gets the id, the task is lined up
    a place   → "dispatched" is durable → a session gets the payload as its first message
    its turn  → "running": the attempt counts
    its end   → durable → the place is free, the worker is closed, the sender notified

``_advance`` does what follows from the durable state of a task, whether that has just become
durable, was read at the start, or is what a refusing disk has left. The first end that is written
wins. The ledger of a queue is created with its first task.
"""

from __future__ import annotations

import contextlib
import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import attrs
import structlog
import trio
from ulid import ULID

from actors import Actor, Reply, Timer
from aegis.clock import local_text, moment_of, moment_text
from aegis.errors import (
    AegisError,
    Forbidden,
    InvalidRequest,
    NotFound,
    StorageError,
    Unavailable,
)
from aegis.following import Followers
from aegis.journal.archive import DEFAULT_KEEP, Archive, Keep
from aegis.journal.archiver import Archiver, Leaving
from aegis.journal.disk import stored_names
from aegis.journal.flusher import Flusher
from aegis.journal.table import StoredText, Table, digest_of
from aegis.path_text import is_utf8
from aegis.protocol.feeds import FollowQueues, QueuesNews, StatesPlace
from aegis.protocol.history import EndedEntries, ListEnded
from aegis.protocol.naming import is_name, name_key
from aegis.protocol.queues import (
    MAX_AFTER,
    CancelTask,
    Delegate,
    Enqueue,
    Enqueued,
    GetTask,
    ListQueues,
    ListTasks,
    MoveTask,
    PauseQueue,
    QueueInfo,
    QueueList,
    ResumeQueue,
    RetryTask,
    TaskInfo,
    TaskList,
)
from aegis.protocol.resources import QueueResource
from aegis.publishing import publish_change
from aegis.queues import faults, tasks, views
from aegis.queues.tasks import (
    KIND,
    End,
    Numbering,
    Order,
    QueueSettings,
    Switch,
    Task,
    TaskRow,
    entries_of,
    id_name,
    key_name,
)
from aegis.queues.workers import LOOK_AGAIN_S, TaskAbandoned, TaskWorker, end_message
from aegis.turns.services import Services
from aegis.turns.sessions import AgentSessions

log = structlog.get_logger("aegis.queues")

SUFFIX = ".jsonl"

MAX_LIST_BYTES = 256 * 1024
"""The size of the results in one list of tasks."""

MAX_LIVE = 10_000
"""Tasks of one queue that have not ended."""

MAX_LIVE_CHARS = 64 * 1024 * 1024
"""The size of their payloads together."""

MAX_RANK = 64
"""The numbers of a rank. Each move between the two tasks of the move before adds one."""

READ_AGAIN_S = 60.0
"""Seconds until the archive is read that the disk has refused to read."""

MAX_CHAIN = 100
"""Tasks that wait for each other, as far as they are followed."""


class WorkRights(Protocol):
    """The rights of sessions to give work to other profiles."""

    def refuse_work(self, sender: str, agent: str) -> AegisError | None:
        """Return why the session ``sender`` may not have a worker of the profile ``agent``."""
        ...


class Queue:
    """A queue: its rows, the tasks that may begin in their order, and the taken ``places``.

    ``keys`` has the task of each sender and key. ``numbers`` tasks were enqueued, of which ``live``
    have not ended, each with the size of its payload; ``chars`` is the sum.
    """

    def __init__(self, settings: QueueSettings, table: Table[Any]) -> None:
        self.settings, self.table = settings, table
        self.lineup: list[Order] = []
        self._lined: dict[str, Order] = {}
        self.places: set[str] = set()
        self.keys: dict[tuple[str, str], str] = {}
        self.live: dict[str, int] = {}
        self.numbers = self.chars = 0

    @property
    def name(self) -> str:
        """Its name, in its own case."""
        return self.settings.name

    @property
    def paused(self) -> bool:
        """Whether a person has paused it, or its configuration."""
        switch = self.table.shown("paused")
        return self.settings.paused if switch is None else switch.paused

    @property
    def may_start(self) -> bool:
        """Whether a task may begin now, apart from a usage limit."""
        is_open = not self.paused and not self.table.problem and bool(self.settings.agent)
        return is_open and bool(self.lineup) and len(self.places) < self.settings.max_parallel

    def shown_tasks(self) -> Iterator[Task]:
        """Yield the tasks that are durable."""
        return (each for each in self.table.all_shown() if isinstance(each, Task))

    def count(self, task: Task) -> None:
        """Count a task that is put or was read."""
        self.numbers = max(self.numbers, task.number)
        if task.key is not None:
            self.keys[name_key(task.sender), task.key] = task.id
        if not task.has_ended:
            self.live[task.id] = task.payload.chars
            self.chars += task.payload.chars

    def leave(self, task: Task) -> None:
        """Count a task no more that has ended. Idempotent."""
        self.chars -= self.live.pop(task.id, 0)

    def recount(self) -> None:
        """Count all tasks and places anew, from what is durable."""
        self.lineup.clear()
        self._lined.clear()
        self.places.clear()
        self.live.clear()
        self.keys.clear()
        numbering = self.table.shown("numbering")
        self.chars, self.numbers = 0, 0 if numbering is None else numbering.highest
        for task in self.shown_tasks():
            self.count(task)
            if task.is_placed:
                self.places.add(task.id)

    def position(self, task: Task) -> int | None:
        """Return the number of tasks before this one; None if it is not in the lineup."""
        place = self._lined.get(task.id)
        return None if place is None else bisect_left(self.lineup, place)

    def line_up(self, task: Task) -> None:
        """Add a task to the lineup, unless it is in it."""
        if task.id not in self._lined:
            self._lined[task.id] = task.order
            insort(self.lineup, task.order)

    def leave_lineup(self, task: Task) -> None:
        """Remove a task from the lineup, if it is in it."""
        place = self._lined.pop(task.id, None)
        if place is not None:
            del self.lineup[bisect_left(self.lineup, place)]

    def leave_table(self, task: Task) -> None:
        """Leave a task that is archived, and will be dropped."""
        numbering = self.table.rows.get("numbering")
        if numbering is None or numbering.highest < task.number:
            self.table.put(Numbering(highest=self.numbers))
        if task.key is not None:
            self.keys.pop((name_key(task.sender), task.key), None)


@attrs.frozen
class TaskDue:
    """The time has come at which a task may begin."""

    task: str


@attrs.frozen
class LookAgain:
    """The moments that tasks and limits wait for are to be compared with the clock again."""


@attrs.frozen
class Overrun:
    """The time has come at which a worker has run too long."""

    task: str
    worker: str


@attrs.frozen
class LimitEnded:
    """The usage limit of an account, until this moment, has ended."""

    account: str
    until: float


@attrs.frozen
class DelegateTimeout:
    """A caller has waited long enough for the end of a task."""

    task: str
    caller: Reply[TaskInfo] = attrs.field(repr=False)  # its address is not of the seed


DeskMessage = (
    Enqueue
    | Delegate
    | GetTask
    | CancelTask
    | RetryTask
    | MoveTask
    | ListQueues
    | ListTasks
    | PauseQueue
    | ResumeQueue
    | FollowQueues
    | ListEnded
    | TaskDue
    | LookAgain
    | Overrun
    | LimitEnded
    | DelegateTimeout
)


class QueueDesk(Actor[DeskMessage]):
    """The queues ``settings`` of a daemon, whose ledgers are in ``directory``."""

    def __init__(
        self,
        *,
        directory: Path,
        settings: Mapping[str, QueueSettings],
        archive: Path,
        flusher: Flusher,
        rights: WorkRights,
        keep: Keep = DEFAULT_KEEP,
    ) -> None:
        self._directory, self._settings, self._archive = directory, settings, archive
        self._flusher, self._rights, self._keep_rule = flusher, rights, keep
        self._queues: dict[str, Queue] = {}
        self._queue_of: dict[str, Queue] = {}
        self._dependants: dict[str, dict[str, None]] = {}
        self._ends: dict[str, list[Reply[TaskInfo]]] = {}
        self._new: set[str] = set()  # dispatched in this life, and no session opened yet
        self._followed: dict[str, str] = {}  # the worker that is followed for a task
        self._opening: dict[str, trio.Event] = {}
        self._settling: set[str] = set()
        self._overruns: dict[str, Timer] = {}
        self._due: dict[str, float] = {}  # by task, the moment that it waits for
        self._looks_again = False  # a timer for that is set
        self._limits: dict[str, float] = {}  # by account, seconds since 1970
        self._limited: dict[str, float] = {}  # by task
        self._archived_ends: dict[str, str] = {}  # of tasks that tasks of a table wait for
        self._followers = Followers("the queues", self._news)

    async def setup(self) -> None:
        """Register the desk, read the ledgers, and continue what has not ended."""
        self.context.register("service", "queues")
        self._sessions = AgentSessions(Services(self.context.system))
        self._archiver = Archiver(
            Archive(self._archive, KIND, self._flusher.disk, self._keep_rule.archive_bytes),
            self._keep_rule,
            self._flusher,
            self.context,
            find=self._leaving,
            leave=self._leave,
        )
        stored = [each.removesuffix(SUFFIX) for each in self._stored_names()]
        settings = {**self._settings}
        for name in filter(is_name, stored):
            settings.setdefault(name, QueueSettings(name=name))
        for each in settings.values():
            queue = self._queues[each.name] = Queue(each, self._table(each.name))
            if each.name in stored:
                await queue.table.open()
            self._know(queue)
        for queue in self._queues.values():
            self._continue(queue)
            self._changed(queue)

    async def teardown(self) -> None:
        for queue in self._queues.values():
            queue.table.close()

    def _stored_names(self) -> list[str]:
        """Return the names of the ledgers. Raises ``StorageError``."""
        names = stored_names(self._flusher.disk, self._directory)
        return [each for each in names if each.endswith(SUFFIX)]

    def _table(self, name: str) -> Table[Any]:
        return Table(
            self._directory / f"{name}{SUFFIX}",
            TaskRow,
            self._flusher,
            self.context,
            changed=lambda: self._changed(self._queues[name]),
            lost=lambda: self._derive(self._queues[name]),
            upgrade=tasks.lines_of_today,
        )

    async def receive(self, message: DeskMessage) -> None:
        """Handle a message of a client or a timer."""
        match message:
            case Enqueue() | Delegate():
                await self._enqueue(message)
            case GetTask(task_id=task_id):
                self.reply(message, await self._show(task_id))
            case CancelTask():
                await self._cancel(message)
            case RetryTask():
                await self._retry(message)
            case MoveTask():
                await self._move(message)
            case PauseQueue() | ResumeQueue():
                await self._pause(message)
            case ListQueues():
                queues = [self._queues[each] for each in sorted(self._queues)]
                self.reply(message, QueueList(result=[self._queue_info(each) for each in queues]))
            case ListTasks():
                self.reply(message, self._list(message))
            case ListEnded(ids=ids):
                self.reply(message, self._ended_tasks(ids))
            case FollowQueues(place=place):
                self._followers.take(place, self.defer(message))
            case DelegateTimeout(task=task_id, caller=caller):
                self._give_up(task_id, caller)
            case LimitEnded(account=account, until=until):
                self._end_limit(account, until)
            case Overrun(task=task_id, worker=worker):
                self._overrun(task_id, worker)
            case TaskDue() | LookAgain():
                self._take_time(message)

    # Deriving.

    def _know(self, queue: Queue) -> None:
        """Count the tasks of a ledger that was read."""
        queue.recount()
        for task in queue.shown_tasks():
            self._index(queue, task)
        dependants = [each for each in queue.shown_tasks() if each.after]
        if dependants:
            self.context.start_soon(self._find_archived_ends, dependants)

    async def _find_archived_ends(self, dependants: list[Task]) -> None:
        """Look for the ends of archived tasks that these wait for."""
        for task in dependants:
            while True:
                try:
                    await self._know_ends(task.after)
                    break
                except StorageError as error:
                    log.warning("archive not read", why=str(error))
                    await trio.sleep(READ_AGAIN_S)
            newest = self._find(task.id)
            if newest is not None and self._archived_ends.keys() & {*task.after}:
                self._line_up(newest)

    async def _know_ends(self, tasks: Iterable[str]) -> list[str]:
        """Look for the ends of tasks that are not in a table; return the archived ones."""
        found = []
        for each in tasks:
            if self._find(each) is None and each not in self._archived_ends:
                entry = await self._archiver.entry(id_name(each))
                if entry is not None:
                    self._archived_ends[each] = entry["end"]
                    found.append(each)
        return found

    def _index(self, queue: Queue, task: Task) -> None:
        self._queue_of[task.id] = queue
        for each in task.after:
            self._dependants.setdefault(each, {})[task.id] = None

    def _derive(self, queue: Queue) -> None:
        """Derive all from the tasks of a queue once its disk accepts again, or can be read."""
        self._know(queue)
        self._new.clear()
        self._continue(queue)
        for task in [*queue.shown_tasks()]:
            self._line_up_dependants(task)  # of other queues too

    def _continue(self, queue: Queue) -> None:
        """Do what follows from each task of a queue that is known."""
        for task in [*queue.shown_tasks()]:
            if task.is_over:
                self._keep(task)
                continue
            for worker in task.earlier_workers:
                self.context.start_soon(self._close, worker)  # it may be open
            self._advance(task.id)

    def _advance(self, task_id: str) -> None:
        """Do what follows from the durable state of a task."""
        task = self._find(task_id)
        if task is None:
            return
        queue = self._queue_of[task_id]
        if task.is_placed:
            queue.places.add(task_id)
            self._follow(task)
            return
        had_place = task_id in queue.places
        queue.places.discard(task_id)
        self._limited.pop(task_id, None)
        self._limit_runtime(task)
        if task.has_ended:
            queue.leave(task)
            self._settle_soon(task)
        elif task.phase == "queued":
            if had_place and task.worker is not None:
                self.context.start_soon(self._close, task.worker)
            self._line_up(task)
        if had_place:
            self._start_tasks(queue)

    # Clients.

    async def _enqueue(self, request: Enqueue | Delegate) -> None:
        queue, by = self._queue(request.queue), request.from_handle
        refusal = None if by is None else self._rights.refuse_work(by, queue.settings.agent)
        if refusal is not None:
            raise refusal
        sender = "human" if by is None else f"agent:{by}"
        known = await self._of_key(queue, sender, request)
        if known is not None:
            await self._enqueued_before(queue, known, request)
            return
        archived = await self._know_ends(_after(request))
        try:
            self._check(queue, request)  # a refused task leaves no ledger
            await queue.table.open()
            task = _new_task(request, queue, sender)
            reply, answer = self._defer_enqueued(task.id, request)
            if queue.table.put(task, partial(self._stored, task.id, answer), reply):
                queue.count(task)
                self._index(queue, task)
        finally:
            for each in archived:
                self._remove_end(each)

    async def _of_key(self, queue: Queue, sender: str, request: Enqueue | Delegate) -> str | None:
        """Return the task that the sender has enqueued with this key before."""
        if request.key is None:
            return None
        known = queue.keys.get((name_key(sender), request.key))
        if known is not None and known in queue.table.rows:  # the disk may have refused it
            digest = queue.table.rows[known].payload.digest
        else:
            entry = await self._archiver.entry(key_name(queue.name, sender, request.key))
            if entry is None:
                return None
            known, digest = entry["id"], entry["digest"]
        if digest != digest_of(request.payload):
            raise views.other_payload(known, request.key)
        return known

    async def _enqueued_before(self, queue: Queue, known: str, request: Enqueue | Delegate) -> None:
        if known not in queue.table.rows:
            await self._answer_archived(known, request, self.defer(request))
            return
        reply, answer = self._defer_enqueued(known, request)
        queue.table.settled(answer, reply)

    def _defer_enqueued(
        self, task_id: str, request: Enqueue | Delegate
    ) -> tuple[Reply[Any], Callable[[], None]]:
        """Return the reply of a request, and what answers it once its task is durable."""
        reply: Reply[Any] = self.defer(request)
        until = trio.current_time() + getattr(request, "timeout", 0)
        return reply, partial(self._answer_enqueued, task_id, request, reply, until)

    def _stored(self, task_id: str, answer: Callable[[], None]) -> None:
        self._advance(task_id)
        answer()

    def _answer_enqueued(
        self, task_id: str, request: Enqueue | Delegate, reply: Reply[Any], until: float
    ) -> None:
        """Answer, or let a caller wait ``until`` a moment of Trio's clock for the end."""
        task = self._find(task_id)
        if task is None:
            self.context.start_soon(self._answer_archived, task_id, request, reply)
        elif isinstance(request, Enqueue):
            position = self._queue_of[task_id].position(task)
            not_before = None if task.not_before is None else local_text(task.not_before)
            reply.send(Enqueued(task_id=task_id, queued_position=position, not_before=not_before))
        elif task.has_ended:
            reply.send(self._info(task))
        else:
            self._ends.setdefault(task_id, []).append(reply)
            self.context.after(
                max(0.0, until - trio.current_time()), DelegateTimeout(task_id, reply)
            )

    async def _answer_archived(
        self, task_id: str, request: Enqueue | Delegate, reply: Reply[Any]
    ) -> None:
        """Answer a request whose task is in the archive."""
        if isinstance(request, Enqueue):
            reply.send(Enqueued(task_id=task_id, queued_position=None))
            return
        try:
            reply.send(await self._show(task_id))
        except AegisError as error:
            reply.fail(error)

    def _give_up(self, task_id: str, caller: Reply[TaskInfo]) -> None:
        waiting = self._ends.get(task_id, [])
        if caller in waiting:
            waiting.remove(caller)
            caller.send(self._info(self._task(task_id)))

    def _check(self, queue: Queue, request: Enqueue | Delegate) -> None:
        """Raise why a new task cannot be enqueued."""
        after = _after(request)
        if queue.table.problem:
            raise StorageError(queue.table.problem)
        if not queue.settings.agent:
            raise InvalidRequest(f"queue {queue.name!r} is not in .aegis.yaml any more")
        if not request.payload.strip():
            raise InvalidRequest("the payload is empty; describe the task")
        if not all(map(is_utf8, (request.payload, request.key or "", *after))):
            raise InvalidRequest(
                "a text of the task is not valid Unicode; send it without surrogates"
            )
        if len(queue.live) >= MAX_LIVE or queue.chars + len(request.payload) > MAX_LIVE_CHARS:
            raise Unavailable(
                f"queue {queue.name!r} has {len(queue.live)} tasks that have not ended, with "
                f"payloads of {queue.chars} characters, which is the limit; enqueue again when "
                "some have"
            )
        if len(after) > MAX_AFTER:
            raise InvalidRequest(f"a task waits for at most {MAX_AFTER} others, not {len(after)}")
        for each in after:
            if self._find(each) is None and each not in self._archived_ends:
                raise NotFound(f"there is no task {each[:40]!r}, which `after` names")
        if isinstance(request, Enqueue) and request.not_before is not None:
            try:
                moment_of(request.not_before)
            except ValueError as error:
                raise InvalidRequest(f"not_before: {error}") from error
        if isinstance(request, Delegate) and self._waits_in_vain(queue, request.from_handle):
            raise views.waits_in_vain(queue.name)

    def _waits_in_vain(self, queue: Queue, handle: str | None) -> bool:
        """Return whether a task of ``queue`` would never begin while the caller waits for it.

        That is so if the caller, and the tasks that wait for its task, take all places.
        """
        taken, seen = 0, 0
        while (task := self._task_of_worker(handle)) is not None and seen < MAX_CHAIN:
            taken += task.queue == queue.name
            handle, seen = task.sender.removeprefix("agent:"), seen + 1
        return taken >= queue.settings.max_parallel

    def _task_of_worker(self, handle: str | None) -> Task | None:
        """Return the task that the session with this handle does; None if it is no worker."""
        if handle is None:
            return None
        placed = (self._find(each) for queue in self._queues.values() for each in queue.places)
        return next((each for each in placed if each and each.worker == handle), None)

    async def _cancel(self, request: CancelTask) -> None:
        task, by = await self._task_to_change(request.task_id), request.from_handle
        if by is not None and name_key(task.sender) != name_key(f"agent:{by}"):
            raise Forbidden(
                f"task {task.id} was enqueued by {task.sender}, who may cancel it, as a person may"
            )
        newest: Task = self._queue_of[task.id].table.rows[task.id]
        if newest.has_ended:
            raise InvalidRequest(f"task {task.id} has ended already: it is {newest.phase}")
        who = "human" if by is None else f"agent:{by}"
        self._end(newest, "cancelled", f"it was cancelled by {who}", self.defer(request))

    def _end(self, task: Task, end: End, error: str, reply: Reply[TaskInfo] | None = None) -> None:
        """Write the end of a task that is no fact."""
        queue = self._queue_of[task.id]
        after = tasks.ended(task, end, time.time(), result=None, error=error)
        if queue.table.put(after, partial(self._ended, task.id, reply), reply):
            queue.leave_lineup(task)

    def _ended(self, task_id: str, reply: Reply[TaskInfo] | None) -> None:
        self._advance(task_id)
        if reply is not None:
            reply.send(self._info(self._task(task_id)))

    async def _retry(self, request: RetryTask) -> None:
        task = await self._task_to_change(request.task_id)
        if task.phase not in ("failed", "cancelled"):
            raise InvalidRequest(
                f"task {task.id} is {self._info(task).status}; only one that has failed or was "
                "cancelled can be retried"
            )
        queue = self._queue_of[task.id]
        if not task.is_notified or queue.table.rows[task.id] is not task:
            raise Unavailable(f"the session of task {task.id} is still being ended; try again")
        for each in task.after:
            self._check_blocker(task.id, each)
        reply: Reply[Any] = self.defer(request)
        again = tasks.retried(task)
        if queue.table.put(again, partial(self._ended, task.id, reply), reply):
            self._archiver.remove(task.id)
            queue.count(again)

    async def _move(self, request: MoveTask) -> None:
        queue, by = self._queue(request.queue), request.from_handle
        if (request.before is None) == (request.to is None):
            raise InvalidRequest("give either before, a task, or to, which is 'first' or 'last'")
        if request.before == request.task_id:
            raise InvalidRequest(f"task {request.task_id} cannot be moved before itself")
        for each in filter(None, (request.task_id, request.before)):
            await self._task_to_change(each)
        task = self._not_begun(queue, request.task_id)
        if by is not None and name_key(task.sender) != name_key(f"agent:{by}"):
            raise Forbidden(
                f"task {task.id} was enqueued by {task.sender}, who may move it, as a person may"
            )
        others = sorted(
            (queue.table.rows[task_id] for *_, task_id in queue.lineup if task_id != task.id),
            key=lambda each: each.order,
        )
        at = len(others) if request.to == "last" else 0
        if request.before is not None:
            target = self._not_begun(queue, request.before)
            at = bisect_left(others, target.order, key=lambda each: each.order)
            if queue.position(target) is None:  # it waits, and is to begin right behind
                others.insert(at, target)
        previous = others[at - 1] if at else None
        following = others[at] if at < len(others) else None
        reply: Reply[Any] = self.defer(request)
        stored = partial(self._moved, task.id, reply)
        is_there = (previous is None or previous.order < task.order) and (
            following is None or task.order < following.order
        )
        if is_there:
            queue.table.settled(stored, reply)
            return
        after = tasks.moved(task, previous, following)
        if len(after.order[1]) > MAX_RANK:
            raise InvalidRequest(
                "too many tasks were moved between these two: move it to the first or last place"
            )
        queue.table.put(after, stored, reply)

    def _not_begun(self, queue: Queue, task_id: str) -> Task:
        """Return the newest version of a task of a queue that is to be moved."""
        task: Task = self._queue_of[task_id].table.rows[task_id]
        if self._queue_of[task_id] is not queue:
            raise InvalidRequest(
                f"task {task_id} is in queue {task.queue!r}, not in {queue.name!r}"
            )
        if task.phase != "queued":
            has = "runs" if task.is_placed else "has ended"
            raise InvalidRequest(
                f"task {task_id} {has}: only tasks that have not begun have a place in the order"
            )
        return task

    def _moved(self, task_id: str, reply: Reply[TaskInfo]) -> None:
        # Until it was durable it had its old place, at which it may have begun.
        task = self._task(task_id)
        self._queue_of[task_id].leave_lineup(task)
        self._line_up(task)
        reply.send(self._info(task))

    def _check_blocker(self, task_id: str, blocker: str) -> None:
        """Raise ``InvalidRequest`` if a task waits for one that will not complete."""
        found, outcome = self._find(blocker), self._outcome(blocker)
        if outcome == "completed" or (found is not None and outcome is None):
            return
        if found is None:
            raise InvalidRequest(
                f"task {task_id} waits for task {blocker}, which is not kept any more, so it can "
                "never begin: enqueue it anew without it"
            )
        has = views.has_ended_badly(outcome or "")
        raise InvalidRequest(
            f"task {task_id} waits for task {blocker}, which {has}: retry that one before it"
        )

    async def _pause(self, request: PauseQueue | ResumeQueue) -> None:
        queue = self._queue(request.queue)
        await queue.table.open()
        reply: Reply[Any] = self.defer(request)

        def stored() -> None:
            self._start_tasks(queue)
            reply.send(self._queue_info(queue))

        queue.table.put(Switch(paused=isinstance(request, PauseQueue)), stored, reply)

    # The order of tasks.

    def _line_up(self, task: Task) -> None:
        """Line up a queued task, unless something must happen before."""
        queue, now = self._queue_of[task.id], time.time()
        if task.phase != "queued" or queue.table.rows.get(task.id) is not task:
            return  # something about it is not durable yet
        outcomes = {each: self._outcome(each) for each in task.after}
        for each, outcome in outcomes.items():
            if outcome in ("failed", "cancelled"):
                why = f"{views.lost_with(each)}{views.has_ended_badly(outcome)}"
                self._end(task, "failed", why)
                return
        if any(each != "completed" for each in outcomes.values()):
            return
        moment = max(task.not_before or 0.0, task.next_try or 0.0)
        if moment > now:
            if self._due.get(task.id) != moment:
                self._due[task.id] = moment
                self.context.after(moment - now, TaskDue(task.id))
                self._look_again_later()
            return
        queue.line_up(task)
        self._start_tasks(queue)

    def _take_time(self, timer: TaskDue | LookAgain) -> None:
        if isinstance(timer, LookAgain):
            self._looks_again = False
            self._look_again()
            self._look_again_later()
            return
        self._due.pop(timer.task, None)
        if (task := self._find(timer.task)) is not None:
            self._line_up(task)

    def _look_again_later(self) -> None:
        if not self._looks_again and (self._due or self._limits):
            self._looks_again = True
            self.context.after(LOOK_AGAIN_S, LookAgain())

    def _look_again(self) -> None:
        """Line up tasks, and end limits, whose moment has passed before their timers are due."""
        now = time.time()
        for task_id, moment in [*self._due.items()]:
            task = self._find(task_id)
            is_waiting = task is not None and task.phase == "queued"
            if moment <= now or not is_waiting:
                self._due.pop(task_id, None)
            if task is not None and moment <= now:
                self._line_up(task)
        for account, until in [*self._limits.items()]:
            if until <= now:
                self._end_limit(account, until)

    def _start_tasks(self, queue: Queue) -> None:
        while queue.may_start and queue.settings.account not in self._limits:
            task: Task = queue.table.rows[queue.lineup[0][-1]]
            if not queue.table.put(tasks.dispatched(task), partial(self._advance, task.id)):
                return  # the order of tasks is derived again when the disk accepts
            queue.leave_lineup(task)
            queue.places.add(task.id)
            self._new.add(task.id)

    def _blockers(self, task: Task) -> list[str]:
        """Return the tasks that must have completed before this one, and have not."""
        return [each for each in task.after if self._outcome(each) != "completed"]

    def _outcome(self, task_id: str) -> str | None:
        """Return the end of a task, also of one that is not kept; None before its end."""
        task = self._find(task_id)
        if task is not None:
            return task.phase if task.has_ended else None
        return self._archived_ends.get(task_id)

    # Workers.

    def _follow(self, task: Task) -> None:
        """Have the session of a task opened and followed, unless it is."""
        self._limit_runtime(task)
        is_new = task.id in self._new
        self._new.discard(task.id)
        is_followed = self._followed.get(task.id) == task.worker
        # What it has done may be known, and not durable: reading that again would add nothing.
        if not is_followed and not self._queue_of[task.id].table.has_fact(task.id):
            assert task.worker is not None, "a task with a place has a worker"
            self._followed[task.id] = task.worker
            # Before the session is being opened: an end of the task in the same sync closes it.
            self._opening[task.worker] = trio.Event()
            self.context.start_soon(self._work, task, task.worker, is_new)

    async def _work(self, task: Task, worker: str, is_new: bool) -> None:
        session = TaskWorker(self._sessions, task, worker)
        try:
            await self._open(session, task, is_new=is_new)
            text = await session.done(
                began=partial(self._fact, task.id, worker, tasks.began),
                limited=partial(self._limit, task.id),
            )
        except TaskAbandoned as gone:
            if gone.has_begun:
                self._fact(task.id, worker, tasks.lost, str(gone), gone.text)
            else:
                self._fact(task.id, worker, tasks.idle, str(gone))
        except AegisError as error:  # it could not be opened, or was purged
            if worker in self._opening:
                self._fact(task.id, worker, tasks.idle, str(error))
            else:
                self._fact(task.id, worker, tasks.lost, str(error), "")
        else:
            self._fact(task.id, worker, tasks.done, text)
        finally:
            self._opened(worker)
            if self._followed.get(task.id) == worker:
                del self._followed[task.id]

    async def _open(self, session: TaskWorker, task: Task, *, is_new: bool) -> None:
        queue = self._queue_of[task.id]
        payload = queue.table.text(task.payload, "payload")
        await session.open(queue.settings.agent, payload, is_new=is_new)
        self._opened(session.handle)

    def _opened(self, worker: str) -> None:
        if worker in self._opening:
            self._opening.pop(worker).set()

    async def _close(self, worker: str) -> None:
        """Close a session, if it is open or being opened."""
        if worker in self._opening:
            await self._opening[worker].wait()
        with contextlib.suppress(NotFound):  # it was never opened
            await self._sessions.close(worker)

    def _fact(self, task_id: str, worker: str, step: Any, *said: str) -> None:
        """Apply to a task what its worker has done, and do what follows once it is durable."""
        queue = self._queue_of.get(task_id)
        if queue is not None and task_id in queue.table.rows:
            now = time.time()
            queue.table.fact(
                task_id,
                lambda task: step(task, worker, *said, now),
                partial(self._advance, task_id),
            )

    def _overrun(self, task_id: str, worker: str) -> None:
        task = self._find(task_id)
        if task is not None and task.max_runtime_s is not None and task.phase == "running":
            why = f"it ran longer than max_runtime_s={task.max_runtime_s:g}"
            self._fact(task_id, worker, tasks.lost, why, "")

    def _limit_runtime(self, task: Task) -> None:
        """Set the timer of an attempt, which begins anew with each life of the daemon."""
        is_set = task.id in self._overruns
        if task.phase == "running" and task.max_runtime_s is not None and task.worker is not None:
            if not is_set:
                overrun = Overrun(task.id, task.worker)
                self._overruns[task.id] = self.context.after(task.max_runtime_s, overrun)
        elif is_set:
            self._overruns.pop(task.id).cancel()

    def _limit(self, task_id: str, until: float | None) -> None:
        """Note that the agent of a task has reached a usage limit, or continues."""
        queue = self._queue_of.get(task_id)
        if queue is None:
            return  # it is over, and archived
        if until is None:
            self._limited.pop(task_id, None)
        else:
            wait_s = max(0.0, until - time.time())
            timer = self._overruns.get(task_id)
            if timer is not None:  # the time for which it is parked is not its own
                timer.cancel()
                self._overruns[task_id] = self.context.after(
                    timer.deadline - trio.current_time() + wait_s, timer.message
                )
            account = queue.settings.account
            self._limits[account] = self._limited[task_id] = until
            self.context.after(wait_s, LimitEnded(account, until))
            self._look_again_later()
        self._changed(queue)

    def _end_limit(self, account: str, until: float) -> None:
        # By the timer, not only by the time of day: a clock that was set back would park for good.
        if self._limits.get(account) == until:
            del self._limits[account]
            for queue in self._queues.values():
                self._start_tasks(queue)
                self._changed(queue)

    # Ends.

    def _settle_soon(self, task: Task) -> None:
        """Do what follows from the end of a task."""
        if task.is_notified:
            self._keep(task)
        elif task.end_id not in self._settling:
            self._settling.add(task.end_id)
            waiting = [each for each in self._ends.pop(task.id, []) if not each.is_settled]
            for each in waiting:
                each.send(self._info(task))
            self.context.start_soon(self._settle, task, task.callback and not waiting)
            self._line_up_dependants(task)

    def _line_up_dependants(self, task: Task) -> None:
        for task_id in self._dependants.get(task.id, ()):
            if (dependant := self._find(task_id)) is not None:
                self._line_up(dependant)

    def _keep(self, task: Task) -> None:
        """Keep a task that is over; perhaps older ones are archived now."""
        if task.id not in self._archiver:
            ended = time.time() if task.ended is None else moment_of(task.ended).timestamp()
            self._archiver.add(task.id, ended)

    # The archive.

    def _leaving(self, task_id: str) -> Leaving | None:
        """Return a task as the archive gets it; None if it is not over."""
        task = self._find(task_id)
        if task is None or not task.is_over:
            return None
        return Leaving(self._queue_of[task_id].table, (task,), entries_of(task))

    def _leave(self, task_id: str) -> None:
        """Leave a task that is archived; what waits for it learns its end from the index."""
        task, queue = self._task(task_id), self._queue_of.pop(task_id)
        if self._dependants.get(task_id):
            self._archived_ends[task_id] = task.phase
        for each in task.after:
            self._dependants.get(each, {}).pop(task_id, None)
            self._remove_end(each)
        queue.leave_table(task)

    def _remove_end(self, task_id: str) -> None:
        """Forget the end of an archived task that no task of a table waits for."""
        if not self._dependants.get(task_id):
            self._dependants.pop(task_id, None)
            self._archived_ends.pop(task_id, None)

    async def _archived(self, task_id: str) -> Task | None:
        """Return a task of the archive; None if it is not there any more."""
        entry = await self._archiver.entry(id_name(task_id))
        if entry is None:
            raise views.no_task(task_id)
        task: Task | None = await self._archiver.row(TaskRow, entry, task_id)
        return task

    async def _settle(self, task: Task, notify: bool) -> None:
        """Close the workers of an ended task, and notify its sender if ``notify``."""
        queue = self._queue_of[task.id]
        for worker in [*task.earlier_workers, task.worker]:
            if worker is not None:
                await self._close(worker)
        if notify:
            faults.NOTIFY_BEFORE.hit(task.queue)
            await self._sessions.deliver(end_message(task, self._result(task) or ""))
            faults.NOTIFY_AFTER.hit(task.queue)
        queue.table.fact(
            task.id,
            lambda now: tasks.notified(now, task.end_id),
            partial(self._is_settled, task),
        )

    def _is_settled(self, task: Task) -> None:
        self._settling.discard(task.end_id)
        self._advance(task.id)

    # What clients see.

    def _queue(self, name: str) -> Queue:
        """Return a queue by its name in any case. Raises ``NotFound``."""
        if name in self._queues:
            return self._queues[name]
        for known, queue in self._queues.items():
            if name_key(known) == name_key(name):
                return queue
        raise views.unknown_queue(name, sorted(self._queues))

    def _find(self, task_id: str) -> Task | None:
        """Return the durable version of a task."""
        queue = self._queue_of.get(task_id)
        return None if queue is None else queue.table.shown(task_id)

    def _task(self, task_id: str) -> Task:
        task = self._find(task_id)
        assert task is not None, "its caller waits for it"
        return task

    async def _task_to_change(self, task_id: str) -> Task:
        """Return a task of a table. Raises ``InvalidRequest`` for one that is archived."""
        task = self._find(task_id)
        if task is None:
            raise views.is_archived(task_id, await self._archived(task_id))
        return task

    async def _show(self, task_id: str) -> TaskInfo:
        """Return a task as clients see it, from its table or from the archive."""
        task = self._find(task_id)
        if task is not None:
            return self._info(task)
        archived = await self._archived(task_id)
        if archived is None:
            raise views.no_task(task_id, was_kept=True)
        return views.archived_info(archived)

    def _result(self, task: Task) -> str | None:
        if task.result is None:
            return None
        try:
            return self._queue_of[task.id].table.text(task.result, "result")
        except StorageError as error:
            return f"its result cannot be read: {error}"

    def _info(self, task: Task) -> TaskInfo:
        """Return a task as clients see it."""
        lost = islice(self._lost_with(task.id), MAX_CHAIN)
        queue = self._queue_of[task.id]
        return views.task_info(
            task,
            has_place=task.id in queue.places,
            position=queue.position(task),
            waiting_for=self._blockers(task) if task.phase == "queued" else [],
            result=self._result(task),
            limited_until=self._limited.get(task.id),
            failed_with=[*dict.fromkeys(each.id for each in lost)],
        )

    def _lost_with(self, task_id: str) -> Iterator[Task]:
        """Yield the tasks that failed because this one did, and those that failed with them."""
        for each in self._dependants.get(task_id, ()):
            task = self._find(each)
            reason = task.error if task is not None and task.phase == "failed" else None
            if task is not None and reason and reason.startswith(views.lost_with(task_id)):
                yield task
                yield from self._lost_with(task.id)

    def _queue_info(self, queue: Queue) -> QueueInfo:
        limit = self._limits.get(queue.settings.account)
        pending, running = len(queue.lineup), len(queue.places)
        problem = queue.table.problem
        if not problem and not queue.settings.agent:
            problem = "it is not in .aegis.yaml any more"
        return QueueInfo(
            queue=queue.name,
            agent=queue.settings.agent,
            max_parallel=queue.settings.max_parallel,
            paused=queue.paused,
            waiting=max(0, len(queue.live) - pending - running),
            pending=pending,
            running=running,
            ended=queue.numbers - len(queue.live),
            limited_until=None if limit is None else moment_text(limit),
            problem=problem,
        )

    def _list(self, request: ListTasks) -> TaskList:
        found: list[TaskInfo] = []
        size = 0
        for task in self._in_order(request.queue):
            size += (0 if task.result is None else task.result.chars) + 1_000
            if len(found) >= request.limit or size > MAX_LIST_BYTES:
                return TaskList(result=found, more=True)
            found.append(self._info(task))
        return TaskList(result=found)

    def _in_order(self, name: str | None) -> Iterator[Task]:
        """Yield tasks of one queue or all: running, pending, waiting, then the newest ended."""
        chosen = [*self._queues.values()] if name is None else [self._queue(name)]
        found = [each for queue in chosen for each in queue.shown_tasks()]
        lined = [task_id for queue in chosen for *_, task_id in queue.lineup]
        placed = {task_id for queue in chosen for task_id in queue.places}
        yield from (each for each in found if each.id in placed)
        yield from (task for task in map(self._find, lined) if task is not None)
        elsewhere = placed.union(lined)
        yield from (e for e in found if e.phase == "queued" and e.id not in elsewhere)
        over = [each for each in found if each.has_ended]
        yield from sorted(over, key=lambda each: each.ended or "", reverse=True)

    def _ended_tasks(self, ids: list[str] | None) -> EndedEntries:
        if ids is None:
            return EndedEntries(ids=self._archiver.newest_first())
        found = (self._find(each) for each in ids)
        return EndedEntries(entries=[views.history_entry(e) for e in found if e and e.has_ended])

    def _news(self, names: list[str] | None, place: StatesPlace) -> QueuesNews:
        queues = [self._queues[each] for each in names or sorted(self._queues)]
        infos = [self._queue_info(each) for each in queues]
        return QueuesNews(queues=infos, place=place, is_all=names is None)

    def _changed(self, queue: Queue) -> None:
        self._followers.changed(queue.name)
        self._followers.look()
        publish_change(self.context.system, QueueResource(queue.name))


def _new_task(request: Enqueue | Delegate, queue: Queue, sender: str) -> Task:
    """Return the task of a request that is not refused."""
    only, settings = (request if isinstance(request, Enqueue) else None), queue.settings
    attempts = (only and only.max_attempts) or settings.max_attempts
    return Task(
        id=str(ULID()),
        queue=queue.name,
        number=queue.numbers + 1,
        payload=StoredText.of(request.payload),
        sender=sender,
        callback=only is None or only.callback,
        key=request.key,
        after=tuple(dict.fromkeys(_after(request))),
        priority=0 if only is None else only.priority,
        not_before=moment_of(only.not_before).timestamp() if only and only.not_before else None,
        attempts=attempts,
        max_attempts=attempts,
        max_runtime_s=(only and only.max_runtime_s) or settings.max_runtime_s,
        enqueued=moment_text(time.time()),
    )


def _after(request: Enqueue | Delegate) -> list[str]:
    return request.after if isinstance(request, Enqueue) else []
