"""``Workflow``: one run of a workflow as it is stored and shown. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import attrs

from aegis.protocol.workflows import WorkflowInfo
from aegis.workflows.calls import Outcome

End = Literal["completed", "failed", "cancelled"]
Phase = Literal["running", "completed", "failed", "cancelled"]

MAX_SHOWN_RESULT = 50_000
MAX_SHOWN_KWARGS = 500
MAX_SHOWN_CALLS = 20
MAX_ERROR_CHARS = 2_000


@attrs.frozen(kw_only=True)
class Workflow:
    """One run of the workflow ``name``. Times are UTC, ISO 8601 with ``Z``.

    ``file`` is the plugin's. ``attempt`` counts how often a person ran it from its beginning,
    ``resumes`` how often one continued it; ``runs`` counts its processes. ``spawned`` are the
    sessions that it opened, ``touched`` those that it wrote to, ``groups`` the groups that it
    created. ``result`` is JSON. ``is_settled``: its sessions are closed, and its starter has been
    notified.
    """

    id: str
    name: str
    file: str
    kwargs: dict[str, Any] = attrs.field(repr=False)
    sender: str
    callback: bool
    key: str | None
    started: str
    attempt: int = 1
    resumes: int = 0
    runs: int = 0
    phase: Phase = "running"
    checkpoint: str | None = None
    spawned: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    calls: int = 0
    result: str | None = attrs.field(default=None, repr=False)
    error: str | None = None
    ended: str | None = None
    is_settled: bool = False

    @property
    def has_ended(self) -> bool:
        """Whether it is completed, failed or cancelled."""
        return self.phase != "running"

    @property
    def starter(self) -> str | None:
        """The handle on whose behalf it acts; None for a person."""
        return self.sender.removeprefix("agent:") if self.sender.startswith("agent:") else None

    @property
    def end_id(self) -> str:
        """The id of the message about its end."""
        number = self.attempt + self.resumes
        return f"workflow:{self.id}/end" + (f"/{number}" if number > 1 else "")

    def call_id(self, position: str) -> str:
        """Return the id under which the call at a position acts: the same in each replay."""
        return f"workflow:{self.id}/{self.attempt}/{position}"

    def handle_of(self, position: str) -> str:
        """Return the handle of the session, or the name of the group, that only this call opens."""
        number = position.replace("/", "-")
        attempt = "" if self.attempt == 1 else f"r{self.attempt}-"
        return f"{self.name[:20]}-{self.id[-10:].lower()}-{attempt}{number}"[:64]


@attrs.frozen(kw_only=True)
class Call:
    """One engine call in the journal; ``starts`` counts how often it was begun.

    ``outcome`` is None until it has ended. ``may_repeat``: a person has decided that it is done
    again, although it had begun. ``at`` is the workflow's time when it began, in seconds.
    """

    position: str
    name: str
    digest: str
    about: str
    starts: int = 1
    outcome: Outcome | None = attrs.field(default=None, repr=False)
    may_repeat: bool = False
    at: float | None = None


Seen = tuple[str, float | None]
"""A call whose outcome the workflow's function got, and the workflow's time then.

Or a reading of the clock that moved it: ``#`` with the number of the reading.
"""


def info_of(workflow: Workflow, *, current: Sequence[str] = (), problem: str = "") -> WorkflowInfo:
    """Return a workflow as clients see it, without its log."""
    kwargs = json.dumps(workflow.kwargs, ensure_ascii=False)
    result = workflow.result
    return WorkflowInfo(
        workflow_id=workflow.id,
        name=workflow.name,
        status=workflow.phase,
        sender=workflow.sender,
        kwargs=kwargs[:MAX_SHOWN_KWARGS],
        key=workflow.key,
        calls=workflow.calls,
        current=[*current[:MAX_SHOWN_CALLS]],
        checkpoint=workflow.checkpoint,
        runs=workflow.runs,
        result=None if result is None else result[:MAX_SHOWN_RESULT],
        error=workflow.error,
        problem=problem,
        started=workflow.started,
        ended=workflow.ended,
    )
