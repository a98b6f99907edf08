"""The start of one shell of a terminal; a failed start leaves no process behind."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping

import attrs
import trio

from aegis.journal.disk import Disk, storage_error, storage_errors
from aegis.path_text import path_of_text
from aegis.processes.environment import shell_environment
from aegis.processes.process_host import ErrorTerminal, ProcessHost, ShellProcess
from aegis.terminals import faults
from aegis.terminals.hooks.adapter import ShellAdapter
from aegis.terminals.hooks.choice import prepare_shell
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.cleanup import Cleaner
from aegis.terminals.shell.note import make_note, save_note
from aegis.terminals.shell.running import RunningShell
from aegis.terminals.shell.tracker import Tracker
from aegis.terminals.shell.tty_watch import TtyWatch

Follow = Callable[[str, ShellProcess, ShellAdapter], tuple[Tracker, TtyWatch]]
"""Return the tracker and the watch for the shell of this name."""


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
class Starter:
    """Starts the shells of one terminal; ``file_limit`` is how many files a shell may open."""

    settings: TerminalSettings
    files: TerminalFiles
    disk: Disk
    file_limit: int
    cleaner: Cleaner
    host: ProcessHost

    async def start(
        self,
        cwd: str,
        rows: int,
        cols: int,
        follow: Follow,
        place: StartupFindings = PLACE,
    ) -> RunningShell:
        """Start a shell in ``cwd`` with a window of that size, under a new name.

        Raises ``AegisError``: then none of its processes is left.
        """
        name = secrets.token_hex(6)
        cookie = self.settings.cookie(name)
        errors = (
            self.host.open_error_pty(rows, cols) if self.settings.stderr == "separate" else None
        )
        try:
            return await self._start(name, cookie, cwd, rows, cols, follow, place, errors)
        except BaseException:
            if errors is not None:
                errors.close()
            raise

    async def _start(
        self,
        name: str,
        cookie: str,
        cwd: str,
        rows: int,
        cols: int,
        follow: Follow,
        place: StartupFindings,
        errors: ErrorTerminal | None,
    ) -> RunningShell:
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
        tracker, watch = follow(name, process, adapter)
        running = RunningShell(name, process, cookie, tracker, watch, errors)
        try:
            await self._note(running)
        except BaseException:
            # The actor may be cancelled here, even while the shell is discarded; no other task
            # knows this shell.
            with trio.CancelScope(shield=True):
                await self.cleaner.end_quickly(running)
            raise
        return running

    async def _note(self, running: RunningShell) -> None:
        """Write the note of the process; if that fails, end the shell."""
        try:
            await faults.SHELL_START_AFTER.reach(self.settings.name)
            note = make_note(self.host, running.process.pid, running.cookie)
            save_note(self.disk, self.files.shell, note)
        except Exception as error:
            await self.cleaner.discard(running)
            if isinstance(error, OSError):
                raise storage_error("write", self.files.shell, error) from error
            raise

    def _prepare(self, shell: str, cookie: str, error_tty: str | None) -> ShellAdapter:
        """Write the start-up files of the shell, and the note before its start."""
        directory = self.host.startup_directory(self.files.directory)
        with storage_errors("write", self.files.directory):
            adapter = prepare_shell(shell, directory, error_tty)
            save_note(self.disk, self.files.shell, make_note(self.host, None, cookie))
        return adapter
