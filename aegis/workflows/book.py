"""``Book``: the changes of workflows, the lines that make them durable, and the actions. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import attrs

from aegis.clock import utc_text
from aegis.journal.ledger import Append
from aegis.workflows import events as e
from aegis.workflows import ledger
from aegis.workflows.calls import Outcome, is_cancelled
from aegis.workflows.ledger import Line
from aegis.workflows.records import Call
from aegis.workflows.store import Live, WorkflowStore

AGAIN_S = 5.0
"""Seconds until what the disk refused is written again."""


@attrs.define
class WrittenLine:
    """A line of the workflow ``id`` that is not synced, and the callers that wait for it."""

    id: str
    fields: Line
    callers: list[int]


class Book:
    """The lines of all workflows of ``store``; ``out`` are the actions of the current event.

    ``now`` is its moment, in seconds since 1970.
    """

    def __init__(self, store: WorkflowStore) -> None:
        self.store = store
        self.out: list[e.Action] = []
        self.now = 0.0
        self._numbers = 0
        self._lines: dict[int, WrittenLine] = {}
        self._refused: dict[str, list[WrittenLine]] = {}
        self._due: list[tuple[float, str]] = []

    def begin(self, now: float) -> None:
        """Begin an event."""
        self.out, self.now = [], now

    @property
    def moment(self) -> str:
        """The moment of the event as text."""
        return utc_text(datetime.fromtimestamp(self.now, UTC))

    # Changes.

    def change(self, live: Live, line: Line, callers: list[int] | None = None) -> None:
        """Apply a line to a workflow now, and write it."""
        self.apply(live, line)
        self.write(live, line, callers)

    def apply(self, live: Live, line: Line) -> None:
        """Apply a line to a workflow."""
        live.workflow = ledger.changed(live.workflow, line)
        match line:
            case {"kind": "begun" | "ended", "position": str(position)}:
                after = ledger.call_changed(live.calls.get(position), line)
                assert after is not None
                live.calls[position] = marked(after)
            case {"kind": "resumed"}:
                calls = ledger.resumed_calls(live.calls).items()
                live.calls = {each: marked(call) for each, call in calls}
            case {"kind": "retried"}:
                live.calls, live.size = {}, 0
        self.changed(live)

    def changed(self, live: Live) -> None:
        """Note that a workflow looks different to clients."""
        changed = e.Changed(id=live.workflow.id)
        if changed not in self.out:
            self.out.append(changed)

    # Lines.

    def write(self, live: Live, fields: Line, callers: list[int] | None = None) -> None:
        """Write a line, after those of its workflow that the disk refused."""
        live.unsynced += 1
        live.size += len(json.dumps(fields))
        line = WrittenLine(live.workflow.id, fields, callers or [])
        if live.workflow.id in self._refused:
            self._refused[live.workflow.id].append(line)
        else:
            self._number(line)

    def _number(self, line: WrittenLine) -> None:
        self._numbers += 1
        self._lines[self._numbers] = line
        self.out.append(e.Write(id=line.id, append=Append(number=self._numbers, line=line.fields)))

    def is_ending(self, live: Live, position: str) -> bool:
        """Return whether the outcome of a call is written, and not durable yet."""
        id_ = live.workflow.id
        lines = (*self._lines.values(), *self._refused.get(id_, ()))
        return any(
            (each.id, each.fields["kind"], each.fields.get("position")) == (id_, "ended", position)
            for each in lines
        )

    def synced(self, number: int) -> WrittenLine:
        """Return the line of this number, which is durable."""
        return self._lines.pop(number)

    def refused(self, id_: str) -> list[WrittenLine]:
        """Remove and return the lines of a workflow that are not durable."""
        numbers = [number for number, line in self._lines.items() if line.id == id_]
        return [self._lines.pop(number) for number in numbers]

    def keep(self, live: Live, lines: list[WrittenLine], why: str) -> None:
        """Write refused lines again later, before all others of their workflow."""
        live.problem = why
        self._refused.setdefault(live.workflow.id, [])[:0] = lines
        self.wake(AGAIN_S, f"lines {live.workflow.id}")
        self.changed(live)

    def write_again(self, live: Live) -> None:
        """Write the refused lines of a workflow again."""
        live.problem = ""
        for line in self._refused.pop(live.workflow.id, []):
            self._number(line)
        self.changed(live)

    # Time.

    def wake(self, seconds: float, what: str) -> None:
        """Have ``due`` return ``what``, a kind and the id of a workflow, after some seconds."""
        self._due.append((self.now + seconds, what))
        self.out.append(e.Wake(at=self.now + seconds))

    def due(self) -> list[tuple[str, str]]:
        """Return what is due: kinds, and ids of workflows."""
        due = [what.partition(" ") for at, what in self._due if at <= self.now]
        self._due = [each for each in self._due if each[0] > self.now]
        return [(kind, id_) for kind, _, id_ in due]

    def deliver(self, live: Live, position: str, outcome: Outcome) -> None:
        """Send the outcome of a call to the process."""
        self.out.append(e.Deliver(id=live.workflow.id, position=position, outcome=outcome))


def marked(call: Call) -> Call:
    """Return a call without its outcome, which only the ledger and its process have.

    That it was cancelled is kept: a late answer to it is refused.
    """
    is_kept = not call.outcome or is_cancelled(call.outcome)
    return call if is_kept else attrs.evolve(call, outcome={})
