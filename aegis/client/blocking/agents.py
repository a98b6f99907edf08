"""Agent sessions, for the blocking client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, cast

from aegis.client.agent_kinds import AgentsValue, CommandValue, SessionValue
from aegis.client.blocking.agent_streams import entries_of, output_of, states_of
from aegis.client.blocking.noun import BlockingNoun
from aegis.protocol.agent_commands import AgentOutput, ReadAgentOutput
from aegis.protocol.agents import (
    AgentDetails,
    AgentDiff,
    AgentInfo,
    AgentList,
    AgentOutcome,
    AgentRewind,
    CloseAgent,
    DiffAgent,
    ExportPart,
    ExportSession,
    ForkAgent,
    HandBackAgent,
    InterruptAgent,
    LaunchAgent,
    ListAgents,
    ListSessions,
    Permission,
    ProfileList,
    PurgeAgent,
    ReadSession,
    ReadUsage,
    ReadUsageOverTime,
    RenameAgent,
    RestartAgent,
    ResumeSession,
    RewindAgent,
    SendToAgent,
    SetAgent,
    ShowAgent,
    SpawnAgent,
    TakeOverAgent,
    Transcript,
    UsageList,
    UsageOverTime,
    WaitAgent,
)
from aegis.protocol.conversations import (
    ContinueConversation,
    ConversationList,
    ListConversations,
)
from aegis.protocol.inboxes import Receipt
from aegis.protocol.meta import GetMeta, Meta
from aegis.protocol.trust import ProjectTrust, TrustProject
from aegis.protocol.worktrees import (
    ListWorktrees,
    MergedWorktree,
    MergeWorktree,
    RemoveWorktree,
    WorktreeInfo,
    WorktreeList,
)

Paths = list[str]


class Agents(BlockingNoun):
    """Agent sessions: coding agents that the daemon drives."""

    def spawn(
        self,
        *,
        profile: str | None = None,
        prompt: str | None = None,
        handle: str | None = None,
        workspace: str | None = None,
        model: str | None = None,
        effort: str | None = None,
        thinking: str | None = None,
        permission: Permission | None = None,
        budget_usd: float | None = None,
        directory: str | None = None,
        worktree: bool | None = None,
        branch: str | None = None,
    ) -> AgentInfo:
        """Start a session; send it further work with ``inboxes.handoff``."""
        return self._call(
            SpawnAgent,
            profile=profile,
            prompt=prompt,
            handle=handle,
            workspace=workspace,
            model=model,
            effort=effort,
            thinking=thinking,
            permission=permission,
            budget_usd=budget_usd,
            directory=directory,
            worktree=worktree,
            branch=branch,
        )

    def send(
        self,
        handle: str,
        text: str,
        *,
        images: Paths | None = None,
        files: Paths | None = None,
        texts: dict[str, str] | None = None,
        interrupt: bool = False,
        alone: bool = False,
        key: str | None = None,
    ) -> Receipt:
        """Send a message with images and other files, by absolute paths on the daemon's host.

        Text files of at most 64 KiB are included; of others the agent gets the path. ``texts`` are
        those of more files by their paths. Only a client that is a person's, under no handle, may
        call it. An ``alone`` message is a turn of its own, whose end is not reported to the inbox.
        Wait for the turn with ``wait`` and the ``id`` of the receipt.
        """
        return self._call(
            SendToAgent,
            handle=handle,
            text=text,
            images=images,
            files=files,
            texts=texts,
            interrupt=interrupt,
            alone=alone,
            key=key,
        )

    def launch(
        self, cmd: str, *, handle: str | None = None, workspace: str | None = None
    ) -> AgentInfo:
        """Launch an interactive program as an agent that is its terminal."""
        return self._call(LaunchAgent, cmd=cmd, handle=handle, workspace=workspace)

    def list(self, *, closed: bool = False) -> AgentList:
        """List sessions by their handles, with ``closed`` also those that were closed."""
        return self._call(ListSessions, closed=closed)

    def meta(self) -> Meta:
        """Return who the caller is, its peers, its tools, and how its inbox works."""
        return self._call(GetMeta)

    def profiles(self) -> ProfileList:
        """List the profiles that can be spawned."""
        return self._call(ListAgents)

    def show(self, handle: str) -> AgentDetails:
        """Return the state of one session."""
        return cast("AgentDetails", self._call(ShowAgent, handle=handle))

    def wait(
        self,
        handle: str,
        *,
        message: str | None = None,
        turn: int | None = None,
        text: str | None = None,
        blocked: bool = False,
        timeout: float = 50.0,
    ) -> AgentOutcome:
        """Wait until an agent is at rest, and return how its last turn ended.

        Instead: until the turn with the ``message`` of a receipt, or of this number, has ended;
        until the agent has said ``text``; only until it is ``blocked``. A wait ends in any case
        when the agent needs a person, or is closed.
        """
        return self._call(
            WaitAgent,
            handle=handle,
            message=message,
            turn=turn,
            text=text,
            blocked=blocked,
            timeout=timeout,
        )

    def read(
        self, handle: str, *, last_n: int | None = None, since: int | None = None
    ) -> Transcript:
        """Return the newest entries of a transcript, or those after the seq ``since``."""
        return self._call(ReadSession, handle=handle, last_n=last_n, since=since)

    def export(
        self, handle: str, *, form: Literal["markdown", "jsonl"] = "markdown", since: int = 0
    ) -> ExportPart:
        """Return a transcript as a document: a part of it, and where the ``next`` one begins."""
        return self._call(ExportSession, handle=handle, form=form, since=since)

    def usage(self, *, handle: str | None = None, closed: bool = False) -> UsageList:
        """Return the tokens, cost and time of sessions: all, or one with those below it."""
        return self._call(ReadUsage, handle=handle, closed=closed)

    def usage_over_time(
        self,
        *,
        by: Literal["hour", "day", "agent"] = "day",
        split: bool = False,
        handle: str | None = None,
        since: str | None = None,
        limit: int = 1_000,
    ) -> UsageOverTime:
        """Return what sessions used by hour, day or agent; ``split``: each agent by itself."""
        return self._call(
            ReadUsageOverTime, by=by, split=split, handle=handle, since=since, limit=limit
        )

    def diff(self, handle: str) -> AgentDiff:
        """Return what changed in the checkout of a session since it began."""
        return self._call(DiffAgent, handle=handle)

    def worktrees(self) -> WorktreeList:
        """List the git worktrees of sessions, and what would be lost with each."""
        return self._call(ListWorktrees)

    def remove_worktree(self, handle: str, *, force: bool = False) -> WorktreeInfo:
        """Remove the worktree of a closed session, with ``force`` also if it has work."""
        return self._call(RemoveWorktree, handle=handle, force=force)

    def merge(self, handle: str) -> MergedWorktree:
        """Merge the worktree of a session into the branch that it began from."""
        return self._call(MergeWorktree, handle=handle)

    def trust(
        self,
        *,
        profile: str | None = None,
        workspace: str | None = None,
        directory: str | None = None,
        digest: str | None = None,
    ) -> ProjectTrust:
        """Return the settings of a project for a profile; trust those with this ``digest``."""
        return self._call(
            TrustProject, profile=profile, workspace=workspace, directory=directory, digest=digest
        )

    def output(self, handle: str, command: str, *, cursor: int = 0) -> AgentOutput:
        """Return the output of a command that an agent has its session run, also after its release.

        ``command`` is an id of ``of_agents`` in ``terminals.list``, or of ``terminal_ended`` in the
        transcript. With the ``cursor`` of an earlier reply, only the text after it.
        """
        return self._call(ReadAgentOutput, handle=handle, command=command, cursor=cursor)

    def interrupt(
        self, handle: str, *, message: str | None = None, unless_begun: bool = False
    ) -> AgentInfo:
        """Interrupt the current turn of a session, or only the turn of the ``message`` sent.

        ``unless_begun`` raises ``InvalidRequest`` if the turn of the message has begun.
        """
        return self._call(InterruptAgent, handle=handle, message=message, unless_begun=unless_begun)

    def rename(self, old_handle: str, new_handle: str) -> AgentInfo:
        """Give a session another handle; the old one stays an alias."""
        return self._call(RenameAgent, old_handle=old_handle, new_handle=new_handle)

    def set(
        self,
        handle: str,
        *,
        model: str | None = None,
        effort: str | None = None,
        thinking: str | None = None,
        permission: Permission | None = None,
        budget_usd: float | None = None,
    ) -> AgentInfo:
        """Change a session, now and for its later starts."""
        return self._call(
            SetAgent,
            handle=handle,
            model=model,
            effort=effort,
            thinking=thinking,
            permission=permission,
            budget_usd=budget_usd,
        )

    def restart(self, handle: str) -> AgentInfo:
        """Start the agent's program anew with the same conversation."""
        return self._call(RestartAgent, handle=handle)

    def conversations(
        self, *, profile: str | None = None, workspace: str | None = None
    ) -> ConversationList:
        """List the conversations that an agent's own files hold for a directory."""
        return self._call(ListConversations, profile=profile, workspace=workspace)

    def continue_from(
        self,
        conversation: str,
        *,
        fork: bool = False,
        profile: str | None = None,
        workspace: str | None = None,
        handle: str | None = None,
        prompt: str | None = None,
    ) -> AgentInfo:
        """Start a session with a conversation of the agent's own program, or with a copy of it."""
        return self._call(
            ContinueConversation,
            conversation=conversation,
            fork=fork,
            profile=profile,
            workspace=workspace,
            handle=handle,
            prompt=prompt,
        )

    def take_over(self, handle: str, *, interrupt: bool = False) -> AgentInfo:
        """Open the agent's own program on its conversation, in the terminal of ``taken_over``.

        Waits for the end of the current turn, or interrupts it.
        """
        return self._call(TakeOverAgent, handle=handle, interrupt=interrupt)

    def hand_back(self, handle: str) -> AgentInfo:
        """End a take-over; what was said in it is in the transcript then."""
        return self._call(HandBackAgent, handle=handle)

    def rewind(self, handle: str, *, turn: int | None = None, dry_run: bool = False) -> AgentRewind:
        """Set an agent's files back to before a turn; those that others changed since are left."""
        return self._call(RewindAgent, handle=handle, turn=turn, dry_run=dry_run)

    def resume(self, handle: str, *, prompt: str | None = None) -> AgentInfo:
        """Continue the conversation of a session, also of a closed one."""
        return self._call(ResumeSession, handle=handle, prompt=prompt)

    def fork(
        self, handle: str, *, prompt: str | None = None, new_handle: str | None = None
    ) -> AgentInfo:
        """Start a session with a copy of another one's conversation."""
        return self._call(ForkAgent, handle=handle, prompt=prompt, new_handle=new_handle)

    def purge(self, handle: str) -> AgentInfo:
        """Close a session and delete its transcript."""
        return self._call(PurgeAgent, handle=handle)

    def close(self, handle: str) -> AgentInfo:
        """End a session; ``resume`` continues it."""
        return self._call(CloseAgent, handle=handle)

    def follow(self) -> Iterator[AgentsValue]:
        """Yield all open sessions, then each that changes, by repeated calls of ``list``.

        It never ends. A state that lasts less than half a second may be missed.
        """
        return states_of(self)

    def events(
        self, handle: str, *, since: int | None = None, last_n: int | None = None
    ) -> Iterator[SessionValue]:
        """Yield the entries of a transcript, by repeated calls of ``read``.

        It begins after the seq ``since``, with the newest ``last_n`` entries, or now. It ends when
        the session is closed.
        """
        return entries_of(self, handle, since=since, last_n=last_n)

    def command_output(self, handle: str, command: str) -> Iterator[CommandValue]:
        """Yield the output of a command as it is printed, by repeated calls of ``output``.

        It begins with the output that is kept, and ends when the agent has released the command.
        """
        return output_of(self, handle, command)
