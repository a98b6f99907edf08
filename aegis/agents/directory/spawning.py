"""``Spawning``: opens sessions (new ones, forks of others, closed ones again), and purges them.

Before it come the rules of a spawn and a launch, the working directory, the trust in a project's
settings, and the first message.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import attrs
import trio

from actors import ActorCrashed, ActorError, ActorStopped, Ref, Registry, System
from aegis.agents.directory.all_sessions import delete_files
from aegis.agents.directory.checkout import head_of
from aegis.agents.directory.handles import check_handle, new_handle
from aegis.agents.directory.message_rights import root_of
from aegis.agents.directory.programs import Programs
from aegis.agents.directory.project_code import project_code
from aegis.agents.directory.project_text import leads_out
from aegis.agents.directory.replies import closed_info
from aegis.agents.directory.roster import SET, Member, Roster
from aegis.agents.directory.roster_table import RosterTable
from aegis.agents.directory.worktree_rules import refuse_branch
from aegis.agents.directory.worktrees import Worktrees
from aegis.agents.drivers.providers import Provider
from aegis.agents.profiles.limits import Counters
from aegis.agents.profiles.profile import Profile
from aegis.agents.profiles.rights import PERMISSIONS, refuse_budget, refuse_profile
from aegis.agents.sessions.archived import ArchivedTranscript
from aegis.agents.sessions.settings import ResumeAgent
from aegis.clock import moment_text, utc_now
from aegis.errors import (
    AegisError,
    AlreadyExists,
    Forbidden,
    InvalidRequest,
    NotFound,
    StorageError,
    Unavailable,
)
from aegis.journal.disk import storage_error
from aegis.limits import in_thread_or_here
from aegis.names import shorten
from aegis.path_text import path_of_text, stored_path, text_of_path
from aegis.protocol import agents as api
from aegis.protocol.conversations import (
    ContinueConversation,
    ConversationList,
    ListConversations,
    PastConversation,
)
from aegis.protocol.inboxes import Deliver, message_id
from aegis.protocol.naming import name_key
from aegis.protocol.terminals import ListTerminals
from aegis.protocol.trust import ProjectTrust, TrustProject
from aegis.protocol.workspaces import ListWorkspaces


def unseen_holders(provider: Provider) -> str:
    """Return the sentence about an agent that does not show who has a conversation open."""
    copy = "--fork continues a copy" if provider.forks else "it cannot copy one either"
    return (
        f"{provider.name} does not show whether another of its processes has a conversation open: "
        f"end that first, for of two that continue one, each misses what the other does ({copy})"
    )


LAUNCH_S = 240.0
"""Seconds that the terminal and the program of a terminal agent may take to start."""

CLOSE_S = 60.0
"""Seconds that the close of a session may take before its files are deleted."""

Opening = (
    api.SpawnAgent
    | api.SpawnWorker
    | api.SpawnForWorkflow
    | api.SpawnMember
    | api.LaunchAgent
    | api.PersonSpawn
    | api.ForkAgent
    | api.PersonFork
    | ContinueConversation
    | api.ResumeSession
    | api.PersonResume
    | api.PurgeAgent
)
"""The requests that open a session, or end one for good."""


BY_PERSONS = (api.PersonSpawn, api.PersonFork, api.PersonResume, ContinueConversation)


class Start(Protocol):
    """Starts the actors of a session."""

    async def __call__(self, member: Member, *, is_new: bool = False) -> Ref[Any]:
        """Return the session's actor. Raises ``ActorError``, ``NotFound``."""
        ...


