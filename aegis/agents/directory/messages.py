"""The messages that the directory of sessions takes, by what it does with them."""

from __future__ import annotations

from actors import Down
from aegis.agents.directory.replies import Asked
from aegis.agents.directory.spawning import Opening
from aegis.agents.sessions.settings import PlanApproved
from aegis.agents.sessions.status import SessionClosed
from aegis.protocol import agents as api
from aegis.protocol.agent_commands import ReadAgentOutput
from aegis.protocol.conversations import ListConversations
from aegis.protocol.feeds import FollowAgentCommand, FollowAgents, FollowSession
from aegis.protocol.history import ListTranscripts
from aegis.protocol.trust import TrustProject
from aegis.protocol.worktrees import ListWorktrees, MergeWorktree, RemoveWorktree

OnSession = (
    api.CloseAgent
    | api.InterruptAgent
    | api.RestartAgent
    | api.ShowAgent
    | api.ReadSession
    | api.WaitAgent
    | api.TakeOverAgent
    | api.HandBackAgent
    | api.RewindAgent
)

Reaching = OnSession | FollowSession | FollowAgentCommand | api.RenameAgent | api.DiffAgent

DirectoryMessage = (
    Opening
    | Reaching
    | api.ReadUsage
    | api.ReadUsageOverTime
    | api.SendToAgent
    | api.ExportSession
    | ListConversations
    | ListWorktrees
    | RemoveWorktree
    | MergeWorktree
    | TrustProject
    | api.ListSessions
    | api.SetAgent
    | api.PersonSetAgent
    | api.CloseWorkspaceAgents
    | api.ListWorkspaceAgents
    | api.ListAgentCommands
    | FollowAgents
    | ReadAgentOutput
    | Asked
    | ListTranscripts
    | SessionClosed
    | PlanApproved
    | api.ToolsListed
    | Down
)
