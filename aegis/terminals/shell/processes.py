"""The processes of a terminal's shells: their start, their note, and their end.

A failed start leaves no process behind. The note is what a later incarnation, or a later daemon,
needs to end the processes of a shell.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs
import structlog
import trio

from aegis.journal.disk import Disk, read_file, replace_file, storage_error, storage_errors
from aegis.journal.flusher import Flusher
from aegis.path_text import path_of_text, text_of_path
from aegis.processes.environment import shell_environment
from aegis.processes.process_host import ErrorTerminal, ProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import CookiesOf, ProcessInfo
from aegis.processes.reaper import ROUNDS, SHORT_ROUNDS, Round, end_processes, is_reused
from aegis.state.sealing import document_fits, sealed_document
from aegis.terminals import faults
from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.hooks.choice import prepare_shell
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.running import RunningShell

log = structlog.get_logger("aegis.terminals")

REAP_S = 0.2
"""How long to wait, in seconds, until the kernel lets a killed shell be reaped."""


@attrs.frozen(kw_only=True)
class StartupFindings:
    """The findings about the start-up files of an earlier start: how the next shell is started.

    ``guards`` keep multiplexers away. ``shell`` is started instead of the terminal's own, with the
    environment ``inherited``.
    """

    guards: Mapping[str, str] = attrs.field(factory=dict)
    shell: str | None = None
    inherited: Mapping[str, str] = attrs.field(factory=dict)


PLACE = StartupFindings()


@attrs.frozen(kw_only=True)
class ShellProcesses:
    """Starts and ends the shells of one terminal; ``file_limit`` is how many files one may open."""

    settings: TerminalSettings
    files: TerminalFiles
    disk: Disk
    file_limit: int
    host: ProcessHost
    scan: ProcessScan

    async def start(
        self, cwd: str, rows: int, cols: int, position: int, place: StartupFindings = PLACE
    ) -> RunningShell:
        """Start a shell in ``cwd`` with a window of that size, under a new name.

        Its output begins at the offset ``position``. Raises ``AegisError``: then none of its
        processes is left.
        """
        errors = (
            self.host.open_error_pty(rows, cols) if self.settings.stderr == "separate" else None
        )
        try:
            return await self._start(cwd, rows, cols, position, place, errors)
        except BaseException:
            if errors is not None:
                errors.close()
            raise

    async def _start(
        self,
        cwd: str,
        rows: int,
        cols: int,
        position: int,
        place: StartupFindings,
        errors: ErrorTerminal | None,
    ) -> RunningShell:
        name = secrets.token_hex(6)
        cookie = self.settings.cookie(name)
        shell = place.shell or path_of_text(self.settings.shell)
        adapter = self._prepare(shell, cookie, None if errors is None else errors.path)
        await faults.SHELL_START_BEFORE.reach(self.settings.name)
        given = {**self.settings.env, **place.guards}
        inherited = place.inherited or os.environ
        environment = shell_environment(inherited, given, cookie, self.settings.withheld)
        process = await self.host.open_pty_process(
            adapter.argv,
            cwd=cwd,
            env=adapter.environment(environment),
            rows=rows,
            cols=cols,
            open_files=self.file_limit,
        )
        running = RunningShell(name, process, cookie, adapter, position, errors)
        try:
            await self._note(running)
        except BaseException:
            # The actor may be cancelled here, even while the shell is discarded; no other task
            # knows this shell.
            with trio.CancelScope(shield=True):
                await self.end_quickly(running)
            raise
        return running

    def _prepare(self, shell: str, cookie: str, error_tty: str | None) -> ShellAdapter:
        """Write the start-up files of the shell, and the note before its start."""
        directory = self.host.startup_directory(self.files.directory)
        with storage_errors("write", self.files.directory):
            adapter = prepare_shell(shell, directory, error_tty)
            save_note(self.disk, self.files.shell, make_note(self.host, None, cookie))
        return adapter

    async def _note(self, running: RunningShell) -> None:
        """Write the note of the process; if that fails, end the shell."""
        try:
            await faults.SHELL_START_AFTER.reach(self.settings.name)
            note = make_note(self.host, running.process.pid, running.cookie)
            save_note(self.disk, self.files.shell, note)
        except Exception as error:
            await self.clean_up(running)
            await running.reap(REAP_S)
            if isinstance(error, OSError):
                raise storage_error("write", self.files.shell, error) from error
            raise

    async def end(self, running: RunningShell, rounds: Sequence[Round] = ROUNDS) -> tuple[str, ...]:
        """End all processes of a shell; return those that remain."""
        sids, cookies = [running.process.pid], [running.cookie]
        left = await end_processes(sids, cookies, rounds, scan=self.scan)
        return report_remaining(self.settings.name, left)

    async def clean_up(self, ended: RunningShell) -> tuple[str, ...]:
        """Close a shell that ended and end its processes; return those that remain."""
        ended.close()
        await faults.SHELL_END_BEFORE.reach(self.settings.name)
        leftover = await self.end(ended)
        await faults.SHELL_END_AFTER.reach(self.settings.name)
        delete_note(self.disk, self.files.shell)
        return leftover

    async def end_quickly(self, running: RunningShell) -> None:
        """End a shell together with its actor."""
        running.close()
        await self.end(running, SHORT_ROUNDS)
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


MAX_NOTE_BYTES = 64 * 1024
"""The most that is read of a note. The notes written here are far shorter."""


@attrs.frozen(kw_only=True)
class ShellNote:
    """A shell's session id (its pid) and start time, its processes' cookie, and its boot.

    ``sid`` is None in the note that is written before the shell is started.
    """

    sid: int | None
    cookie: str
    boot_id: str
    start_time: int | None

    def live_sids(self, host: ProcessHost) -> list[int]:
        """Return the session id, unless another session may have it by now."""
        # The kernel reuses the number of a session that is gone: after a reboot, or where the
        # leader has another start time.
        if self.sid is None or self.start_time is None or self.boot_id != host.current_boot():
            return []
        return [] if is_reused(host, self.sid, self.start_time) else [self.sid]


def make_note(host: ProcessHost, sid: int | None, cookie: str) -> ShellNote:
    """Return the note of the shell that leads the session ``sid``; None before its start."""
    leader = None if sid is None else host.process_of(sid)
    return ShellNote(
        sid=sid,
        cookie=cookie,
        boot_id=host.current_boot(),
        start_time=None if leader is None else leader.start_time,
    )


def save_note(disk: Disk, path: Path, note: ShellNote) -> None:
    """Write the note. Raises ``OSError``."""
    # Not synced: no process survives a loss of power.
    fields = sealed_document(attrs.asdict(note), disk.seal(path))
    replace_file(disk, path, [json.dumps(fields).encode()], durable=False)


def load_note(disk: Disk, path: Path) -> ShellNote | None:
    """Return the note; None if it is missing or damaged."""
    try:
        fields = json.loads(read_file(disk, path, max_bytes=MAX_NOTE_BYTES) or b"")
    except (OSError, ValueError, RecursionError):
        return None
    if not document_fits(fields, disk.seal(path)):
        return None  # an unsealed note could name any process to end
    match fields:
        case {
            "sid": int() | None as sid,
            "cookie": str(cookie),
            "boot_id": str(boot_id),
            "start_time": int() | None as start_time,
        } if sid is None or _can_be_a_shell(sid):
            return ShellNote(sid=sid, cookie=cookie, boot_id=boot_id, start_time=start_time)
        case _:
            return None


def _can_be_a_shell(sid: int) -> bool:
    return type(sid) is int and sid > 1


def delete_note(disk: Disk, path: Path) -> None:
    """Delete the note of a shell whose processes are gone."""
    # A note that cannot be deleted is harmless: its processes are gone.
    with contextlib.suppress(OSError):
        disk.unlink(path)
