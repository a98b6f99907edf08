"""The command ``just chaos``: real histories in processes, from the arguments to the exit code."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.aegis.cli.test_main import ENVIRONMENT, GUARD_S

pytestmark = pytest.mark.real

WHOLE_GUARD_S = 300
"""A timeout for whole histories: some seconds of a processor, on a machine under load."""

PROGRAM = (sys.executable, "-m", "tests.chaos")


def run_chaos(
    *words: str, cwd: Path, guard_s: float = GUARD_S, **variables: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=cwd,
        env={**ENVIRONMENT, **variables},
        capture_output=True,
        timeout=guard_s,
        check=False,
    )


BREAK = '''
"""Breaks a promise in every process that is started with it."""
from aegis.journal.note import Note
Note.load = lambda self: None
'''
"""Recover none of the commands that were in flight."""


def figure(output: str, name: str) -> int:
    found = re.search(rf"^ *{name} +([\d,]+)$", output, re.MULTILINE)
    assert found is not None, output
    return int(found[1].replace(",", ""))


@pytest.mark.long
@pytest.mark.every_python
def test_seeds_are_played_and_counted_in_the_table(tmp_path: Path) -> None:
    words = ("--seed", "0", "--seeds", "3", "--jobs", "2")
    done = run_chaos(*words, cwd=tmp_path, guard_s=WHOLE_GUARD_S)
    output = done.stdout.decode()
    assert done.returncode == 0, output
    assert output.startswith("seeds from 0\n")
    assert figure(output, "seeds") == 3
    assert figure(output, "of these played twice, to one trace") == 1
    assert figure(output, "of these without a fault that hit") == 0
    assert figure(output, "operations") > 3 * 50
    assert figure(output, "in each seed at least") >= 50
    assert figure(output, "faults that hit") >= 3
    assert figure(output, "violations") == 0
    # On a slow machine it reports its progress.
    assert [line for line in done.stderr.splitlines() if b" of 3 seeds" not in line] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_broken_promise_is_reported_with_the_shortest_script_and_the_command_to_repeat_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(BREAK)
    path = f"{tmp_path}:{ENVIRONMENT['PYTHONPATH']}"
    words = ("--seed", "0", "--seeds", "60")
    done = run_chaos(*words, cwd=tmp_path, guard_s=WHOLE_GUARD_S, PYTHONPATH=path)
    output = done.stdout.decode()
    assert done.returncode == 1, output
    seed = int(re.findall(r"^seed (\d+) breaks a promise:$", output, re.MULTILINE)[0])
    kept, whole = re.findall(r"^(\d+) of (\d+) steps and faults break", output, re.MULTILINE)[0]
    assert int(kept) < int(whole) / 4
    assert f"just replay {seed}" in output
    assert "the last of" in output
    assert figure(output, "violations") > 0


def children_of(pid: int) -> list[str]:
    """Return the children of all threads of the process."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [child for children in threads for child in children.read_text().split()]


@pytest.mark.long
@pytest.mark.every_python
def test_ctrl_c_ends_it_with_the_table_so_far(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "--minutes", "60", "--jobs", "1"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"seeds from ")
    deadline = time.monotonic() + GUARD_S
    while not (workers := children_of(process.pid)):
        assert process.poll() is None
        assert time.monotonic() < deadline
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=GUARD_S)
    assert process.returncode == 130, errors
    assert b", interrupted:" in output
    assert figure(output.decode(), "violations") == 0
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


@pytest.mark.long
def test_real_daemons_are_killed_and_nothing_is_left(tmp_path: Path) -> None:
    words = ("--real", "--seed", "5", "--lives", "2")
    done = run_chaos(*words, cwd=tmp_path, guard_s=WHOLE_GUARD_S, TMPDIR=str(tmp_path))
    output = done.stdout.decode()
    assert done.returncode == 0, output
    assert figure(output, "daemons killed") == 2
    assert figure(output, "records checked") > 0
    assert figure(output, "violations") == 0
    assert [each for each in tmp_path.iterdir() if each.name.startswith("aegis-chaos-")] == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--real", "--seeds", "3"], "--seeds and --jobs are for simulated histories"),
        (["--real", "--jobs", "3"], "--seeds and --jobs are for simulated histories"),
        (["--lives", "3"], "--lives is for --real"),
    ],
)
def test_options_of_the_other_kind_are_wrong_usage(
    words: list[str], reason: str, tmp_path: Path
) -> None:
    done = run_chaos(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert reason in done.stderr.decode()


@pytest.mark.parametrize(
    "words",
    [
        ["--seed", "-1"],
        ["--seed", "x"],
        ["--seeds", "0"],
        ["--minutes", "0"],
        ["--jobs", "0"],
    ],
)
def test_wrong_numbers_are_wrong_usage(words: list[str], tmp_path: Path) -> None:
    done = run_chaos(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == b""
    assert words[0] in done.stderr.decode()


@pytest.mark.long
def test_minutes_end_it(tmp_path: Path) -> None:
    done = run_chaos("--minutes", "0.02", "--jobs", "1", cwd=tmp_path)
    output = done.stdout.decode()
    assert done.returncode == 0, output
    assert figure(output, "seeds") > 0
