"""Leaves nothing of a terminal's shells behind: of one that ended, or of an earlier life."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from aegis.journal.disk import Disk
from aegis.processes.process_scan import ProcessScan
from aegis.processes.reaper import ROUNDS, SHORT_ROUNDS, Round, end_processes
from aegis.terminals import faults
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.earlier import end_what_is_left, named
from aegis.terminals.shell.running import RunningShell
from aegis.terminals.shell.shell_note import forget_shell, load_shell

REAP_S = 0.2
"""How long a shell that was killed may take until the kernel lets it be reaped."""


@attrs.frozen(kw_only=True)
class Cleaner:
    """Ends the processes of one terminal's shells."""

    settings: TerminalSettings
    files: TerminalFiles
    disk: Disk
    scan: ProcessScan

    async def end_processes(
        self, running: RunningShell, rounds: Sequence[Round] = ROUNDS
    ) -> tuple[str, ...]:
        """End all processes of a shell; what would not go is named."""
        sids, cookies = [running.process.pid], [running.cookie]
        left = await end_processes(sids, cookies, rounds, scan=self.scan)
        return named(self.settings.name, left)

    async def clean_up(self, ended: RunningShell) -> tuple[str, ...]:
        """Nothing of this shell stays; what would not go is named."""
        ended.finish()
        ended.close()
        await faults.SHELL_END_BEFORE.reach(self.settings.name)
        leftover = await self.end_processes(ended)
        await faults.SHELL_END_AFTER.reach(self.settings.name)
        forget_shell(self.disk, self.files.shell)
        return leftover

    async def discard(self, running: RunningShell) -> None:
        """Undo the start of a shell."""
        await self.clean_up(running)
        await running.reap(REAP_S)

    async def end_in_haste(self, running: RunningShell) -> None:
        """The actor of a shell ends, and the shell with it."""
        running.close()
        await self.end_processes(running, SHORT_ROUNDS)
        await running.reap(REAP_S)

    async def end_earlier(self, incarnation: int) -> None:
        """End what an earlier life of the shell's actor, or of the daemon, has left running.

        A first life that finds no note has nothing to end: ``up`` ended what earlier daemons left.
        """
        if load_shell(self.disk, self.files.shell) is None and incarnation == 1:
            return
        root, name = self.settings.root, self.settings.name
        await end_what_is_left(root, name, self.files.shell, self.scan, self.disk)
        forget_shell(self.disk, self.files.shell)
