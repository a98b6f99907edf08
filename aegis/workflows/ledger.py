"""The lines of a workflow's ledger, and the journal that they result in. Pure.

    {"kind": "run", "number": …}
    {"kind": "begun", "position": …, "name": …, "digest": …, "about": …, "handle": …}
    {"kind": "ended", "position": …, "outcome": {"value": …} | {"error": …}}
    {"kind": "returned", "end": "completed"|…, "result": …, "error": …, "at": …}
    {"kind": "settled"}
    {"kind": "resumed"}
    {"kind": "retried"}

Lines of other kinds, of a later version, are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from aegis.workflows.calls import Outcome, is_failure
from aegis.workflows.records import Call, End, Workflow

Line = dict[str, object]


def run_line(number: int) -> Line:
    """Return the line that a process will be started."""
    return {"kind": "run", "number": number}


def begun_line(call: Call, handle: str | None) -> Line:
    """Return the line that a call will now act; ``handle`` is the session that it concerns."""
    line: Line = {
        "kind": "begun",
        "position": call.position,
        "name": call.name,
        "digest": call.digest,
        "about": call.about,
    }
    return line if handle is None else {**line, "handle": handle}


def ended_line(position: str, outcome: Outcome) -> Line:
    """Return the line of a call's end."""
    return {"kind": "ended", "position": position, "outcome": outcome}


def returned_line(end: End, now: str, *, result: str | None, error: str | None) -> Line:
    """Return the line of a workflow's end."""
    return {"kind": "returned", "end": end, "result": result, "error": error, "at": now}


def settled_line() -> Line:
    """Return the line that an ended workflow has nothing left to do."""
    return {"kind": "settled"}


def resumed_line() -> Line:
    """Return the line that a person continues a workflow: what had failed is done again."""
    return {"kind": "resumed"}


def retried_line() -> Line:
    """Return the line that a person runs a workflow from its beginning."""
    return {"kind": "retried"}


def changed(workflow: Workflow, line: Mapping[str, Any]) -> Workflow:
    """Return the workflow after ``line``."""
    match line:
        case {"kind": "run", "number": int(number)}:
            return attrs.evolve(workflow, runs=number)
        case {"kind": "begun", "name": str(name), "handle": str(handle)}:
            return _noted(workflow, name, handle)
        case {"kind": "ended", "outcome": {"value": {"checkpoint": str(name)}}}:
            return attrs.evolve(workflow, checkpoint=name, calls=workflow.calls + 1)
        case {"kind": "ended"}:
            return attrs.evolve(workflow, calls=workflow.calls + 1)
        case {
            "kind": "returned",
            "end": ("completed" | "failed" | "cancelled") as end,
            "at": str(now),
        }:
            result, error = line.get("result"), line.get("error")
            return attrs.evolve(workflow, phase=end, result=result, error=error, ended=now)
        case {"kind": "settled"}:
            return attrs.evolve(workflow, is_settled=True)
        case {"kind": "resumed"}:
            return attrs.evolve(_reopened(workflow), resumes=workflow.resumes + 1)
        case {"kind": "retried"}:
            return attrs.evolve(
                _reopened(workflow),
                attempt=workflow.attempt + 1,
                checkpoint=None,
                spawned=(),
                touched=(),
                groups=(),
                calls=0,
            )
    return workflow


def _noted(workflow: Workflow, name: str, handle: str) -> Workflow:
    """Return a workflow after a call about a session or a group."""
    if name == "spawn":
        return attrs.evolve(workflow, spawned=_with(workflow.spawned, handle))
    if name == "group":
        return attrs.evolve(workflow, groups=_with(workflow.groups, handle))
    return attrs.evolve(workflow, touched=_with(workflow.touched, handle))


def _with(handles: tuple[str, ...], handle: str) -> tuple[str, ...]:
    return handles if handle in handles else (*handles, handle)


def _reopened(workflow: Workflow) -> Workflow:
    return attrs.evolve(
        workflow, phase="running", result=None, error=None, ended=None, is_settled=False
    )


def call_changed(call: Call | None, line: Mapping[str, Any]) -> Call | None:
    """Return the call after a ``begun`` or ``ended`` line about its position."""
    match line:
        case {"kind": "begun", "position": str(position), "name": str(name)}:
            if call is None:
                digest, about = str(line.get("digest")), str(line.get("about"))
                return Call(position=position, name=name, digest=digest, about=about)
            return attrs.evolve(call, starts=call.starts + 1, may_repeat=False)
        case {"kind": "ended", "outcome": dict(outcome)} if call is not None:
            return attrs.evolve(call, outcome=outcome)
    return call


def resumed_call(call: Call) -> Call:
    """Return a call after a person has continued the workflow.

    What had failed or was interrupted may be done again; a session that was closed is opened again.
    """
    is_open = call.outcome is None or is_failure(call.outcome) or call.name == "spawn"
    return attrs.evolve(call, outcome=None, may_repeat=True) if is_open else call


class Fold:
    """The journal of a workflow that the lines so far result in."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.calls: dict[str, Call] = {}
        self.skipped = 0

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line."""
        self.workflow = changed(self.workflow, line)
        match line:
            case {"kind": "begun" | "ended", "position": str(position)}:
                call = call_changed(self.calls.get(position), line)
                if call is None:
                    self.skipped += 1
                else:
                    self.calls[position] = call
            case {"kind": "resumed"}:
                self.calls = {each: resumed_call(call) for each, call in self.calls.items()}
            case {"kind": "retried"}:
                self.calls = {}
