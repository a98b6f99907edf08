"""The actors of the terminals in one process (``Subtrees``); the host of a worker's terminals.

The daemon's directory decides which process has which terminal. A host keeps no durable state: the
open terminals are in the daemon's workspace.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import trio

from actors import (
    Actor,
    ActorStopped,
    ChildSpec,
    MailboxSpec,
    OnRestart,
    Ref,
    Reply,
    Request,
    Restart,
    SupervisorSpec,
    System,
)
from aegis.errors import AlreadyExists, Unavailable
from aegis.journal.flusher import Flusher
from aegis.path_text import path_of_text
from aegis.processes.process_host import ProcessHost
from aegis.processes.process_scan import GroupScan, ProcessScan
from aegis.protocol.inboxes import Deliver
from aegis.protocol.naming import LOCAL_NODE, name_key
from aegis.protocol.terminals import Done
from aegis.terminals.directory.spawning import check_descriptors, spawn_failure
from aegis.terminals.front.terminal import Terminal
from aegis.terminals.front.writer import LedgerWriter
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.shell import Shell

GROUP = "terminal-host"
"""The registry group of the hosts, each under the name of its node."""

SUPERVISOR = "terminals"
HOST = "terminal-host"


@attrs.frozen(kw_only=True)
class FrontStarted:
    """The terminal's front is up at the path ``front``."""

    front: str


@attrs.frozen(kw_only=True)
class StartTerminal(Request[FrontStarted]):
    """Start the actors and a shell of a terminal whose files are in ``directory``.

    ``directory`` is text as ``aegis.path_text`` makes it. A refusal is the error for the caller of
    spawn.
    """

    settings: TerminalSettings
    directory: str


@attrs.frozen(kw_only=True)
class StopTerminal(Request[Done]):
    """Stop the actors of a terminal, also while they are being started."""

    name: str


@attrs.frozen(kw_only=True)
class HostedNames:
    """The names, as they were spawned, of the terminals that have actors."""

    names: list[str]


@attrs.frozen(kw_only=True)
class HostedTerminals(Request[HostedNames]):
    """Return the terminals that have actors in this process."""


@attrs.frozen(kw_only=True)
class HostIsUp:
    """Notify the directory that terminals can be started on ``node``."""

    node: str


@attrs.frozen(kw_only=True)
class Subtrees:
    """The subtrees of terminals below the dynamic supervisor at the path ``supervisor``.

    ``node`` is the name of this process; the other attributes are passed to the actors.
    """

    system: System
    supervisor: str
    flusher: Flusher
    inboxes: Ref[Deliver]
    host: ProcessHost
    scan: ProcessScan
    groups: GroupScan
    shell_file_limit: int
    raw_log_bytes: int
    archive_bytes: int
    node: str = LOCAL_NODE

    @property
    def names(self) -> list[str]:
        """The names of the terminals that have a subtree."""
        return self.system.supervisor(self.supervisor).names

    def path(self, name: str) -> str:
        """Return the path of the subtree of the terminal ``name``, as it was spawned."""
        return f"{self.supervisor}/{name}"

    def root(self, name: str) -> Ref[Any]:
        """Return the address of the subtree's supervisor, for monitoring."""
        return self.system.ref(self.path(name))

    def front(self, name: str) -> Ref[Any] | None:
        """Return the front of the terminal; None if it has ended. The name may have any case."""
        ref = self.system.registry.find("terminal", name_key(name))
        return None if ref is None or ref.is_stopped else ref

    async def start(self, settings: TerminalSettings, files: TerminalFiles) -> Ref[Any]:
        """Start the writer, the front and a shell; return the front. Raises what they raise."""
        spec = self._spec(settings, files)
        await self.system.supervisor(self.supervisor).start_child(spec)
        front = self.front(settings.name)
        if front is None:
            raise Unavailable("it crashed as soon as it was started")
        return front

    async def stop(self, name: str) -> None:
        """Stop the subtree, if it exists, and wait until it is gone."""
        await self.system.supervisor(self.supervisor).stop_child(name)

    def _spec(self, settings: TerminalSettings, files: TerminalFiles) -> SupervisorSpec:
        return SupervisorSpec(
            name=settings.name,
            restart=Restart.TEMPORARY,
            children=(
                ChildSpec.of(
                    "writer",
                    LedgerWriter,
                    files=files,
                    flusher=self.flusher,
                    archive_bytes=self.archive_bytes,
                ),
                ChildSpec.of(
                    "terminal",
                    Terminal,
                    settings=settings,
                    files=files,
                    flusher=self.flusher,
                    inboxes=self.inboxes,
                    host=self.host,
                    node=self.node,
                ),
                ChildSpec.of(
                    "shell",
                    Shell,
                    settings=settings,
                    files=files,
                    disk=self.flusher.disk,
                    file_limit=self.shell_file_limit,
                    raw_log_bytes=self.raw_log_bytes,
                    host=self.host,
                    scan=self.scan,
                    groups=self.groups,
                ).with_options(mailbox=MailboxSpec(on_restart=OnRestart.CLEAR)),
            ),
        )


