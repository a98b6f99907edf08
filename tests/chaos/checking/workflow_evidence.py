"""The evidence about workflows: requests, what their processes did, and the end. Pure."""

from __future__ import annotations

from typing import Literal

import attrs

from tests.chaos.checking.observations import UNKNOWN, Span

StepEventKind = Literal["begun", "passed"]


@attrs.frozen(kw_only=True)
class StepEvent:
    """Something that the process ``process`` of a workflow did with the step ``step``.

    ``begun``: it called the function of the step. ``passed``: it got the result of the step from
    the daemon.
    """

    kind: StepEventKind
    workflow: str
    step: str
    process: int
    result: str = ""


@attrs.frozen(kw_only=True)
class WorkflowRun:
    """A request to run a workflow; ``id`` is None without an answer."""

    orders: tuple[str, ...]
    sender: str
    id: str | None
    key: str | None = None
    callback: bool = True
    span: Span = UNKNOWN


@attrs.frozen(kw_only=True)
class WorkflowOrdered:
    """A request to cancel, to resume or to retry a workflow; ``done``: None if unknown."""

    kind: Literal["cancel", "resume", "retry"]
    id: str
    done: bool | None
    span: Span = UNKNOWN


@attrs.frozen(kw_only=True)
class WorkflowShown:
    """A workflow in an answer. ``is_last``: in the undisturbed last life."""

    id: str
    status: str
    result: str | None
    is_last: bool = False
    span: Span = UNKNOWN


@attrs.frozen(kw_only=True)
class WorkflowEvidence:
    """Everything about workflows. ``stuck`` names those that do not come to rest."""

    runs: tuple[WorkflowRun, ...] = ()
    ordered: tuple[WorkflowOrdered, ...] = ()
    shown: tuple[WorkflowShown, ...] = ()
    steps: tuple[StepEvent, ...] = ()
    stuck: tuple[str, ...] = ()


@attrs.define(kw_only=True)
class WorkflowNotes:
    """The log about workflows; the fields are those of ``WorkflowEvidence``."""

    runs: list[WorkflowRun] = attrs.field(factory=list)
    ordered: list[WorkflowOrdered] = attrs.field(factory=list)
    shown: list[WorkflowShown] = attrs.field(factory=list)
    steps: list[StepEvent] = attrs.field(factory=list)
    stuck: list[str] = attrs.field(factory=list)

    def evidence(self) -> WorkflowEvidence:
        """Return the log as evidence."""
        return WorkflowEvidence(
            runs=tuple(self.runs),
            ordered=tuple(self.ordered),
            shown=tuple(self.shown),
            steps=tuple(self.steps),
            stuck=tuple(self.stuck),
        )
