"""The events of workflows, and the actions that follow from them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from aegis.errors import AegisError
from aegis.journal.ledger import Append
from aegis.protocol.requests import AnswerReceived
from aegis.protocol.workflows import RunWorkflow, WorkflowInfo, WorkflowStarted
from aegis.workflows.calls import Outcome
from aegis.workflows.ledger import NOTHING_SEEN, Moment
from aegis.workflows.records import Call, End, Workflow

# Events. A ``caller`` is a number under which the actor keeps a reply.


@attrs.frozen(kw_only=True)
class Loaded:
    """A workflow from its files; ``calls`` are empty for one whose meta says that it is settled.

    ``is_marked``: its meta says that it is settled. ``problem`` says why its ledger could not be
    read.
    """

    workflow: Workflow
    calls: Mapping[str, Call] = attrs.field(factory=dict, repr=False)
    is_marked: bool = False
    problem: str = ""


@attrs.frozen(kw_only=True)
class Recovering:
    """The files of all workflows were read."""

    workflows: Sequence[Loaded]


@attrs.frozen(kw_only=True)
class Starting:
    """A client runs a workflow, whose arguments fit; ``id`` is the id that it gets if it is new."""

    request: RunWorkflow
    id: str
    sender: str
    file: str
    caller: int


@attrs.frozen(kw_only=True)
class Cancelling:
    """A client cancels a workflow; ``by`` is its handle, None for the operator."""

    id: str
    by: str | None
    caller: int


@attrs.frozen(kw_only=True)
class Reopening:
    """A person continues a settled workflow, whose journal was read, or runs it from the start."""

    loaded: Loaded
    from_beginning: bool
    caller: int


@attrs.frozen(kw_only=True)
class MetaStored:
    """The meta of the workflow is durable."""

    id: str


@attrs.frozen(kw_only=True)
class MetaRefused:
    """The disk refused the meta of the workflow."""

    id: str
    sentence: str


@attrs.frozen(kw_only=True)
class Called:
    """The process of run ``run`` makes an engine call.

    ``retry``: it may be done again if it was interrupted. ``moment`` is what it had got before.
    """

    id: str
    run: int
    position: str
    name: str
    arguments: dict[str, Any] = attrs.field(repr=False)
    digest: str
    about: str
    retry: bool = False
    moment: Moment = NOTHING_SEEN


@attrs.frozen(kw_only=True)
class Left:
    """The workflow's function has cancelled a call, whose outcome it does not have."""

    id: str
    run: int
    position: str
    moment: Moment = NOTHING_SEEN


@attrs.frozen(kw_only=True)
class Done:
    """A call was carried out, by the daemon or by the process."""

    id: str
    run: int
    position: str
    outcome: Outcome = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Answered:
    """A person answered the question with the key ``call_id``; ``caller`` awaits its effect."""

    call_id: str
    outcome: Outcome = attrs.field(repr=False)
    caller: int


@attrs.frozen(kw_only=True)
class Returned:
    """The workflow's function has ended; ``result`` is JSON."""

    id: str
    run: int
    end: End
    result: str | None = attrs.field(default=None, repr=False)
    error: str | None = None


@attrs.frozen(kw_only=True)
class RunEnded:
    """The process of a run has ended, or could not be started.

    ``is_final``: another one would fail in the same way.
    """

    id: str
    run: int
    reason: str
    is_final: bool = False


@attrs.frozen(kw_only=True)
class Settled:
    """The sessions of an ended workflow are closed, and its starter has been notified."""

    id: str


@attrs.frozen(kw_only=True)
class Tick:
    """A moment has come that ``Wake`` named."""


@attrs.frozen(kw_only=True)
class Synced:
    """The line of this number is durable."""

    number: int


@attrs.frozen(kw_only=True)
class Refused:
    """The disk refused: no line of this workflow without ``Synced`` is in its ledger."""

    id: str
    sentence: str


RunEvent = Called | Left | Done | Returned | RunEnded
"""An event of a process."""

Event = (
    Recovering
    | Starting
    | Cancelling
    | Reopening
    | MetaStored
    | MetaRefused
    | Called
    | Left
    | Done
    | Answered
    | Returned
    | RunEnded
    | Settled
    | Tick
    | Synced
    | Refused
)


# Actions.


@attrs.frozen(kw_only=True)
class StoreMeta:
    """Write the meta of a workflow. Then ``MetaStored`` or ``MetaRefused``."""

    workflow: Workflow


@attrs.frozen(kw_only=True)
class Write:
    """Append a line to the ledger of a workflow."""

    id: str
    append: Append


@attrs.frozen(kw_only=True)
class Launch:
    """Start the process of the workflow's newest run with its journal."""

    workflow: Workflow


@attrs.frozen(kw_only=True)
class Perform:
    """Carry out a call, which has not acted unless it is repeatable. Then ``Done``.

    A question is answered by ``Answered`` instead. ``is_new``: no process has asked for it before.
    """

    workflow: Workflow
    position: str
    name: str
    arguments: dict[str, Any] = attrs.field(repr=False)
    is_new: bool


@attrs.frozen(kw_only=True)
class Abandon:
    """Stop carrying out a call, which the workflow has cancelled."""

    id: str
    position: str


@attrs.frozen(kw_only=True)
class Withdraw:
    """Withdraw the question of a call, whose cancellation is durable. Idempotent."""

    workflow: Workflow
    position: str


@attrs.frozen(kw_only=True)
class Proceed:
    """Let the process carry out the call itself. Then ``Done``."""

    id: str
    position: str


@attrs.frozen(kw_only=True)
class Deliver:
    """Send the outcome of a call to the process."""

    id: str
    position: str
    outcome: Outcome = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class EndRun:
    """End the process of a workflow, if there is one, and the calls that the daemon carries out."""

    id: str


@attrs.frozen(kw_only=True)
class Settle:
    """Close the sessions of an ended workflow; notify its starter too if it wants it."""

    workflow: Workflow


@attrs.frozen(kw_only=True)
class Release:
    """Close the ledger of a settled workflow."""

    id: str


@attrs.frozen(kw_only=True)
class Drop:
    """Remove the files of a workflow: of one that was not stored, or of the oldest settled one."""

    id: str


@attrs.frozen(kw_only=True)
class Return:
    """Answer the caller."""

    caller: int
    value: WorkflowStarted | WorkflowInfo | AnswerReceived


@attrs.frozen(kw_only=True)
class Fail:
    """Fail the caller's request."""

    caller: int
    error: AegisError


@attrs.frozen(kw_only=True)
class Changed:
    """A workflow has changed."""

    id: str


@attrs.frozen(kw_only=True)
class Wake:
    """Send ``Tick`` at the moment ``at``, in seconds since 1970."""

    at: float


Action = (
    StoreMeta
    | Write
    | Launch
    | Perform
    | Abandon
    | Withdraw
    | Proceed
    | Deliver
    | EndRun
    | Settle
    | Release
    | Drop
    | Return
    | Fail
    | Changed
    | Wake
)
