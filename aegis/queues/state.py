"""``QueueState``: the state of all queues, and what clients see of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import attrs

from aegis.errors import NotFound
from aegis.protocol.naming import name_key
from aegis.protocol.queues import Delegate, Enqueue, QueueInfo, TaskInfo
from aegis.queues.alarms import Alarms
from aegis.queues.enqueuing import other_payload, refusal_of, unknown_queue, waits_in_vain
from aegis.queues.events import Loaded
from aegis.queues.lineup import Lineup
from aegis.queues.store import Known, TaskStore, digest_of
from aegis.queues.tasks import QueueSettings, Task
from aegis.queues.views import moment_text, task_info


@attrs.define(kw_only=True)
class Queue:
    """A queue: its lineup, and the ids of the tasks that take its ``places``.

    ``numbers`` tasks were enqueued, of which ``live`` have not ended; ``chars`` is the size of the
    payloads of these.
    """

    settings: QueueSettings
    paused: bool = False
    problem: str = ""
    lineup: Lineup = attrs.field(factory=Lineup)
    places: set[str] = attrs.field(factory=set)
    numbers: int = 0
    live: int = 0
    chars: int = 0

    def enter(self, task: Task) -> None:
        """Count a task that has not ended."""
        self.live += 1
        self.chars += len(task.payload)

    def leave(self, task: Task) -> None:
        """Count a task no more: it has ended, or was never stored."""
        self.live -= 1
        self.chars -= len(task.payload)

    @property
    def may_start(self) -> bool:
        """Whether a task may begin now, apart from a usage limit."""
        is_open = not self.paused and not self.problem and bool(self.settings.agent)
        return is_open and len(self.lineup) > 0 and len(self.places) < self.settings.max_parallel


@attrs.define
class QueueState:
    """All queues by their names, and all tasks.

    ``alarms`` have the keys ("limit", account) and, for the id of a task, "pause", "time",
    "runtime" and "continue". ``unsynced`` tasks are not stored yet; the end of ``ending`` ones is
    not. ``limited`` tasks have reached a usage limit, until a moment.
    """

    queues: dict[str, Queue] = attrs.field(factory=dict)
    tasks: TaskStore = attrs.field(factory=TaskStore)
    alarms: Alarms[tuple[str, str]] = attrs.field(factory=Alarms)
    unsynced: set[str] = attrs.field(factory=set)
    ending: set[str] = attrs.field(factory=set)
    limited: dict[str, float] = attrs.field(factory=dict)

    def load(self, queues: Sequence[Loaded]) -> set[str]:
        """Add queues and their stored tasks; return the names of the queues."""
        for loaded in queues:
            self._load(loaded)
        return {each.settings.name for each in queues}

    def _load(self, loaded: Loaded) -> None:
        settings = loaded.settings
        queue = self.queues[settings.name] = Queue(
            settings=settings,
            paused=settings.paused if loaded.paused is None else loaded.paused,
            problem=loaded.problem,
            numbers=loaded.numbers,
        )
        self.tasks.remember(loaded.dropped)
        for task in loaded.tasks:
            self.tasks.put(task)
            if not task.has_ended:
                queue.enter(task)

    def queue(self, name: str) -> Queue:
        """Return a queue by its name in any case. Raises ``NotFound``."""
        exact = self.queues.get(name)
        if exact is not None:
            return exact
        for known, queue in self.queues.items():
            if name_key(known) == name_key(name):
                return queue
        raise unknown_queue(name, sorted(self.queues))

    def task(self, task_id: str) -> Task:
        """Return a stored task. Raises ``NotFound``."""
        task = self.tasks.get(task_id)
        if task is None or task_id in self.unsynced:
            raise self.no_task(task_id)
        return task

    def check(self, request: Enqueue | Delegate, sender: str) -> None:
        """Raise why a task cannot be enqueued, unless it was before, with its key."""
        queue = self.queue(request.queue)
        if self.tasks.of_key(queue.settings.name, sender, request.key) is not None:
            return
        error = refusal_of(request, queue, self.tasks)
        if error is not None:
            raise error
        if isinstance(request, Delegate) and self.waits_in_vain(queue, request.from_handle):
            raise waits_in_vain(queue.settings.name)

    def of_key(self, known: Known, request: Enqueue | Delegate) -> Task | None:
        """Return the task of a repeated request; None if it is not kept, and need not be.

        Raises ``InvalidRequest`` for another payload, ``NotFound`` if the caller waits for a
        result that is not kept.
        """
        if known.digest != digest_of(request.payload):
            raise other_payload(known.id, request.key)
        task = self.tasks.get(known.id)
        if task is None and isinstance(request, Delegate):
            raise self.no_task(known.id)
        return task

    def no_task(self, task_id: str) -> NotFound:
        """Return the error for a task that there is not, or not any more."""
        gone = "it has ended and is no longer kept; its ledger has it"
        return NotFound(
            f"there is no task {task_id}: "
            + (gone if self.tasks.is_known(task_id) else "look with aegis_queue_list")
        )

    def blockers(self, task: Task) -> list[str]:
        """Return the tasks that must have completed before this one, and have not."""
        return [each for each in task.after if self.tasks.outcome(each) != "completed"]

    def park(self, task: Task, until: float, now: float) -> None:
        """Note that the agent of a task has reached a usage limit, which ends at ``until``."""
        self.limited[task.id] = until
        overrun = self.alarms.moment(("runtime", task.id))
        if overrun is not None:  # the time for which it is parked is not its own
            self.alarms.set(("runtime", task.id), overrun + max(0.0, until - now))
        self.alarms.set(("limit", self.queues[task.queue].settings.account), until)
        self.alarms.set(("continue", task.id), until)

    def is_limited(self, queue: Queue) -> bool:
        """Return whether the account of a queue's agent has reached a usage limit."""
        return self.alarms.moment(("limit", queue.settings.account)) is not None

    def info(self, task_id: str) -> TaskInfo:
        """Return a task as clients see it. Raises ``NotFound``."""
        task = self.task(task_id)
        lost = islice(self.tasks.lost_with(task_id), MAX_CHAIN)
        return task_info(
            task,
            position=self.queues[task.queue].lineup.position(task),
            waiting_for=self.blockers(task) if task.phase == "queued" else [],
            next_try=self.alarms.moment(("pause", task_id)),
            limited_until=self.limited.get(task.id),
            failed_with=[*dict.fromkeys(each.id for each in lost)],
        )

    def queue_info(self, name: str) -> QueueInfo:
        """Return a queue as clients see it. Raises ``NotFound``."""
        queue = self.queue(name)
        limit = self.alarms.moment(("limit", queue.settings.account))
        pending, running = len(queue.lineup), len(queue.places)
        problem = queue.problem
        if not problem and not queue.settings.agent:
            problem = "it is not in .aegis.yaml any more"
        return QueueInfo(
            queue=queue.settings.name,
            agent=queue.settings.agent,
            max_parallel=queue.settings.max_parallel,
            paused=queue.paused,
            waiting=max(0, queue.live - pending - running),
            pending=pending,
            running=running,
            ended=queue.numbers - queue.live,
            limited_until=None if limit is None else moment_text(limit),
            problem=problem,
        )

    def in_order(self, name: str | None) -> Iterator[Task]:
        """Yield stored tasks of one queue or all: running, pending, waiting, then the newest ended.

        Raises ``NotFound``.
        """
        chosen = [self.queue(name)] if name is not None else list(self.queues.values())
        names = {each.settings.name for each in chosen}
        tasks = [each for each in self.tasks if each.queue in names]
        tasks = [each for each in tasks if each.id not in self.unsynced]
        lined = [task_id for queue in chosen for task_id in queue.lineup]
        known = {*lined}
        yield from (each for each in tasks if each.is_placed)
        yield from (self.tasks[each] for each in lined)
        yield from (each for each in tasks if each.phase == "queued" and each.id not in known)
        ended = [each for each in tasks if each.has_ended]
        yield from sorted(ended, key=lambda each: each.ended or "", reverse=True)

    def task_of_worker(self, handle: str | None) -> Task | None:
        """Return the task that the session with this handle runs; None if it is no worker."""
        for queue in self.queues.values():
            for task_id in queue.places:
                if self.tasks[task_id].worker == handle:
                    return self.tasks[task_id]
        return None

    def waits_in_vain(self, queue: Queue, handle: str | None) -> bool:
        """Return whether a task of ``queue`` would never begin while the caller waits for it.

        That is so if the caller, and the tasks that wait for its task, take all places.
        """
        taken, seen = 0, 0
        while (task := self.task_of_worker(handle)) is not None and seen < MAX_CHAIN:
            taken += task.queue == queue.settings.name
            handle, seen = task.sender.removeprefix("agent:"), seen + 1
        return taken >= queue.settings.max_parallel


MAX_CHAIN = 100
"""Tasks that wait for each other, as far as they are followed."""
