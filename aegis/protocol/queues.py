"""Queues: tasks for fresh agent sessions, and the commands to enqueue, await and control them."""

from __future__ import annotations

from typing import Literal

import attrs

from aegis.protocol.command import (
    MAX_TIMEOUT_S,
    Command,
    at_most_chars,
    between,
    described,
    matching,
)
from aegis.protocol.inboxes import MAX_BODY_CHARS, MAX_KEY_CHARS
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE

TaskStatus = Literal["waiting", "pending", "running", "limited", "completed", "failed", "cancelled"]
"""The status of a task.

``waiting``: for other tasks, for a time, or for the next try. ``limited``: its agent has reached a
usage limit, and continues when that ends.
"""

TASK_PATTERN = r"[0-9A-HJKMNP-TV-Z]{26}"
TASK_RULE = "a task_id from aegis_enqueue: 26 digits and capital letters"

MAX_AFTER = 100
MAX_PRIORITY = 9
MAX_ATTEMPTS = 100
MAX_RUNTIME_S = 30 * 86_400.0
MAX_TIME_CHARS = 40
DELEGATE_S = 50.0

_QUEUE = described("A queue of aegis_queue_list.", pattern=f"^{NAME_PATTERN}$")
_TASK = described("The task's id.", pattern=f"^{TASK_PATTERN}$")


@attrs.frozen(kw_only=True)
class TaskInfo:
    """A task of the queue ``queue``.

    ``queued_position`` tasks begin before a pending one; null in any other status. ``worker`` is
    the handle of the session that runs or ran it, ``attempt`` the number of times that it began.
    ``result`` is the last message of a completed task's agent; ``error`` says why it failed, was
    cancelled, or waits. ``waiting_for`` are tasks that it waits for, ``not_before`` is the time
    before which it does not begin, ``waits`` says both in words. ``failed_with`` are tasks that
    failed because this one did. Times are UTC, ISO 8601 with ``Z``; ``not_before`` has the daemon's
    zone. ``payload`` is its beginning. A result of more than 50,000 characters is cut: the
    transcript of the worker has all of it.
    """

    task_id: str
    queue: str
    status: TaskStatus
    queued_position: int | None
    worker: str | None
    attempt: int
    max_attempts: int
    result: str | None
    error: str | None
    sender: str
    payload: str
    key: str | None
    priority: int
    waiting_for: list[str]
    enqueued: str
    started: str | None
    ended: str | None
    not_before: str | None = None
    waits: str = ""
    failed_with: list[str] = attrs.field(factory=list)


@attrs.frozen(kw_only=True)
class Enqueued:
    """A task that is stored; ``queued_position`` tasks begin before it, null while it waits.

    ``not_before`` is the time before which it does not begin, with the daemon's zone.
    """

    task_id: str
    queued_position: int | None
    not_before: str | None = None


@attrs.frozen(kw_only=True)
class QueueInfo:
    """A queue and the numbers of its tasks; ``agent`` is the profile of its workers.

    ``limited_until`` is the end of a usage limit of that agent. ``problem`` says why it starts no
    task, for example because it is not in the configuration any more.
    """

    queue: str
    agent: str
    max_parallel: int
    paused: bool
    waiting: int
    pending: int
    running: int
    ended: int
    limited_until: str | None = None
    problem: str = ""


@attrs.frozen(kw_only=True)
class QueueList:
    """Queues, in the order of their names."""

    result: list[QueueInfo]


@attrs.frozen(kw_only=True)
class TaskList:
    """Tasks: those that have not ended in the order in which they begin, then the newest ended.

    ``more``: others were left out because of the limit.
    """

    result: list[TaskInfo]
    more: bool = False


