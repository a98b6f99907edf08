"""Tests of the holders of a root's locks, files and terminals."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos.real.processes import holders_of, is_locked, processes_of

pytestmark = pytest.mark.real

WAITS = "import sys; print(flush=True); sys.stdin.read()"


@contextmanager
def waiting(program: str = WAITS, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that runs, and ends with its standard input."""
    words = [sys.executable, "-c", program]
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.stdin.close()


def test_a_process_with_the_cookie_of_a_terminal_is_one_of_its_root(tmp_path: Path) -> None:
    with waiting(AEGIS_TERMINAL=f"{tmp_path}/build/1f2e") as process:
        assert [each.pid for each in processes_of(tmp_path)] == [process.pid]
        assert processes_of(tmp_path / "other") == frozenset()
    assert processes_of(tmp_path) == frozenset()


def test_a_process_that_held_a_file_before_another_began_is_found(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    opening = f"held = open({str(tmp_path / 'state' / 'file')!r}, 'w'); {WAITS}"
    with waiting(opening) as holder:
        time.sleep(2 / os.sysconf("SC_CLK_TCK"))  # starts are compared in ticks of the clock
        with waiting() as later:
            found = holders_of(tmp_path / "state", before=later.pid)
            assert [each.pid for each in found] == [holder.pid]
            assert holders_of(tmp_path / "state", before=holder.pid) == frozenset()
            assert holders_of(tmp_path / "sta", before=later.pid) == frozenset()


def test_a_lock_is_seen_as_long_as_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    assert not is_locked(path)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert is_locked(path)
    os.close(descriptor)
    assert not is_locked(path)
