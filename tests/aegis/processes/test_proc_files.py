"""Reading /proc while no file descriptor is free."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from aegis.errors import LimitReached
from aegis.processes import proc_files
from aegis.processes.ancestry import ancestry
from aegis.processes.children import ChildCookies
from aegis.processes.os_processes import process_of, read_groups, read_processes
from aegis.processes.process_table import COOKIE_VARIABLE

COOKIE = "/root/build/1"


@contextmanager
def no_descriptor_free() -> Iterator[None]:
    process_of(os.getpid())  # keeps one
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 2, hard))
    taken = []
    try:
        while True:
            try:
                taken.append(os.open("/dev/null", os.O_RDONLY))
            except OSError:
                break
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in taken:
            os.close(each)


@pytest.fixture
def child() -> Iterator[int]:
    env = {**os.environ, COOKIE_VARIABLE: COOKIE}
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the environment is that of the program: the exec is over
        yield process.pid
        process.kill()


def test_a_process_is_seen_with_its_cookie_while_no_descriptor_is_free(child: int) -> None:
    with no_descriptor_free():
        for _ in range(3):
            assert process_of(child) is not None
            assert [each.cookie for each in ancestry(child, ChildCookies())] == [COOKIE]
            cookies = {each.process.pid: each.cookie for each in read_processes()}
            assert cookies[child] == COOKIE
            assert child in [pid for pids in read_groups().values() for pid in pids]


def test_a_process_that_cannot_be_looked_at_does_not_pass_for_one_without_a_cookie(
    child: int,
) -> None:
    with no_descriptor_free():
        with proc_files.spare.lent():
            taken = os.open("/dev/null", os.O_RDONLY)  # as another thread may at this moment
        try:
            assert process_of(child) is None
            with pytest.raises(LimitReached, match="files open, its limit"):
                ancestry(child)
            with pytest.raises(LimitReached):
                read_processes()
        finally:
            os.close(taken)
        assert process_of(child) is not None
        assert len(ancestry(child)) == 1
