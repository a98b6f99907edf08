"""``Lines``: the lines of all queues that are not durable yet, in the order of the events. Pure."""

from __future__ import annotations

import attrs

from aegis.journal.pending_lines import PendingLines
from aegis.queues.events import Write
from aegis.queues.ledger import Line
from aegis.queues.tasks import Task


@attrs.define
class Unsynced:
    """A line that is not synced: its queue, the task before it, and the callers that wait for it.

    ``before`` is None for a line about the queue itself.
    """

    ledger: str
    fields: Line
    before: Task | None
    callers: list[int]

    @property
    def kind(self) -> str:
        """The kind of the line."""
        return str(self.fields["kind"])


class Lines:
    """The lines of all queues as writes to their ledgers."""

    def __init__(self) -> None:
        self._pending: PendingLines[Unsynced] = PendingLines()

    def find(self, task_id: str, kind: str) -> Unsynced | None:
        """Return the line of this kind about a task, if it is not synced."""
        for line in self._pending:
            if line.kind == kind and line.before is not None and line.before.id == task_id:
                return line
        return None

    def write(self, line: Unsynced) -> list[Write]:
        """Return the writes of the queue's refused lines, and of this one."""
        return [Write(queue=queue, append=each) for queue, each in self._pending.write(line)]

    def again(self, queue: str) -> list[Write]:
        """Return the writes of the queue's refused lines."""
        return [Write(queue=queue, append=each) for _, each in self._pending.again(queue)]

    def synced(self, number: int) -> Unsynced:
        """Remove and return the line of this number."""
        return self._pending.synced(number)

    def refused(self, queue: str) -> list[Unsynced]:
        """Remove and return the lines of a queue that are being written."""
        return self._pending.refused(queue)

    def keep(self, lines: list[Unsynced]) -> None:
        """Keep refused lines of one queue, to be written again."""
        self._pending.keep(lines)
