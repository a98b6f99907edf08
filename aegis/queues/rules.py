"""The rules of queues: a state machine that knows neither disk nor sessions. Pure.

``handle`` takes one event and returns the actions that follow, in order. A line that it writes gets
a number; ``Synced`` with that number says that it is durable. What depends on a line follows then:

    enqueue   → Write(enqueued)   → Synced → the caller gets the id, the task is in the lineup
    a place   → Write(dispatched) → Synced → Open: a session gets the payload as its first message
    its turn  → Write(started): the attempt counts
    its end   → Write(ended)      → Synced → the place is free, Settle → Settled → Write(notified)

The first end that is written wins. If the disk refuses, a caller's change is undone; the end of a
task and other facts are written again later.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from aegis.clock import local_text
from aegis.errors import AegisError, Forbidden, InvalidRequest, StorageError
from aegis.protocol.naming import name_key
from aegis.protocol.queues import Delegate, Enqueued
from aegis.queues import enqueuing, ledger
from aegis.queues import events as e
from aegis.queues.lines import Lines, Unsynced
from aegis.queues.state import Queue, QueueState
from aegis.queues.store import Known
from aegis.queues.tasks import (
    MAX_IDLE_STARTS,
    MAX_RESULT_CHARS,
    End,
    Task,
    earlier_workers,
    lost_blocker,
    pause_of,
    worker_handle,
)
from aegis.queues.views import MAX_ERROR_CHARS, moment_text
from aegis.queues.waiters import Waiters
from aegis.shown_text import shortened

STORE_AGAIN_S = 5.0
"""Seconds until lines that the disk refused are written again."""


class Queues:
    """All queues of a daemon."""

    def __init__(self) -> None:
        self.state = QueueState()
        self._lines = Lines()
        self._waiters = Waiters()
        self._out: list[e.Action] = []
        self._now = 0.0

    # Events.

    def handle(self, event: e.Event, now: float) -> list[e.Action]:
        """Return the actions that follow from ``event`` at ``now``, in seconds since 1970."""
        self._out, self._now = [], now
        try:
            self._take(event)
        except AegisError as error:
            caller = getattr(event, "caller", None)
            assert caller is not None, "only a client's event is refused"
            self._out.append(e.Fail(caller=caller, error=error))
        moment = self.state.alarms.next()
        if moment is not None:
            self._out.append(e.Wake(at=moment))
        return self._out

    def _take(self, event: e.Event) -> None:
        match event:
            case e.Recovering(queues=queues):
                self._recover(queues)
            case e.Tick():
                self._tick()
            case e.Synced(number=number):
                self._synced(self._lines.synced(number))
            case e.Refused():
                self._refused(event)
            case e.Settled(id=task_id) if (task := self.state.tasks.get(task_id)) is not None:
                self._change(task, ledger.notified_line(task))
            case e.Idle() | e.Began() | e.Done() | e.Lost() | e.Limited():
                self._of_worker(event)
            case e.Enqueuing() | e.GivingUp() | e.Cancelling() | e.Retrying() | e.Pausing():
                self._of_client(event)

    # Clients.

    def _of_client(
        self, event: e.Enqueuing | e.GivingUp | e.Cancelling | e.Retrying | e.Pausing
    ) -> None:
        match event:
            case e.Enqueuing():
                self._enqueue(event)
            case e.GivingUp(id=task_id, caller=caller):
                is_stored = task_id not in self.state.unsynced
                self._answer(task_id, self._waiters.leave(task_id, caller, at_once=is_stored))
            case e.Cancelling():
                self._cancel(event)
            case e.Retrying():
                self._retry(event)
            case e.Pausing():
                self._pause(event)

    def _enqueue(self, event: e.Enqueuing) -> None:
        request, sender = event.request, event.sender
        queue = self.state.queue(request.queue)
        known = self.state.tasks.of_key(queue.settings.name, sender, request.key)
        if known is not None:
            self._enqueued_before(known, event)
            return
        self.state.check(request, sender)
        task = enqueuing.new_task(event, queue.settings, queue.numbers + 1, moment_text(self._now))
        self.state.tasks.put(task)
        self.state.unsynced.add(task.id)
        queue.numbers += 1
        queue.enter(task)
        if isinstance(request, Delegate):
            self._waiters.add(task.id, event.caller)
        self._write(task, ledger.enqueued_line(task), [event.caller])

    def _enqueued_before(self, known: Known, event: e.Enqueuing) -> None:
        """Answer with the task that the sender has enqueued with this key before."""
        task = self.state.of_key(known, event.request)
        if task is None:
            value = Enqueued(task_id=known.id, queued_position=None)
            self._out.append(e.Return(caller=event.caller, value=value))
            return
        if isinstance(event.request, Delegate):
            if task.has_ended and task.id not in self.state.ending:
                self._answer(task.id, [event.caller])
            else:
                self._waiters.add(task.id, event.caller)
            return
        line = self._lines.find(task.id, "enqueued")
        if line is not None:
            line.callers.append(event.caller)
        else:
            self._answer_enqueued(task, [event.caller])

    def _cancel(self, event: e.Cancelling) -> None:
        task = self.state.task(event.id)
        if event.by is not None and name_key(task.sender) != name_key(f"agent:{event.by}"):
            raise Forbidden(
                f"task {task.id} was enqueued by {task.sender}, who may cancel it, as a person may"
            )
        if task.id in self.state.ending or task.has_ended:
            raise InvalidRequest(f"task {task.id} has ended already: it is {task.phase}")
        by = "human" if event.by is None else f"agent:{event.by}"
        self._end(task, "cancelled", error=f"it was cancelled by {by}", callers=[event.caller])

    def _retry(self, event: e.Retrying) -> None:
        task = self.state.task(event.id)
        queue = self.state.queue(task.queue)
        if task.phase not in ("failed", "cancelled") or not task.is_notified:
            raise enqueuing.not_ended_badly(self.state.info(task.id))
        for each in task.after:
            refusal = enqueuing.blocked_for_good(task.id, each, self.state.tasks)
            if refusal is not None:
                raise refusal
        queue.enter(task)
        self._change(task, ledger.retried_line(task), [event.caller])

    def _pause(self, event: e.Pausing) -> None:
        queue = self.state.queue(event.queue)
        if queue.problem:
            raise StorageError(queue.problem)
        line = ledger.paused_line(paused=event.paused)
        self._out += self._lines.write(Unsynced(queue.settings.name, line, None, [event.caller]))

    # Workers.

    def _of_worker(self, event: e.Idle | e.Began | e.Done | e.Lost | e.Limited) -> None:
        task = self.state.tasks.get(event.id)
        if task is None or task.worker != event.worker:
            return
        if task.has_ended or task.id in self.state.ending:
            if isinstance(event, e.Done) and task.phase != "completed":
                self._change(task, ledger.late_line(task, event.text[:MAX_RESULT_CHARS]))
            return
        if not task.is_placed:
            return
        match event:
            case e.Idle(reason=reason):
                self._idle(task, reason)
            case e.Began() if task.phase == "dispatched":
                self._begin(task)
            case e.Done(text=text):
                self.state.limited.pop(task.id, None)
                self._end(self._begun(task), "completed", result=text[:MAX_RESULT_CHARS])
            case e.Lost(reason=reason, text=text):
                self._lost(self._begun(task), reason, text)
            case e.Limited(until=until):
                self._limit(self._begun(task), until)

    def _begun(self, task: Task) -> Task:
        return self._begin(task) if task.phase == "dispatched" else task

    def _begin(self, task: Task) -> Task:
        task = self._change(task, ledger.started_line(task, moment_text(self._now)))
        self._limit_runtime(task)
        return task

    def _limit_runtime(self, task: Task) -> None:
        """Set the alarm of an attempt, which begins anew with each life of the daemon."""
        if task.max_runtime_s is not None:
            self.state.alarms.set(("runtime", task.id), self._now + task.max_runtime_s)

    def _idle(self, task: Task, reason: str) -> None:
        if task.phase == "running":
            self._lost(task, reason, "")
        elif task.idle_starts + 1 >= MAX_IDLE_STARTS:
            self._end(task, "failed", error=f"no agent could be started for it: {reason}")
        else:
            self._return(task, f"no agent could be started for it: {reason}", idle=True)

    def _lost(self, task: Task, reason: str, text: str) -> None:
        self.state.limited.pop(task.id, None)
        if task.attempt < task.max_attempts:
            self._return(task, reason, idle=False)
        else:
            self._end(task, "failed", error=reason, result=text[:MAX_RESULT_CHARS] or None)

    def _return(self, task: Task, reason: str, *, idle: bool) -> None:
        self.state.alarms.clear(("runtime", task.id))
        self.state.alarms.set(("pause", task.id), self._now + pause_of(task, idle=idle))
        line = ledger.returned_line(task, shortened(reason, MAX_ERROR_CHARS), idle=idle)
        self._change(task, line)

    def _limit(self, task: Task, until: float) -> None:
        self.state.park(task, until, self._now)
        self._changed(task.queue)

    # The end of a task.

    def _end(
        self,
        task: Task,
        end: End,
        *,
        result: str | None = None,
        error: str | None = None,
        callers: Iterable[int] = (),
    ) -> None:
        """Write the end of a task, unless another is being written."""
        if task.id in self.state.ending:
            return
        self.state.ending.add(task.id)
        self.state.queues[task.queue].lineup.remove(task)
        for kind in ("runtime", "pause", "time", "continue"):
            self.state.alarms.clear((kind, task.id))
        error = None if error is None else shortened(error, MAX_ERROR_CHARS)
        now = moment_text(self._now)
        self._write(task, ledger.ended_line(task, end, now, result=result, error=error), callers)

    def _ended(self, task: Task) -> None:
        """Go on after the end of a task is durable."""
        self.state.ending.discard(task.id)
        self.state.limited.pop(task.id, None)
        queue = self.state.queues[task.queue]
        queue.places.discard(task.id)
        queue.leave(task)
        waiting = self._waiters.take(task.id)
        self._out.append(e.Settle(task=task, notify=task.callback, unless=tuple(waiting)))
        self._answer(task.id, waiting)
        for each in self.state.tasks.dependants(task.id):
            self._place(each)
        self._start_tasks(queue)

    # The order of tasks.

    def _place(self, task: Task) -> None:
        """Put a stored, queued task into the lineup, unless something must happen before."""
        queue = self.state.queues[task.queue]
        if any(task.id in each for each in (self.state.ending, self.state.unsynced, queue.places)):
            return  # something about it is not durable yet
        self._changed(task.queue)
        for each in task.after:
            outcome = self.state.tasks.outcome(each)
            if outcome in ("failed", "cancelled"):
                self._end(task, "failed", error=lost_blocker(each, outcome))
                return
        if self.state.blockers(task) or self.state.alarms.moment(("pause", task.id)) is not None:
            return
        if task.not_before is not None and task.not_before > self._now:
            self.state.alarms.set(("time", task.id), task.not_before)
            return
        if queue.lineup.position(task) is None:
            queue.lineup.add(task)
        self._start_tasks(queue)

    def _start_tasks(self, queue: Queue) -> None:
        self._changed(queue.settings.name)
        is_limited = self.state.alarms.moment(("limit", queue.settings.account)) is not None
        while queue.may_start and not is_limited:
            task = self.state.tasks[queue.lineup.first()]
            queue.lineup.remove(task)
            queue.places.add(task.id)
            self._change(
                task, ledger.dispatched_line(task, worker_handle(task, task.dispatches + 1))
            )

    def _tick(self) -> None:
        for kind, key in [*self.state.alarms.due(self._now)]:
            if kind == "store":
                self._out += self._lines.again(key)
            elif kind == "limit":
                for queue in self.state.queues.values():
                    self._start_tasks(queue)
            elif (task := self.state.tasks.get(key)) is not None:
                self._due(kind, task)

    def _due(self, kind: str, task: Task) -> None:
        match kind:
            case "pause" | "time" if task.phase == "queued":
                self._place(task)
            case "continue" if task.is_placed and self.state.limited.pop(task.id, None) is not None:
                self._out.append(e.GoOn(task=task))
                self._changed(task.queue)
            case "runtime" if task.phase == "running":
                self._lost(task, f"it ran longer than max_runtime_s={task.max_runtime_s:g}", "")

    # The ledgers.

    def _change(self, task: Task, line: ledger.Line, callers: Iterable[int] = ()) -> Task:
        """Apply a line to a task now, and write it; return the changed task."""
        after = ledger.changed(task, line)
        assert after is not None
        self.state.tasks.put(after)
        self._write(task, line, callers)
        self._changed(task.queue)
        return after

    def _write(self, task: Task, line: ledger.Line, callers: Iterable[int] = ()) -> None:
        self._out += self._lines.write(Unsynced(task.queue, line, task, [*callers]))

    def _synced(self, line: Unsynced) -> None:
        if line.before is None:
            queue = self.state.queues[line.ledger]
            queue.paused = bool(line.fields["paused"])
            self._start_tasks(queue)
            info = self.state.queue_info(line.ledger)
            self._out += [e.Return(caller=each, value=info) for each in line.callers]
            return
        task = self.state.tasks.get(line.before.id)
        if task is not None:  # it has ended, and so many after it that it is not kept any more
            self._task_synced(line, task)

    def _task_synced(self, line: Unsynced, task: Task) -> None:
        queue = self.state.queues[task.queue]
        match line.kind:
            case "enqueued":
                self.state.unsynced.discard(task.id)
                self._place(task)
                self._answer_enqueued(task, line.callers)
                self._answer(task.id, self._waiters.stored(task.id))
            case "dispatched" if task.id not in self.state.ending:
                agent = queue.settings.agent
                self._out.append(e.Open(task=task, agent=agent, is_new=True))
            case "returned":
                queue.places.discard(task.id)
                self._out += [e.Stop(worker=each) for each in earlier_workers(task)[-1:]]
                self._place(task)
                self._start_tasks(queue)
            case "ended":
                after = ledger.changed(task, line.fields)
                assert after is not None
                if task.result is not None:  # a late one, whose line follows that of the end
                    after = attrs.evolve(after, result=task.result)
                self.state.tasks.put(after)
                self._ended(after)
                self._answer(after.id, line.callers)
            case "retried":
                self._place(task)
                self._answer(task.id, line.callers)

    def _answer(self, task_id: str, callers: Iterable[int]) -> None:
        self._out += [e.Return(caller=each, value=self.state.info(task_id)) for each in callers]

    def _answer_enqueued(self, task: Task, callers: Iterable[int]) -> None:
        position = self.state.queues[task.queue].lineup.position(task)
        not_before = None if task.not_before is None else local_text(task.not_before)
        value = Enqueued(task_id=task.id, queued_position=position, not_before=not_before)
        waiting = self._waiters.of(task.id)
        self._out += [e.Return(caller=each, value=value) for each in callers if each not in waiting]

    # A disk that refuses.

    def _refused(self, event: e.Refused) -> None:
        facts: list[Unsynced] = []
        for line in reversed(self._lines.refused(event.queue)):
            if self._undo(line):
                error = StorageError(event.sentence)
                self._out += [e.Fail(caller=each, error=error) for each in line.callers]
            else:
                facts.insert(0, line)
        if facts:
            self._lines.keep(facts)
            self.state.alarms.set(("store", event.queue), self._now + STORE_AGAIN_S)
        self._changed(event.queue)

    def _undo(self, line: Unsynced) -> bool:
        """Undo what depends on a line; False for a fact of a worker, to be written all the same."""
        task = line.before
        if task is None:
            return True
        queue = self.state.queues[task.queue]
        match line.kind:
            case "enqueued":
                self.state.unsynced.discard(task.id)
                self.state.tasks.drop(task.id)
                self._waiters.take(task.id)
                queue.leave(task)
            case "dispatched":
                queue.places.discard(task.id)
                self.state.tasks.put(task)
                self.state.alarms.set(("pause", task.id), self._now + STORE_AGAIN_S)
            case "retried":
                self.state.tasks.put(task)
                queue.leave(task)
            case "ended" if line.callers:
                self.state.ending.discard(task.id)
                if task.phase == "queued":
                    self._place(task)
            case _:
                return False
        return True

    # Recovery.

    def _recover(self, loaded: Sequence[e.Loaded]) -> None:
        names = self.state.load(loaded)
        # Those that have a place come first: no other may take it.
        for task in sorted(self.state.tasks, key=lambda each: not each.is_placed):
            queue = self.state.queues[task.queue]
            if task.queue not in names:  # it was read before, and may wait for one of these
                if task.phase == "queued":
                    self._place(task)
                continue
            if not task.is_notified:
                self._out += [e.Stop(worker=each) for each in earlier_workers(task)]  # maybe open
            if task.is_placed:
                queue.places.add(task.id)
                self._limit_runtime(task)
                self._out.append(e.Open(task=task, agent=queue.settings.agent, is_new=False))
            elif task.phase == "queued":
                self._place(task)
            elif not task.is_notified:
                self._out.append(e.Settle(task=task, notify=task.callback))

    def _changed(self, queue: str) -> None:
        changed = e.Changed(queue=queue)
        if changed not in self._out:
            self._out.append(changed)