@attrs.define(kw_only=True)
class Spawning:
    """Opens sessions in ``table``; ``root`` is the directory of one without a workspace.

    ``inboxes`` is the directory of their files. ``sessions`` returns the number of those that are
    open and have not exited. ``lock`` is held while a handle is chosen and
    written, so that no other session takes it meanwhile.
    """

    programs: Programs
    table: RosterTable
    worktrees: Worktrees
    system: System
    inboxes: Path
    root: str
    start: Start
    sessions: Callable[[], int]
    lock: trio.Lock = attrs.field(factory=trio.Lock)
    _starting: dict[str, trio.Event] = attrs.field(factory=dict, init=False)

    async def wait_started(self, id_: str) -> None:
        """Wait until the actors of a session run that are being started, or could not be."""
        while id_ in self._starting:
            await self._starting[id_].wait()

    async def started(self, member: Member, *, is_new: bool = False) -> Ref[Any]:
        """Start the actors of a session that is in the roster. Raises ``ActorError``."""
        started = self._starting[member.id] = trio.Event()
        try:
            return await self.start(member, is_new=is_new)
        finally:
            del self._starting[member.id]
            started.set()

    async def spawn(self, request: api.SpawnAgent, spawner: Member | None) -> api.AgentInfo:
        """Open a session of a profile. Raises ``AegisError``, ``ActorError``."""
        profile = self.programs.profile(request.profile)
        cwd = await place_of(request.workspace, request.directory, self.system, self.root)
        member = Member(
            id=request.session if isinstance(request, api.SpawnMember) else uuid.uuid4().hex,
            handle=request.handle or "",
            profile=profile.name,
            provider=profile.provider.name,
            place=stored_path(cwd, self.root),
            workspace=request.workspace,
            spawned_by=self._spawner(request),
            parent=None if spawner is None else spawner.id,
            at=utc_now(),
            **{name: getattr(request, name) for name in SET},
        )
        task = request.task_id if isinstance(request, api.SpawnWorker) else None
        profile = self.programs.profile_of(member)
        if profile.permission == "plan" and spawner is not None and spawner.cmd is None:
            # Who approves the plan does not raise it above its spawner.
            most = self.programs.profile_of(spawner).permission
            after = min(
                self.programs.profile(request.profile).permission, most, key=PERMISSIONS.index
            )
            member = attrs.evolve(member, after_plan=after)
        if request.branch is None and not _or(request.worktree, profile.worktree):
            return await self._open(member, profile, spawner, request, task)
        with self.worktrees.opening(member):
            member = await self._in_worktree(member, profile, spawner, request.branch)
            try:
                return await self._open(member, profile, spawner, request, task)
            except (AegisError, ActorError):
                if member.id not in self.table.roster.by_id:
                    await self.worktrees.discard(member.id)
                raise

    async def _in_worktree(
        self, member: Member, profile: Profile, spawner: Member | None, branch: str | None
    ) -> Member:
        """Return a new session in a worktree that is made for it. Raises ``AegisError``."""
        if spawner is not None and spawner.cmd is None:
            by = self.programs.profile_of(spawner)
            if by.permission == "read":
                raise Forbidden(
                    f"aegis_spawn: the profile {by.name!r} may only read, and a worktree changes "
                    "the repository: leave out worktree and branch"
                )
        refusal = None if branch is None else refuse_branch(branch)
        if refusal is not None:
            raise InvalidRequest(f"aegis_spawn: {refusal}")
        # Before anything is made: what is refused leaves nothing.
        handle = self._handle(member.handle)
        self.programs.check(profile)
        cwd = self.table.roster.cwd(member)
        await self.programs.check_program(profile, cwd)
        self._check(profile, spawner)
        if member.id in self.table.roster.by_id or self.worktrees.has(member.id):
            raise AlreadyExists(f"aegis_group_spawn: session {member.id} exists; try again")
        own = await self.worktrees.make(member.id, handle, cwd, branch)
        return attrs.evolve(member, handle=handle, place=stored_path(own, self.root))

    def _spawner(self, request: api.SpawnAgent) -> str:
        if isinstance(request, api.SpawnWorker):
            return f"queue:{request.queue}"
        if isinstance(request, api.SpawnForWorkflow):
            return f"workflow:{request.workflow}"
        return self.programs.names.shown(request.from_handle or "human")

    async def launch(self, request: api.LaunchAgent, spawner: Member | None) -> api.AgentInfo:
        """Open a terminal agent and start its program; on failure nothing is left open.

        Raises ``AegisError``, ``ActorError``.
        """
        if not request.cmd.strip():
            raise InvalidRequest("agent launch: the command is empty; give a program")
        check_terminal(request.handle, await self._terminals())
        cwd = await directory_of(request.workspace, self.system) or self.root
        member = Member(
            id=uuid.uuid4().hex,
            handle=request.handle or "",
            profile="",
            provider="terminal",
            place=stored_path(cwd, self.root),
            workspace=request.workspace,
            spawned_by=self.programs.names.shown(request.from_handle or "human"),
            parent=None if spawner is None else spawner.id,
            at=utc_now(),
            cmd=request.cmd,
        )

        def check() -> None:
            roster, counters = self.table.roster, self.programs.counters
            check_launch(request.workspace, roster, counters, self.sessions())

        member = await self._added(member, spawner, check)
        session = await self.started(member, is_new=True)
        try:
            info: api.AgentInfo = await session.ask(
                api.RestartAgent(handle=member.handle), timeout=LAUNCH_S
            )
        except (AegisError, ActorError):
            with contextlib.suppress(AegisError, ActorError):
                await session.ask(api.CloseAgent(handle=member.handle), timeout=CLOSE_S)
            raise
        return info

    async def fork(self, request: api.ForkAgent, of: Member, session: Ref[Any]) -> api.AgentInfo:
        """Open a session with a copy of another's conversation. Raises ``AegisError``."""
        if of.cmd is not None:
            raise InvalidRequest(
                f"agent fork: {of.handle!r} is a terminal agent, whose conversation is not known"
            )
        info: api.AgentInfo = await session.ask(api.ShowAgent(handle=of.handle))
        if info.conversation is None:
            raise InvalidRequest(
                f"agent fork: {of.handle!r} has no conversation yet; send it a message first"
            )
        member = attrs.evolve(
            of,
            id=uuid.uuid4().hex,
            handle=request.new_handle or "",
            aliases=(),
            spawned_by=self.programs.names.shown(request.from_handle or "human"),
            parent=None,
            at=utc_now(),
            fork_of=info.conversation,
            forked_from=of.id,
            reopened=0,
        )
        return await self._open(member, self.programs.profile_of(of), None, request)

    async def continue_from(
        self, request: ContinueConversation, check: Callable[[], None]
    ) -> api.AgentInfo:
        """Open a session with a conversation of the agent's own program. Raises ``AegisError``.

        ``check`` raises if a session has the conversation: one may have taken it meanwhile.
        """
        profile = self.programs.profile(request.profile)
        cwd = await directory_of(request.workspace, self.system) or self.root
        files, id_ = self.programs.files_of(profile), request.conversation
        if request.fork and not profile.provider.forks:
            raise InvalidRequest(
                f"agent launch: {profile.provider.name} cannot copy a conversation: continue it "
                "itself, without --fork"
            )
        if not await in_thread_or_here(files.has, id_, path_of_text(cwd)):
            raise NotFound(
                f"agent launch: {profile.provider.name} has no conversation {shorten(id_)!r}; see: "
                "agent conversations"
            )
        holders = (await in_thread_or_here(files.holders) or {}).get(id_, ())
        if holders and not request.fork:
            raise Unavailable(
                f"agent launch: the conversation {id_} is open in process {holders[0]}: end that "
                "first, or continue a copy with --fork"
            )
        if unasked := await in_thread_or_here(files.unasked, id_, path_of_text(cwd)):
            raise InvalidRequest(
                f"agent launch: {profile.provider.name} would act in the conversation {id_} "
                f"without asking, for {unasked}: end that in {profile.provider.name} itself first"
            )
        member = Member(
            id=uuid.uuid4().hex,
            handle=request.handle or "",
            profile=profile.name,
            provider=profile.provider.name,
            place=stored_path(cwd, self.root),
            workspace=request.workspace,
            spawned_by=self.programs.names.shown("human"),
            parent=None,
            at=utc_now(),
            fork_of=id_ if request.fork else None,
            began_with=None if request.fork else id_,
        )
        return await self._open(member, profile, None, request, check=check)

    async def conversations(
        self, owner_of: Callable[[str], Member | None], request: ListConversations
    ) -> ConversationList:
        """Return the conversations in a directory. Raises ``AegisError``.

        ``owner_of`` returns the session of this daemon that has a conversation.
        """
        provider = self.programs.profile(request.profile).provider
        files = self.programs.files_of(self.programs.profile(request.profile))
        cwd = await directory_of(request.workspace, self.system) or self.root
        found, more = await in_thread_or_here(files.listed, path_of_text(cwd))
        result = [
            PastConversation(
                id=each.id,
                at=moment_text(each.at),
                begins=each.begins,
                branch=each.branch,
                holder=each.holder if owner is None else f"session {owner.handle}",
            )
            for each in found
            for owner in [owner_of(each.id)]
        ]
        is_shown = await in_thread_or_here(files.holders) is not None
        notice = "" if is_shown else unseen_holders(provider)
        return ConversationList(result=result, more=more, notice=notice)

    async def reopen(self, member: Member) -> Member:
        """Open a closed session again, durably. Raises ``AegisError``."""
        if member.cmd is None:
            profile = self.programs.profile_of(member)
            self.programs.check(profile)
            await self.programs.check_program(profile, self.table.roster.cwd(member))
        roster = self.table.roster
        with self.worktrees.opening(member) as worktree:
            await self.worktrees.make_again(worktree)
            async with self.lock:
                if roster.get(member.id).is_closed:  # and not purged, or opened by another
                    check_room("agent resume", self.programs.counters, self.sessions())
                    reopen = partial(Member.reopen, changed=roster.next_change())
                    await self.table.change(member.id, reopen)
        return roster.by_id[member.id]

    async def purge(
        self, member: Member, session: Ref[Any] | None, stored: ArchivedTranscript
    ) -> api.AgentInfo:
        """Close a session and delete its files, also in the archive.

        Raises ``AegisError``, ``ActorError``.
        After a kill the next start deletes the rest; so does another purge after a failed one.
        """
        if session is not None and not member.is_closed:
            await session.ask(api.CloseAgent(handle=member.handle), timeout=CLOSE_S)
        async with self.lock:
            roster = self.table.roster
            now = roster.by_id[member.id]
            if now.reopened != member.reopened:
                raise Unavailable(f"agent stop: {member.handle!r} was resumed meanwhile; try again")
            if not now.is_purged:
                purged = partial(Member.purged, changed=roster.next_change())
                await self.table.change(member.id, purged)
        with contextlib.suppress(AegisError):
            await self.programs.keys.revoke(member.address)
        flusher = self.table.flusher
        try:
            await flusher.call(partial(delete_files, stored))
        except OSError as error:
            raise storage_error("delete", stored.files, error) from error
        return closed_info(attrs.evolve(member, is_closed=True), roster.cwd(member))

    async def wait_closed(self, member: Member, session: Ref[Any]) -> bool:
        """Wait until a close of an open session that is in progress has ended.

        Returns whether there is one. The session has then sent its end to the directory. Raises
        ``AegisError``, ``ActorError``.
        """
        show = api.ShowAgent(handle=member.handle)
        try:
            if (await self._info(member, session)).state != "closed":
                return False
            await session.ask(api.CloseAgent(handle=member.handle), timeout=CLOSE_S)
            while True:  # its actor has finished, and stops
                await session.ask(show)
        except ActorStopped:
            return True

    async def wake(
        self, member: Member, session: Ref[Any], request: api.ResumeSession
    ) -> api.AgentInfo:
        """Start the agent of a session, with a message if there is one; return its state.

        The agent takes longest: it starts while its message is being stored.
        """
        prompt = request.prompt
        if prompt is not None and member.cmd is not None:
            raise InvalidRequest(
                f"{member.handle!r} is a terminal agent and takes no prompt: type into its terminal"
            )
        session.tell(ResumeAgent())
        if prompt is not None:
            is_person = isinstance(request, BY_PERSONS)
            registry = self.system.registry
            await deliver_prompt(member, prompt, registry, is_first=False, is_person=is_person)
        return await self._info(member, session)

    async def _open(
        self,
        member: Member,
        profile: Profile,
        spawner: Member | None,
        request: api.SpawnAgent | api.ForkAgent | ContinueConversation,
        task: str | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> api.AgentInfo:
        # A bad argument is refused as such, also where the program is missing.
        self._handle(member.handle)
        self.programs.check(profile)
        await self.programs.check_program(profile, self.table.roster.cwd(member))

        def check_all() -> None:
            self._check(profile, spawner)
            check()

        with self.worktrees.opening(member):  # that of another session, in which it works too
            member = await self._added(member, spawner, check_all)
        session = await self.started(member, is_new=True)
        if request.prompt is not None:
            session.tell(ResumeAgent())  # it takes longest: it starts while its message is stored
            await deliver_prompt(
                member,
                request.prompt,
                self.system.registry,
                is_first=True,
                is_person=isinstance(request, BY_PERSONS),
                task=task,
            )
        return await self._info(member, session)

    async def _added(
        self, member: Member, spawner: Member | None, check: Callable[[], None]
    ) -> Member:
        """Add a session to the roster, durably, unless ``check`` raises; return it."""
        roster = self.table.roster
        head = await in_thread_or_here(head_of, path_of_text(roster.cwd(member)))
        async with self.lock:
            if member.id in roster.by_id:
                raise AlreadyExists(f"aegis_group_spawn: session {member.id} exists; try again")
            check()
            member = attrs.evolve(
                member,
                handle=self._handle(member.handle),
                head=head,
                changed=roster.next_change(),
            )
            await self.table.add(member)
            if spawner is not None:
                root = root_of(roster, spawner)
                self.programs.counters.note_spawn(root, time.time())
        return member

    async def _info(self, member: Member, session: Ref[Any]) -> api.AgentInfo:
        while True:
            try:
                info: api.AgentInfo = await session.ask(api.ShowAgent(handle=member.handle))
            except ActorCrashed:
                continue  # it is spawned; its supervisor limits its restarts
            return info

    async def _terminals(self) -> list[str]:
        """Return the names of the open terminals. Raises ``AegisError``, ``ActorError``."""
        owner = self.system.registry.find("service", "terminals")
        if owner is None:
            raise Unavailable("agent launch: terminals are not available now; try again")
        return [each.name for each in (await owner.ask(ListTerminals())).result]

    def _check(self, profile: Profile, spawner: Member | None) -> None:
        """Raise ``Forbidden`` or ``Unavailable`` if the profile may not be spawned."""
        is_session = spawner is not None and spawner.cmd is None
        by = (spawner, self.programs.profile_of(spawner)) if spawner and is_session else None
        roster, counters = self.table.roster, self.programs.counters
        configured = self.programs.profile(profile.name)
        check_spawn(profile, by, roster, counters, self.sessions(), time.time(), configured)

    def _handle(self, wanted: str) -> str:
        """Return the handle of a new session. Raises ``AlreadyExists``, ``InvalidRequest``."""
        taken = self.table.handles_in_use(self.inboxes)
        if not wanted:
            return new_handle(taken, random.SystemRandom().randrange)
        return check_handle("aegis_spawn", wanted, taken)


def _or(asked: bool | None, configured: bool) -> bool:
    return configured if asked is None else asked


async def deliver_prompt(
    member: Member,
    prompt: str,
    registry: Registry,
    *,
    is_first: bool,
    is_person: bool,
    task: str | None = None,
) -> None:
    """Put the spawner's first message, or one of a resume, into the inbox; durable on return.

    ``is_person``: a person has written it, not a program that has no handle.
    """
    service = registry.find("service", "inboxes")
    assert service is not None
    by = member.spawned_by if is_first else "human"
    id_ = f"spawn:{member.id}" if is_first else f"resume:{uuid.uuid4().hex}"
    await service.ask(
        Deliver(
            handle=member.address,
            id=message_id(id_, by, is_person=is_person),
            sender=by if by == "human" or by.startswith("queue:") else f"agent:{by}",
            body=prompt,
            timestamp=utc_now(),
            task_id=task,
        )
    )


async def place_of(workspace: str | None, directory: str | None, system: System, root: str) -> str:
    """Return where a session works: in a workspace, in a directory of the root, or in the root.

    ``directory`` may be relative to the root. Raises ``AegisError``.
    """
    if directory is None:
        return await directory_of(workspace, system) or root
    path = await in_thread_or_here(_inside, directory, root)
    if workspace is not None:
        raise InvalidRequest("agent launch: give a workspace or a directory, not both")
    return path


def _inside(directory: str, root: str) -> str:
    top = path_of_text(root)
    try:
        path = os.path.normpath(os.path.join(top, path_of_text(directory)))  # noqa: PTH118
        is_outside = leads_out(top, path)
        is_directory = os.path.isdir(path)  # noqa: PTH112
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"agent launch: {directory!r} cannot be used: {error}") from None
    if is_outside:
        raise InvalidRequest(
            f"agent launch: {directory!r} is not below the root {root}; make a workspace of it "
            "with workspace_create"
        )
    if not is_directory:
        raise NotFound(f"agent launch: {directory!r} is no directory")
    return text_of_path(path)


