"""``Programs``: from a session's profile to the driver of its next process."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

import attrs

from actors import ChildSpec, Ref, Restart
from aegis.agents.directory.asked import AskedQuestions
from aegis.agents.directory.handles import SessionNames
from aegis.agents.directory.message_rights import SendingRights
from aegis.agents.directory.roster import SET, Member
from aegis.agents.directory.session_rights import SessionRights
from aegis.agents.directory.user_world import UserWorld, user_world
from aegis.agents.drivers.client.files import SessionFiles
from aegis.agents.drivers.client.services import ClientServices
from aegis.agents.drivers.conversations.found import ConversationFiles
from aegis.agents.drivers.cookie import DriverCookies, cookie_of_driver, session_of_cookie
from aegis.agents.drivers.driver import Driver
from aegis.agents.drivers.harness import Beginning
from aegis.agents.drivers.images import DIRECTORY as IMAGES
from aegis.agents.drivers.providers import provider_of_command
from aegis.agents.drivers.terminals.service import AgentTerminals, TerminalPlan
from aegis.agents.drivers.tui import TuiPlan
from aegis.agents.profiles.families import files_of, start_of, tui_of
from aegis.agents.profiles.limits import Counters
from aegis.agents.profiles.profile import (
    Profile,
    every_key,
    every_profile,
    find_profile,
    own_keys,
    process_variables,
    refuse_start,
    secret_names,
    variables_of,
)
from aegis.agents.profiles.rights import PERMISSIONS
from aegis.agents.sessions.command_outputs import CommandOutputs
from aegis.agents.sessions.edited_files import EditedFiles
from aegis.agents.sessions.session import DRIVER, MakeDriver, Owner
from aegis.agents.sessions.steps import StartDriver
from aegis.configuration.sections import Configuration
from aegis.errors import AlreadyExists, NotFound, Unavailable
from aegis.journal.flusher import Flusher
from aegis.limits import in_thread_or_here
from aegis.path_text import path_of_text
from aegis.processes.environment import process_environment, withhold_keys
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import terminal_of_cookie
from aegis.protocol.tool_sets import Offer

TERMINALS = "terminals"
"""The name of the supervisor of a session's ACP terminals."""

MIN_BUDGET_USD = 0.0001
"""The least budget that a program takes; the session itself holds turns back."""

CLEANUP_S = 2.0
"""Seconds that a driver has to end its processes when the daemon stops."""


class SessionUrls(Protocol):
    """The URLs of sessions, which are secrets."""

    async def session_url(self, handle: str) -> str:
        """Return the MCP URL of the handle; create one if needed. Raises ``AegisError``."""
        ...

    def tools(self, handle: str) -> tuple[str, ...]:
        """Return the sets of tools that the URL of the handle offers."""
        ...

    async def revoke(self, handle: str) -> object:
        """Void the URL of the handle. Raises ``NotFound`` if it has none."""
        ...


