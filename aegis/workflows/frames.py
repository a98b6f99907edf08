"""The frames between the daemon and the process of a workflow. Pure.

→ start, journal…, go           ← called, left, done, returned
→ proceed, answer
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aegis.workflows import events as e
from aegis.workflows.calls import MAX_VALUE_BYTES, failure
from aegis.workflows.ledger import Fold, Moment
from aegis.workflows.records import Workflow

Frame = dict[str, Any]

JOURNAL_BYTES = 1024 * 1024
"""About the size of one frame of the journal."""

MAX_SEEN = 100_000
MAX_POSITION_CHARS = 100
MAX_NAME_CHARS = 20
MAX_DIGEST_CHARS = 64
MAX_ABOUT_CHARS = 200
MAX_ERROR_CHARS = 2_000


def start_frame(
    workflow: Workflow,
    files: Mapping[str, Sequence[str]],
    config: Mapping[str, Any],
    host: str,
) -> Frame:
    """Return the first frame to a process; ``files`` are the trusted plugins."""
    return {
        "kind": "start",
        "workflow_id": workflow.id,
        "name": workflow.name,
        "plugin": workflow.file,
        "kwargs": workflow.kwargs,
        "files": dict(files),
        "config": dict(config),
        "host": host,
    }


def journal_frames(journal: Fold) -> Iterator[Frame]:
    """Yield the journal in frames of a limited size: calls, and with ``go`` their order."""
    batch: list[Frame] = []
    size = 0
    for call in journal.calls.values():
        batch.append(
            {
                "position": call.position,
                "name": call.name,
                "digest": call.digest,
                "about": call.about,
                "outcome": call.outcome,
            }
        )
        size += 200 + len(str(call.outcome))
        if size >= JOURNAL_BYTES:
            yield {"kind": "journal", "calls": batch}
            batch, size = [], 0
    if batch:
        yield {"kind": "journal", "calls": batch}
    order = {"seen": journal.seen, "unseen": journal.unseen}
    yield {"kind": "go", "time": journal.time, "at": journal.at, **order}


def event_of(id_: str, run: int, frame: Mapping[str, Any]) -> e.Event | None:
    """Return the event of a frame of a process; None for one that this program does not send."""
    named: dict[str, Any] = {"id": id_, "run": run}
    match frame:
        case {
            "kind": "called",
            "position": str(position),
            "name": str(name),
            "arguments": dict(arguments),
            "digest": str(digest),
            "about": str(about),
            "retry": bool(retry),
        } if _fits(position, MAX_POSITION_CHARS) and _fits(name, MAX_NAME_CHARS):
            return e.Called(
                position=position,
                name=name,
                arguments=arguments,
                digest=digest[:MAX_DIGEST_CHARS],
                about=about[:MAX_ABOUT_CHARS],
                retry=retry,
                moment=_moment(frame),
                **named,
            )
        case {"kind": "left", "position": str(position)}:
            return e.Left(position=position, moment=_moment(frame), **named)
        case {"kind": "done", "position": str(position), "outcome": dict(outcome)}:
            if set(outcome) not in ({"value"}, {"error"}):
                outcome = failure("CallFailed", "the process has sent no outcome")
            return e.Done(position=position, outcome=outcome, **named)
        case {"kind": "returned", "end": "completed", "result": str(result)}:
            if len(result) > MAX_VALUE_BYTES:
                return e.Returned(end="failed", error="its result is too large", **named)
            return e.Returned(end="completed", result=result, **named)
        case {"kind": "returned", "end": "failed", "error": str(error)}:
            return e.Returned(end="failed", error=error[:MAX_ERROR_CHARS], **named)
    return None


def _moment(frame: Mapping[str, Any]) -> Moment:
    """Return what the function had got when it sent a frame."""
    seen, time = frame.get("seen") or [], frame.get("time")
    return Moment(
        seen=tuple((str(position), at) for position, at in seen[:MAX_SEEN]),
        time=time if isinstance(time, int | float) else None,
    )


def _fits(text: str, limit: int) -> bool:
    return 0 < len(text) <= limit
