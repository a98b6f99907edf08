"""The start of a guarded process whose guard does not live long enough."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aegis.errors import Unavailable
from aegis.processes.guarded import guard
from aegis.processes.guarded.guarded_process import Launch, start_guarded
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import COOKIE_VARIABLE

pytestmark = pytest.mark.real


async def test_a_guard_that_was_killed_is_named_in_place_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "killed.py"
    script.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    monkeypatch.setattr(guard, "__file__", str(script))
    launch = Launch(
        argv=["sleep", "1000"],
        cwd=str(tmp_path),
        environment={"PATH": os.environ["PATH"], COOKIE_VARIABLE: f"{tmp_path}//x"},
        term_s=1.0,
    )
    with pytest.raises(Unavailable, match="'sleep' was not started: the process that guards it"):
        await start_guarded(launch, ProcessScan(OsProcessHost()))
