"""``Task``: one task as it is stored, and the settings of its queue. Pure."""

from __future__ import annotations

from typing import Literal

import attrs

Phase = Literal["queued", "dispatched", "running", "completed", "failed", "cancelled"]
End = Literal["completed", "failed", "cancelled"]

ENDS = ("completed", "failed", "cancelled")

MAX_RESULT_CHARS = 50_000
"""The longest result: escaped as JSON it fits into a reply."""

MAX_IDLE_STARTS = 3
"""Sessions in a row that may do nothing, before the task fails."""

START_AGAIN_S = 5.0
"""Seconds until the next try after a session that did nothing; twice as long after the second."""

TRY_AGAIN_S = 10.0
"""Seconds until the next attempt of a task that failed."""


@attrs.frozen(kw_only=True)
class QueueSettings:
    """The settings of one queue; ``account`` is shared by queues with the same usage limits.

    ``agent`` is empty for a queue that is not configured any more: it starts no task.
    """

    name: str
    agent: str = ""
    account: str = ""
    max_parallel: int = 1
    max_attempts: int = 1
    max_runtime_s: float | None = None
    paused: bool = False


@attrs.frozen(kw_only=True)
class Task:
    """One task. ``number`` counts the tasks of its queue; times are UTC, ISO 8601 with ``Z``.

    ``dispatches`` counts the sessions that were opened for it, ``idle_starts`` those of them in a
    row that did nothing, and ``attempt`` those that began a turn; at most ``max_attempts``.
    ``retries`` counts how often a person enqueued it again.
    """

    id: str
    queue: str
    number: int
    payload: str = attrs.field(repr=False)
    sender: str
    callback: bool
    key: str | None
    after: tuple[str, ...]
    priority: int
    not_before: float | None
    attempts: int
    max_attempts: int
    max_runtime_s: float | None
    enqueued: str
    phase: Phase = "queued"
    worker: str | None = None
    dispatches: int = 0
    idle_starts: int = 0
    attempt: int = 0
    retries: int = 0
    started: str | None = None
    ended: str | None = None
    result: str | None = attrs.field(default=None, repr=False)
    error: str | None = None
    is_notified: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether it is completed, failed or cancelled."""
        return self.phase in ENDS

    @property
    def is_placed(self) -> bool:
        """Whether it takes one of the places of its queue."""
        return self.phase in ("dispatched", "running")

    @property
    def end_id(self) -> str:
        """The id of the message about its end."""
        return f"task:{self.id}/end" + (f"/{self.retries}" if self.retries else "")


def worker_handle(task: Task, dispatch: int) -> str:
    """Return the handle of the worker of a dispatch, counted from 1: never given before."""
    return f"{task.queue[:40]}-{task.number}" + (f"-{dispatch}" if dispatch > 1 else "")


def earlier_workers(task: Task) -> list[str]:
    """Return the handles of the workers that have no part in the task any more."""
    over = task.dispatches if task.phase == "queued" else task.dispatches - 1
    return [worker_handle(task, each) for each in range(1, over + 1)]


def pause_of(task: Task, *, idle: bool) -> float:
    """Return the seconds until the next try of a task; ``idle``: its last session did nothing."""
    return START_AGAIN_S * 2**task.idle_starts if idle else TRY_AGAIN_S


def has_ended_badly(outcome: str) -> str:
    """Return the end of a task that has not completed, in words."""
    return "was cancelled" if outcome == "cancelled" else "has failed"


def lost_blocker(task_id: str, outcome: str) -> str:
    """Return why a task fails with another one that it waits for."""
    return f"{lost_with(task_id)}{has_ended_badly(outcome)}"


def lost_with(task_id: str) -> str:
    """Return the beginning of the reason why a task fails with another one."""
    return f"task {task_id}, which it waits for, "
