"""Nothing of an earlier life stays: of one terminal, or of all before a daemon starts its first."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import structlog

from aegis.journal.disk import Disk
from aegis.journal.flusher import Flusher
from aegis.path_text import text_of_path
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import CookiesOf, ProcessInfo
from aegis.processes.reaper import end_processes
from aegis.terminals.settings import TerminalFiles
from aegis.terminals.shell.shell_note import ShellNote, forget_shell, load_shell

log = structlog.get_logger("aegis.terminals")


async def end_earlier_lives(
    root: Path, terminals: Path, scan: ProcessScan, flusher: Flusher
) -> None:
    """End every process of every terminal of ``root``, open or closed, of whatever life.

    They are known by their cookies, and by the sessions that the notes of shells name. What does
    not end is named in the log.
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
        forget_shell(flusher.disk, path)


async def end_what_is_left(
    root: str, terminal: str, note: Path, scan: ProcessScan, disk: Disk
) -> tuple[str, ...]:
    """End every process of one terminal, of whatever life; ``note`` is that of its last shell.

    Gives those that did not end, as ``named`` does.
    """
    last = load_shell(disk, note)
    sids = [] if last is None else last.live_sids(scan.host)
    also = frozenset[str]() if last is None else frozenset({last.cookie})
    cookies = CookiesOf(root=root, name=terminal, also=also)
    return named(terminal, await end_processes(sids, cookies, scan=scan))


def named(terminal: str, left: Iterable[ProcessInfo]) -> tuple[str, ...]:
    """What is said of processes of a terminal that could not be ended; the log says it, too."""
    names = tuple(map(str, left))
    if names:
        log.error("processes remain", terminal=terminal, processes=names)
    return names


def _shell_notes(disk: Disk, terminals: Path) -> dict[Path, ShellNote | None]:
    """What stands in the place of a shell's note of each terminal, and what it says."""
    try:
        names = disk.list_directory(terminals)
    except OSError:
        return {}
    paths = [TerminalFiles(terminals / name).shell for name in names]
    return {path: load_shell(disk, path) for path in paths}
