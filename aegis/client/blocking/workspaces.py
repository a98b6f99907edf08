"""Workspaces: named directories, and commands without a terminal, one call after the other."""

from __future__ import annotations

from aegis.client.blocking.noun import BlockingNoun
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


class Shells(BlockingNoun):
    """Shells of workspaces."""

    def open(
        self,
        workspace: str,
        *,
        name: str | None = None,
        cols: int | None = None,
        rows: int | None = None,
        cwd: str | None = None,
        shell: str | None = None,
    ) -> ShellInfo:
        """Open a shell in a workspace: a terminal that keeps its state between calls."""
        return self._call(
            OpenShell, workspace=workspace, name=name, cols=cols, rows=rows, cwd=cwd, shell=shell
        )

    def read(
        self,
        shell: str,
        *,
        cursor: int | None = None,
        max_bytes: int = DEFAULT_OUTPUT_BYTES,
        plain: bool = False,
        wait_s: float = 0.0,
    ) -> OutputChunk:
        """Read what a shell printed from the byte ``cursor`` on; waits ``wait_s`` seconds."""
        return self._call(
            ReadShell, shell=shell, cursor=cursor, max_bytes=max_bytes, plain=plain, wait_s=wait_s
        )

    def write(
        self,
        shell: str,
        input: str,  # noqa: A002 -- as the command has it
        *,
        append_newline: bool = True,
    ) -> Done:
        """Type text into a shell, and Enter after it."""
        return self._call(WriteShell, shell=shell, input=input, append_newline=append_newline)

    def signal(self, shell: str, signal: str) -> Done:
        """Send a signal to the program in front, such as ``INT`` or ``TERM``."""
        return self._call(SignalShell, shell=shell, signal=signal)

    def close(self, shell: str) -> Closed:
        """Close a shell and end its processes; what it printed stays readable."""
        return self._call(CloseShell, shell=shell)
