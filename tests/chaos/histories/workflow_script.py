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

    @property
    def has_calls(self) -> bool:
        """Return whether the daemon carries out some of the orders."""
        return any(each.startswith(("task:", "ask:", "send:")) for each in self.orders)


@attrs.frozen(kw_only=True)
class OrderWorkflowStep(WorkflowStep):
    """Cancel a workflow, resume it or run it from its beginning; ``draw`` picks it."""

    draw: int
    what: Literal["cancel", "resume", "retry"]


@attrs.frozen(kw_only=True)
class AnswerWorkflowStep(WorkflowStep):
    """Answer an open question of a workflow, or decline; ``draw`` picks it.

    ``twice``: by two calls at once, with different answers.
    """

    draw: int
    declines: bool = False
    twice: bool = False


@attrs.frozen(kw_only=True)
class ReadWorkflowStep(WorkflowStep):
    """Read a workflow, and the list of all; ``draw`` picks it."""

    draw: int
