"""``Waiters``: the callers that wait for the ends of tasks. Pure."""

from __future__ import annotations


class Waiters:
    """Callers, which are numbers, by the task that they wait for."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[int]] = {}
        self._impatient: dict[str, list[int]] = {}

    def add(self, task_id: str, caller: int) -> None:
        """Let a caller wait."""
        self._waiting.setdefault(task_id, []).append(caller)

    def of(self, task_id: str) -> list[int]:
        """Return the callers that wait for a task."""
        return self._waiting.get(task_id, [])

    def leave(self, task_id: str, caller: int, *, at_once: bool) -> list[int]:
        """Return the caller, if it waits, and let it wait no more.

        Not ``at_once``: it leaves when ``stored`` says that the task is.
        """
        if caller not in self.of(task_id):
            return []
        if not at_once:
            self._impatient.setdefault(task_id, []).append(caller)
            return []
        self._waiting[task_id].remove(caller)
        return [caller]

    def stored(self, task_id: str) -> list[int]:
        """Return the callers that have waited long enough before the task was stored."""
        impatient = self._impatient.pop(task_id, [])
        return [left for each in impatient for left in self.leave(task_id, each, at_once=True)]

    def take(self, task_id: str) -> list[int]:
        """Return the callers that wait for a task, and let them wait no more."""
        self._impatient.pop(task_id, None)
        return self._waiting.pop(task_id, [])
