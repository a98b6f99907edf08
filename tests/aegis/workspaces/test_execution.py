"""Commands without a terminal, with real processes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from aegis.errors import Unavailable
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import ProcessScan
from aegis.processes.reaper import find_processes
from aegis.workspaces.cookie import cookie_of_execution
from aegis.workspaces.execution import Execution

pytestmark = [pytest.mark.real, pytest.mark.every_python]

GUARD_S = 60.0


def execution(command: str, cwd: Path, timeout_s: float = GUARD_S) -> Execution:
    return Execution(
        command=command,
        cwd=str(cwd),
        cookie=cookie_of_execution(str(cwd), "demo", None, 1),
        withheld=frozenset(),
        timeout_s=timeout_s,
        scan=ProcessScan(OsProcessHost()),
    )


def left_of(each: Execution) -> list[str]:
    return [str(process) for process in find_processes([], [each.cookie])]


@pytest.mark.parametrize(
    ("command", "exit_code", "stdout", "stderr"),
    [
        ("true", 0, "", ""),
        ("exit 7", 7, "", ""),
        ("echo out; echo err >&2", 0, "out\n", "err\n"),
        ("kill -9 $$", 137, "", ""),
        ("printf '\\033[31mred\\033[m\\r\\n'", 0, "red\n", ""),
        ("cat; test -t 0 || echo no terminal", 0, "no terminal\n", ""),
        ("printf '\\xff'", 0, "�", ""),
        ("echo $((6*7))\necho two", 0, "42\ntwo\n", ""),
    ],
)
async def test_a_command_gives_its_exit_code_and_both_streams(
    tmp_path: Path, command: str, exit_code: int, stdout: str, stderr: str
) -> None:
    result = await execution(command, tmp_path).run()
    assert (result.exit, result.stdout, result.stderr) == (exit_code, stdout, stderr)
    assert not result.timed_out
    assert not result.truncated


async def test_it_runs_in_its_directory_and_keeps_no_state(tmp_path: Path) -> None:
    result = await execution("cd / && export X=1; pwd", tmp_path).run()
    assert result.stdout == "/\n"
    result = await execution("pwd; echo ${X-unset}", tmp_path).run()
    assert result.stdout == f"{tmp_path}\nunset\n"


async def test_long_output_is_cut_and_both_streams_are_read_to_their_end(tmp_path: Path) -> None:
    result = await execution("seq 300000; seq 300000 >&2", tmp_path).run()
    assert result.exit == 0
    assert result.truncated
    for text in (result.stdout, result.stderr):
        assert text.startswith("1\n2\n")
        assert text.endswith("300000\n")
        assert len(text.encode()) <= 65_536


async def test_when_its_time_is_up_it_is_ended_with_all_its_processes(tmp_path: Path) -> None:
    each = execution("echo begun; nohup sleep 600 & setsid sleep 600 & sleep 600", tmp_path, 0.5)
    result = await each.run()
    assert (result.exit, result.timed_out, result.stdout) == (None, True, "begun\n")
    assert left_of(each) == []


async def test_what_it_leaves_running_is_ended_with_it(tmp_path: Path) -> None:
    each = execution("setsid sleep 600 & echo done", tmp_path)
    result = await each.run()
    assert (result.exit, result.stdout) == (0, "done\n")
    assert left_of(each) == []


async def test_a_cancelled_one_leaves_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "began")
    began = os.open(tmp_path / "began", os.O_RDWR | os.O_NONBLOCK)
    each = execution("echo >began; sleep 600", tmp_path)
    with trio.fail_after(GUARD_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(each.run)
            await trio.lowlevel.wait_readable(began)
            assert left_of(each) != []
            nursery.cancel_scope.cancel()
    os.close(began)
    assert left_of(each) == []


async def test_a_directory_that_is_gone_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be started in"):
        await execution("true", tmp_path / "gone").run()
