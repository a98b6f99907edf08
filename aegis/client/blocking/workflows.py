"""Workflows, for the blocking client."""

from __future__ import annotations

from typing import Any

from aegis.client.blocking.noun import BlockingNoun
from aegis.protocol.workflows import (
    CancelWorkflow,
    GetWorkflow,
    ListWorkflows,
    ListWorkflowSteps,
    ResumeWorkflow,
    RetryWorkflow,
    RunWorkflow,
    TrustedPlugins,
    TrustPlugins,
    WorkflowInfo,
    WorkflowList,
    WorkflowStarted,
    WorkflowSteps,
)


class Workflows(BlockingNoun):
    """Workflows of the project."""

    def run(
        self,
        name: str,
        kwargs: dict[str, Any] | None = None,
        *,
        callback: bool = True,
        key: str | None = None,
    ) -> WorkflowStarted:
        """Run a workflow; durable on return. The same ``key`` returns the same run.

        With ``callback`` a message comes to the inbox when it has ended.
        """
        return self._call(RunWorkflow, name=name, kwargs=kwargs or {}, callback=callback, key=key)

    def status(self, workflow_id: str) -> WorkflowInfo:
        """Return the status of a workflow, the end of its log, and its result."""
        return self._call(GetWorkflow, workflow_id=workflow_id)

    def steps(self, workflow_id: str, *, after: int = 0, limit: int = 100) -> WorkflowSteps:
        """List the steps of a workflow, those with a number greater than ``after``."""
        return self._call(ListWorkflowSteps, workflow_id=workflow_id, after=after, limit=limit)

    def cancel(self, workflow_id: str) -> WorkflowInfo:
        """Cancel a workflow that has not ended."""
        return self._call(CancelWorkflow, workflow_id=workflow_id)

    def list(self, *, limit: int = 50) -> WorkflowList:
        """List the workflows that can be run, and those that run or have ended."""
        return self._call(ListWorkflows, limit=limit)

    def resume(self, workflow_id: str) -> WorkflowInfo:
        """Continue a failed or cancelled workflow; what had succeeded is not done again."""
        return self._call(ResumeWorkflow, workflow_id=workflow_id)

    def retry(self, workflow_id: str) -> WorkflowInfo:
        """Run a failed or cancelled workflow again from its beginning."""
        return self._call(RetryWorkflow, workflow_id=workflow_id)

    def trust(self) -> TrustedPlugins:
        """Trust the plugin files as they are now."""
        return self._call(TrustPlugins)
