"""New runs and new calls: the rules of a request, and its refusals. Pure."""

from __future__ import annotations

from aegis.errors import AegisError, InvalidRequest, Unavailable
from aegis.path_text import is_utf8
from aegis.protocol.workflows import RunWorkflow
from aegis.workflows.calls import MAX_CALLS
from aegis.workflows.events import Called, Starting
from aegis.workflows.records import Workflow

MAX_RUNNING = 16
"""Workflows that run at the same time: each is a process."""


MAX_LEDGER_BYTES = 64 * 1024 * 1024
"""The size of a ledger at which a workflow makes no further call."""


def refusal_of(request: RunWorkflow, running: int) -> AegisError | None:
    """Return why a workflow cannot be run; ``running`` others are."""
    if not is_utf8(request.key or ""):
        return InvalidRequest("the key is not valid Unicode; leave surrogates out")
    if running >= MAX_RUNNING:
        return Unavailable(
            f"{running} workflows run, which is the limit; run it again when one has ended, or "
            "cancel one with aegis_workflow_cancel"
        )
    return None


def other_arguments(request: RunWorkflow, known: Workflow) -> InvalidRequest:
    """Return the error for a key that belongs to another run."""
    return InvalidRequest(
        f"the key {request.key!r} belongs to workflow {known.id}, which has another name or other "
        "arguments; choose another key"
    )


def new_workflow(event: Starting, now: str) -> Workflow:
    """Return the workflow of a request that is not refused."""
    request = event.request
    return Workflow(
        id=event.id,
        name=request.name,
        file=event.file,
        kwargs=request.kwargs,
        sender=event.sender,
        callback=request.callback,
        key=request.key,
        started=now,
    )


def refusal_of_reopening(known: Workflow, *, is_live: bool, running: int) -> AegisError | None:
    """Return why a person cannot run a workflow again; ``is_live``: it is not settled."""
    if known.phase not in ("failed", "cancelled"):
        return InvalidRequest(
            f"workflow {known.id} is {known.phase}; only one that has failed or was cancelled can "
            "be continued"
        )
    if is_live:
        return Unavailable(f"workflow {known.id} is still being ended; try again")
    if running >= MAX_RUNNING:
        return Unavailable(f"{running} workflows run, which is the limit; try again later")
    return None


def refusal_of_call(calls: int, size: int) -> str | None:
    """Return why a workflow with so many calls, and a ledger of ``size`` bytes, makes no other."""
    if calls >= MAX_CALLS:
        return f"a workflow makes at most {MAX_CALLS} calls: start another one for the rest"
    if size >= MAX_LEDGER_BYTES:
        return (
            f"its journal has reached {MAX_LEDGER_BYTES // 2**20} MiB, the limit: keep large "
            "results in files"
        )
    return None


def session_of(workflow: Workflow, event: Called) -> str | None:
    """Return the session that a call spawns or writes to, or the group that it creates."""
    if event.name in ("spawn", "group"):
        return workflow.handle_of(event.position)
    handle = event.arguments.get("handle")
    return handle if event.name in ("send", "drain") and isinstance(handle, str) else None
