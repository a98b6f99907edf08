"""``Task``: one task as a row of its queue's ledger, its steps, and the settings of the queue.

A step is a function from a task to the task after it. Those of a worker are facts: they are applied
again to what a refusing disk has left, so each looks at the task that it gets. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import attrs

from aegis.clock import moment_text
from aegis.journal.table import StoredText
from aegis.protocol.naming import name_key
from aegis.shown_text import shortened

Phase = Literal["queued", "dispatched", "running", "completed", "failed", "cancelled"]
End = Literal["completed", "failed", "cancelled"]

Order = tuple[int, tuple[int, ...], int, str]
"""Sorts tasks: the negative priority, the rank, the number and the id."""

ENDS = ("completed", "failed", "cancelled")

MAX_RESULT_CHARS = 50_000
"""The longest result: escaped as JSON it fits into a reply."""

MAX_ERROR_CHARS = 2_000

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
    ``retries`` counts how often a person enqueued it again. ``next_try`` is the moment, in seconds
    since 1970, before which it is not tried again. ``rank`` is its place among the tasks of its
    priority, compared number by number; None of one that was never moved: its ``number``.
    """

    tag: ClassVar[str] = "task"

    id: str
    queue: str
    number: int
    payload: StoredText = attrs.field(repr=False)
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
    next_try: float | None = None
    started: str | None = None
    ended: str | None = None
    result: StoredText | None = attrs.field(default=None, repr=False)
    error: str | None = None
    is_notified: bool = False
    rank: tuple[int, ...] | None = None

    @property
    def order(self) -> Order:
        """Its place in the order in which tasks begin."""
        return (-self.priority, self.rank or (self.number,), self.number, self.id)

    @property
    def has_ended(self) -> bool:
        """Whether it is completed, failed or cancelled."""
        return self.phase in ENDS

    @property
    def is_placed(self) -> bool:
        """Whether it takes one of the places of its queue."""
        return self.phase in ("dispatched", "running")

    @property
    def is_over(self) -> bool:
        """Whether it has ended, its worker is closed, and its sender was notified."""
        return self.has_ended and self.is_notified

    @property
    def end_id(self) -> str:
        """The id of the message about its end."""
        return f"task:{self.id}/end" + (f"/{self.retries}" if self.retries else "")

    def handle_of(self, dispatch: int) -> str:
        """Return the handle of the worker of a dispatch, counted from 1: never given before."""
        return f"{self.queue[:40]}-{self.number}" + (f"-{dispatch}" if dispatch > 1 else "")

    @property
    def earlier_workers(self) -> list[str]:
        """The handles of the workers that have no part in the task any more."""
        over = self.dispatches if self.phase == "queued" else self.dispatches - 1
        return [self.handle_of(each) for each in range(1, over + 1)]


@attrs.frozen(kw_only=True)
class Switch:
    """A person's word on whether the queue is paused."""

    tag: ClassVar[str] = "switch"

    id: str = "paused"
    paused: bool


@attrs.frozen(kw_only=True)
class Numbering:
    """The highest number of a task that was archived: numbers are never given again."""

    tag: ClassVar[str] = "numbering"

    id: str = "numbering"
    highest: int


TaskRow = Task | Switch | Numbering

KIND = "tasks"
"""The kind of the archived rows."""


def entries_of(task: Task) -> dict[str, dict[str, Any]]:
    """Return what stays known of a task that is archived, by name."""
    entries: dict[str, dict[str, Any]] = {id_name(task.id): {"id": task.id, "end": task.phase}}
    if task.key is not None:
        known = {"id": task.id, "digest": task.payload.digest}
        entries[key_name(task.queue, task.sender, task.key)] = known
    return entries


def id_name(task_id: str) -> str:
    """Return the name under which an archived task is known."""
    return f"task {task_id}"


def key_name(queue: str, sender: str, key: str) -> str:
    """Return the name under which the key of a sender is known."""
    return f"key {json.dumps([queue, name_key(sender), key])}"


# The steps of a task.


def dispatched(task: Task) -> Task:
    """A session will be opened for it."""
    dispatches = task.dispatches + 1
    worker = task.handle_of(dispatches)
    return attrs.evolve(
        task,
        phase="dispatched",
        worker=worker,
        dispatches=dispatches,
        next_try=None,
        error=None,
    )


def ended(task: Task, end: End, now: float, *, result: str | None, error: str | None) -> Task:
    """It has ended, unless it had before."""
    if task.has_ended:
        return task
    return attrs.evolve(
        task,
        phase=end,
        ended=moment_text(now),
        next_try=None,
        result=None if result is None else StoredText.of(result[:MAX_RESULT_CHARS]),
        error=None if error is None else shortened(error, MAX_ERROR_CHARS),
    )


