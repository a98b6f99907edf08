"""``AgentDirectory``: the actor that spawns, lists, restores and closes agent sessions.

A command on a session is passed to its actor, after a check of the caller's rights. The roster of
the sessions is one ledger; each session has its own transcript.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, cast

import attrs
import structlog

from actors import Actor, ActorError, AskError, Down, Ref, Reply, Request
from actors.errors import root_cause
from aegis.agents.directory.accounting import accounting, counted, tree_of
from aegis.agents.directory.all_sessions import (
    close_all,
    delete_left,
    end_leftovers,
    info_of,
    release,
    resume_all,
    withdraw_asked,
)
from aegis.agents.directory.archiving import SessionArchiver
from aegis.agents.directory.board import Board
from aegis.agents.directory.differences import difference
from aegis.agents.directory.following import (
    answer_ended,
    ref_of_command,
    transcripts_of,
    visible_to,
)
from aegis.agents.directory.message_rights import count_spawns
from aegis.agents.directory.messages import DirectoryMessage, OnSession, Reaching
from aegis.agents.directory.openings import Openings
from aegis.agents.directory.outputs import AgentOutputs
from aegis.agents.directory.programs import Programs
from aegis.agents.directory.replies import (
    answer,
    changed_member,
    check_reach,
    closed_info,
    reply_to,
    settings_of,
)
from aegis.agents.directory.roster import Member
from aegis.agents.directory.roster_table import RosterTable, rename, show_renamed
from aegis.agents.directory.sending import Sending
from aegis.agents.directory.spawning import Opening, Spawning, check_room, trust
from aegis.agents.directory.subtree import session_subtree
from aegis.agents.directory.usage_hours import UsageHours
from aegis.agents.directory.worktrees import Worktrees
from aegis.agents.sessions.command_outputs import CommandOutputs
from aegis.agents.sessions.export import part_of
from aegis.agents.sessions.settings import ChangeSettings, PlanApproved
from aegis.agents.sessions.status import AskedChanged, SessionClosed
from aegis.configuration.worktrees import MADE_AGAIN
from aegis.errors import (
    AegisError,
    AlreadyExists,
    InvalidRequest,
    NotFound,
    StorageError,
    Unavailable,
)
from aegis.journal.archive import DEFAULT_KEEP, Keep
from aegis.journal.flusher import Flusher
from aegis.path_text import path_of_text
from aegis.protocol import agents as api
from aegis.protocol.agent_commands import ReadAgentOutput
from aegis.protocol.conversations import (
    ContinueConversation,
    ListConversations,
)
from aegis.protocol.feeds import FollowAgentCommand, FollowAgents, FollowSession
from aegis.protocol.history import ListTranscripts
from aegis.protocol.meta import GetMeta
from aegis.protocol.requests import FindAnswerer
from aegis.protocol.trust import TrustProject
from aegis.protocol.worktrees import (
    ListWorktrees,
    MergedWorktree,
    MergeWorktree,
    RemoveWorktree,
    WorktreeInfo,
    WorktreeList,
)

log = structlog.get_logger("aegis.agents")

PERSONS_OWN = (api.TakeOverAgent, api.HandBackAgent, api.RewindAgent)
"""Commands of a person on an agent that is driven, not on a terminal agent."""

EXPORT_S = 60.0
"""The time limit of reading a part of a transcript that is exported."""


class AgentDirectory(Actor[DirectoryMessage]):
    """Spawns sessions below ``supervisor`` (a path); their files are below ``directory``.

    ``root`` is the directory in which a session works that was given no workspace, as text;
    ``earlier`` are its earlier paths.
    ``programs`` are the programs by profile; ``board`` has the states of the sessions. ``resume``:
    start the agents of open sessions when the daemon starts.
    """

    def __init__(
        self,
        *,
        root: str,
        directory: Path,
        inboxes: Path,
        programs: Programs,
        board: Board,
        supervisor: str,
        archive: Path,
        flusher: Flusher,
        keep: Keep = DEFAULT_KEEP,
        resume: bool = False,
        earlier: tuple[str, ...] = (),
    ) -> None:
        self._resume = resume
        self._earlier = earlier
        self._root = root
        self._directory = directory
        self._inboxes = inboxes
        self._programs = programs
        self._board = board
        self._supervisor = supervisor
        self._flusher = flusher
        self._archive, self._keep = archive, keep
        self._refs: dict[str, Ref[Any]] = {}
        self._counters = programs.counters
        self._openings = Openings()
        self._is_loaded = False

    async def setup(self) -> None:
        """Read the roster and start the sessions that are not closed; they have no process yet.

        If the disk refuses, each request tries again.
        """
        self.context.register("service", "agents")
        self.context.register("service", "sessions")
        names = self._programs.names
        self._table = RosterTable(
            directory=self._directory,
            archive=self._archive,
            keep=self._keep,
            flusher=self._flusher,
            context=self.context,
            names=names,
            root=self._root,
            earlier=self._earlier,
        )
        made_again = self._programs.configuration.worktrees.made_again
        self._worktrees = Worktrees(
            self._root,
            self._directory,
            self._flusher,
            self.context,
            self._table.roster,
            frozenset(MADE_AGAIN if made_again is None else made_again),
        )
        self._spawning = Spawning(
            programs=self._programs,
            table=self._table,
            worktrees=self._worktrees,
            system=self.context.system,
            inboxes=self._inboxes,
            root=self._root,
            start=self._start,
            sessions=self._count_sessions,
        )
        self._sending = Sending(
            directory=self._directory,
            flusher=self._flusher,
            system=self.context.system,
            refuse_closed=self._programs.messages.refuse_closed,
            profile_of=self._programs.profile_of,
        )
        self._archiver = SessionArchiver(
            directory=self._directory,
            archive=self._archive,
            keep=self._keep,
            flusher=self._flusher,
            lock=self._spawning.lock,
            roster=lambda: self._table.roster,
            is_at_rest=self._is_at_rest,
            start_soon=self.context.start_soon,
        )
        self._usage = UsageHours(self._directory, self._board, self._flusher, self.context)
        self._board.on_put = self._usage.take
        self.context.start_soon(self._usage.run)
        with contextlib.suppress(StorageError):
            await self._load()

    async def teardown(self) -> None:
        self._usage.close()
        self._table.close()
        self._worktrees.close()

    async def receive(self, message: DirectoryMessage) -> None:  # noqa: C901 - one case per message
        """Handle a command of a client, or the end of a session."""
        if isinstance(message, api.ToolsListed):
            self._tools_listed(message)
            return
        await self._load()
        match message:
            case _ if isinstance(message, Opening):
                self._openings.begin(message)
                self.context.start_soon(self._spawn, message, self.defer(message))
            case api.CloseAgent() | api.ShowAgent() if message.handle in self._openings:
                self.context.start_soon(
                    self._openings.pass_on, message, self.defer(message), self.context.ref
                )
            case api.ListSessions(closed=closed):
                self.context.start_soon(self._list, closed, self.defer(message))
            case api.ReadUsage():
                members = counted(message, self._table.roster)
                self.context.start_soon(self._count, members, self.defer(message))
            case api.ReadUsageOverTime(handle=handle):
                roster = self._table.roster
                tree = [*roster.by_id.values()] if handle is None else tree_of(handle, roster)
                handles = {each.id: each.handle for each in tree}
                self.context.start_soon(
                    answer, self.defer(message), self._usage.read, message, handles
                )
            case api.ExportSession():
                self.context.start_soon(self._export, message, self.defer(message))
            case api.DiffAgent():
                member = self._table.roster.get(message.handle)
                self._check_reach(message, member)
                self.context.start_soon(answer, self.defer(message), self._difference, member)
            case api.SendToAgent():
                member = self._table.roster.get(message.handle)
                send, ref = self._sending.send, self._refs.get(member.id)
                self.context.start_soon(answer, self.defer(message), send, message, member, ref)
            case ListConversations():
                list_them = partial(self._spawning.conversations, self._owner_of)
                self.context.start_soon(answer, self.defer(message), list_them, message)
            case ListWorktrees():
                self.context.start_soon(self._list_worktrees, self.defer(message))
            case RemoveWorktree():
                remove = self._remove_worktree
                self.context.start_soon(answer, self.defer(message), remove, message)
            case MergeWorktree():
                merge = self._merge_worktree
                self.context.start_soon(answer, self.defer(message), merge, message)
            case TrustProject():
                of = self._programs, self.context.system
                self.context.start_soon(answer, self.defer(message), trust, message, *of)
            case api.CloseAgent() if self._has_worktree(message):
                self.context.start_soon(self._close_with_worktree, message, self.defer(message))
            case GetMeta() | api.ListAgents() | FindAnswerer():
                roster, programs = self._table.roster, self._programs
                known = partial(self._table.inboxes, self._inboxes)
                self.reply(message, reply_to(message, roster, programs, known))
            case ReadAgentOutput(handle=handle):
                member, reply = self._table.roster.get(handle), self.defer(message)
                self.context.start_soon(self._outputs(member).answer, message, reply)
            case ListTranscripts(name=name):
                sees = visible_to(self._caller(message), self._table.roster)
                self.reply(message, transcripts_of(self._table.roster, self._directory, name, sees))
            case api.SetAgent():
                self.context.start_soon(self._set, message, self.defer(message))
            case api.ListWorkspaceAgents():
                self.reply(message, self._table.roster.workspace_agents)
            case api.ListAgentCommands():
                self.reply(message, self._board.commands)
            case SessionClosed(id=id_):
                await self._session_closed(id_)
            case PlanApproved():
                self.context.start_soon(self._leave_plan, message)
            case api.CloseWorkspaceAgents():
                self.context.start_soon(self._close_workspace, message, self.defer(message))
            case api.RenameAgent():
                self.context.start_soon(self._rename, message, self.defer(message))
            case FollowAgents():
                sees = visible_to(self._caller(message), self._table.roster)
                self._board.take(message.place, sees, self.defer(message))
            case api.ReadSession() | FollowSession() if not self._table.roster.has(message.handle):
                self.context.start_soon(self._answer_dropped, message, self.defer(message))
            case FollowSession() | FollowAgentCommand():
                self._follow(message)
            case Down():
                self._session_ended(message)
            case _:
                self._pass_on(message)

    # The roster.

    async def _load(self) -> None:
        """Read the roster, once, and restore its sessions. Raises ``StorageError``."""
        if self._is_loaded:
            return
        if await self._table.load() and self.context.incarnation == 1:
            await end_leftovers(self._programs)
            count_spawns(self._table.roster, self._counters, time.time())
            await delete_left(self._table.roster, self._directory, self._flusher, self._archiver.of)
        self._programs.messages.roster = self._table.roster
        self._programs.messages.has_closed = self._board.has_closed
        self._programs.owners = self._owners
        await self._worktrees.open_if_there()
        self.context.start_soon(self._worktrees.recover)
        self._is_loaded = True
        follow = self._programs.asked.follow
        self.context.start_soon(follow, self.context.system.registry, self._asked_changed)
        closed = [each.address for each in self._table.roster.by_id.values() if each.is_closed]
        withdraw_asked(closed, self.context.system.registry)
        for member in self._table.roster.open:
            if member.aliases:  # a kill may have come between the new handle and its requests
                show_renamed(member, self.context.system)
            await self._restore(member)
        if self.context.incarnation == 1:
            self.context.start_soon(self._sending.sweep, self._table.roster.open)
        if self._resume and self.context.incarnation == 1:
            self.context.start_soon(resume_all, self._to_resume())
        self._archiver.look()

    def _is_at_rest(self, id_: str) -> bool:
        """Return whether a session has no actor."""
        return id_ not in self._refs and self.context.system.registry.find("session", id_) is None

    def _count_sessions(self) -> int:
        """Return the number of sessions that are open and have not exited."""
        return sum(not self._board.has_exited(each.id) for each in self._table.roster.open)

    def _to_resume(self) -> list[Ref[Any]]:
        """Return the sessions to resume with the daemon: all have exited, and the limit holds."""
        members = sorted(self._table.roster.open, key=lambda each: each.cmd is not None)
        most = self._programs.configuration.limits.sessions
        return [self._refs[each.id] for each in members[:most] if each.id in self._refs]

    def _check_room(self, verb: str, member: Member) -> None:
        """Raise ``Unavailable`` if an agent that has exited may not be started again."""
        if self._board.has_exited(member.id):
            check_room(verb, self._programs.counters, self._count_sessions())

    # Spawning.

    async def _spawn(self, request: Opening, reply: Reply[api.AgentInfo]) -> None:
        try:
            info = await self._opened(request)
        except AegisError as error:
            reply.fail(error)
        except ActorError as error:
            cause = root_cause(error)
            reply.fail(cause if isinstance(cause, AegisError) else Unavailable(str(error)))
        else:
            reply.send(info)
        finally:
            self._openings.end(request)

    async def _opened(self, request: Opening) -> api.AgentInfo:
        """Open, continue or purge a session. Raises ``AegisError``, ``ActorError``."""
        if isinstance(request, api.SpawnMember) and request.session in self._table.roster.by_id:
            member = self._table.roster.by_id[request.session]  # the caller was restarted
            if not member.is_closed:
                await self._session(member)
            return await self._info(member)
        if isinstance(request, api.SpawnAgent):
            return await self._spawning.spawn(request, self._caller(request))
        if isinstance(request, ContinueConversation):
            check = partial(self._check_unowned, request)
            check()
            return await self._spawning.continue_from(request, check)
        if isinstance(request, api.LaunchAgent):
            return await self._spawning.launch(request, self._caller(request))
        roster = self._table.roster
        if isinstance(request, api.PurgeAgent):
            member = roster.find(request.handle) or roster.get(request.handle)
            await self._spawning.wait_started(member.id)
            stored = self._archiver.of(member)
            return await self._spawning.purge(member, self._refs.get(member.id), stored)
        member = roster.get(request.handle)
        if isinstance(request, api.ForkAgent):
            if member.is_closed:
                raise InvalidRequest(f"agent fork: {member.handle!r} is closed; resume it first")
            return await self._spawning.fork(request, member, await self._session(member))
        session = None if member.is_closed else await self._session(member)
        if session is not None and await self._spawning.wait_closed(member, session):
            await self.context.ref.ask(api.ListWorkspaceAgents())  # taken after the session's end
            member = roster.by_id[member.id]
        if member.is_closed:
            async with self._archiver.restored(member):
                member = await self._spawning.reopen(member)
        else:
            self._check_room("agent resume", member)
        return await self._spawning.wake(member, await self._session(member), request)

    def _owners(self) -> dict[str, Member]:
        """Return the sessions by the conversations that they have, or are to begin with.

        Of several sessions with one conversation it is the one that was opened first.
        """
        owners: dict[str, Member] = {}
        for each in self._table.roster.open:
            begins = each.began_with if each.fork_of is None else None
            has = self._board.conversation_of(each.id) or begins
            if has is not None and not self._board.has_closed(each.id):
                owners.setdefault(has, each)
        return owners

    def _owner_of(self, conversation: str) -> Member | None:
        return self._owners().get(conversation)

    def _check_unowned(self, request: ContinueConversation) -> None:
        owner = None if request.fork else self._owner_of(request.conversation)
        if owner is not None:
            raise AlreadyExists(
                f"agent launch: the conversation {request.conversation} is that of the "
                f"session {owner.handle!r}: send it a message, or continue a copy with --fork"
            )

    async def _session(self, member: Member) -> Ref[Any]:
        """Return the actor of a session, started if it is not running. Raises ``ActorError``."""
        await self._spawning.wait_started(member.id)
        ref = self._refs.get(member.id)
        return await self._spawning.started(member) if ref is None or ref.is_stopped else ref

    def _caller(self, request: Any) -> Member | None:
        """Return the session of the caller, maybe a closed one; None for another client."""
        handle = request.from_handle
        return None if handle is None else self._table.roster.find(handle)

    async def _start(self, member: Member, *, is_new: bool = False) -> Ref[Any]:
        """Start the actors of a session, unless they run. Raises ``ActorError``, ``NotFound``."""
        if self.context.system.registry.find("session", member.id) is None:
            subtree = session_subtree(
                member,
                self._table.roster,
                self._programs,
                directory=self._directory / member.id,
                above=self._supervisor,
                flusher=self._flusher,
                on_change=self._board.put,
                is_new=is_new,
            )
            supervisor = self.context.system.supervisor(self._supervisor)
            if member.id in supervisor.names:
                # A directory before this one began it, and crashed meanwhile.
                await supervisor.stop_child(member.id)
            await supervisor.start_child(subtree)
        path = f"{self._supervisor}/{member.id}/session"
        ref = self._refs[member.id] = self.context.system.ref(path)
        self.context.monitor(ref)
        return ref

    async def _restore(self, member: Member) -> None:
        """Have the actors of a session run: they do if the directory alone was restarted."""
        try:
            await self._start(member)
        except (ActorError, AegisError) as error:
            log.warning("session not restored", handle=member.handle, why=str(error))
            self._board.put(closed_info(member, self._table.roster.cwd(member)))

    def _session_ended(self, down: Down) -> None:
        """Forget the actor of a session that is closed, or that gave up."""
        id_ = down.path.split("/")[-2]
        if down.final and self._refs.pop(id_, None) is not None and down.reason != "finished":
            member = self._table.roster.by_id[id_]
            self._board.put(closed_info(member, self._table.roster.cwd(member)))
        if down.final and id_ in self._table.roster.by_id:
            self._archiver.look(self._table.roster.by_id[id_])

    async def _session_closed(self, id_: str) -> None:
        """Note the close of a session, which is durable in its transcript."""
        roster = self._table.roster
        self._table.note(id_, partial(Member.closed, changed=roster.next_change()))
        await release(roster.by_id[id_].address, self._programs.keys, self.context.system.registry)
        if (worktree := self._worktrees.of(roster.by_id[id_])) is not None:
            self.context.start_soon(self._settle_worktree, id_, worktree)

    # Worktrees.

    async def _difference(self, member: Member) -> api.AgentDiff:
        worktree, cwd = self._worktrees.of(member), self._table.roster.cwd(member)
        path = None if worktree is None else self._worktrees.path(worktree)
        return await difference(member, cwd, path, Path(path_of_text(self._root)))

    async def _settle_worktree(self, id_: str, worktree: str) -> None:
        log.info("session closed", session=id_, worktree=await self._worktrees.settle(worktree))
        await self._worktrees.settle_unused(but=worktree)

    def _has_worktree(self, message: api.CloseAgent) -> bool:
        member = self._table.roster.find(message.handle)
        return (
            member is not None
            and self._worktrees.of(member) is not None
            and member.id in self._refs
        )

    async def _close_with_worktree(
        self, message: api.CloseAgent, reply: Reply[api.AgentInfo]
    ) -> None:
        """Close a session, and say what became of its worktree."""
        try:
            member = self._table.roster.get(message.handle)
            self._check_reach(message, member)
            ref = self._refs.get(member.id)  # its close may have ended meanwhile
            cwd = self._table.roster.cwd(member)
            info = closed_info(member, cwd) if ref is None else await ref.ask(message)
            worktree = self._worktrees.of(member)
            became = "" if worktree is None else await self._worktrees.settle(worktree)
            reply.send(attrs.evolve(info, reason=became) if became else info)
        except AegisError as error:
            reply.fail(error)
        except ActorError as error:
            reply.fail(Unavailable(str(error)))

    async def _list_worktrees(self, reply: Reply[WorktreeList]) -> None:
        by_id = self._table.roster.by_id

        def handle_of(id_: str) -> str:
            return by_id[id_].handle if id_ in by_id else id_

        reply.send(WorktreeList(result=await self._worktrees.all(handle_of)))

    async def _remove_worktree(self, message: RemoveWorktree) -> WorktreeInfo:
        id_, handle = self._of_worktree(message.handle)
        return await self._worktrees.remove(id_, handle, force=message.force)

    async def _merge_worktree(self, message: MergeWorktree) -> MergedWorktree:
        id_, handle = self._of_worktree(message.handle)
        for member in self._worktrees.users(id_):
            info = await self._info(member)
            if info.taken_over is not None:
                raise InvalidRequest(
                    f"agent merge: {info.handle!r} is taken over; hand it back first: agent "
                    f"handback {info.handle}"
                )
            if not api.is_at_rest(info) and info.state not in ("limited", "error", "exited"):
                raise InvalidRequest(
                    f"agent merge: {info.handle!r} is in a turn ({info.state}); wait for its end "
                    f"(agent wait {info.handle}), or interrupt it"
                )
        return await self._worktrees.merge(id_, handle)

    def _of_worktree(self, name: str) -> tuple[str, str]:
        """Return the id and the handle of the session with a worktree, by either of them.

        A kept worktree outlives a session that was purged or is no longer in the roster. Raises
        ``NotFound`` if there is no such session, or it has no worktree.
        """
        roster = self._table.roster
        member = roster.find(name) or roster.by_id.get(name)
        if member is None and not self._worktrees.has(name):
            member = roster.get(name)
        id_, handle = (name, name) if member is None else (member.id, member.handle)
        self._worktrees.require(id_, handle)
        return id_, handle

    # Commands on sessions.

    def _pass_on(self, message: OnSession) -> None:
        member = self._table.roster.get(message.handle)
        self._check_reach(message, member)
        if isinstance(message, api.RestartAgent):
            self._check_room("agent restart", member)
        if isinstance(message, PERSONS_OWN) and member.cmd is not None:
            raise InvalidRequest(
                f"{member.handle!r} is a terminal agent, whose conversation is in its terminal: "
                f"aegis-actors term attach {member.address}"
            )
        ref = self._refs.get(member.id)
        if ref is not None and isinstance(message, api.ShowAgent) and member.cmd is None:
            self.pass_on(message, ref, api.ShowDetails(handle=message.handle))
        elif ref is not None:
            self.pass_on(cast("Request[Any]", message), ref)
        elif not member.is_closed:
            self.context.start_soon(self._revive, member, message, self.defer(message))
        elif isinstance(message, api.RestartAgent) and member.cmd is not None:
            again = api.ResumeSession(handle=member.handle, from_handle=message.from_handle)
            self.context.start_soon(self._spawn, again, self.defer(message))
        elif isinstance(message, api.WaitAgent):
            self.reply(message, api.AgentOutcome(handle=member.handle, outcome="closed"))
        elif isinstance(message, api.ShowAgent | api.CloseAgent):
            cwd = self._table.roster.cwd(member)
            self.reply(cast("Request[Any]", message), closed_info(member, cwd))
        elif isinstance(message, api.ReadSession):
            self.context.start_soon(self._answer_ended, member, message, self.defer(message))
        else:
            raise NotFound(
                f"the session {member.handle!r} is closed: read it with aegis_session_read, or "
                f"resume it, as a person, with agent launch --resume {member.handle}"
            )

    def _asked_changed(self, sessions: Iterable[str]) -> None:
        """Have these sessions show whether they wait for an answer of the person."""
        for id_ in sessions:
            ref = self._refs.get(id_)
            with contextlib.suppress(ActorError):  # one that is being restarted looks by itself
                if ref is not None:
                    ref.tell(AskedChanged())

    def _tools_listed(self, message: api.ToolsListed) -> None:
        """Notify the session, if one has this handle."""
        member = self._table.roster.find(message.handle)
        ref = None if member is None else self._refs.get(member.id)
        with contextlib.suppress(ActorError):
            if ref is not None:
                ref.tell(message)

    async def _revive(self, member: Member, message: Any, reply: Reply[Any]) -> None:
        """Start the actors of a session again that gave up, and pass a command to it."""
        try:
            session = await self._session(member)
            session.forward(message, reply)
        except (ActorError, AegisError) as error:
            reply.fail(error if isinstance(error, AegisError) else Unavailable(str(error)))

    async def _close_workspace(
        self, request: api.CloseWorkspaceAgents, reply: Reply[list[str]]
    ) -> None:
        members = self._table.roster.of_workspace(request.workspace)
        try:
            for member in members:
                self._check_reach(
                    api.CloseAgent(handle=member.handle, from_handle=request.from_handle), member
                )
            await close_all(
                [(each, self._refs.get(each.id) or await self._start(each)) for each in members]
            )
        except (ActorError, AegisError) as error:
            reply.fail(error if isinstance(error, AegisError) else Unavailable(str(error)))
        else:
            reply.send([each.handle for each in members])

    # Changes by a person.

    async def _set(self, request: api.SetAgent, reply: Reply[api.AgentInfo]) -> None:
        try:
            member = self._table.roster.get(request.handle)
            async with self._spawning.lock:
                await self._change(member, request)
        except AegisError as error:
            reply.fail(error)
        else:
            reply.send(await self._info(self._table.roster.by_id[member.id]))

    async def _change(self, member: Member, request: api.SetAgent) -> None:
        """Change a session, all or nothing. Raises ``AegisError``."""
        before = self._table.roster.by_id[member.id]
        after = changed_member(before, request, self._programs.profile_of(before).permission)
        self._programs.check(self._programs.profile_of(after))
        # The line comes first: an agent that has a change would lose it at its next start.
        await self._table.change(member.id, partial(Member.with_settings_of, other=after))
        refusal = await self._apply(after, request)
        if refusal is not None:
            self._table.note(member.id, partial(Member.with_settings_of, other=before))
            await self._apply(before)
            raise Unavailable(f"agent set: nothing is changed: {refusal}")

    async def _apply(self, member: Member, request: api.SetAgent | None = None) -> str | None:
        """Have a session use the settings of ``member``; return why its agent refuses them.

        ``request`` has the changed ones that the agent itself has.
        """
        profile = self._programs.profile_of(member)
        self._programs.rights.open(member.id, member.address, profile)
        ref = self._refs.get(member.id)
        if ref is None:
            return None
        settings = settings_of(member, profile, self._programs, self._table.roster)
        change = ChangeSettings(settings=settings)
        if request is not None:
            change = attrs.evolve(
                change,
                model=request.model,
                permission=request.permission,
                effort=request.effort,
                thinking=request.thinking,
            )
        try:
            refusal: str | None = await ref.ask(change)
        except ActorError:
            return None  # it is started again, with the settings of the roster
        return refusal

    async def _leave_plan(self, approved: PlanApproved) -> None:
        """Give a session the permission that it has after its plan."""
        async with self._spawning.lock:
            before = self._table.roster.by_id.get(approved.session)
            if before is None or before.is_closed:
                return
            after = self._programs.after_plan(before, with_edits=approved.with_edits)
            if after != before:
                self._table.note(before.id, partial(Member.with_settings_of, other=after))
                await self._apply(after)

    def _follow(self, message: FollowSession | FollowAgentCommand) -> None:
        member = self._table.roster.get(message.handle)
        self._check_reach(message, member)
        if isinstance(message, FollowAgentCommand):
            path = f"{self._supervisor}/{member.id}"
            self.pass_on(message, ref_of_command(self.context.system, path, member, message))
        elif (ref := self._refs.get(member.id)) is not None:
            self.pass_on(message, ref)
        else:
            self.context.start_soon(self._answer_ended, member, message, self.defer(message))

    async def _answer_dropped(
        self, message: api.ReadSession | FollowSession, reply: Reply[Any]
    ) -> None:
        """Answer for a session that is not known, and may have been dropped."""
        try:
            member = await self._table.find(message.handle)
            self._check_reach(message, member)
        except AegisError as error:
            reply.fail(error)
        else:
            await self._answer_ended(member, message, reply)

    async def _export(self, message: api.ExportSession, reply: Reply[api.ExportPart]) -> None:
        read = api.ReadSession(
            handle=message.handle, since=message.since, from_handle=message.from_handle
        )
        try:
            page = await self.context.ref.ask(read, timeout=EXPORT_S)
            reply.send(part_of(message.handle, page, message.since, message.form))
        except (AegisError, AskError) as error:
            reply.fail(error)

    async def _answer_ended(
        self, member: Member, message: api.ReadSession | FollowSession, reply: Reply[Any]
    ) -> None:
        stored = self._archiver.of(member)
        await answer_ended(member, stored, self._flusher, message, reply)

    def _outputs(self, member: Member) -> AgentOutputs:
        return AgentOutputs(
            system=self.context.system,
            subtree=f"{self._supervisor}/{member.id}",
            member=member,
            stored=CommandOutputs(self._directory / member.id, self._flusher),
            commands=lambda: self._board.commands,
        )

    def _check_reach(self, message: Reaching, member: Member) -> None:
        """Raise ``Forbidden`` if the calling session may not do this to ``member``."""
        check_reach(message, self._caller(message), member, self._table.roster)

    async def _rename(self, message: api.RenameAgent, reply: Reply[api.AgentInfo]) -> None:
        # A spawn or another rename could take the handle while the line is being synced.
        async with self._spawning.lock:
            member = await rename(message, reply, self._table, self._inboxes, self._check_reach)
        if member is not None:
            show_renamed(member, self.context.system)
            info = await self._info(member)
            self._board.put(info)
            reply.send(info)

    async def _count(self, members: list[Member], reply: Reply[api.UsageList]) -> None:
        roster, stored_of = self._table.roster, self._archiver.of
        reply.send(await accounting(members, roster, self._refs, stored_of, self._flusher))

    async def _info(self, member: Member) -> api.AgentInfo:
        """Return the state of a session, whose actor may not run or answer."""
        return await info_of(member, self._table.roster.cwd(member), self._refs.get(member.id))

    async def _list(self, closed: bool, reply: Reply[api.AgentList]) -> None:
        members = [each for each in self._table.roster.kept if closed or not each.is_closed]
        shown = [await self._info(each) for each in members]
        reply.send(api.AgentList(result=sorted(shown, key=lambda each: each.handle)))
