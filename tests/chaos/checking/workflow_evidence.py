"""The evidence about workflows: requests, what their processes did, and the end. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import attrs

from tests.chaos.checking.agent_evidence import WORK
from tests.chaos.checking.observations import UNKNOWN, Span

DECLINED = "declined"
"""The result of a question that a person does not answer."""

StepEventKind = Literal["begun", "passed", "refused"]


@attrs.frozen(kw_only=True)
class StepEvent:
    """Something that the process ``process`` of a workflow did with the step ``step``.

    ``begun``: it called the function of the step. ``passed``: it got the result of the step from
    the daemon. Of a call that the daemon carries out, ``step`` is the whole order; ``refused``: its
    result was an error.
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
class QuestionAnswered:
    """An answer of a person to the request ``id``: the question ``question`` of a workflow.

    ``text`` is None if the person declined. ``outcome`` is None without a reply, ``refused`` for an
    error.
    """

    id: str
    workflow: str
    question: str
    text: str | None
    outcome: str | None
    span: Span = UNKNOWN


@attrs.frozen(kw_only=True)
class WorkflowEvidence:
    """Everything about workflows. ``stuck`` names those that do not come to rest.

    ``living`` are the sessions of workflows whose programs live at the end.
    """

    runs: tuple[WorkflowRun, ...] = ()
    ordered: tuple[WorkflowOrdered, ...] = ()
    shown: tuple[WorkflowShown, ...] = ()
    steps: tuple[StepEvent, ...] = ()
    answered: tuple[QuestionAnswered, ...] = ()
    living: tuple[str, ...] = ()
    stuck: tuple[str, ...] = ()

    def owners(self, kind: str) -> dict[str, str | None]:
        """Return the workflow of each token in the orders of a kind; None if its id is unknown."""
        return {
            token: run.id
            for run in self.runs
            for order in run.orders
            if order.startswith(f"{kind}:")
            for token in WORK.findall(order)
        }

    def results(self, kind: str) -> Iterator[StepEvent]:
        """Yield the results of calls of a kind."""
        return (each for each in self.steps if each.step.startswith(f"{kind}:"))


@attrs.define(kw_only=True)
class WorkflowNotes:
    """The log about workflows; the fields are those of ``WorkflowEvidence``."""

    runs: list[WorkflowRun] = attrs.field(factory=list)
    ordered: list[WorkflowOrdered] = attrs.field(factory=list)
    shown: list[WorkflowShown] = attrs.field(factory=list)
    steps: list[StepEvent] = attrs.field(factory=list)
    answered: list[QuestionAnswered] = attrs.field(factory=list)
    living: list[str] = attrs.field(factory=list)
    stuck: list[str] = attrs.field(factory=list)

    def evidence(self) -> WorkflowEvidence:
        """Return the log as evidence."""
        return WorkflowEvidence(
            runs=tuple(self.runs),
            ordered=tuple(self.ordered),
            shown=tuple(self.shown),
            steps=tuple(self.steps),
            answered=tuple(self.answered),
            living=tuple(self.living),
            stuck=tuple(self.stuck),
        )
