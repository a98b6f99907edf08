"""Workflows of the project."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from aegis.client.nouns.noun import Noun
from aegis.client.stream_kinds import Gap, StatesKind
from aegis.client.streams import Stream
from aegis.protocol.workflow_streams import WorkflowItem, WorkflowsItem
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

WorkflowsValue = WorkflowsItem | WorkflowItem | Gap


class Workflows(Noun):
    """Workflows of the project."""

    async def run(
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
        return await self._call(
            RunWorkflow, name=name, kwargs=kwargs or {}, callback=callback, key=key
        )

    async def status(self, workflow_id: str) -> WorkflowInfo:
        """Return the status of a workflow, the end of its log, and its result."""
        return await self._call(GetWorkflow, workflow_id=workflow_id)

    async def steps(self, workflow_id: str, *, after: int = 0, limit: int = 100) -> WorkflowSteps:
        """List the steps of a workflow, those with a number greater than ``after``."""
        return await self._call(
            ListWorkflowSteps, workflow_id=workflow_id, after=after, limit=limit
        )

    async def cancel(self, workflow_id: str) -> WorkflowInfo:
        """Cancel a workflow that has not ended."""
        return await self._call(CancelWorkflow, workflow_id=workflow_id)

    async def list(self, *, limit: int = 50) -> WorkflowList:
        """List the workflows that can be run, and those that run or have ended."""
        return await self._call(ListWorkflows, limit=limit)

    async def resume(self, workflow_id: str) -> WorkflowInfo:
        """Continue a failed or cancelled workflow; what had succeeded is not done again."""
        return await self._call(ResumeWorkflow, workflow_id=workflow_id)

    async def retry(self, workflow_id: str) -> WorkflowInfo:
        """Run a failed or cancelled workflow again from its beginning."""
        return await self._call(RetryWorkflow, workflow_id=workflow_id)

    async def trust(self) -> TrustedPlugins:
        """Trust the plugin files as they are now."""
        return await self._call(TrustPlugins)

    def follow(self) -> AbstractAsyncContextManager[Stream[WorkflowsValue]]:
        """Open the stream of workflows, with ``async with``: all that run, then changes."""
        session = self._session
        kind = StatesKind[WorkflowsValue](session.handle, "workflows", WorkflowsItem, WorkflowItem)
        return session.watch(Stream(session, kind))
