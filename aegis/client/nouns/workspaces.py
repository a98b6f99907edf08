"""Workspaces and their shells."""

from __future__ import annotations

from aegis.client.nouns.noun import Noun
from aegis.protocol.output import DEFAULT_OUTPUT_BYTES, OutputChunk
from aegis.protocol.terminals import Closed, Done
from aegis.protocol.workspaces import (
    CloseShell,
    CreateWorkspace,
    DeleteWorkspace,
    ExecCommand,
    ExecResult,
    ListWorkspaces,
    OpenShell,
    ReadShell,
    ShellInfo,
    SignalShell,
    WorkspaceDeleted,
    WorkspaceInfo,
    WorkspaceList,
    WriteShell,
)


class Workspaces(Noun):
    """The workspaces: named directories, and commands without a terminal."""

    async def create(self, workspace: str, *, directory: str | None = None) -> WorkspaceInfo:
        """Make a directory (default: the root) a workspace."""
        return await self._call(CreateWorkspace, workspace=workspace, directory=directory)

    async def list(self) -> WorkspaceList:
        """List the workspaces and their shells."""
        return await self._call(ListWorkspaces)

    async def delete(self, workspace: str, *, purge: bool = False) -> WorkspaceDeleted:
        """Delete a workspace and close its shells; its directory is not changed."""
        return await self._call(DeleteWorkspace, workspace=workspace, purge=purge)

    async def exec(
        self, workspace: str, command: str, *, timeout: float | None = None
    ) -> ExecResult:
        """Run a command without a terminal, for at most ``timeout`` seconds."""
        return await self._call(ExecCommand, workspace=workspace, command=command, timeout=timeout)


class Shells(Noun):
    """The shells of workspaces."""

    async def open(
        self,
        workspace: str,
        *,
        name: str | None = None,
        cols: int | None = None,
        rows: int | None = None,
        cwd: str | None = None,
        shell: str | None = None,
    ) -> ShellInfo:
        """Open a shell in a workspace; it keeps its state between calls."""
        return await self._call(
            OpenShell, workspace=workspace, name=name, cols=cols, rows=rows, cwd=cwd, shell=shell
        )

    async def read(
        self,
        shell: str,
        *,
        cursor: int | None = None,
        max_bytes: int = DEFAULT_OUTPUT_BYTES,
        plain: bool = False,
        wait_s: float = 0.0,
    ) -> OutputChunk:
        """Return output from the byte offset ``cursor``; wait at most ``wait_s`` seconds for it."""
        return await self._call(
            ReadShell, shell=shell, cursor=cursor, max_bytes=max_bytes, plain=plain, wait_s=wait_s
        )

    async def write(
        self,
        shell: str,
        input: str,  # noqa: A002 -- as the command has it
        *,
        append_newline: bool = True,
    ) -> Done:
        """Type text into a shell and, unless disabled, press Enter."""
        return await self._call(WriteShell, shell=shell, input=input, append_newline=append_newline)

    async def signal(self, shell: str, signal: str) -> Done:
        """Send a signal such as ``INT`` or ``TERM`` to the foreground program."""
        return await self._call(SignalShell, shell=shell, signal=signal)

    async def close(self, shell: str) -> Closed:
        """Close a shell and end its processes; its output stays readable."""
        return await self._call(CloseShell, shell=shell)