async def directory_of(workspace: str | None, system: System) -> str | None:
    """Return the directory of a workspace; None without one. Raises ``NotFound``."""
    if workspace is None:
        return None
    service = system.registry.find("service", "workspaces")
    if service is None:
        raise Unavailable("aegis_spawn: workspaces are not available now; try again")
    listed = (await service.ask(ListWorkspaces())).result
    for each in listed:
        if name_key(each.workspace_id) == name_key(workspace):
            directory: str = each.directory
            return directory
    raise NotFound(f"there is no workspace {workspace!r}; workspace_create makes one")


def check_spawn(
    profile: Profile,
    by: tuple[Member, Profile] | None,
    roster: Roster,
    counters: Counters,
    sessions: int,
    now: float,
    configured: Profile | None = None,
) -> None:
    """Raise ``Forbidden`` or ``Unavailable`` if a session of the profile may not be spawned.

    ``sessions`` is the number of those that are open and have not exited. ``by`` is the spawning
    session with its profile; None: a person or another client. ``configured`` is the profile as it
    is configured, where the spawner has chosen other settings.
    """
    configured = configured or profile
    if by is None:
        refusal = counters.refuse_session(sessions)
    else:
        spawner, own = by
        if spawner.is_closed:
            raise Forbidden(f"aegis_spawn: session {spawner.handle!r} is closed")
        # What a profile lists there is spawned as it is configured.
        is_raised = PERMISSIONS.index(profile.permission) > PERMISSIONS.index(configured.permission)
        may_spawn = () if is_raised else own.may_spawn
        forbidden = refuse_profile(
            own.name, own.permission, may_spawn, profile.name, profile.permission
        ) or refuse_budget(profile.name, profile.budget_usd, configured.budget_usd)
        if forbidden is not None:
            raise Forbidden(f"aegis_spawn: {forbidden}")
        depth = 1 + sum(1 for _ in roster.ancestors(spawner.id))
        refusal = counters.refuse_spawn(root_of(roster, spawner), depth, sessions, now)
    if refusal is not None:
        raise Unavailable(f"aegis_spawn: {refusal}")