@attrs.frozen(kw_only=True)
class Enqueue(Command[Enqueued]):
    """Give a task to a queue, where a fresh agent session does it.

    Returns at once. You get a message with the result when it has ended.
    """

    queue: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_QUEUE)
    payload: str = attrs.field(
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described(
            "The whole task: the agent knows nothing of your conversation.",
            "The whole task: the agent does not know your conversation.",
        ),
    )
    callback: bool = attrs.field(
        default=True,
        metadata=described("False: no message when it has ended.", "false: no message."),
    )
    key: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_KEY_CHARS),
        metadata=described(
            "A name of your choice: calling again with it returns the same task.",
            "Calls with the same key return the same task.",
        ),
    )
    after: list[str] = attrs.field(
        factory=list,
        metadata=described(
            "Ids of tasks that must complete before; if one fails, so does this.",
            "Ids of tasks that must complete before.",
        ),
    )
    priority: int = attrs.field(
        default=0,
        validator=between(-MAX_PRIORITY, MAX_PRIORITY, "(a priority)"),
        metadata=described(
            "-9 to 9; higher ones begin first.",
            "Higher ones begin first.",
            minimum=-MAX_PRIORITY,
            maximum=MAX_PRIORITY,
        ),
    )
    not_before: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_TIME_CHARS),
        metadata=described(
            "A time before which it does not begin, such as 2026-05-22T14:00:00Z; without a zone: "
            "local time of the daemon's machine."
        ),
    )
    max_attempts: int | None = attrs.field(
        default=None,
        validator=between(1, MAX_ATTEMPTS, "attempts"),
        metadata=described(
            "How often it may begin, if it fails; default: the queue's.",
            "How often it may begin, if it fails.",
            minimum=1,
            maximum=MAX_ATTEMPTS,
        ),
    )
    max_runtime_s: float | None = attrs.field(
        default=None,
        validator=between(1, MAX_RUNTIME_S, "seconds"),
        metadata=described("Seconds after which an attempt is ended.", minimum=1),
    )


@attrs.frozen(kw_only=True)
class Delegate(Command[TaskInfo]):
    """Give a task to a queue and wait for its end.

    If it has not ended after timeout seconds, you get it as it is, and a message when it has ended.
    """

    queue: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_QUEUE)
    payload: str = attrs.field(
        validator=at_most_chars(MAX_BODY_CHARS),
        metadata=described("The whole task: the agent knows nothing of your conversation."),
    )
    timeout: float = attrs.field(
        default=DELEGATE_S,
        validator=between(0, MAX_TIMEOUT_S, "seconds"),
        metadata=described("Seconds to wait.", minimum=0, maximum=MAX_TIMEOUT_S),
    )
    key: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_KEY_CHARS),
        metadata=described("A name of your choice: calling again with it waits for the same task."),
    )


@attrs.frozen(kw_only=True)
class OnTask(Command[TaskInfo]):
    """A command on one task."""

    task_id: str = attrs.field(validator=matching(TASK_PATTERN, TASK_RULE), metadata=_TASK)


@attrs.frozen(kw_only=True)
class GetTask(OnTask):
    """Return the status of a task, and its result once it has completed."""


@attrs.frozen(kw_only=True)
class CancelTask(OnTask):
    """Cancel a task that has not ended; the session that runs it is ended."""


@attrs.frozen(kw_only=True)
class RetryTask(OnTask):
    """Enqueue a failed or cancelled task again, with its payload, place and conditions.

    failed_with in the reply are tasks that failed because it did: they are not enqueued again.
    """


@attrs.frozen(kw_only=True)
class MoveTask(Command[TaskInfo]):
    """Move a task that has not begun directly before another one, or to the first or last place.

    Both are in the queue. The task takes the priority of a neighbour if its own would keep it from
    that place. Who enqueued a task may move it, and a person any.
    """

    queue: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_QUEUE)
    task_id: str = attrs.field(validator=matching(TASK_PATTERN, TASK_RULE), metadata=_TASK)
    before: str | None = attrs.field(
        default=None,
        validator=matching(TASK_PATTERN, TASK_RULE),
        metadata=described("The task that is to begin next after it.", pattern=f"^{TASK_PATTERN}$"),
    )
    to: Literal["first", "last"] | None = attrs.field(
        default=None,
        metadata=described("In place of before: the first or the last place."),
    )


@attrs.frozen(kw_only=True)
class ListQueues(Command[QueueList]):
    """List the queues that the project has configured, with the numbers of their tasks."""


@attrs.frozen(kw_only=True)
class ListTasks(Command[TaskList]):
    """List the tasks of a queue, or of all queues."""

    queue: str | None = attrs.field(
        default=None, validator=matching(NAME_PATTERN, NAME_RULE), metadata=_QUEUE
    )
    limit: int = attrs.field(
        default=50,
        validator=between(1, 1000, "tasks"),
        metadata=described("Maximum number of tasks.", minimum=1, maximum=1000),
    )


@attrs.frozen(kw_only=True)
class OnQueue(Command[QueueInfo]):
    """A command on one queue."""

    queue: str = attrs.field(validator=matching(NAME_PATTERN, NAME_RULE), metadata=_QUEUE)


@attrs.frozen(kw_only=True)
class PauseQueue(OnQueue):
    """Start no further task of a queue, also after a restart; tasks that run go on."""


@attrs.frozen(kw_only=True)
class ResumeQueue(OnQueue):
    """Start the tasks of a paused queue again."""