@attrs.define(kw_only=True)
class Programs:
    """The agent programs of a daemon, by the profiles of its configuration.

    ``root`` is text as ``aegis.path_text`` makes it. ``open_files`` is the limit of descriptors of
    an agent's processes. ``rights`` are those of the open sessions, ``messages`` those of
    their messages; ``names`` are those of all sessions, ``counters`` count for their limits.
    ``asked`` are their questions to the person, ``edited`` the files that they have changed.
    ``owners`` returns the open sessions by the conversations that they have. ``trusted`` returns
    the digests of the directories whose settings agents may use, and ``trust`` stores more of them;
    both block, and raise ``OSError``.
    """

    configuration: Configuration
    keys: SessionUrls
    scan: ProcessScan
    root: str
    open_files: int | None = None
    rights: SessionRights = attrs.field(factory=SessionRights)
    counters: Counters = attrs.field(
        default=attrs.Factory(lambda self: Counters(self.configuration.limits), takes_self=True)
    )
    messages: SendingRights = attrs.field(
        default=attrs.Factory(
            lambda self: SendingRights(self.profile_of, self.profile, self.counters),
            takes_self=True,
        )
    )
    names: SessionNames = attrs.field(factory=SessionNames)
    asked: AskedQuestions = attrs.field(factory=AskedQuestions)
    edited: EditedFiles = attrs.field(factory=EditedFiles)
    variables: Mapping[str, str] = attrs.field(factory=lambda: dict(os.environ), repr=False)
    trusted: Callable[[], Collection[str]] = tuple
    trust: Callable[[Sequence[str]], None] = lambda digests: None
    owners: Callable[[], Mapping[str, Member]] = dict
    _keys: frozenset[str] = attrs.field(init=False, repr=False)

    @_keys.default
    def _every_key(self) -> frozenset[str]:
        return every_key(every_profile(self.configuration.agents).values())

    def profile(self, name: str | None) -> Profile:
        """Return the profile ``name``, or the default one. Raises ``NotFound``."""
        found = find_profile(name, self.configuration.agents, self.configuration.default_agent)
        if isinstance(found, str):
            raise NotFound(found)
        return found

    def profile_of(self, member: Member) -> Profile:
        """Return the profile of a session, with the changes that a person has made.

        Raises ``NotFound``; a terminal agent has none.
        """
        if member.cmd is not None:
            raise NotFound(f"{member.handle!r} is a terminal agent: it has no profile")
        profile = self.profile(member.profile)
        changed = {name: new for name in SET if (new := getattr(member, name)) is not None}
        return attrs.evolve(profile, **changed)

    def after_plan(self, member: Member, *, with_edits: bool) -> Member:
        """Return a session once a person has approved its plan.

        ``with_edits``: edits of files are approved too. An agent can plan under any permission.
        """
        permission = self.profile_of(member).permission
        if permission == "plan":
            before = member.after_plan or self.profile(member.profile).permission
            permission = "ask" if before == "plan" else before
        if with_edits:
            permission = max(permission, "write", key=PERMISSIONS.index)
        if permission == self.profile_of(member).permission:
            return member
        return attrs.evolve(member, permission=permission, after_plan=None)

    def offer(self, handle: str | None) -> Offer:
        """Return the tools at the MCP URL of a handle; None: the operator's."""
        if handle is None:
            return Offer()
        return self.rights.offer(handle) or Offer(self.keys.tools(handle))

    def withheld_from(self, handle: str | None) -> frozenset[str]:
        """Return the variables that are withheld from what a caller starts: keys of others.

        A person has all.
        """
        if not withhold_keys(handle):
            return frozenset()
        assert handle is not None
        keys = self.rights.keys_of(self.names.address_of(handle))
        return frozenset() if keys is None else self._keys - keys

    def keys_of_program(self, member: Member) -> frozenset[str] | None:
        """Return the variables with keys that the program of a terminal agent gets; None: all.

        A program that is not known has those of its spawner.
        """
        provider = provider_of_command(member.cmd or "")
        if provider is not None:
            return frozenset(provider.key_variables)
        if not withhold_keys(member.spawned_by):
            return None
        return self.rights.keys_of(self.names.address_of(member.spawned_by))

    def check(self, profile: Profile) -> None:
        """Raise ``Unavailable`` if no session can be started from the profile."""
        refusal = refuse_start(profile, self.variables)
        if refusal is not None:
            raise Unavailable(refusal)

    def is_installed(self, program: str, cwd: str) -> bool:
        """Return whether the daemon finds a program, from ``cwd`` on if it is a path. Blocking."""
        return self.scan.host.is_installed(program, cwd, self.variables.get("PATH"))

    def refuse_program(self, profile: Profile, cwd: str) -> str | None:
        """Return why the program of a profile cannot be started in ``cwd``; None if it can.

        Blocking.
        """
        name, provider = profile.command[0], profile.provider
        known = {**self.variables, **variables_of(profile, self.variables)}
        if self.scan.host.is_installed(name, cwd, known.get("PATH")):
            return None
        is_own = bool(provider.install) and profile.command[:1] == provider.start[:1]
        how = f"install it: {provider.install}" if is_own else "install it, or change its command"
        where = "was not found" if "/" in name else "is not in the PATH of the daemon"
        return f"the program {name!r} of the profile {profile.name!r} {where}: {how}"

    async def check_program(self, profile: Profile, cwd: str) -> None:
        """Raise ``NotFound`` if the program of a profile is not installed; ``cwd`` is text."""
        refusal = await in_thread_or_here(self.refuse_program, profile, path_of_text(cwd))
        if refusal is not None:
            raise NotFound(refusal)

    def driver_of(self, member: Member, cwd: str, directory: Path, flusher: Flusher) -> MakeDriver:
        """Return the maker of the drivers of a session in ``cwd``, with files in ``directory``."""
        return partial(self._driver, member, cwd, directory, CommandOutputs(directory, flusher))

    def _world(self, profile: Profile, cwd: str) -> UserWorld:
        """Return the servers, texts and settings for a profile in ``cwd``. Blocking."""
        trusted: Collection[str] = ()
        if profile.project_settings:
            with suppress(OSError):  # then nothing is trusted
                trusted = self.trusted()
        return user_world(profile, cwd, self.variables, trusted)

    async def _driver(
        self,
        member: Member,
        cwd: str,
        directory: Path,
        outputs: CommandOutputs,
        launch: int,
        start: StartDriver,
        owner: Ref[Any],
    ) -> ChildSpec:
        profile = self.rights.profile_of(member.id) or self.profile(member.profile)
        self.check(profile)
        world = await in_thread_or_here(self._world, profile, path_of_text(cwd))
        profile = world.profile
        # Once it has a conversation of its own, or has lost it, nothing is copied again.
        is_first = start.conversation is None and not start.texts
        is_fork = is_first and member.fork_of is not None
        if is_first and member.began_with is not None:
            start = attrs.evolve(start, conversation=member.began_with)
        continued = member.fork_of if is_fork else start.conversation
        if continued is not None and profile.provider.conversations:
            await self._check_conversation(
                member, profile, continued, cwd, verb="agent restart", is_fork=is_fork
            )
            await self._check_asks(member, profile, continued, cwd)
        beginning = await self._beginning(member, cwd, world, start, is_fork=is_fork)
        beginning = attrs.evolve(
            beginning,
            images=str(directory / IMAGES),
            is_unprimed=start.is_cleared or (is_first and member.began_with is not None),
        )
        if profile.budget_usd is not None:
            rest_usd = max(MIN_BUDGET_USD, profile.budget_usd - start.spent_usd)
            profile = attrs.evolve(profile, budget_usd=rest_usd)
        how = start_of(profile, beginning, self.variables, directory)
        withheld = self._keys - own_keys(profile)
        plan = how.plan(
            process_variables(profile, self.variables, token_hex),
            agent=profile.provider.name,
            beginning=beginning,
            inherited={key: self.variables[key] for key in self.variables.keys() - withheld},
            launch=launch,
            cookie=cookie_of_driver(self.root, member.id, launch),
            directory=directory,
            open_files=self.open_files,
            notices=world.notices,
        )
        terminals = AgentTerminals(
            TerminalPlan(
                supervisor=f"{owner.path.rpartition('/')[0]}/{TERMINALS}",
                launch=launch,
                cookie=plan.cookie,
                cwd=path_of_text(cwd),
                environment=plan.command_environment(secret_names(profile)),
                scan=self.scan,
                outputs=outputs,
                open_files=self.open_files,
            )
        )
        client = ClientServices(SessionFiles(path_of_text(cwd)), terminals)
        spec = ChildSpec.of(DRIVER, Driver, plan, owner, self.scan, client)
        return spec.with_options(restart=Restart.TEMPORARY, shutdown_s=CLEANUP_S)

    async def _check_conversation(
        self,
        member: Member,
        profile: Profile,
        conversation: str,
        cwd: str,
        *,
        verb: str,
        is_fork: bool = False,
        is_running: bool = False,
    ) -> None:
        """Raise ``AlreadyExists`` if a conversation cannot be continued before a person has acted.

        Because another process has it open: Claude Code itself guards nothing, so what one of the
        two says would be lost, and Codex refuses the second, for which a fresh conversation would
        be begun. The session's own processes have ended, unless ``is_running``. Or because another
        session continued it while this one was closed. The person then repeats ``verb``.
        """
        files, name = self.files_of(profile), self.names.shown(member.address)
        then = f"and then continue with {verb} {name}"
        owner = None if is_fork else self.owners().get(conversation)
        # Only one that continued it: other agents may count their conversations by process.
        if owner is not None and owner.id != member.id and owner.began_with == conversation:
            raise AlreadyExists(
                f"its conversation is that of the session {owner.handle!r}: close that, {then}"
            )
        pids = (await in_thread_or_here(files.holders) or {}).get(conversation, ())
        if pids and not is_fork:
            holders = await self._holders(pids)
            if is_running:
                holders.pop(member.id, None)
            for holder in holders.values():
                raise AlreadyExists(f"its conversation is open in {holder}: end that, {then}")

    async def _check_asks(
        self, member: Member, profile: Profile, conversation: str, cwd: str
    ) -> None:
        """Raise ``AlreadyExists`` if the agent would ask nobody in a conversation."""
        unasked, files = "", self.files_of(profile)
        with suppress(Unavailable):  # the agent itself reads the file, or reports that it cannot
            unasked = await in_thread_or_here(files.unasked, conversation, path_of_text(cwd))
        if unasked:
            name = self.names.shown(member.address)
            raise AlreadyExists(
                f"it would act in its conversation without asking, for {unasked}: end that in "
                f"{profile.provider.name} itself, with agent takeover {name}, and then continue "
                f"with agent restart {name}"
            )

    async def _holders(self, pids: Sequence[int]) -> dict[str, str]:
        """Return the processes as text, by the ids of their sessions; ``""`` for all others."""
        processes, roster = await self.scan.processes(), self.messages.roster
        holders: dict[str, str] = {}
        for pid in pids:
            cookie = processes.cookie_of(pid) or ""
            session = session_of_cookie(cookie, self.root) or ""
            of_terminal = terminal_of_cookie(cookie, self.root)
            where = ", outside of this daemon"
            if roster is not None and session in roster.by_id:
                where = f" of the session {roster.by_id[session].handle!r}"
            elif of_terminal is not None:
                where = f" in the terminal {of_terminal!r}"
            holders[session] = f"process {pid}{where}"
        return holders

    def _others(self, member: Member) -> dict[str, str]:
        """Return the handles of other sessions by the conversations that they have."""
        return {id_: each.handle for id_, each in self.owners().items() if each.id != member.id}

    def files_of(self, profile: Profile) -> ConversationFiles:
        """Return the conversations of a profile's agent. Raises ``InvalidRequest``."""
        return files_of(profile, {**self.variables, **variables_of(profile, self.variables)})

    async def _beginning(
        self,
        member: Member,
        cwd: str,
        world: UserWorld,
        start: StartDriver,
        *,
        is_fork: bool = False,
    ) -> Beginning:
        """Return how a process of a session begins. Raises ``AegisError``."""
        profile = world.profile
        return Beginning(
            cwd=cwd,
            root=self.root,
            handle=self.names.shown(member.address),
            mcp_url=await self.keys.session_url(member.address),
            primer=primer(self.names.shown(member.address), profile, start.texts, world.texts),
            conversation=member.fork_of if is_fork else start.conversation,
            fork=is_fork,
            model=profile.model,
            effort=profile.effort,
            thinking=profile.thinking,
            permission=profile.permission,
            call_limit_s=profile.call_limit_s,
            login=start.login,
            plan=start.plan,
            servers=world.servers,
            reads_project=world.reads_project,
            project_commands=world.commands,
        )

    async def tui_of(
        self,
        member: Member,
        cwd: str,
        directory: Path,
        launch: int,
        conversation: str,
        owner: Owner | None,
    ) -> TuiPlan:
        """Return the own program of a session's agent, on a conversation, for a person.

        Raises ``AegisError``, also where a conversation cannot be continued in both ways. Only the
        process of the ``owner`` may have it open; that of a person is not looked for.
        """
        profile = self.rights.profile_of(member.id) or self.profile(member.profile)
        self.check(profile)
        await self.check_program(profile, cwd)
        world = await in_thread_or_here(self._world, profile, path_of_text(cwd))
        profile, start = world.profile, StartDriver(conversation=conversation)
        beginning = await self._beginning(member, cwd, world, start)
        withheld = self._keys - own_keys(profile)
        how = tui_of(profile, beginning, directory)
        environment = process_environment(
            {key: self.variables[key] for key in self.variables.keys() - withheld},
            {**process_variables(profile, self.variables, token_hex), **how.added},
            cwd=path_of_text(cwd),
            # Of the driver: the start of a daemon ends the processes with it, and waits for that.
            cookie=cookie_of_driver(self.root, member.id, launch),
        )
        name, is_installed = how.argv[0], self.scan.host.is_installed
        path = path_of_text(cwd)
        if not await in_thread_or_here(is_installed, name, path, environment.get("PATH")):
            raise NotFound(
                f"the program {name!r} with the own interface of {profile.provider.name} is not in "
                "the PATH of the daemon: install it"
            )
        if owner != "person":
            await self._check_conversation(
                *(member, profile, conversation, cwd),
                verb="agent takeover",
                is_running=owner == "agent",
            )
        return TuiPlan(
            agent=profile.provider.name,
            argv=how.argv,
            environment=environment,
            unset=frozenset(self.variables.keys() - environment.keys()),
            directory=directory,
            secrets=how.secrets,
            kept=how.kept,
            cookies=DriverCookies(root=self.root, session=member.id),
            scan=self.scan,
            files=how.files(environment),
            others=partial(self._others, member),
        )


