"""The one command set. MCP tools, WebSocket requests and CLI verbs are derived from it."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import attrs

from aegis.protocol import (
    broadcast,
    control,
    daemon,
    inboxes,
    nodes,
    output,
    screens,
    terminals,
    workspaces,
)
from aegis.protocol.command import Command

Owner = Literal["terminal", "terminals", "inboxes", "workspaces", "daemon"]


@attrs.frozen(kw_only=True)
class Entry:
    """One command: ``name`` on the wire, ``aegis_<name>`` as an MCP tool.

    The second vocabulary, of workspaces and shells, has tools without the prefix.

    ``owner`` says who answers it: one terminal's front, or the one actor of that name.

    ``operator`` means that only the operator may use it: a session bound to a handle neither
    sees nor can call it. ``tells_progress``: a caller may be told how it gets on while it waits.
    """

    name: str
    command: type[Command[Any]]
    reply: type[Any]
    owner: Owner
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    operator: bool = False
    is_prefixed: bool = True
    tells_progress: bool = False

    @property
    def tool(self) -> str:
        """The name of the MCP tool."""
        return f"aegis_{self.name}" if self.is_prefixed else self.name

    @property
    def doc(self) -> str:
        """What the command does, for people and agents."""
        return inspect.cleandoc(self.command.__doc__ or "")


COMMANDS: tuple[Entry, ...] = (
    Entry(
        name="term_spawn",
        owner="terminals",
        command=terminals.SpawnTerminal,
        reply=terminals.TerminalInfo,
    ),
    Entry(
        name="term_list",
        owner="terminals",
        command=terminals.ListTerminals,
        reply=terminals.TerminalList,
        read_only=True,
    ),
    Entry(
        name="term_run",
        owner="terminal",
        command=terminals.RunCommand,
        reply=terminals.CommandRecord,
        destructive=True,
        tells_progress=True,
    ),
    Entry(
        name="term_broadcast",
        owner="terminals",
        command=broadcast.Broadcast,
        reply=broadcast.BroadcastOutcomes,
        destructive=True,
    ),
    Entry(
        name="term_keys",
        owner="terminal",
        command=terminals.SendKeys,
        reply=terminals.Done,
        destructive=True,
    ),
    Entry(
        name="term_read",
        owner="terminal",
        command=terminals.ReadRecords,
        reply=terminals.RecordList,
        read_only=True,
    ),
    Entry(
        name="term_screen",
        owner="terminal",
        command=screens.GetScreen,
        reply=screens.Screen,
        read_only=True,
    ),
    Entry(
        name="term_output",
        owner="terminal",
        command=output.ReadOutput,
        reply=output.OutputChunk,
        read_only=True,
    ),
    Entry(
        name="term_wait",
        owner="terminal",
        command=output.WaitTerminal,
        reply=output.WaitOutcome,
        read_only=True,
        tells_progress=True,
    ),
    Entry(
        name="term_subscribe",
        owner="terminal",
        command=terminals.Subscribe,
        reply=terminals.Subscribed,
        idempotent=True,
    ),
    Entry(
        name="term_unsubscribe",
        owner="terminal",
        command=terminals.Unsubscribe,
        reply=terminals.Done,
        idempotent=True,
    ),
    Entry(
        name="term_signal",
        owner="terminal",
        command=control.SignalTerminal,
        reply=terminals.Done,
        destructive=True,
    ),
    Entry(
        name="term_resize",
        owner="terminal",
        command=control.ResizeTerminal,
        reply=terminals.TerminalInfo,
        idempotent=True,
    ),
    Entry(
        name="term_close",
        owner="terminals",
        command=terminals.CloseTerminal,
        reply=terminals.Closed,
        destructive=True,
    ),
    Entry(name="inbox_read", owner="inboxes", command=inboxes.ReadInbox, reply=inboxes.MessageList),
    Entry(name="inbox_wait", owner="inboxes", command=inboxes.WaitInbox, reply=inboxes.MessageList),
    Entry(name="handoff", owner="inboxes", command=inboxes.Handoff, reply=inboxes.Receipt),
    Entry(
        name="workspace_create",
        owner="workspaces",
        command=workspaces.CreateWorkspace,
        reply=workspaces.WorkspaceInfo,
        is_prefixed=False,
    ),
    Entry(
        name="workspace_list",
        owner="workspaces",
        command=workspaces.ListWorkspaces,
        reply=workspaces.WorkspaceList,
        is_prefixed=False,
        read_only=True,
    ),
    Entry(
        name="workspace_delete",
        owner="workspaces",
        command=workspaces.DeleteWorkspace,
        reply=workspaces.WorkspaceDeleted,
        is_prefixed=False,
        destructive=True,
    ),
    Entry(
        name="workspace_exec",
        owner="workspaces",
        command=workspaces.ExecCommand,
        reply=workspaces.ExecResult,
        is_prefixed=False,
        destructive=True,
    ),
    Entry(
        name="shell_open",
        owner="workspaces",
        command=workspaces.OpenShell,
        reply=workspaces.ShellInfo,
        is_prefixed=False,
    ),
    Entry(
        name="shell_read",
        owner="workspaces",
        command=workspaces.ReadShell,
        reply=output.OutputChunk,
        is_prefixed=False,
        read_only=True,
    ),
    Entry(
        name="shell_write",
        owner="workspaces",
        command=workspaces.WriteShell,
        reply=terminals.Done,
        is_prefixed=False,
        destructive=True,
    ),
    Entry(
        name="shell_signal",
        owner="workspaces",
        command=workspaces.SignalShell,
        reply=terminals.Done,
        is_prefixed=False,
        destructive=True,
    ),
    Entry(
        name="shell_close",
        owner="workspaces",
        command=workspaces.CloseShell,
        reply=terminals.Closed,
        is_prefixed=False,
        destructive=True,
    ),
    Entry(
        name="status",
        owner="daemon",
        command=daemon.GetStatus,
        reply=daemon.DaemonStatus,
        read_only=True,
        operator=True,
    ),
    Entry(
        name="tree",
        owner="daemon",
        command=daemon.GetTree,
        reply=daemon.TreeNode,
        read_only=True,
        operator=True,
    ),
    Entry(
        name="node_forget",
        owner="terminals",
        command=nodes.ForgetNode,
        reply=nodes.Forgotten,
        destructive=True,
        operator=True,
    ),
    Entry(
        name="session_new",
        owner="daemon",
        command=daemon.NewSession,
        reply=daemon.Session,
        idempotent=True,
        operator=True,
    ),
    Entry(
        name="session_list",
        owner="daemon",
        command=daemon.ListSessions,
        reply=daemon.SessionList,
        read_only=True,
        operator=True,
    ),
    Entry(
        name="session_revoke",
        owner="daemon",
        command=daemon.RevokeSession,
        reply=daemon.Voided,
        destructive=True,
        operator=True,
    ),
    Entry(
        name="token_rotate",
        owner="daemon",
        command=daemon.RotateToken,
        reply=daemon.Voided,
        destructive=True,
        operator=True,
    ),
    Entry(
        name="down",
        owner="daemon",
        command=daemon.StopDaemon,
        reply=daemon.Stopping,
        destructive=True,
        operator=True,
    ),
)

BY_NAME = {entry.name: entry for entry in COMMANDS}
BY_COMMAND = {entry.command: entry for entry in COMMANDS}
