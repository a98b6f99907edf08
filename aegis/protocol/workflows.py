"""Workflows: the commands to run, watch and control them."""

from __future__ import annotations

import json
from typing import Any, Literal

import attrs

from aegis.path_text import is_utf8
from aegis.protocol.command import Command, at_most_chars, between, described, matching
from aegis.protocol.inboxes import MAX_KEY_CHARS
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE

WorkflowStatus = Literal["running", "completed", "failed", "cancelled"]

StepState = Literal["running", "completed", "failed", "cancelled", "interrupted"]
"""The state of a step.

``cancelled``: by the workflow itself, which did not wait for it any longer. ``interrupted``: the
run ended before it.
"""

WORKFLOW_PATTERN = r"[0-9A-HJKMNP-TV-Z]{26}"
WORKFLOW_RULE = "a workflow_id from aegis_run_workflow: 26 digits and capital letters"

MAX_KWARGS_BYTES = 64 * 1024
"""The arguments of a workflow as JSON."""

MAX_DEPTH = 32
"""The depth of lists and mappings in arguments."""

_WORKFLOW = described("The workflow's id.", pattern=f"^{WORKFLOW_PATTERN}$")


def _check_kwargs(_: Any, attribute: attrs.Attribute[Any], value: Any) -> None:
    if _depth(value) > MAX_DEPTH:
        raise ValueError(f"{attribute.name} must be nested at most {MAX_DEPTH} levels deep")
    if not is_utf8(json.dumps(value, ensure_ascii=False)):
        raise ValueError(f"{attribute.name} has a text that is not valid Unicode")
    size = len(json.dumps(value))
    if size > MAX_KWARGS_BYTES:
        raise ValueError(
            f"{attribute.name} must be at most {MAX_KWARGS_BYTES} bytes long as JSON, not {size}; "
            "pass the path of a file"
        )


def _depth(value: object) -> int:
    depth = 0
    level: list[Any] = [value]
    while level and depth <= MAX_DEPTH:
        depth += 1
        inner: list[Any] = []
        for each in level:
            inner += each.values() if isinstance(each, dict) else each
        level = [each for each in inner if isinstance(each, dict | list)]
    return depth


@attrs.frozen(kw_only=True)
class WorkflowInfo:
    """One run of the workflow ``name``, started by ``sender``.

    ``calls`` of its engine calls have ended; ``current`` are those that have not. ``checkpoint`` is
    the name of its last one. ``runs`` counts its processes: it is run again after a restart, with
    the calls that had ended answered from its journal. ``result`` is the returned value as JSON,
    cut at 50,000 characters; ``error`` says why it failed or was cancelled. ``problem`` says why it
    does not continue now. ``log`` is the end of its log, empty in lists. ``kwargs`` is JSON, its
    beginning. Times are UTC, ISO 8601 with ``Z``.
    """

    workflow_id: str
    name: str
    status: WorkflowStatus
    sender: str
    kwargs: str
    key: str | None
    calls: int
    current: list[str]
    checkpoint: str | None
    runs: int
    result: str | None
    error: str | None
    problem: str
    started: str
    ended: str | None
    log: str = ""


@attrs.frozen(kw_only=True)
class WorkflowStep:
    """A step of a run: one engine call of its function, the ``number``-th of this attempt.

    ``kind`` is the name of the call, such as ``spawn`` or ``bash``, ``label`` the call in words.
    ``position`` is its place in the function: "3/0/2" is call 2 of branch 0 of the parallel 3.
    ``handle`` is the session or the group that it opens or writes to, or the name of a checkpoint.
    ``result`` is what it returned, as JSON, and ``error`` why it failed; with ``is_cut`` only the
    beginning. Times are UTC, ISO 8601 with ``Z``; null also of steps of an older version.
    """

    number: int
    position: str
    kind: str
    label: str
    state: StepState
    handle: str | None
    started: str | None
    ended: str | None
    result: str | None
    error: str | None
    is_cut: bool = False


@attrs.frozen(kw_only=True)
class WorkflowSteps:
    """Steps of a run in the order in which they began, of ``total``; ``more``: others follow."""

    workflow_id: str
    result: list[WorkflowStep]
    total: int
    more: bool = False


