"""What an earlier life of a terminal has left: ended, or named in the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from aegis.journal.disk import OsDisk
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import OwnedProcess, ProcessInfo
from aegis.terminals.settings import TerminalFiles, TerminalSettings
from aegis.terminals.shell.processes import (
    ShellProcesses,
    end_terminal_processes,
    make_note,
    save_note,
)
from tests.aegis.terminals.samples import AT

STUCK = ProcessInfo(
    pid=2**22 + 7, name="stuck", state="D", session=2**22 + 7, threads=1, start_time=1
)


class StuckHost(OsProcessHost):
    """A machine with one process, which nothing can end."""

    async def all_processes(self) -> Sequence[OwnedProcess]:
        return [OwnedProcess(STUCK, "/srv/build/a.b")]


async def test_what_does_not_end_is_given_and_named_in_the_log(tmp_path: Path) -> None:
    note = tmp_path / "shell.json"
    save_note(OsDisk(), note, make_note(OsProcessHost(), None, "/srv/build/a.b"))
    scan = ProcessScan(StuckHost())
    with capture_logs() as logs:
        left = await end_terminal_processes("/srv", "build", note, scan, OsDisk())
        assert (
            await end_terminal_processes("/srv", "other", tmp_path / "none", scan, OsDisk()) == ()
        )
    assert left == (f"stuck (pid {STUCK.pid})",)
    told = [each for each in logs if each["event"] == "processes remain"]
    assert [(each["terminal"], each["processes"]) for each in told] == [("build", left)]


@pytest.mark.parametrize(("incarnation", "named"), [(1, 0), (2, 1)])
async def test_without_a_note_only_a_shell_that_crashed_looks_for_what_was_left(
    tmp_path: Path, incarnation: int, named: int
) -> None:
    """The start of the daemon has ended the processes of earlier ones, of all terminals at once."""
    host = StuckHost()
    processes = ShellProcesses(
        settings=TerminalSettings(
            name="build",
            life="l",
            shell="bash",
            cwd="/",
            env={},
            cols=80,
            rows=24,
            started_at=AT,
            root="/srv",
        ),
        files=TerminalFiles(tmp_path),
        disk=OsDisk(),
        file_limit=64,
        host=host,
        scan=ProcessScan(host),
    )
    with capture_logs() as logs:
        await processes.end_earlier(incarnation)
    assert [each["event"] for each in logs].count("processes remain") == named
