"""Tasks and queues as clients see them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from aegis.clock import local_text, utc_text
from aegis.protocol.queues import TaskInfo, TaskStatus
from aegis.queues.tasks import Task

MAX_PAYLOAD_CHARS = 200
"""The part of a payload that is shown."""

MAX_ERROR_CHARS = 2_000

MAX_NAMED = 3
"""The tasks that are named of those for which a task waits."""


def moment_text(moment: float) -> str:
    """Return a moment, in seconds since 1970, as text."""
    return utc_text(datetime.fromtimestamp(moment, UTC))


def task_info(
    task: Task,
    *,
    position: int | None,
    waiting_for: list[str],
    next_try: float | None,
    limited_until: float | None,
    failed_with: list[str],
) -> TaskInfo:
    """Return a task as clients see it. A queued one without a ``position`` waits."""
    error = task.error
    moments = [each for each in (task.not_before, next_try) if each is not None]
    not_before = local_text(max(moments)) if moments else None
    status = _status(task, position=position, is_limited=limited_until is not None)
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
        not_before=not_before,
        waits=_waits(waiting_for, not_before) if status == "waiting" else "",
        failed_with=failed_with,
    )


def _waits(tasks: list[str], not_before: str | None) -> str:
    """Return what a task waits for, in words."""
    named = ", ".join(tasks[:MAX_NAMED])
    more = f" and {len(tasks) - MAX_NAMED} more" if len(tasks) > MAX_NAMED else ""
    parts = [f"for {named}{more}"] if tasks else []
    parts += [f"until {not_before}"] if not_before is not None else []
    return " and ".join(parts)


def _status(task: Task, *, position: int | None, is_limited: bool) -> TaskStatus:
    match task.phase:
        case "queued":
            return "waiting" if position is None else "pending"
        case "dispatched" | "running":
            return "limited" if is_limited else "running"
        case ended:
            return ended