@attrs.frozen(kw_only=True)
class WorkflowStarted:
    """A workflow that is stored, and runs."""

    workflow_id: str
    status: WorkflowStatus


@attrs.frozen(kw_only=True)
class ParameterInfo:
    """A parameter of a workflow; ``type`` is its annotation as text."""

    name: str
    type: str
    required: bool


@attrs.frozen(kw_only=True)
class WorkflowDefinition:
    """A workflow that can be run, from the plugin ``file``; ``doc`` describes it."""

    name: str
    file: str
    line: int
    doc: str
    parameters: list[ParameterInfo]


@attrs.frozen(kw_only=True)
class PluginProblem:
    """Why the workflows of the plugin ``file`` cannot be run."""

    file: str
    problem: str


@attrs.frozen(kw_only=True)
class WorkflowList:
    """``workflows`` that can be run, ``problems`` of plugins, and ``result``: runs, newest first.

    ``more``: others were left out because of the limit.
    """

    result: list[WorkflowInfo]
    workflows: list[WorkflowDefinition]
    problems: list[PluginProblem]
    more: bool = False


@attrs.frozen(kw_only=True)
class TrustedPlugins:
    """The plugin files that are trusted now."""

    files: list[str]


@attrs.frozen(kw_only=True)
class RunWorkflow(Command[WorkflowStarted]):
    """Run a workflow of the project: a program that coordinates agents, queues and commands.

    The reply comes at once. With callback you get a message with its result when it has ended. It
    continues after a restart of the daemon.
    """

    name: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described("A workflow of aegis_workflow_list.", pattern=f"^{NAME_PATTERN}$"),
    )
    kwargs: dict[str, Any] = attrs.field(
        factory=dict, validator=_check_kwargs, metadata=described("Its arguments, by name.")
    )
    callback: bool = attrs.field(
        default=True, metadata=described("False: no message when it has ended.")
    )
    key: str | None = attrs.field(
        default=None,
        validator=at_most_chars(MAX_KEY_CHARS),
        metadata=described("A name of your choice: calling again with it returns the same run."),
    )


@attrs.frozen(kw_only=True)
class OnWorkflow(Command[WorkflowInfo]):
    """A command on one run of a workflow."""

    workflow_id: str = attrs.field(
        validator=matching(WORKFLOW_PATTERN, WORKFLOW_RULE), metadata=_WORKFLOW
    )


@attrs.frozen(kw_only=True)
class GetWorkflow(OnWorkflow):
    """Return the status of a workflow, the end of its log, and its result once it has completed."""


@attrs.frozen(kw_only=True)
class ListWorkflowSteps(Command[WorkflowSteps]):
    """List the steps of a workflow, also of one that runs or has ended: what it has done, and when.

    Those of a workflow in the archive are not kept.
    """

    workflow_id: str = attrs.field(
        validator=matching(WORKFLOW_PATTERN, WORKFLOW_RULE), metadata=_WORKFLOW
    )
    after: int = attrs.field(
        default=0,
        validator=between(0, 2**53, "steps"),
        metadata=described("Only steps with a greater number.", minimum=0),
    )
    limit: int = attrs.field(
        default=100,
        validator=between(1, 500, "steps"),
        metadata=described("Maximum number of steps.", minimum=1, maximum=500),
    )


@attrs.frozen(kw_only=True)
class CancelWorkflow(OnWorkflow):
    """Cancel a workflow: its process and the sessions that it spawned are ended."""


@attrs.frozen(kw_only=True)
class ResumeWorkflow(OnWorkflow):
    """Continue a failed or cancelled workflow: the calls that had succeeded are not done again."""


@attrs.frozen(kw_only=True)
class RetryWorkflow(OnWorkflow):
    """Run a failed or cancelled workflow again from its beginning, with the same arguments."""


@attrs.frozen(kw_only=True)
class ListWorkflows(Command[WorkflowList]):
    """List the workflows that can be run, and those that run or have ended."""

    limit: int = attrs.field(
        default=50,
        validator=between(0, 1000, "workflows"),
        metadata=described("Maximum number of runs.", minimum=0, maximum=1000),
    )


@attrs.frozen(kw_only=True)
class TrustPlugins(Command[TrustedPlugins]):
    """Trust the plugin files as they are now, after you have changed them."""
