"""The frames between the daemon and the process of a workflow. Pure.

→ start, journal…, go           ← called, left, done, returned
→ proceed, answer
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from aegis.workflows.calls import MAX_VALUE_BYTES, Outcome, failure
from aegis.workflows.runs import EngineCall, Order, Seen, StoredRun

Frame = dict[str, Any]

JOURNAL_BYTES = 1024 * 1024
"""About the size of one frame of the journal."""

MAX_SEEN = 100_000
MAX_POSITION_CHARS = 100
MAX_NAME_CHARS = 20
MAX_DIGEST_CHARS = 64
MAX_ABOUT_CHARS = 200
MAX_ERROR_CHARS = 2_000


@attrs.frozen(kw_only=True)
class Called:
    """An engine call that a process makes.

    ``retry``: it may be done again if it was interrupted. ``seen`` are the outcomes that the
    function got since the frame before, at ``time``, in the seconds of the workflow.
    """

    position: str
    name: str
    arguments: Mapping[str, Any] = attrs.field(repr=False)
    digest: str
    about: str
    retry: bool
    seen: tuple[Seen, ...]
    time: float | None


@attrs.frozen(kw_only=True)
class LeftCall:
    """An engine call that the function has cancelled, before it got its outcome."""

    position: str
    seen: tuple[Seen, ...]
    time: float | None


@attrs.frozen(kw_only=True)
class DoneCall:
    """A call that the process has carried out."""

    position: str
    outcome: Outcome = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Returned:
    """The end of the workflow's function; ``result`` is JSON, None with an ``error``."""

    result: str | None = attrs.field(default=None, repr=False)
    error: str | None = None


def start_frame(
    run: StoredRun,
    kwargs: Mapping[str, Any],
    files: Mapping[str, Sequence[str]],
    config: Mapping[str, Any],
    host: str,
) -> Frame:
    """Return the first frame to a process; ``files`` are the trusted plugins."""
    return {
        "kind": "start",
        "workflow_id": run.id,
        "name": run.name,
        "plugin": run.file,
        "kwargs": dict(kwargs),
        "files": dict(files),
        "config": dict(config),
        "host": host,
    }


def kept_call(call: EngineCall, outcome: Outcome | None) -> Frame:
    """Return a call of the journal, with its outcome if that holds."""
    return {
        "position": call.id,
        "name": call.name,
        "digest": call.digest,
        "about": call.about,
        "outcome": outcome,
    }


def go_frame(order: Order) -> Frame:
    """Return the frame behind the journal: the order of its calls."""
    seen = {"seen": order.seen, "unseen": order.unseen}
    return {"kind": "go", "time": order.time, "at": order.at, **seen}


def read_frame(frame: Mapping[str, Any]) -> Called | LeftCall | DoneCall | Returned | None:
    """Return what a process says in a frame; None for one that this program does not send."""
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
            seen, time = _moment(frame)
            return Called(
                position=position,
                name=name,
                arguments=arguments,
                digest=digest[:MAX_DIGEST_CHARS],
                about=about[:MAX_ABOUT_CHARS],
                retry=retry,
                seen=seen,
                time=time,
            )
        case {"kind": "left", "position": str(position)}:
            seen, time = _moment(frame)
            return LeftCall(position=position, seen=seen, time=time)
        case {"kind": "done", "position": str(position), "outcome": dict(outcome)}:
            if set(outcome) not in ({"value"}, {"error"}):
                outcome = failure("CallFailed", "the process has sent no outcome")
            return DoneCall(position=position, outcome=outcome)
        case {"kind": "returned", "end": "completed", "result": str(result)}:
            if len(result) > MAX_VALUE_BYTES:
                return Returned(error="its result is too large")
            return Returned(result=result)
        case {"kind": "returned", "end": "failed", "error": str(error)}:
            return Returned(error=error[:MAX_ERROR_CHARS])
    return None


def _moment(frame: Mapping[str, Any]) -> tuple[tuple[Seen, ...], float | None]:
    """Return what the function had got when it sent a frame, and its time."""
    seen, time = frame.get("seen") or [], frame.get("time")
    got = tuple((str(position), at) for position, at in seen[:MAX_SEEN])
    return got, time if isinstance(time, int | float) else None


def _fits(text: str, limit: int) -> bool:
    return 0 < len(text) <= limit
