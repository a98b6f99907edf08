"""The subtree of each open terminal, below one dynamic supervisor: starts, finds and stops them."""

from __future__ import annotations

from typing import Any

import attrs

from actors import ChildSpec, MailboxSpec, OnRestart, Ref, Restart, SupervisorSpec, System
from aegis.errors import Unavailable
from aegis.journal.flusher import Flusher
from aegis.processes.process_host import ProcessHost
from aegis.processes.process_scan import GroupScan, ProcessScan
from aegis.protocol.inboxes import Deliver
from aegis.protocol.naming import LOCAL_NODE, name_key
from aegis.terminals.front.terminal import Terminal
from aegis.terminals.front.writer import LedgerWriter
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.shell import Shell


@attrs.frozen(kw_only=True)
class Subtrees:
    """The subtrees below ``supervisor`` (a path); the rest is what their actors are given.

    ``node`` is the name of the place where they run.
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
    node: str = LOCAL_NODE

    @property
    def names(self) -> list[str]:
        """The names of the terminals that have one."""
        return self.system.supervisor(self.supervisor).names

    def path(self, name: str) -> str:
        """Where the subtree of the terminal ``name`` sits; the name as it was spawned."""
        return f"{self.supervisor}/{name}"

    def root(self, name: str) -> Ref[Any]:
        """The address of the subtree's own supervisor. To be monitored."""
        return self.system.ref(self.path(name))

    def front(self, name: str) -> Ref[Any] | None:
        """The front of the terminal, whatever the case of the name; None if it has ended."""
        ref = self.system.registry.find("terminal", name_key(name))
        return None if ref is None or ref.is_stopped else ref

    async def start(self, settings: TerminalSettings, files: TerminalFiles) -> Ref[Any]:
        """Start the writer, the front and a shell; gives the front. Raises what they raise."""
        await self.system.supervisor(self.supervisor).start_child(self._spec(settings, files))
        front = self.front(settings.name)
        if front is None:
            raise Unavailable("it crashed as soon as it was started")
        return front

    async def stop(self, name: str) -> None:
        """Stop the subtree and wait until it is gone. No such subtree: nothing to do."""
        await self.system.supervisor(self.supervisor).stop_child(name)

    def _spec(self, settings: TerminalSettings, files: TerminalFiles) -> SupervisorSpec:
        return SupervisorSpec(
            name=settings.name,
            restart=Restart.TEMPORARY,
            children=(
                ChildSpec.of("writer", LedgerWriter, files=files, flusher=self.flusher),
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
