"""Workspaces and their shells, for the blocking client."""

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
    """The workspaces: named directories, and commands without a terminal."""

    def create(self, workspace: str, *, directory: str | None = None) -> WorkspaceInfo:
        """Make a directory (default: the root) a workspace."""
        return self._call(CreateWorkspace, workspace=workspace, directory=directory)

    def list(self) -> WorkspaceList:
        """List the workspaces and their shells."""
        return self._call(ListWorkspaces)

    def delete(self, workspace: str, *, purge: bool = False) -> WorkspaceDeleted:
        """Delete a workspace and close its shells; its directory is not changed."""
        return self._call(DeleteWorkspace, workspace=workspace, purge=purge)

    def exec(self, workspace: str, command: str, *, timeout: float | None = None) -> ExecResult:
        """Run a command without a terminal, for at most ``timeout`` seconds."""
        return self._call(ExecCommand, workspace=workspace, command=command, timeout=timeout)


class Shells(BlockingNoun):
    """The shells of workspaces."""

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
        """Open a shell in a workspace; it keeps its state between calls."""
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
        """Return output from the byte offset ``cursor``; wait at most ``wait_s`` seconds for it."""
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
        """Type text into a shell and, unless disabled, press Enter."""
        return self._call(WriteShell, shell=shell, input=input, append_newline=append_newline)

    def signal(self, shell: str, signal: str) -> Done:
        """Send a signal such as ``INT`` or ``TERM`` to the foreground program."""
        return self._call(SignalShell, shell=shell, signal=signal)

    def close(self, shell: str) -> Closed:
        """Close a shell and end its processes; its output stays readable."""
        return self._call(CloseShell, shell=shell)