def moved(task: Task, previous: Task | None, following: Task | None) -> Task:
    """It begins after one task and before another, which follow each other; None at an end.

    The priority changes only as far as the place needs. A rank ends with the number of its task, so
    no two are equal: there is always one between them.
    """
    priority = task.priority
    if previous is not None:
        priority = min(priority, previous.priority)
    if following is not None:
        priority = max(priority, following.priority)
    low, high = (
        () if each is None or each.priority != priority else each.order[1]
        for each in (previous, following)
    )
    rank = task.rank
    if high and high[: len(low)] == low:  # also without a lower one
        rank = (*low, high[len(low)] - 1, task.number)
    elif low:
        same = next(
            (at for at, pair in enumerate(zip(low, high, strict=False)) if pair[0] != pair[1]), 0
        )
        # Behind the first number that differs all ranks are below the higher one.
        behind = low[same + 1 :]
        rank = (*low[: same + 1], behind[0] + 1, task.number) if behind else (*low, task.number)
    return attrs.evolve(task, priority=priority, rank=rank)


def retried(task: Task) -> Task:
    """A person has enqueued it again."""
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


def notified(task: Task, end_id: str) -> Task:
    """The sender has been notified of the end with this id, and the worker is closed."""
    return attrs.evolve(task, is_notified=True) if task.end_id == end_id else task


def began(task: Task, worker: str, now: float) -> Task:
    """The session ``worker`` has opened its first turn: the attempt counts."""
    if task.phase != "dispatched" or task.worker != worker:
        return task
    return attrs.evolve(
        task, phase="running", attempt=task.attempt + 1, idle_starts=0, started=moment_text(now)
    )


def done(task: Task, worker: str, text: str, now: float) -> Task:
    """The session ``worker`` has done it; too late for its end, the result is kept all the same."""
    if task.worker != worker:
        return task
    if task.has_ended:
        late = StoredText.of(text[:MAX_RESULT_CHARS])
        return task if task.phase == "completed" else attrs.evolve(task, result=late)
    if not task.is_placed:
        return task
    return ended(began(task, worker, now), "completed", now, result=text, error=None)


def lost(task: Task, worker: str, reason: str, text: str, now: float) -> Task:
    """The session ``worker`` began and will not do it; ``text`` is what it said last."""
    if not task.is_placed or task.worker != worker:
        return task
    task = began(task, worker, now)
    if task.attempt >= task.max_attempts:
        return ended(task, "failed", now, result=text or None, error=reason)
    return _returned(task, reason, now + TRY_AGAIN_S)


def idle(task: Task, worker: str, reason: str, now: float) -> Task:
    """The session ``worker`` did nothing, is closed, and will not begin."""
    if task.phase == "running":
        return lost(task, worker, reason, "", now)
    if task.phase != "dispatched" or task.worker != worker:
        return task
    reason = f"no agent could be started for it: {reason}"
    idle_starts = task.idle_starts + 1
    if idle_starts >= MAX_IDLE_STARTS:
        return ended(task, "failed", now, result=None, error=reason)
    again = _returned(task, reason, now + START_AGAIN_S * 2 ** (idle_starts - 1))
    return attrs.evolve(again, idle_starts=idle_starts)


def _returned(task: Task, reason: str, next_try: float) -> Task:
    error = shortened(reason, MAX_ERROR_CHARS)
    return attrs.evolve(task, phase="queued", idle_starts=0, next_try=next_try, error=error)


def lines_of_today(
    line: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Return a line that a version before tables has written as lines of today's form."""
    task: dict[str, Any]
    match line:
        case {"kind": "enqueued", "task": {"id": str(task_id)} as given}:
            return [{"id": task_id, "set": {"type": "task", **given}}]
        case {"kind": "paused", "paused": bool(paused)}:
            return [{"id": "paused", "set": {"type": "switch", "paused": paused}}]
        case {"kind": "retried", "id": str(task_id), "task": dict() as given}:
            task = {"type": "task", **given, **rows.get(task_id, {})}
        case {"id": str(task_id)} if task_id in rows:
            task = {**rows[task_id]}
        case _:
            return []
    changes = _old_changes(line, task)
    return [] if changes is None else [{"id": task_id, "set": changes}]


def _old_changes(line: Mapping[str, Any], task: dict[str, Any]) -> dict[str, Any] | None:
    match line:
        case {"kind": "dispatched", "worker": str(worker)}:
            dispatches = task.get("dispatches", 0) + 1
            return {
                "phase": "dispatched",
                "worker": worker,
                "dispatches": dispatches,
                "error": None,
            }
        case {"kind": "started", "at": str(now)}:
            attempt = task.get("attempt", 0) + 1
            return {"phase": "running", "attempt": attempt, "idle_starts": 0, "started": now}
        case {"kind": "returned", "reason": str(reason), "idle": bool(is_idle)}:
            idle_starts = task.get("idle_starts", 0) + 1 if is_idle else 0
            return {"phase": "queued", "error": reason, "idle_starts": idle_starts}
        case {"kind": "ended", "end": str(end), "at": str(now)} if end in ENDS:
            changes = {"phase": end, "ended": now, "error": line.get("error")}
            return {**changes, "result": line.get("result")}
        case {"kind": "late", "result": str(result)}:
            return {"result": result}
        case {"kind": "notified"}:
            return {"is_notified": True}
        case {"kind": "retried"}:
            return {
                **task,
                "phase": "queued",
                "retries": task.get("retries", 0) + 1,
                "max_attempts": task.get("attempt", 0) + task["attempts"],
                "idle_starts": 0,
                "ended": None,
                "result": None,
                "error": None,
                "is_notified": False,
            }
    return None
