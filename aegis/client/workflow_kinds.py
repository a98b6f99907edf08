"""The kind of the stream of workflows. Pure."""

from __future__ import annotations

from typing import Any

from aegis.client.stream_kinds import Gap, Kind, structured
from aegis.protocol.workflow_streams import WorkflowItem, WorkflowsItem

WorkflowsValue = WorkflowsItem | WorkflowItem | Gap


class WorkflowsKind(Kind[WorkflowsValue]):
    """The states of workflows: all that run, then changes."""

    stream = "workflows"

    def item(self, document: dict[str, Any]) -> WorkflowsValue:
        """Return all workflows, or one."""
        if "workflows" in document:
            return structured(WorkflowsItem, document)
        return structured(WorkflowItem, document)
