"""Tasks as clients see them, and the sentences of refusals. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aegis.clock import local_text, moment_text
from aegis.errors import InvalidRequest, NotFound
from aegis.journal.table import HEAD_CHARS
from aegis.names import did_you_mean
from aegis.protocol.history import HistoryEntry
from aegis.protocol.queues import TaskInfo, TaskStatus
from aegis.queues.tasks import Task
from aegis.shown_text import shortened

MAX_NAMED = 3
"""The tasks that are named of those for which a task waits."""

MAX_REASON_CHARS = 300


def task_info(
    task: Task,
    *,
    has_place: bool,
    position: int | None,
    waiting_for: list[str],
    result: str | None,
    limited_until: float | None,
    failed_with: list[str],
) -> TaskInfo:
    """Return a task as clients see it.

    A queued one that ``has_place`` is being dispatched; without a ``position`` it waits.
    """
    moments = [each for each in (task.not_before, task.next_try) if each is not None]
    not_before = local_text(max(moments)) if moments else None
    status: TaskStatus
    match task.phase:
        case "completed" | "failed" | "cancelled":
            status = task.phase
        case "queued" if not has_place:
            status = "waiting" if position is None else "pending"
        case _:
            status = "running" if limited_until is None else "limited"
    error = task.error
    if limited_until is not None:
        error = f"its agent has reached a usage limit, which ends at {moment_text(limited_until)}"
    return TaskInfo(
        task_id=task.id,
        queue=task.queue,
        status=status,
        queued_position=position,
        worker=task.worker,
        attempt=task.attempt,
        max_attempts=task.max_attempts,
        result=result,
        error=error,
        sender=task.sender,
        payload=task.payload.head,
        key=task.key,
        priority=task.priority,
        waiting_for=waiting_for,
        enqueued=task.enqueued,
        started=task.started,
        ended=task.ended,
        not_before=not_before,
        waits=_waits(task, waiting_for, not_before) if status == "waiting" else "",
        failed_with=failed_with,
    )


def _waits(task: Task, tasks: list[str], not_before: str | None) -> str:
    """Return what a task waits for, in words, with the reason of another try."""
    named = ", ".join(tasks[:MAX_NAMED])
    more = f" and {len(tasks) - MAX_NAMED} more" if len(tasks) > MAX_NAMED else ""
    parts = [f"for {named}{more}"] if tasks else []
    parts += [f"until {not_before}"] if not_before is not None else []
    why = f": {shortened(task.error, MAX_REASON_CHARS)}" if task.error and task.next_try else ""
    return f"{' and '.join(parts)}{why}"


def has_ended_badly(outcome: str) -> str:
    """Return the end of a task that has not completed, in words."""
    return "was cancelled" if outcome == "cancelled" else "has failed"


def lost_with(task_id: str) -> str:
    """Return the beginning of the reason why a task fails with another one."""
    return f"task {task_id}, which it waits for, "


def archived_info(task: Task) -> TaskInfo:
    """Return a task of the archive as clients see it."""
    return task_info(
        task,
        has_place=False,
        position=None,
        waiting_for=[],
        result=None if task.result is None else task.result.whole,
        limited_until=None,
        failed_with=[],
    )


def history_entry(task: Task) -> HistoryEntry:
    """Return an ended task as a search shows it."""
    return HistoryEntry(
        kind="task",
        at=task.ended or task.enqueued,
        name=task.queue,
        id=task.id,
        text=task.payload.head,
        by=task.sender,
        outcome=task.phase,
        began=task.started,
    )


def archived_entry(line: Mapping[str, Any], by: object) -> HistoryEntry | None:
    """Return the task of a line of the archive; None if it is no ended task. All may see it."""
    del by
    match line:
        case {"id": str(task_id), "set": {"ended": str(at), "queue": str(queue)} as fields}:
            return HistoryEntry(
                kind="task",
                at=at,
                name=queue,
                id=task_id,
                text=str(fields.get("payload", ""))[:HEAD_CHARS],
                by=str(fields.get("sender", "")),
                outcome=str(fields.get("phase", "")),
                archived=True,
                began=fields.get("started"),
            )
    return None


def no_task(task_id: str, *, was_kept: bool = False) -> NotFound:
    """Return the error for a task that does not exist, or is not kept any more."""
    gone = "it has ended, and the archive has it no more"
    return NotFound(
        f"there is no task {task_id}: {gone if was_kept else 'look with aegis_queue_list'}"
    )


def is_archived(task_id: str, task: Task | None) -> InvalidRequest:
    """Return the error for a change of a task in the archive."""
    phase = "over" if task is None else task.phase
    return InvalidRequest(
        f"task {task_id} has ended already: it is {phase}, and in the archive; enqueue it anew"
    )


def unknown_queue(name: str, known: list[str]) -> NotFound:
    """Return the error for a queue that does not exist."""
    if not known:
        return NotFound(
            f"there is no queue {name!r}: none is configured; add the section queues to .aegis.yaml"
        )
    hint = did_you_mean(name, known, f"{', '.join(known)} exist")
    return NotFound(f"there is no queue {name!r}; {hint}")


def waits_in_vain(queue: str) -> InvalidRequest:
    """Return the error for a worker that would wait for the place that it takes itself."""
    return InvalidRequest(
        f"every place of queue {queue!r} is taken by tasks that would wait for this one; use "
        "aegis_enqueue, and end your turn"
    )


def other_payload(task_id: str, key: str | None) -> InvalidRequest:
    """Return the error for a key that was given with another payload before."""
    return InvalidRequest(
        f"the key {key!r} belongs to task {task_id}, which has another payload; choose another key"
    )
