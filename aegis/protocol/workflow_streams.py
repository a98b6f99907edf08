"""The stream of workflows: its arguments and items. Pure."""

from __future__ import annotations

from typing import Any

import attrs

from aegis.protocol.command import Command
from aegis.protocol.workflows import WorkflowInfo


@attrs.frozen(kw_only=True)
class StreamWorkflows(Command[Any]):
    """Workflows: all that are not settled first, then each that has changed.

    A slow client gets the newest state of a workflow and none between.
    """


@attrs.frozen(kw_only=True)
class WorkflowsItem:
    """All workflows that run, or have ended and are being cleaned up."""

    workflows: list[WorkflowInfo]


@attrs.frozen(kw_only=True)
class WorkflowItem:
    """A workflow as it is now, without its log."""

    workflow: WorkflowInfo
