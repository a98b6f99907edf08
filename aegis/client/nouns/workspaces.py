"""Workspaces: named directories, and commands without a terminal."""

from __future__ import annotations

from aegis.client.nouns.noun import Noun
from aegis.protocol.workspaces import (
    CreateWorkspace,
    DeleteWorkspace,
    ExecCommand,
    ExecResult,
    ListWorkspaces,
    WorkspaceDeleted,
    WorkspaceInfo,
    WorkspaceList,
)


class Workspaces(Noun):
    """Workspaces: named directories, and commands without a terminal."""

    async def create(self, workspace: str, *, directory: str | None = None) -> WorkspaceInfo:
        """Name a directory, the root if none is given, as a workspace."""
        return await self._call(CreateWorkspace, workspace=workspace, directory=directory)

    async def list(self) -> WorkspaceList:
        """List the workspaces and their shells."""
        return await self._call(ListWorkspaces)

    async def delete(self, workspace: str, *, purge: bool = False) -> WorkspaceDeleted:
        """Delete a workspace and close its shells; its directory is left alone."""
        return await self._call(DeleteWorkspace, workspace=workspace, purge=purge)

    async def exec(
        self, workspace: str, command: str, *, timeout: float | None = None
    ) -> ExecResult:
        """Run a command without a terminal, at most ``timeout`` seconds."""
        return await self._call(ExecCommand, workspace=workspace, command=command, timeout=timeout)
