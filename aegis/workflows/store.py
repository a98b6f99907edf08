"""``WorkflowStore``: all workflows, of which the oldest settled ones are dropped. Pure."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from aegis.errors import NotFound
from aegis.protocol.workflows import WorkflowInfo
from aegis.workflows.calls import Outcome
from aegis.workflows.events import RunEvent
from aegis.workflows.records import Call, Workflow, info_of

MAX_SETTLED = 500
MAX_SETTLED_BYTES = 32 * 1024 * 1024
"""Settled workflows that are kept, and the size of their results and arguments."""


@attrs.define(kw_only=True)
class Live:
    """A workflow that is not settled.

    ``calls`` have no outcomes in memory, only a mark that they have ended: ``{}``. ``late`` are the
    outcomes of calls that ended while no process asked for them. ``asked`` are the calls that the
    process waits for, with their arguments. ``is_up``: its process may make calls. ``launching``:
    the line of its newest run is written, and ``reached`` once it is synced. ``ending``: the line
    of its end is written, not synced; ``held`` are the events of its process meanwhile.
    ``unsynced`` lines are not durable. ``deaths`` counts its processes in a row that ended without
    an outcome of any call. ``before`` is the settled workflow that a person runs again.
    """

    workflow: Workflow
    calls: dict[str, Call] = attrs.field(factory=dict)
    late: dict[str, Outcome] = attrs.field(factory=dict)
    asked: dict[str, dict[str, object]] = attrs.field(factory=dict)
    is_stored: bool = False
    is_up: bool = False
    ending: bool = False
    held: list[RunEvent] = attrs.field(factory=list)
    launching: bool = False
    reached: bool = False
    unsynced: int = 0
    size: int = 0
    deaths: int = 0
    problem: str = ""
    before: Workflow | None = None
    callers: list[int] = attrs.field(factory=list)

    @property
    def current(self) -> list[str]:
        """The calls that the process waits for."""
        return [self.calls[each].about for each in self.asked if each in self.calls]


@attrs.define
class WorkflowStore:
    """Workflows by their ids: ``live`` ones, and ``settled`` ones, the oldest first."""

    live: dict[str, Live] = attrs.field(factory=dict)
    settled: dict[str, Workflow] = attrs.field(factory=dict)
    _of_key: dict[tuple[str, str], str] = attrs.field(factory=dict)
    _settled_bytes: int = 0

    @property
    def running(self) -> int:
        """The number of workflows that have not ended."""
        return sum(not each.workflow.has_ended for each in self.live.values())

    def add(self, live: Live) -> None:
        """Add a workflow that is not settled."""
        workflow = live.workflow
        before = self.settled.pop(workflow.id, None)
        if before is not None:
            self._settled_bytes -= _size(before)
        self.live[workflow.id] = live
        self._note_key(workflow)

    def remove(self, id_: str) -> None:
        """Remove a workflow that was not stored."""
        workflow = self.live.pop(id_).workflow
        if workflow.key is not None:
            self._of_key.pop((workflow.sender, workflow.key), None)

    def settle(self, workflow: Workflow) -> list[str]:
        """Keep a workflow as settled; return the ids of the oldest ones, which are dropped."""
        self.live.pop(workflow.id, None)
        self.settled[workflow.id] = workflow
        self._settled_bytes += _size(workflow)
        self._note_key(workflow)
        dropped = []
        while len(self.settled) > MAX_SETTLED or self._settled_bytes > MAX_SETTLED_BYTES:
            oldest = self.settled.pop(next(iter(self.settled)))
            self._settled_bytes -= _size(oldest)
            if oldest.key is not None:
                self._of_key.pop((oldest.sender, oldest.key), None)
            dropped.append(oldest.id)
        return dropped

    def of_key(self, sender: str, key: str | None) -> Workflow | None:
        """Return the workflow to which the sender has given this key; None without a key."""
        found = None if key is None else self._of_key.get((sender, key))
        if found is None:
            return None
        live = self.live.get(found)
        return self.settled[found] if live is None else live.workflow

    def is_up(self, id_: str, run: int) -> bool:
        """Return whether the process of this run of a workflow may make calls."""
        live = self.live.get(id_)
        return live is not None and live.is_up and live.workflow.runs == run

    def has(self, id_: str) -> bool:
        """Return whether there is a stored workflow with this id."""
        return id_ in self.settled or (id_ in self.live and self.live[id_].is_stored)

    def workflow(self, id_: str) -> Workflow:
        """Return a stored workflow. Raises ``NotFound``."""
        live = self.live.get(id_)
        if live is not None and live.is_stored:
            return live.workflow
        if id_ in self.settled:
            return self.settled[id_]
        raise NotFound(f"there is no workflow {id_}; look with aegis_workflow_list")

    def call(self, call_id: str) -> tuple[Live, Call] | None:
        """Return the call with this id of a workflow that is not settled."""
        for live in self.live.values():
            for position, call in live.calls.items():
                if live.workflow.call_id(position) == call_id:
                    return live, call
        return None

    def info(self, id_: str) -> WorkflowInfo:
        """Return a workflow as clients see it, without its log. Raises ``NotFound``."""
        workflow, live = self.workflow(id_), self.live.get(id_)
        if live is None:
            return info_of(workflow)
        return info_of(workflow, current=live.current, problem=live.problem)

    def newest_first(self) -> Iterator[str]:
        """Yield the ids of stored workflows: those that are not settled, then the others."""
        yield from sorted(
            (each for each, live in self.live.items() if live.is_stored), reverse=True
        )
        yield from reversed(self.settled)

    def _note_key(self, workflow: Workflow) -> None:
        if workflow.key is not None:
            self._of_key[workflow.sender, workflow.key] = workflow.id


def _size(workflow: Workflow) -> int:
    return len(str(workflow.kwargs)) + len(workflow.result or "") + 1_000