def primer(
    handle: str, profile: Profile, texts: tuple[str, ...], project: tuple[str, ...] = ()
) -> str:
    """Return the text that is added to the agent's system prompt.

    ``texts`` are the last ones of a conversation that could not be resumed, ``project`` those that
    the project has for agents.
    """
    offered = Offer(profile.tools, is_driven=True).commands
    hints = [text for name, text in HINTS.items() if name in offered]
    parts = [" ".join([PRIMER.format(handle=handle), *hints])]
    if profile.prompt:
        parts.append(profile.prompt)
    parts += project
    if texts:
        parts.append("\n".join([LOST, *texts]))
    return "\n\n".join(parts)


PRIMER = """\
You are the agent {handle!r} in a group of coding agents and people that share live terminals. Your
tools of the server `aegis` are for that. Messages to you arrive as user messages that begin with a
line `> from SENDER`."""

HINTS = {
    "handoff": "Answer an agent with aegis_handoff, for it does not see your text; hand work to "
    "others with it too.",
    "term_run": "Run commands on shared terminals with aegis_term_run.",
    "term_subscribe": "Subscribe to a terminal with aegis_term_subscribe to get a message when the "
    "command of another has finished there.",
    "spawn": "Start other agents with aegis_spawn.",
    "ask_human": "Ask the person with aegis_ask_human.",
    "meta": "aegis_meta says who your peers are and which other tools exist.",
    "call": "aegis_tools describes the other tools, and aegis_call calls them.",
}
"""The sentences of the primer about tools, by the command that must be offered."""

LOST = """\
Your earlier conversation could not be resumed. These are its last texts, word for word, the oldest
first. Your work between them is not known to you, so look before you repeat anything:"""
