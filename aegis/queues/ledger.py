"""The lines of a queue's ledger, and the tasks that they result in. Pure.

    {"kind": "enqueued", "task": {…}}
    {"kind": "dispatched", "id": …, "worker": …}
    {"kind": "started", "id": …, "at": …}
    {"kind": "returned", "id": …, "reason": …, "idle": true|false}
    {"kind": "ended", "id": …, "end": "completed"|…, "result": …, "error": …, "at": …}
    {"kind": "late", "id": …, "result": …}
    {"kind": "notified", "id": …}
    {"kind": "retried", "id": …, "task": {…}}
    {"kind": "paused", "paused": true|false}

Lines of other kinds, of a later version, are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from actors.codec import structure, unstructure
from actors.errors import CodecError
from aegis.queues.store import TaskStore
from aegis.queues.tasks import End, Task

Line = dict[str, object]

GIVEN = tuple(each.name for each in attrs.fields(Task) if each.default is attrs.NOTHING)
"""The fields of a task that its sender and its queue have given."""


def enqueued_line(task: Task) -> Line:
    """Return the line of a new task: its fields without those that a new task has anyway."""
    given = {name: getattr(task, name) for name in GIVEN}
    return {"kind": "enqueued", "task": {**given, "after": [*task.after]}}


def dispatched_line(task: Task, worker: str) -> Line:
    """Return the line that a session with the handle ``worker`` will be opened for a task."""
    return {"kind": "dispatched", "id": task.id, "worker": worker}


def started_line(task: Task, now: str) -> Line:
    """Return the line that the worker's turn has been opened: the attempt counts."""
    return {"kind": "started", "id": task.id, "at": now}


def returned_line(task: Task, reason: str, *, idle: bool) -> Line:
    """Return the line that a task waits again; ``idle``: its worker did nothing."""
    return {"kind": "returned", "id": task.id, "reason": reason, "idle": idle}


def ended_line(task: Task, end: End, now: str, *, result: str | None, error: str | None) -> Line:
    """Return the line of a task's end."""
    fields = {"result": result, "error": error, "at": now}
    return {"kind": "ended", "id": task.id, "end": end, **fields}


def late_line(task: Task, result: str) -> Line:
    """Return the line that the worker of an ended task has completed it all the same."""
    return {"kind": "late", "id": task.id, "result": result}


def notified_line(task: Task) -> Line:
    """Return the line that the sender has been notified, and that the worker is closed."""
    return {"kind": "notified", "id": task.id}


def retried_line(task: Task) -> Line:
    """Return the line that a person has enqueued an ended task again, with the task until then.

    A reader of the ledger may have dropped it as an old one.
    """
    return {"kind": "retried", "id": task.id, "task": unstructure(task)}


def paused_line(*, paused: bool) -> Line:
    """Return the line that the queue is paused, or is not any more."""
    return {"kind": "paused", "paused": paused}


def changed(task: Task, line: Mapping[str, Any]) -> Task | None:
    """Return the task after ``line`` about it; None if the line says nothing about a task."""
    match line:
        case {"kind": "dispatched", "worker": str(worker)}:
            return attrs.evolve(
                task, phase="dispatched", worker=worker, dispatches=task.dispatches + 1, error=None
            )
        case {"kind": "started", "at": str(now)}:
            attempt = task.attempt + 1
            return attrs.evolve(task, phase="running", attempt=attempt, idle_starts=0, started=now)
        case {"kind": "returned", "reason": str(reason), "idle": bool(idle)}:
            idle_starts = task.idle_starts + 1 if idle else 0
            return attrs.evolve(task, phase="queued", error=reason, idle_starts=idle_starts)
        case {
            "kind": "ended",
            "end": ("completed" | "failed" | "cancelled") as end,
            "at": str(now),
        }:
            result, error = line.get("result"), line.get("error")
            return attrs.evolve(task, phase=end, ended=now, result=result, error=error)
        case {"kind": "late", "result": str(result)}:
            return attrs.evolve(task, result=result)
        case {"kind": "notified"}:
            return attrs.evolve(task, is_notified=True)
        case {"kind": "retried"}:
            return attrs.evolve(
                task,
                phase="queued",
                retries=task.retries + 1,
                max_attempts=task.attempt + task.attempts,
                idle_starts=0,
                ended=None,
                result=None,
                error=None,
                is_notified=False,
            )
    return None


class Fold:
    """The tasks of one queue that the lines so far result in; old ended ones are dropped.

    ``numbers`` tasks were enqueued.
    """

    def __init__(self) -> None:
        self.tasks = TaskStore()
        self.numbers = 0
        self.paused: bool | None = None
        """Whether a person has paused the queue; None if nobody has said."""
        self.skipped = 0

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line."""
        try:
            self._apply(line)
        except CodecError:
            self.skipped += 1

    def _apply(self, line: Mapping[str, Any]) -> None:
        match line:
            case {"kind": "enqueued", "task": fields}:
                task = structure(Task, fields)
                self.tasks.put(task)
                self.numbers = max(self.numbers, task.number)
            case {"kind": "paused", "paused": bool(paused)}:
                self.paused = paused
            case {"id": str(task_id)} if (known := self._task(task_id, line)) is not None:
                after = changed(known, line)
                if after is not None:
                    self.tasks.put(after)

    def _task(self, task_id: str, line: Mapping[str, Any]) -> Task | None:
        known = self.tasks.get(task_id)
        if known is None and line["kind"] == "retried" and "task" in line:
            return structure(Task, line["task"])
        return known
