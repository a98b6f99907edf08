"""The one command set, from which MCP tools, WebSocket requests and the reference are derived.

A new command of a terminal goes into ``COMMANDS`` and ``TerminalCommand``; ``ShellCommand`` too if
the shell answers it. ``docs/how-to/develop.md`` lists the other files.
"""

from __future__ import annotations

from aegis.protocol import (
    agents,
    broadcast,
    control,
    daemon,
    inboxes,
    meta,
    nodes,
    output,
    requests,
    screens,
    terminals,
    workspaces,
)
from aegis.protocol.entry import Entry, Owner

CALL_AGAIN = "nothing is lost: call again"
AGAIN_DOES_NO_HARM = "it may have been carried out; calling again does no harm"
CHECK_TERMINALS = "check with aegis_term_list whether it was carried out before you call again"
CHECK_SESSIONS = (
    "it may have been carried out: aegis_session_list shows which handles have a session"
)
CHECK_AGENTS = "check with aegis_list_sessions whether it was carried out before you call again"
CHECK_WORKSPACES = "check with workspace_list whether it was carried out before you call again"

COMMANDS: tuple[Entry, ...] = (
    Entry(
        name="term_spawn",
        owner=Owner.TERMINALS,
        command=terminals.SpawnTerminal,
        reply=terminals.TerminalInfo,
        errors=("already_exists", "storage"),
        on_hosts=True,
        remedy=CHECK_TERMINALS,
    ),
    Entry(
        name="term_list",
        owner=Owner.TERMINALS,
        command=terminals.ListTerminals,
        reply=terminals.TerminalList,
        read_only=True,
        on_hosts=True,
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="term_run",
        owner=Owner.TERMINAL,
        command=terminals.RunCommand,
        reply=terminals.CommandRecord,
        destructive=True,
        tells_progress=True,
        errors=("not_found", "busy", "incomplete_input", "storage"),
        remedy=(
            "if your command was typed, it keeps running: look for its record with aegis_term_read "
            "before you run it again"
        ),
        remedy_if_worker_died=(
            "if your command was typed, it was killed: look for its record with aegis_term_read "
            "before you run it again"
        ),
    ),
    Entry(
        name="term_broadcast",
        owner=Owner.TERMINALS,
        command=broadcast.Broadcast,
        reply=broadcast.BroadcastOutcomes,
        destructive=True,
        remedy=(
            "where your command was typed, it keeps running: look for its records with "
            "aegis_term_read before you run it again"
        ),
        remedy_if_worker_died=(
            "where your command was typed, it was killed: look for its records with "
            "aegis_term_read before you run it again"
        ),
    ),
    Entry(
        name="term_keys",
        owner=Owner.TERMINAL,
        command=terminals.SendKeys,
        reply=terminals.Done,
        destructive=True,
        errors=("not_found", "busy", "storage"),
        remedy="the keys may have been typed: look with aegis_term_read before you send them again",
        remedy_if_worker_died=(
            "the keys may have been typed, and what they started was killed: look with "
            "aegis_term_read before you send them again"
        ),
    ),
    Entry(
        name="term_read",
        owner=Owner.TERMINAL,
        command=terminals.ReadRecords,
        reply=terminals.RecordList,
        read_only=True,
        errors=("not_found", "storage"),
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="term_screen",
        owner=Owner.TERMINAL,
        command=screens.GetScreen,
        reply=screens.Screen,
        read_only=True,
        errors=("not_found",),
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="term_output",
        owner=Owner.TERMINAL,
        command=output.ReadOutput,
        reply=output.OutputChunk,
        read_only=True,
        errors=("not_found", "busy", "storage"),
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="term_wait",
        owner=Owner.TERMINAL,
        command=output.WaitTerminal,
        reply=output.WaitOutcome,
        read_only=True,
        tells_progress=True,
        errors=("not_found", "busy", "storage"),
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="term_subscribe",
        owner=Owner.TERMINAL,
        command=terminals.Subscribe,
        reply=terminals.Subscribed,
        idempotent=True,
        errors=("not_found", "storage"),
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="term_unsubscribe",
        owner=Owner.TERMINAL,
        command=terminals.Unsubscribe,
        reply=terminals.Done,
        idempotent=True,
        errors=("not_found", "storage"),
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="term_signal",
        owner=Owner.TERMINAL,
        command=control.SignalTerminal,
        reply=terminals.Done,
        destructive=True,
        errors=("not_found",),
        remedy="the signal may have been sent: look with aegis_term_list before you send it again",
        remedy_if_worker_died="its target was killed",
    ),
    Entry(
        name="term_resize",
        owner=Owner.TERMINAL,
        command=control.ResizeTerminal,
        reply=terminals.TerminalInfo,
        idempotent=True,
        errors=("not_found", "storage"),
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="term_close",
        owner=Owner.TERMINALS,
        command=terminals.CloseTerminal,
        reply=terminals.Closed,
        destructive=True,
        errors=("not_found", "already_exists", "storage"),
        on_hosts=True,
        remedy=CHECK_TERMINALS,
    ),
    Entry(
        name="inbox_read",
        owner=Owner.INBOXES,
        command=inboxes.ReadInbox,
        reply=inboxes.MessageList,
        errors=("storage",),
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="inbox_wait",
        owner=Owner.INBOXES,
        command=inboxes.WaitInbox,
        reply=inboxes.MessageList,
        errors=("storage",),
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="handoff",
        owner=Owner.INBOXES,
        command=inboxes.Handoff,
        reply=inboxes.Receipt,
        errors=("not_found", "forbidden", "storage"),
        verb="inbox send",
        remedy=(
            "your message may have been delivered: if you send it again without the same key, it "
            "may arrive twice"
        ),
    ),
    Entry(
        name="spawn",
        owner=Owner.AGENTS,
        command=agents.SpawnAgent,
        reply=agents.AgentInfo,
        errors=("not_found", "already_exists", "forbidden", "storage"),
        verb="agent launch",
        remedy=CHECK_AGENTS,
    ),
    Entry(
        name="meta",
        owner=Owner.AGENTS,
        command=meta.GetMeta,
        reply=meta.Meta,
        read_only=True,
        errors=("storage",),
        verb="agent meta",
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="list_sessions",
        owner=Owner.AGENTS,
        command=agents.ListSessions,
        reply=agents.AgentList,
        read_only=True,
        verb="agent list",
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="list_agents",
        owner=Owner.AGENTS,
        command=agents.ListAgents,
        reply=agents.ProfileList,
        read_only=True,
        verb="agent profiles",
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="session_read",
        owner=Owner.AGENTS,
        command=agents.ReadSession,
        reply=agents.Transcript,
        read_only=True,
        errors=("not_found", "forbidden", "storage"),
        verb="agent read",
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="interrupt",
        owner=Owner.AGENTS,
        command=agents.InterruptAgent,
        reply=agents.AgentInfo,
        destructive=True,
        idempotent=True,
        errors=("not_found", "forbidden"),
        verb="agent interrupt",
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="rename",
        owner=Owner.AGENTS,
        command=agents.RenameAgent,
        reply=agents.AgentInfo,
        idempotent=True,
        errors=("not_found", "already_exists", "forbidden", "storage"),
        verb="agent rename",
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="close",
        owner=Owner.AGENTS,
        command=agents.CloseAgent,
        reply=agents.AgentInfo,
        destructive=True,
        idempotent=True,
        errors=("not_found", "forbidden", "storage"),
        verb="agent stop",
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="agent_show",
        owner=Owner.AGENTS,
        command=agents.ShowAgent,
        reply=agents.AgentInfo,
        read_only=True,
        operator=True,
        errors=("not_found",),
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="agent_set",
        owner=Owner.AGENTS,
        command=agents.SetAgent,
        reply=agents.AgentInfo,
        operator=True,
        errors=("not_found", "storage"),
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="agent_restart",
        owner=Owner.AGENTS,
        command=agents.RestartAgent,
        reply=agents.AgentInfo,
        destructive=True,
        operator=True,
        errors=("not_found",),
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="agent_purge",
        owner=Owner.AGENTS,
        command=agents.PurgeAgent,
        reply=agents.AgentInfo,
        destructive=True,
        operator=True,
        errors=("not_found", "storage"),
        verb="agent stop",
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="agent_diff",
        owner=Owner.AGENTS,
        command=agents.DiffAgent,
        reply=agents.AgentDiff,
        read_only=True,
        operator=True,
        errors=("not_found", "invalid_request", "unavailable"),
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="agent_usage",
        owner=Owner.AGENTS,
        command=agents.ReadUsage,
        reply=agents.UsageList,
        read_only=True,
        operator=True,
        errors=("not_found",),
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="agent_resume",
        owner=Owner.AGENTS,
        command=agents.ResumeSession,
        reply=agents.AgentInfo,
        operator=True,
        errors=("not_found", "unavailable", "storage"),
        verb="agent launch",
        remedy=CHECK_AGENTS,
    ),
    Entry(
        name="agent_fork",
        owner=Owner.AGENTS,
        command=agents.ForkAgent,
        reply=agents.AgentInfo,
        operator=True,
        errors=("not_found", "already_exists", "invalid_request", "unavailable", "storage"),
        verb="agent fork",
        remedy=CHECK_AGENTS,
    ),
    Entry(
        name="request_list",
        owner=Owner.REQUESTS,
        command=requests.ListRequests,
        reply=requests.RequestList,
        read_only=True,
        errors=("storage",),
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="request_answer",
        owner=Owner.REQUESTS,
        command=requests.AnswerRequest,
        reply=requests.RequestReply,
        destructive=True,
        errors=("storage",),
        remedy="it may have been answered: call again, the reply says by whom and when",
    ),
    Entry(
        name="workspace_create",
        owner=Owner.WORKSPACES,
        command=workspaces.CreateWorkspace,
        reply=workspaces.WorkspaceInfo,
        remedy=CHECK_WORKSPACES,
    ),
    Entry(
        name="workspace_list",
        owner=Owner.WORKSPACES,
        command=workspaces.ListWorkspaces,
        reply=workspaces.WorkspaceList,
        read_only=True,
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="workspace_delete",
        owner=Owner.WORKSPACES,
        command=workspaces.DeleteWorkspace,
        reply=workspaces.WorkspaceDeleted,
        destructive=True,
        remedy=CHECK_WORKSPACES,
    ),
    Entry(
        name="workspace_exec",
        owner=Owner.WORKSPACES,
        command=workspaces.ExecCommand,
        reply=workspaces.ExecResult,
        destructive=True,
        remedy=("if your command ran, it was ended: check its effects before you run it again"),
    ),
    Entry(
        name="shell_open",
        owner=Owner.WORKSPACES,
        command=workspaces.OpenShell,
        reply=workspaces.ShellInfo,
        remedy=CHECK_WORKSPACES,
    ),
    Entry(
        name="shell_read",
        owner=Owner.WORKSPACES,
        command=workspaces.ReadShell,
        reply=output.OutputChunk,
        read_only=True,
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="shell_write",
        owner=Owner.WORKSPACES,
        command=workspaces.WriteShell,
        reply=terminals.Done,
        destructive=True,
        remedy="it may have been typed: look with shell_read before you send it again",
        remedy_if_worker_died=(
            "it may have been typed, and what it started was killed: look with shell_read before "
            "you send it again"
        ),
    ),
    Entry(
        name="shell_signal",
        owner=Owner.WORKSPACES,
        command=workspaces.SignalShell,
        reply=terminals.Done,
        destructive=True,
        remedy="the signal may have been sent: look with shell_read before you send it again",
        remedy_if_worker_died="its target was killed",
    ),
    Entry(
        name="shell_close",
        owner=Owner.WORKSPACES,
        command=workspaces.CloseShell,
        reply=terminals.Closed,
        destructive=True,
        remedy=CHECK_WORKSPACES,
    ),
    Entry(
        name="status",
        owner=Owner.DAEMON,
        command=daemon.GetStatus,
        reply=daemon.DaemonStatus,
        read_only=True,
        operator=True,
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="tree",
        owner=Owner.DAEMON,
        command=daemon.GetTree,
        reply=daemon.TreeNode,
        read_only=True,
        operator=True,
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="node_forget",
        owner=Owner.TERMINALS,
        command=nodes.ForgetNode,
        reply=nodes.Forgotten,
        destructive=True,
        operator=True,
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="session_new",
        owner=Owner.DAEMON,
        command=daemon.NewSession,
        reply=daemon.Session,
        idempotent=True,
        operator=True,
        errors=("storage",),
        remedy=AGAIN_DOES_NO_HARM,
    ),
    Entry(
        name="session_list",
        owner=Owner.DAEMON,
        command=daemon.ListSessions,
        reply=daemon.SessionList,
        read_only=True,
        operator=True,
        remedy=CALL_AGAIN,
    ),
    Entry(
        name="session_revoke",
        owner=Owner.DAEMON,
        command=daemon.RevokeSession,
        reply=daemon.Voided,
        destructive=True,
        operator=True,
        errors=("not_found", "storage"),
        remedy=CHECK_SESSIONS,
    ),
    Entry(
        name="token_rotate",
        owner=Owner.DAEMON,
        command=daemon.RotateToken,
        reply=daemon.Voided,
        destructive=True,
        operator=True,
        errors=("not_found", "storage"),
        remedy="the old key may be revoked already: call again, which replaces the new one as well",
    ),
    Entry(
        name="down",
        owner=Owner.DAEMON,
        command=daemon.StopDaemon,
        reply=daemon.Stopping,
        destructive=True,
        operator=True,
        remedy=AGAIN_DOES_NO_HARM,
    ),
)

BY_NAME = {entry.name: entry for entry in COMMANDS}
BY_COMMAND = {entry.command: entry for entry in COMMANDS}

TerminalCommand = (
    terminals.RunCommand
    | terminals.SendKeys
    | terminals.ReadRecords
    | screens.GetScreen
    | output.ReadOutput
    | output.WaitTerminal
    | terminals.Subscribe
    | terminals.Unsubscribe
    | control.SignalTerminal
    | control.ResizeTerminal
)
"""The commands whose owner is a terminal. Its front accepts them."""

ShellCommand = screens.GetScreen
"""The commands that the front of a terminal passes to its shell as they are."""
