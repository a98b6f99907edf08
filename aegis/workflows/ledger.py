"""The lines of a workflow's ledger, and the journal that they result in. Pure.

    {"kind": "run", "number": …}
    {"kind": "begun", "position": …, "name": …, "digest": …, "about": …, "handle": …, SEEN}
    {"kind": "ended", "position": …, "outcome": {"value": …} | {"error": …}, SEEN}
    {"kind": "seen", SEEN}
    {"kind": "returned", "end": "completed"|…, "result": …, "error": …, "at": …}
    {"kind": "settled"}
    {"kind": "resumed"}
    {"kind": "retried"}

SEEN is ``"seen": [[position, time], …], "time": …, "at": …``: the outcomes that the function got
since the line before, in their order, and the workflow's time now, which was ``at`` in seconds
since 1970. The order is an input of the function as the outcomes are: a replay delivers them in it.

Lines of other kinds, of a later version, are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from aegis.workflows.calls import Outcome, is_cancelled, is_failure
from aegis.workflows.records import Call, End, Seen, Workflow

Line = dict[str, object]


@attrs.frozen
class Moment:
    """The outcomes that the function of a workflow had got when it made a call.

    ``seen`` are the outcomes since the call before; ``time`` is the workflow's time, in seconds.
    """

    seen: tuple[Seen, ...] = ()
    time: float | None = None


NOTHING_SEEN = Moment()


def seen_fields(moment: Moment, now: float) -> Line:
    """Return the fields of a moment, for the line of a call."""
    seen: Line = {"seen": [[*each] for each in moment.seen]} if moment.seen else {}
    return seen if moment.time is None else {**seen, "time": moment.time, "at": round(now, 3)}


def seen_line(moment: Moment, now: float) -> Line:
    """Return the line of a moment at which no other line is written."""
    return {"kind": "seen", **seen_fields(moment, now)}


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
                at = line.get("time")
                return Call(position=position, name=name, digest=digest, about=about, at=at)
            return attrs.evolve(call, starts=call.starts + 1, may_repeat=False)
        case {"kind": "ended", "outcome": dict(outcome)} if call is not None:
            return attrs.evolve(call, outcome=outcome)
    return call


def resumed_calls(calls: Mapping[str, Call]) -> dict[str, Call]:
    """Return the calls after a person has continued the workflow.

    What had failed or was interrupted may be done again; a session that was closed is opened again.
    A call that the function cancelled stays so where the function continued behind it.
    """
    last: dict[str, int] = {}
    for position in calls:
        # "3/0/2" is call 2 of branch 0 of call 3: it is behind "3/0/1", and behind "2".
        parts = position.split("/")
        for end in range(1, len(parts) + 1, 2):
            branch = "/".join(parts[: end - 1])
            last[branch] = max(last.get(branch, 0), int(parts[end - 1]))
    return {each: _resumed(call, last) for each, call in calls.items()}


def _resumed(call: Call, last: Mapping[str, int]) -> Call:
    is_open = call.outcome is None or is_failure(call.outcome) or call.name == "spawn"
    if is_cancelled(call.outcome):
        parts = call.position.split("/")
        is_open = not any(
            last["/".join(parts[: end - 1])] > int(parts[end - 1])
            for end in range(1, len(parts) + 1, 2)
        )
    return attrs.evolve(call, outcome=None, may_repeat=True) if is_open else call


class Fold:
    """The journal of a workflow that the lines so far result in.

    ``seen`` are the outcomes that its function got, in their order. ``ended`` are the positions of
    ended calls, in the order of their ends. ``at`` is the moment of the newest ``time``, in seconds
    since 1970; None after a person has continued the workflow: its clock stood still until then.
    """

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self.calls: dict[str, Call] = {}
        self.seen: list[Seen] = []
        self.ended: dict[str, None] = {}
        self.time: float | None = None
        self.at: float | None = None
        self.skipped = 0

    @property
    def unseen(self) -> list[str]:
        """The ended calls whose outcomes nothing shows that the function got."""
        seen = {position for position, _ in self.seen}
        return [each for each in self.ended if each not in seen]

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply the next line."""
        self.workflow = changed(self.workflow, line)
        self._take_moment(line)
        match line:
            case {"kind": "begun" | "ended", "position": str(position)}:
                call = call_changed(self.calls.get(position), line)
                if call is None:
                    self.skipped += 1
                    return
                self.calls[position] = call
                if line["kind"] == "ended":
                    self.ended[position] = None
            case {"kind": "resumed"}:
                self.calls = resumed_calls(self.calls)
                kept = {each for each, call in self.calls.items() if call.outcome is not None}
                self.ended = {each: None for each in self.ended if each in kept}
                self.seen = [each for each in self.seen if each[0] in kept or each[0][0] == "#"]
                times = (*(at for _, at in self.seen), *(self.calls[each].at for each in kept))
                self.time, self.at = _latest(times), None
            case {"kind": "retried"}:
                self.calls, self.seen, self.ended = {}, [], {}
                self.time = self.at = None

    def _take_moment(self, line: Mapping[str, Any]) -> None:
        for position, time in line.get("seen", ()):
            self.seen.append((position, time))
        if line.get("time") is not None:
            self.time, self.at = line["time"], line.get("at")


def _latest(times: Iterable[float | None]) -> float | None:
    return max((each for each in times if each is not None), default=None)
