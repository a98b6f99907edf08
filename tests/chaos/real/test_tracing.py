"""Tests of strace's effects: a process dies before a call or right after it, or the call fails."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aegis.state.root import StatePaths
from tests.chaos.real.deaths import AtCall, Failing
from tests.chaos.real.tracing import reason_not_to_trace, tracer_of

pytestmark = pytest.mark.real

GUARD_S = 60.0

PROGRAM = """
import os, subprocess, sys, threading

directory = sys.argv[1]
ledger = os.open(directory + "/terminals/t0/ledger.jsonl", os.O_RDWR | os.O_CREAT | os.O_APPEND)
other = os.open(directory + "/other", os.O_RDWR | os.O_CREAT | os.O_APPEND)

def tried(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        print(type(error).__name__, error.errno, flush=True)

def sync():
    for _ in range(2):
        tried(os.fdatasync, ledger)

for number in range(4):
    os.write(other, b"x")
    subprocess.run(["sh", "-c", f"echo child >>{directory}/terminals/t0/ledger.jsonl"])
    tried(os.write, ledger, b"line %d\\n" % number)
    thread = threading.Thread(target=sync)
    thread.start()
    thread.join()
open(directory + "/new", "w").close()
tried(os.rename, directory + "/new", directory + "/name")
print("end", flush=True)
"""


@pytest.fixture
def state(tmp_path: Path) -> StatePaths:
    reason = reason_not_to_trace()
    if reason is not None:
        pytest.skip(reason)
    state = StatePaths(tmp_path)
    (state.terminals / "t0").mkdir(parents=True)
    return state


def traced(state: StatePaths, death: AtCall | Failing) -> tuple[int, list[str]]:
    """Return the exit code of the program, and the lines that it printed."""
    words = [*tracer_of(death, state, ["t0"], ["ann"]), sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        [*words, str(state.directory)], capture_output=True, text=True, timeout=GUARD_S, check=False
    )
    return done.returncode, done.stdout.split("\n")[:-1]


def own_lines(state: StatePaths) -> list[str]:
    lines = (state.terminals / "t0" / "ledger.jsonl").read_text().splitlines()
    return [line for line in lines if line != "child"]


def test_before_a_call_the_kernel_does_not_carry_it_out(state: StatePaths) -> None:
    death = AtCall("write of a ledger", 3, after=False)
    assert traced(state, death) == (-signal.SIGKILL, [])
    assert own_lines(state) == ["line 0", "line 1"]
    assert (state.directory / "other").read_text() == "xxx"


def test_after_a_call_it_was_carried_out_and_nothing_else_was(state: StatePaths) -> None:
    death = AtCall("write of a ledger", 3, after=True)
    assert traced(state, death) == (-signal.SIGUSR2, [])
    assert own_lines(state) == ["line 0", "line 1", "line 2"]
    assert (state.directory / "other").read_text() == "xxx"


@pytest.mark.parametrize("after", [False, True])
def test_a_thread_dies_with_its_process(state: StatePaths, after: bool) -> None:
    death = AtCall("fdatasync", 2, after=after)
    code = -signal.SIGUSR2 if after else -signal.SIGKILL
    assert traced(state, death) == (code, [])
    assert own_lines(state) == ["line 0"]


@pytest.mark.parametrize("after", [False, True])
def test_a_rename_was_done_or_not(state: StatePaths, after: bool) -> None:
    code, printed = traced(state, AtCall("rename", 1, after=after))
    assert (code, printed) == (-signal.SIGUSR2 if after else -signal.SIGKILL, [])
    assert (state.directory / "name").exists() == after


def test_what_a_child_writes_neither_counts_nor_fails(state: StatePaths) -> None:
    failing = Failing("write of a ledger", "ENOSPC", first=2, every=2, seconds=0.0)
    code, printed = traced(state, failing)
    assert (code, printed) == (0, ["OSError 28", "OSError 28", "end"])
    text = (state.terminals / "t0" / "ledger.jsonl").read_text()
    assert text.split() == ["child", "line", "0", "child", "child", "line", "2", "child"]


def test_a_call_that_fails_is_counted_in_each_thread_by_itself(state: StatePaths) -> None:
    failing = Failing("fdatasync", "EIO", first=2, every=9, seconds=0.0)
    assert traced(state, failing) == (0, ["OSError 5"] * 4 + ["end"])


def test_without_strace_the_reason_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert reason_not_to_trace() == "strace is not installed"
