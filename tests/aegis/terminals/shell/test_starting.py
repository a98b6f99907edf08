"""A shell whose start is not over when its actor ends: nothing of it stays. Real processes."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio

from actors.faults import Delay, Fault, Plan, Raise, armed
from aegis.journal.disk import OsDisk
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_host import ShellProcess
from aegis.processes.process_scan import ProcessScan
from aegis.processes.reaper import end_processes, find_processes
from aegis.terminals.faults import TERMINALS
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.cleanup import Cleaner
from aegis.terminals.shell.running import RunningShell
from aegis.terminals.shell.starting import Starter

pytestmark = pytest.mark.real

GUARD_S = 60.0
"""Against hanging, far above what anything here takes."""


class Start:
    """One start of a program that a hang-up does not end."""

    def __init__(self, directory: Path) -> None:
        runs = directory / "runs"
        os.mkfifo(runs)
        self._runs = os.open(runs, os.O_RDWR)  # for both directions: opening it blocks nobody
        program = directory / "program"
        program.write_text(f"#!/bin/sh\ntrap '' HUP\necho >{runs}\nwhile :; do sleep 1000; done\n")
        program.chmod(0o700)
        host, disk = OsProcessHost(), OsDisk()
        settings = TerminalSettings(
            name="build",
            life="life",
            shell=str(program),
            cwd=str(directory),
            env={},
            cols=80,
            rows=24,
            started_at="2026-01-01T00:00:00.000Z",
            root=str(directory),
        )
        files, self._scan = TerminalFiles(directory), ProcessScan(host)
        cleaner = Cleaner(settings=settings, files=files, disk=disk, scan=self._scan)
        self._starter = Starter(
            settings=settings, files=files, disk=disk, file_limit=256, cleaner=cleaner, host=host
        )
        self.cookie = ""
        self.pid = 0

    async def run(self) -> RunningShell:
        """Start it."""
        return await self._starter.start(self._starter.settings.cwd, 24, 80, self._follow)

    def _follow(self, name: str, process: ShellProcess, adapter: object) -> Any:
        self.cookie, self.pid = self._starter.settings.cookie(name), process.pid
        return cast(Any, SimpleNamespace(close=lambda: None)), None

    def wait_runs(self) -> None:
        """Block until the program runs, and ignores a hang-up."""
        os.read(self._runs, 1)

    @property
    def left(self) -> list[str]:
        """Its processes that live."""
        return list(map(str, find_processes([self.pid], [self.cookie])))

    async def end(self) -> None:
        """Whatever the test found: nothing stays."""
        os.close(self._runs)
        await end_processes([self.pid], [self.cookie], scan=self._scan)


async def test_a_start_that_is_called_off_while_it_is_discarded_leaves_no_process(
    tmp_path: Path,
) -> None:
    start = Start(tmp_path)
    seen: list[list[str]] = []
    is_refused = trio.Event()

    def refuse() -> OSError:
        start.wait_runs()
        seen.append(start.left)
        is_refused.set()
        return OSError(errno.ENOSPC, "no space")

    faults: dict[tuple[str, int], Fault] = {
        ("shell.start.after", 1): Raise(refuse),
        ("shell.end.before", 1): Delay(GUARD_S),
    }
    try:
        with trio.fail_after(GUARD_S), armed(Plan(faults), TERMINALS):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(start.run)
                await is_refused.wait()
                nursery.cancel_scope.cancel()  # as its actor does that stops
        assert seen[0] != []
        assert start.left == []
    finally:
        await start.end()
