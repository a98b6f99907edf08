"""New tasks: the rules of a request, its refusals, and the task that it results in. Pure."""

from __future__ import annotations

from typing import Protocol

from aegis.clock import moment_of
from aegis.errors import AegisError, InvalidRequest, NotFound, StorageError, Unavailable
from aegis.names import nearest
from aegis.path_text import is_utf8
from aegis.protocol.queues import MAX_AFTER, Delegate, Enqueue, TaskInfo
from aegis.queues.events import Enqueuing
from aegis.queues.store import TaskStore
from aegis.queues.tasks import QueueSettings, Task, has_ended_badly

MAX_LIVE = 10_000
"""Tasks of one queue that have not ended."""

MAX_LIVE_CHARS = 64 * 1024 * 1024
"""The size of their payloads together."""


def unknown_queue(name: str, known: list[str]) -> NotFound:
    """Return the error for a queue that does not exist."""
    if not known:
        return NotFound(
            f"there is no queue {name!r}: none is configured; add the section queues to .aegis.yaml"
        )
    close = nearest(name, known)
    hint = (
        f"did you mean {' or '.join(map(repr, close))}?" if close else f"{', '.join(known)} exist"
    )
    return NotFound(f"there is no queue {name!r}; {hint}")


def waits_in_vain(queue: str) -> InvalidRequest:
    """Return the error for a worker that would wait for the place that it takes itself."""
    return InvalidRequest(
        f"every place of queue {queue!r} is taken by tasks that would wait for this one; use "
        "aegis_enqueue, and end your turn"
    )


def not_ended_badly(task: TaskInfo) -> AegisError:
    """Return the error for the retry of a task that cannot be retried, or not yet."""
    if task.status in ("failed", "cancelled"):
        return Unavailable(f"the session of task {task.task_id} is still being ended; try again")
    return InvalidRequest(
        f"task {task.task_id} is {task.status}; only one that has failed or was cancelled can be "
        "retried"
    )


def blocked_for_good(task_id: str, blocker: str, tasks: TaskStore) -> InvalidRequest | None:
    """Return the error for the retry of a task that waits for one that will not complete."""
    outcome = tasks.outcome(blocker)
    if outcome == "completed" or (outcome is None and tasks.is_known(blocker)):
        return None
    if tasks.get(blocker) is None:
        return InvalidRequest(
            f"task {task_id} waits for task {blocker}, which is not kept any more, so it can never "
            "begin: enqueue it anew without it"
        )
    assert outcome is not None
    has = has_ended_badly(outcome)
    return InvalidRequest(
        f"task {task_id} waits for task {blocker}, which {has}: retry that one before it"
    )


def other_payload(task_id: str, key: str | None) -> InvalidRequest:
    """Return the error for a key that was given with another payload before."""
    return InvalidRequest(
        f"the key {key!r} belongs to task {task_id}, which has another payload; choose another key"
    )


class Load(Protocol):
    """A queue, ``live`` tasks of which have not ended, with payloads of ``chars`` together."""

    settings: QueueSettings
    problem: str
    live: int
    chars: int


def refusal_of(request: Enqueue | Delegate, queue: Load, tasks: TaskStore) -> AegisError | None:
    """Return why a task cannot be enqueued."""
    name = queue.settings.name
    if queue.problem:
        return StorageError(queue.problem)
    if not queue.settings.agent:
        return InvalidRequest(f"queue {name!r} is not in .aegis.yaml any more")
    if not request.payload.strip():
        return InvalidRequest("the payload is empty; describe the task")
    texts = (request.payload, request.key or "", *_after(request))
    if not all(map(is_utf8, texts)):
        return InvalidRequest("a text of the task is not valid Unicode; send it without surrogates")
    if queue.live >= MAX_LIVE or queue.chars + len(request.payload) > MAX_LIVE_CHARS:
        return Unavailable(
            f"queue {name!r} has {queue.live} tasks that have not ended, with payloads of "
            f"{queue.chars} characters, which is the limit; enqueue again when some have"
        )
    return _refusal_of_order(request, tasks)


def _refusal_of_order(request: Enqueue | Delegate, tasks: TaskStore) -> AegisError | None:
    after = _after(request)
    if len(after) > MAX_AFTER:
        return InvalidRequest(f"a task waits for at most {MAX_AFTER} others, not {len(after)}")
    for each in after:
        if not tasks.is_known(each):
            return NotFound(f"there is no task {each[:40]!r}, which `after` names")
    if isinstance(request, Enqueue) and request.not_before is not None:
        try:
            moment_of(request.not_before)
        except ValueError as error:
            return InvalidRequest(f"not_before: {error}")
    return None


def new_task(event: Enqueuing, queue: QueueSettings, number: int, now: str) -> Task:
    """Return the task of a request that is not refused."""
    request = event.request
    only = request if isinstance(request, Enqueue) else None
    attempts = (only and only.max_attempts) or queue.max_attempts
    return Task(
        id=event.id,
        queue=queue.name,
        number=number,
        payload=request.payload,
        sender=event.sender,
        callback=only is None or only.callback,
        key=request.key,
        after=tuple(dict.fromkeys(_after(request))),
        priority=0 if only is None else only.priority,
        not_before=moment_of(only.not_before).timestamp() if only and only.not_before else None,
        attempts=attempts,
        max_attempts=attempts,
        max_runtime_s=(only and only.max_runtime_s) or queue.max_runtime_s,
        enqueued=now,
    )


def _after(request: Enqueue | Delegate) -> list[str]:
    return request.after if isinstance(request, Enqueue) else []
