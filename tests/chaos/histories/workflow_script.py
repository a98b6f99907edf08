"""The steps of a script on workflows. Pure."""

from __future__ import annotations

from typing import Literal

import attrs

from tests.chaos.histories.script_steps import Step


@attrs.frozen(kw_only=True)
class WorkflowStep(Step):
    """A step on workflows."""


@attrs.frozen(kw_only=True)
class RunWorkflowStep(WorkflowStep):
    """Run a workflow with these orders. ``key`` numbers the keys of the client."""

    orders: tuple[str, ...]
    key: int | None = None
    callback: bool = True


@attrs.frozen(kw_only=True)
class OrderWorkflowStep(WorkflowStep):
    """Cancel a workflow, resume it or run it from its beginning; ``draw`` picks it."""

    draw: int
    what: Literal["cancel", "resume", "retry"]


@attrs.frozen(kw_only=True)
class ReadWorkflowStep(WorkflowStep):
    """Read a workflow, and the list of all; ``draw`` picks it."""

    draw: int
