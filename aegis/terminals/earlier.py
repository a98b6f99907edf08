"""Before a daemon starts its first terminal: nothing that an earlier one left running stays."""

from __future__ import annotations

import contextlib
from pathlib import Path

import structlog
import trio

from aegis.terminals.process_scan import ProcessScan
from aegis.terminals.process_table import CookiesOf
from aegis.terminals.reaper import end_processes
from aegis.terminals.settings import TerminalFiles
from aegis.terminals.shell_note import forget_shell, load_shell

log = structlog.get_logger("aegis.terminals")


async def end_earlier_lives(root: Path, terminals: Path, scan: ProcessScan) -> None:
    """End every process of every terminal of ``root``, open or closed, of whatever life.

    They are known by their cookies, and by the sessions that the notes of shells name. What does
    not end is named in the log.
    """
    notes = await trio.to_thread.run_sync(_shell_notes, terminals)
    known = [note for note in map(load_shell, notes) if note is not None]
    sids = {sid for note in known for sid in note.live_sids()}
    cookies = CookiesOf(root=str(root), also=frozenset(note.cookie for note in known))
    left = await end_processes(sids, cookies, scan=scan)
    if left:
        log.error("processes of an earlier daemon remain", processes=[str(each) for each in left])
        return
    for path in notes:
        with contextlib.suppress(OSError):
            forget_shell(path)


def _shell_notes(terminals: Path) -> list[Path]:
    try:
        directories = list(terminals.iterdir())
    except OSError:
        return []
    notes = [TerminalFiles(directory).shell for directory in directories]
    return [note for note in notes if note.is_file()]