def check_launch(workspace: str | None, roster: Roster, counters: Counters, sessions: int) -> None:
    """Raise ``AlreadyExists`` or ``Unavailable`` if no terminal agent may be launched.

    A workspace has one. ``sessions`` is the number of those that are open and have not exited.
    """
    agent = None if workspace is None else roster.workspace_agents.get(name_key(workspace))
    if agent is not None:
        raise AlreadyExists(
            f"workspace {workspace!r} has the agent {agent!r} already: restart it with agent "
            "restart, or end it first with agent stop"
        )
    check_room("agent launch", counters, sessions)


def check_room(verb: str, counters: Counters, sessions: int) -> None:
    """Raise ``Unavailable`` if no further session may have a process beside ``sessions``."""
    refusal = counters.refuse_session(sessions)
    if refusal is not None:
        raise Unavailable(f"{verb}: {refusal}")


def check_terminal(handle: str | None, terminals: Iterable[str]) -> None:
    """Raise ``AlreadyExists`` if the agent ``handle`` would find its terminal in use."""
    if handle is not None and name_key(handle) in {name_key(each) for each in terminals}:
        raise AlreadyExists(
            f"agent launch: there is a terminal {handle!r}, the name that the agent's terminal "
            "would have; choose another handle"
        )


async def trust(message: TrustProject, programs: Programs, system: System) -> ProjectTrust:
    """Return the settings as they are now, once they are trusted if that was ordered.

    Raises ``AegisError``, ``ActorError``.
    """
    profile = programs.profile(message.profile)
    cwd = await place_of(message.workspace, message.directory, system, programs.root)
    provider, home = profile.provider.name, programs.variables.get("HOME")
    code = await in_thread_or_here(partial(project_code, provider, path_of_text(cwd), home))
    try:
        if message.digest is not None:
            if message.digest != code.digest or code.problem:
                raise InvalidRequest(
                    "agent trust: nothing is trusted: "
                    + (code.problem or f"the settings of {cwd} have changed; look at them again")
                )
            await in_thread_or_here(programs.trust, code.digests)
        trusted = await in_thread_or_here(programs.trusted)
    except OSError as error:
        raise StorageError(f"agent trust: the trust is not stored: {error.strerror}") from error
    return ProjectTrust(
        profile=profile.name,
        directory=cwd,
        wanted=profile.project_settings,
        files=list(code.files),
        shown=list(code.shown),
        digest=code.digest,
        is_trusted=code.is_within(trusted),
        problem=code.problem,
    )