class TerminalHost(Actor[StartTerminal | StopTerminal | HostedTerminals]):
    """Starts and stops terminals below ``supervisor`` (a path); ``node`` names this process.

    The actors at the paths ``inboxes`` and ``directory`` are the daemon's. The shells run on
    ``host``.
    """

    def __init__(
        self,
        *,
        node: str,
        supervisor: str,
        inboxes: str,
        directory: str,
        flusher: Flusher,
        shell_file_limit: int,
        raw_log_bytes: int,
        archive_bytes: int,
        host: ProcessHost,
    ) -> None:
        self._node = node
        self._supervisor = supervisor
        self._inboxes = inboxes
        self._directory = directory
        self._flusher = flusher
        self._shell_file_limit = shell_file_limit
        self._raw_log_bytes = raw_log_bytes
        self._archive_bytes = archive_bytes
        self._host = host
        self._starting: dict[str, trio.Event] = {}

    async def setup(self) -> None:
        """Register, and notify the directory: terminals may wait for a node."""
        system = self.context.system
        self._subtrees = Subtrees(
            system=system,
            supervisor=self._supervisor,
            flusher=self._flusher,
            inboxes=system.ref(self._inboxes),
            host=self._host,
            scan=ProcessScan(self._host),
            groups=GroupScan(self._host),
            shell_file_limit=self._shell_file_limit,
            raw_log_bytes=self._raw_log_bytes,
            archive_bytes=self._archive_bytes,
            node=self._node,
        )
        self.context.register(GROUP, self._node)
        system.ref(self._directory).tell(HostIsUp(node=self._node))

    async def receive(self, message: StartTerminal | StopTerminal | HostedTerminals) -> None:
        """Handle a request; starts and stops run in helper tasks."""
        match message:
            case StartTerminal():
                self._start(message)
            case StopTerminal(name=name):
                self.context.start_soon(self._stop, name, self.defer(message))
            case HostedTerminals():
                self.reply(message, HostedNames(names=self._subtrees.names))

    def _start(self, request: StartTerminal) -> None:
        key = name_key(request.settings.name)
        if key in self._starting:
            raise AlreadyExists(f"terminal {request.settings.name!r} is being started already")
        check_descriptors(coming=len(self._starting) + 1)
        self._starting[key] = trio.Event()
        self.context.start_soon(self._start_and_answer, request, self.defer(request))

    async def _start_and_answer(self, request: StartTerminal, reply: Reply[FrontStarted]) -> None:
        settings, files = request.settings, TerminalFiles(Path(path_of_text(request.directory)))
        try:
            front = await self._subtrees.start(settings, files)
            reply.send(FrontStarted(front=front.path))
        except Exception as error:
            reply.fail(spawn_failure(settings.name, files, error))
        finally:
            self._starting.pop(name_key(settings.name)).set()

    async def _stop(self, name: str, reply: Reply[Done]) -> None:
        while (starting := self._starting.get(name_key(name))) is not None:
            await starting.wait()
        try:
            await self._subtrees.stop(name)
        except ActorStopped as error:  # the whole process is being stopped
            reply.fail(error)
        else:
            reply.send(Done())


def host_tree(
    *,
    node: str,
    path: str,
    inboxes: str,
    directory: str,
    flusher: Flusher,
    shell_file_limit: int,
    raw_log_bytes: int,
    archive_bytes: int,
    host: ProcessHost,
) -> tuple[SupervisorSpec | ChildSpec, ...]:
    """Return the children that make the supervisor at ``path`` a host of terminals.

    The other arguments are those of ``TerminalHost``.
    """
    return (
        SupervisorSpec(name=SUPERVISOR, dynamic=True),
        ChildSpec.of(
            HOST,
            TerminalHost,
            node=node,
            supervisor=f"{path}/{SUPERVISOR}",
            inboxes=inboxes,
            directory=directory,
            flusher=flusher,
            shell_file_limit=shell_file_limit,
            raw_log_bytes=raw_log_bytes,
            archive_bytes=archive_bytes,
            host=host,
        ),
    )
