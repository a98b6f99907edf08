"""Tasks and queues as clients see them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from aegis.clock import utc_text
from aegis.protocol.queues import TaskInfo, TaskStatus
from aegis.queues.tasks import Task

MAX_PAYLOAD_CHARS = 200
"""The part of a payload that is shown."""

MAX_ERROR_CHARS = 2_000


def moment_text(moment: float) -> str:
    """Return a moment, in seconds since 1970, as text."""
    return utc_text(datetime.fromtimestamp(moment, UTC))


def task_info(
    task: Task,
    *,
    position: int | None,
    waiting_for: list[str],
    limited_until: float | None,
) -> TaskInfo:
    """Return a task as clients see it. A queued one without a ``position`` waits."""
    error = task.error
    if limited_until is not None:
        error = f"its agent has reached a usage limit, which ends at {moment_text(limited_until)}"
    return TaskInfo(
        task_id=task.id,
        queue=task.queue,
        status=_status(task, position=position, is_limited=limited_until is not None),
        queued_position=position,
        worker=task.worker,
        attempt=task.attempt,
        max_attempts=task.max_attempts,
        result=task.result,
        error=error,
        sender=task.sender,
        payload=task.payload[:MAX_PAYLOAD_CHARS],
        key=task.key,
        priority=task.priority,
        waiting_for=waiting_for,
        enqueued=task.enqueued,
        started=task.started,
        ended=task.ended,
    )


def _status(task: Task, *, position: int | None, is_limited: bool) -> TaskStatus:
    match task.phase:
        case "queued":
            return "waiting" if position is None else "pending"
        case "dispatched" | "running":
            return "limited" if is_limited else "running"
        case ended:
            return ended
