"""Ending the processes of shells: of one that ended, or of earlier incarnations and daemons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import attrs
import structlog

from aegis.journal.disk import Disk
from aegis.journal.flusher import Flusher
from aegis.path_text import text_of_path
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import CookiesOf, ProcessInfo
from aegis.processes.reaper import ROUNDS, SHORT_ROUNDS, Round, end_processes
from aegis.terminals import faults
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.note import ShellNote, delete_note, load_note
from aegis.terminals.shell.running import RunningShell

log = structlog.get_logger("aegis.terminals")

REAP_S = 0.2
"""How long to wait, in seconds, until the kernel lets a killed shell be reaped."""


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
        """End all processes of a shell; return those that remain."""
        sids, cookies = [running.process.pid], [running.cookie]
        left = await end_processes(sids, cookies, rounds, scan=self.scan)
        return report_remaining(self.settings.name, left)

    async def clean_up(self, ended: RunningShell) -> tuple[str, ...]:
        """Close a shell that ended and end its processes; return those that remain."""
        ended.finish()
        ended.close()
        await faults.SHELL_END_BEFORE.reach(self.settings.name)
        leftover = await self.end_processes(ended)
        await faults.SHELL_END_AFTER.reach(self.settings.name)
        delete_note(self.disk, self.files.shell)
        return leftover

    async def discard(self, running: RunningShell) -> None:
        """Undo the start of a shell."""
        await self.clean_up(running)
        await running.reap(REAP_S)

    async def end_quickly(self, running: RunningShell) -> None:
        """End a shell together with its actor."""
        running.close()
        await self.end_processes(running, SHORT_ROUNDS)
        await running.reap(REAP_S)

    async def end_earlier(self, incarnation: int) -> None:
        """End the processes that an earlier incarnation, or an earlier daemon, left running."""
        if load_note(self.disk, self.files.shell) is None and incarnation == 1:
            return  # the start of the daemon has ended the processes of earlier daemons
        root, name = self.settings.root, self.settings.name
        await end_terminal_processes(root, name, self.files.shell, self.scan, self.disk)
        delete_note(self.disk, self.files.shell)


async def end_leftover_processes(
    root: Path, terminals: Path, scan: ProcessScan, flusher: Flusher
) -> None:
    """End every process of every terminal of ``root``, open or closed, of all earlier daemons.

    The processes are found by their cookies, and by the sessions in the shells' notes. Processes
    that remain are logged.
    """
    notes = await flusher.look(partial(_shell_notes, flusher.disk, terminals))
    known = [note for note in notes.values() if note is not None]
    sids = {sid for note in known for sid in note.live_sids(scan.host)}
    cookies = CookiesOf(root=text_of_path(root), also=frozenset(note.cookie for note in known))
    left = await end_processes(sids, cookies, scan=scan)
    if left:
        log.error("processes of an earlier daemon remain", processes=[str(each) for each in left])
        return
    for path in notes:
        delete_note(flusher.disk, path)


async def end_terminal_processes(
    root: str, terminal: str, note: Path, scan: ProcessScan, disk: Disk
) -> tuple[str, ...]:
    """End every process of one terminal, of any incarnation; return those that remain.

    ``note`` is the path of its last shell's note.
    """
    last = load_note(disk, note)
    sids = [] if last is None else last.live_sids(scan.host)
    also = frozenset[str]() if last is None else frozenset({last.cookie})
    cookies = CookiesOf(root=root, name=terminal, also=also)
    return report_remaining(terminal, await end_processes(sids, cookies, scan=scan))


def report_remaining(terminal: str, left: Iterable[ProcessInfo]) -> tuple[str, ...]:
    """Log and describe the processes of a terminal that could not be ended."""
    names = tuple(map(str, left))
    if names:
        log.error("processes remain", terminal=terminal, processes=names)
    return names


def _shell_notes(disk: Disk, terminals: Path) -> dict[Path, ShellNote | None]:
    """Read the shell note of each terminal, by its path; None where it cannot be read."""
    try:
        names = disk.list_directory(terminals)
    except OSError:
        return {}
    paths = [TerminalFiles(terminals / name).shell for name in names]
    return {path: load_note(disk, path) for path in paths}
