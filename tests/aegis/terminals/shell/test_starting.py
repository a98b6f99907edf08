"""A shell whose start is not over when its actor ends: nothing of it stays. Real processes."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.faults import Delay, Fault, Plan, Raise, armed
from aegis.journal.disk import OsDisk
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.processes.pty import PtyProcess
from aegis.processes.reaper import end_processes, find_processes
from aegis.terminals.faults import TERMINALS
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.processes import ShellProcesses
from aegis.terminals.shell.running import RunningShell

pytestmark = pytest.mark.real

GUARD_S = 60.0
"""Against hanging, far above what anything here takes."""


class NotingHost(OsProcessHost):
    """This machine; notes the processes that are started."""

    def __init__(self) -> None:
        super().__init__()
        self.pids: list[int] = []
        self.cookies: list[str] = []

    async def open_pty_process(
        self, argv: Sequence[str], *, env: Mapping[str, str], **how: Any
    ) -> PtyProcess:
        process = await super().open_pty_process(argv, env=env, **how)
        self.pids.append(process.pid)
        self.cookies.append(env["AEGIS_TERMINAL"])
        return process


class Start:
    """One start of a program that a hang-up does not end."""

    def __init__(self, directory: Path) -> None:
        runs = directory / "runs"
        os.mkfifo(runs)
        self._runs = os.open(runs, os.O_RDWR)  # for both directions: opening it blocks nobody
        program = directory / "program"
        program.write_text(f"#!/bin/sh\ntrap '' HUP\necho >{runs}\nwhile :; do sleep 1000; done\n")
        program.chmod(0o700)
        self._host = NotingHost()
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
        self._scan = ProcessScan(self._host)
        self._processes = ShellProcesses(
            settings=settings,
            files=TerminalFiles(directory),
            disk=OsDisk(),
            file_limit=256,
            host=self._host,
            scan=self._scan,
        )

    async def run(self) -> RunningShell:
        """Start it."""
        return await self._processes.start(self._processes.settings.cwd, 24, 80, 0)

    def wait_runs(self) -> None:
        """Block until the program runs, and ignores a hang-up."""
        os.read(self._runs, 1)

    @property
    def left(self) -> list[str]:
        """Its processes that live."""
        return list(map(str, find_processes(self._host.pids, self._host.cookies)))

    async def end(self) -> None:
        """Whatever the test found: nothing stays."""
        os.close(self._runs)
        await end_processes(self._host.pids, self._host.cookies, scan=self._scan)


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
