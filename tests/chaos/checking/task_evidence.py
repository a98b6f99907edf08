"""The evidence about tasks of queues: requests of clients, final tasks, and ledgers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from tests.chaos.checking.agent_evidence import Entry
from tests.chaos.checking.observations import Span


@attrs.frozen(kw_only=True)
class Enqueued:
    """A task that a client enqueued. ``id`` is None without an answer.

    ``token`` is the order in its payload. ``ended``: the call waited, and returned this end.
    ``after`` are the tasks that it names.
    """

    queue: str
    token: str
    sender: str
    span: Span
    id: str | None
    key: str | None = None
    callback: bool = True
    after: tuple[str, ...] = ()
    ended: str | None = None


@attrs.frozen(kw_only=True)
class TaskOrdered:
    """A cancellation or a retry of a task by a client; ``done`` as in ``Change``."""

    kind: Literal["cancel", "retry"]
    id: str
    span: Span
    done: bool | None


@attrs.frozen(kw_only=True)
class TaskEvidence:
    """Everything about tasks.

    ``tasks`` is the final list, ``ledgers`` the final lines by queue. ``stuck`` names tasks that
    did not end, and workers that were not closed, in the undisturbed last life.
    """

    enqueued: tuple[Enqueued, ...] = ()
    ordered: tuple[TaskOrdered, ...] = ()
    tasks: tuple[Entry, ...] = ()
    ledgers: Mapping[str, tuple[Entry, ...]] = attrs.field(factory=dict)
    stuck: tuple[str, ...] = ()

    @property
    def by_id(self) -> dict[str, Entry]:
        """The final tasks by their ids."""
        return {each["task_id"]: each for each in self.tasks}

    def lines(self, task: str, kind: str) -> list[Entry]:
        """Return the lines of this kind about a task."""
        return [
            line
            for ledger in self.ledgers.values()
            for line in ledger
            if line.get("kind") == kind and line.get("id") == task
        ]
