"""Workspaces: named directories, and commands without a terminal, one call after the other."""

from __future__ import annotations

from aegis.client.blocking.noun import BlockingNoun
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


class Workspaces(BlockingNoun):
    """Workspaces: named directories, and commands without a terminal."""

    def create(self, workspace: str, *, directory: str | None = None) -> WorkspaceInfo:
        """Name a directory, the root if none is given, as a workspace."""
        return self._call(CreateWorkspace, workspace=workspace, directory=directory)

    def list(self) -> WorkspaceList:
        """List the workspaces and their shells."""
        return self._call(ListWorkspaces)

    def delete(self, workspace: str, *, purge: bool = False) -> WorkspaceDeleted:
        """Delete a workspace and close its shells; its directory is left alone."""
        return self._call(DeleteWorkspace, workspace=workspace, purge=purge)

    def exec(self, workspace: str, command: str, *, timeout: float | None = None) -> ExecResult:
        """Run a command without a terminal, at most ``timeout`` seconds."""
        return self._call(ExecCommand, workspace=workspace, command=command, timeout=timeout)
