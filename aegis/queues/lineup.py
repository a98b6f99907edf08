"""``Lineup``: the tasks of one queue that may begin, in their order. Pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from aegis.queues.tasks import Task

_Place = tuple[int, int, str]


class Lineup:
    """Tasks in the order of their priorities, the higher first, and of their numbers."""

    def __init__(self) -> None:
        self._places: list[_Place] = []

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        return (task_id for _, _, task_id in self._places)

    def add(self, task: Task) -> None:
        """Add a task that is not in the lineup."""
        insort(self._places, _place(task))

    def remove(self, task: Task) -> bool:
        """Remove a task; return whether it was there."""
        at = self.position(task)
        if at is not None:
            del self._places[at]
        return at is not None

    def position(self, task: Task) -> int | None:
        """Return the number of tasks before this one; None if it is not in the lineup."""
        place = _place(task)
        at = bisect_left(self._places, place)
        return at if at < len(self._places) and self._places[at] == place else None

    def first(self) -> str:
        """Return the id of the first task. Requires one."""
        return self._places[0][2]


def _place(task: Task) -> _Place:
    return (-task.priority, task.number, task.id)
