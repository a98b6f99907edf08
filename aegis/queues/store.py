"""``TaskStore``: the tasks of queues, of which the oldest ended ones are dropped. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b

import attrs

from aegis.protocol.naming import name_key
from aegis.queues.tasks import End, Task, lost_with

MAX_ENDED = 1_000
MAX_ENDED_CHARS = 16 * 1024 * 1024
"""Ended tasks that are kept in memory, and the size of their payloads and results."""

MAX_DROPPED = 100_000
"""Dropped tasks whose outcome and key are still known."""

Key = tuple[str, str, str]
"""Queue, sender and key of a task."""


@attrs.frozen
class Known:
    """The task that has a key, and the digest of its payload."""

    id: str
    digest: bytes


@attrs.frozen
class Dropped:
    """The rest of a dropped task: its end, and its key with the digest of its payload."""

    end: End
    key: Key | None = None
    digest: bytes = b""


def digest_of(payload: str) -> bytes:
    """Return a digest that is different for each payload."""
    return blake2b(payload.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def key_of(queue: str, sender: str, key: str) -> Key:
    """Return the key of a task of a sender, in any case of the sender's handle."""
    return queue, name_key(sender), key


class TaskStore:
    """Tasks by their ids and keys, with the tasks that wait for each."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._of_key: dict[Key, str] = {}
        self._dependants: dict[str, list[str]] = {}
        self._settled: dict[str, int] = {}
        self._settled_chars = 0
        self.dropped: dict[str, Dropped] = {}

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks.values())

    def __getitem__(self, task_id: str) -> Task:
        return self._tasks[task_id]

    def get(self, task_id: str) -> Task | None:
        """Return the task with this id; None if there is none, or none any more."""
        return self._tasks.get(task_id)

    def of_key(self, queue: str, sender: str, key: str | None) -> Known | None:
        """Return the task that the sender has given this key, also a dropped one."""
        found = None if key is None else self._of_key.get(key_of(queue, sender, key))
        if found is None:
            return None
        task = self._tasks.get(found)
        digest = self.dropped[found].digest if task is None else digest_of(task.payload)
        return Known(found, digest)

    def outcome(self, task_id: str) -> End | None:
        """Return the end of a task, also of a dropped one; None before its end."""
        task = self._tasks.get(task_id)
        if task is None:
            dropped = self.dropped.get(task_id)
            return None if dropped is None else dropped.end
        match task.phase:
            case "completed" | "failed" | "cancelled":
                return task.phase
        return None

    def is_known(self, task_id: str) -> bool:
        """Return whether there is or was a task with this id."""
        return task_id in self._tasks or task_id in self.dropped

    def dependants(self, task_id: str) -> list[Task]:
        """Return the queued tasks that name this one in ``after``."""
        named = (self._tasks.get(each) for each in self._dependants.get(task_id, ()))
        return [each for each in named if each is not None and each.phase == "queued"]

    def lost_with(self, task_id: str) -> Iterator[Task]:
        """Yield the tasks that failed because this one did, and those that failed with them."""
        for each in self._dependants.get(task_id, ()):
            task = self._tasks.get(each)
            reason = task.error if task is not None and task.phase == "failed" else None
            if task is not None and reason is not None and reason.startswith(lost_with(task_id)):
                yield task
                yield from self.lost_with(task.id)

    def put(self, task: Task) -> None:
        """Add or replace a task; drop the oldest settled ones beyond the limits."""
        if task.id not in self._tasks:
            for each in task.after:
                self._dependants.setdefault(each, []).append(task.id)
            if task.key is not None:
                self._of_key[key_of(task.queue, task.sender, task.key)] = task.id
        self._tasks[task.id] = task
        self.dropped.pop(task.id, None)  # a person may retry it
        self._unsettle(task.id)
        if task.has_ended and task.is_notified:
            self._settle(task)

    def drop(self, task_id: str) -> None:
        """Remove a task that was never stored, if it is there."""
        task = self._tasks.get(task_id)
        if task is not None:
            self._remove(task)
            if task.key is not None:
                self._of_key.pop(key_of(task.queue, task.sender, task.key), None)

    def remember(self, dropped: Mapping[str, Dropped]) -> None:
        """Add tasks that were dropped before, the oldest first."""
        for task_id, each in dropped.items():
            self.dropped[task_id] = each
            if each.key is not None:
                self._of_key[each.key] = task_id
        self._forget()

    def _remove(self, task: Task) -> None:
        del self._tasks[task.id]
        self._unsettle(task.id)
        self._dependants.pop(task.id, None)

    def _settle(self, task: Task) -> None:
        size = len(task.payload) + len(task.result or "")
        self._settled[task.id] = size
        self._settled_chars += size
        while len(self._settled) > MAX_ENDED or self._settled_chars > MAX_ENDED_CHARS:
            oldest = self._tasks[next(iter(self._settled))]
            end = self.outcome(oldest.id)
            assert end is not None
            self.dropped[oldest.id] = Dropped(end)
            if oldest.key is not None:
                key = key_of(oldest.queue, oldest.sender, oldest.key)
                self.dropped[oldest.id] = Dropped(end, key, digest_of(oldest.payload))
            self._remove(oldest)
            self._forget()

    def _unsettle(self, task_id: str) -> None:
        self._settled_chars -= self._settled.pop(task_id, 0)

    def _forget(self) -> None:
        while len(self.dropped) > MAX_DROPPED:
            oldest = self.dropped.pop(next(iter(self.dropped)))
            if oldest.key is not None:
                self._of_key.pop(oldest.key, None)
