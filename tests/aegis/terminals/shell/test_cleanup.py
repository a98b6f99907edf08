"""What an earlier life of a terminal has left: ended, or named in the log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from structlog.testing import capture_logs

from aegis.journal.disk import OsDisk
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import OwnedProcess, ProcessInfo
from aegis.terminals.shell.processes import end_terminal_processes, make_note, save_note

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
