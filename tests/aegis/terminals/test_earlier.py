"""What an earlier life of a terminal has left: ended, or named in the log."""

from __future__ import annotations

from pathlib import Path

from structlog.testing import capture_logs

from aegis.terminals.earlier import end_what_is_left
from aegis.terminals.process_scan import OwnedProcess, ProcessScan
from aegis.terminals.process_table import ProcessInfo
from aegis.terminals.shell_note import ShellNote, save_shell

STUCK = ProcessInfo(
    pid=2**22 + 7, name="stuck", state="D", session=2**22 + 7, threads=1, start_time=1
)


async def test_what_does_not_end_is_given_and_named_in_the_log(tmp_path: Path) -> None:
    note = tmp_path / "shell.json"
    save_shell(note, ShellNote(sid=None, cookie="/srv/build/a.b"))
    scan = ProcessScan(lambda: [OwnedProcess(STUCK, "/srv/build/a.b")])
    with capture_logs() as logs:
        left = await end_what_is_left("/srv", "build", note, scan)
        assert await end_what_is_left("/srv", "other", tmp_path / "none", scan) == ()
    assert left == (f"stuck (pid {STUCK.pid})",)
    told = [each for each in logs if each["event"] == "processes remain"]
    assert [(each["terminal"], each["processes"]) for each in told] == [("build", left)]
