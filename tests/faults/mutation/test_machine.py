"""Tests of the disposable machine: it runs the mutant, and can do no harm."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from tests.faults.mutation.machine import ROOT, Machine, machine, why_not

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(why_not() is not None, reason=f"no namespaces: {why_not()}"),
]

GUARD_S = 60.0

CHANGED = "aegis/names.py"


@pytest.fixture(scope="module")
def scratch() -> Iterator[Machine]:
    with machine() as made:
        yield made


async def said(scratch: Machine, program: str) -> str:
    mutant = (ROOT / CHANGED).read_text() + "\nMUTANT = 'here'\n"
    words = [sys.executable, "-c", program]
    ended = await scratch.run(words, within_s=GUARD_S, change=(CHANGED, mutant))
    assert ended.code == 0, ended.output
    return ended.output.strip()


async def test_whatever_is_started_there_runs_the_mutant(scratch: Machine) -> None:
    program = """
import subprocess, sys
inside = "import aegis.names; print(aegis.names.MUTANT)"
subprocess.run([sys.executable, "-P", "-c", inside], env={}, cwd="/", check=True)
"""
    assert await said(scratch, program) == "here"
    assert "MUTANT" not in (ROOT / CHANGED).read_text()


async def test_it_sees_only_its_own_processes_and_files(scratch: Machine, tmp_path: Path) -> None:
    program = f"""
import os, pathlib
pids = [int(each.name) for each in pathlib.Path("/proc").glob("[0-9]*")]
print(max(pids) < 100, os.listdir("/tmp"), os.path.exists({str(tmp_path)!r}))
"""
    assert await said(scratch, program) == "True [] False"


@pytest.mark.parametrize("place", [str(ROOT / "pyproject.toml"), "/etc/hostname", sys.executable])
async def test_it_writes_nowhere_but_in_its_own_tmp(scratch: Machine, place: str) -> None:
    program = f"""
import errno, pathlib
try:
    open({place!r}, "ab")
except OSError as error:
    print(errno.errorcode[error.errno])
pathlib.Path("/tmp/mine").write_text("")
"""
    assert await said(scratch, program) in ("EROFS", "ETXTBSY")


async def test_what_lasts_too_long_is_ended_with_all_that_it_started(scratch: Machine) -> None:
    token = f"{os.getpid()}.{id(scratch)}"
    words = ["bash", "-c", f"setsid sleep {token} & sleep {token}; true"]
    ended = await scratch.run(words, within_s=1.0)
    assert ended.code is None
    with trio.fail_after(GUARD_S):  # the kernel ends them behind the first one
        while any(token in line for line in command_lines()):  # noqa: ASYNC110 -- no event
            await trio.sleep(0.05)


def command_lines() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield (process / "cmdline").read_text()
        except OSError:
            continue
