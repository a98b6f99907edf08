"""The log of clients about tasks of queues, beside ``Notebook``."""

from __future__ import annotations

import attrs

from tests.chaos.checking.agent_evidence import Entry
from tests.chaos.checking.task_evidence import Enqueued, TaskEvidence, TaskOrdered


@attrs.define(kw_only=True)
class TaskNotes:
    """The fields are those of ``TaskEvidence``."""

    enqueued: list[Enqueued] = attrs.field(factory=list)
    ordered: list[TaskOrdered] = attrs.field(factory=list)
    tasks: list[Entry] = attrs.field(factory=list)
    ledgers: dict[str, tuple[Entry, ...]] = attrs.field(factory=dict)
    stuck: list[str] = attrs.field(factory=list)

    def evidence(self) -> TaskEvidence:
        """Return the log as evidence."""
        return TaskEvidence(
            enqueued=tuple(self.enqueued),
            ordered=tuple(self.ordered),
            tasks=tuple(self.tasks),
            ledgers=self.ledgers,
            stuck=tuple(self.stuck),
        )
