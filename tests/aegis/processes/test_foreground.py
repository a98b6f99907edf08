"""Who is in front of a real terminal, and what it waits for."""

from __future__ import annotations

import os
import platform
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import attrs
import pytest
import trio

from aegis.processes import foreground
from aegis.processes.foreground import program_image, read_foreground
from aegis.processes.input_wait import Foreground, needs_input, reads_descriptor
from aegis.processes.os_processes import OsProcessHost
from aegis.processes.process_scan import GroupScan
from aegis.processes.pty import PtyProcess, open_pty_process
from aegis.protocol.terminals import NeedsInput

pytestmark = [pytest.mark.real, pytest.mark.every_python]

GUARD_S = 60.0

Open: TypeAlias = Callable[..., Awaitable[PtyProcess]]


@pytest.fixture
async def open_pty(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Open]:
    """Starts a program on a terminal whose output is thrown away."""
    opened: list[PtyProcess] = []

    async def start(*argv: str) -> PtyProcess:
        env = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "HOME": str(tmp_path)}
        process = await open_pty_process(argv, cwd=str(tmp_path), env=env, rows=24, cols=80)
        opened.append(process)
        nursery.start_soon(drain, process)
        return process

    yield start
    nursery.cancel_scope.cancel()
    for process in opened:
        with suppress(ProcessLookupError):  # a hang-up may have ended it
            os.killpg(process.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await process.wait()
        process.close()


async def drain(process: PtyProcess) -> None:
    with suppress(trio.ClosedResourceError):
        while await process.read():
            pass


async def look_until(
    process: PtyProcess, done: Callable[[Foreground], bool], what: str
) -> Foreground:
    """Look until what is in front is as it should be."""
    groups = GroupScan(OsProcessHost())
    with trio.fail_after(GUARD_S):
        while True:
            front = await read_foreground(process, groups)
            if front is not None and done(front):
                return front
            await trio.sleep(0.01)
    raise AssertionError(what)


async def until(condition: Callable[[], bool]) -> None:
    with trio.fail_after(GUARD_S):
        while True:
            if condition():
                return
            await trio.sleep(0.01)


PYTHON = f"{sys.executable} -c"


@pytest.mark.parametrize(
    ("argv", "needs"),
    [
        (["cat"], ("input", "cat")),
        (["sh", "-c", "read x"], ("input", "sh")),
        (["bash", "--norc", "-c", "read -t 60 x"], ("input", "bash")),
        (["bash", "--norc", "-c", "read -s x"], ("secret", "bash")),
        (["sh", "-c", "cat </dev/tty"], ("input", "cat")),
        (["sh", "-c", "cat; :"], ("input", "cat")),
        (["sh", "-c", "sleep 60 | cat /dev/tty"], ("input", "cat")),
        (["sh", "-c", f"{PYTHON} 'input()'; :"], ("input", "python")),
        (["sh", "-c", f"{PYTHON} 'import getpass; getpass.getpass()'; :"], ("secret", "python")),
        (["sh", "-c", f"{PYTHON} 'import sys, threading as t; t.Thread(target=input).start()'; :"],
         ("input", "python")),
        (["less", "/etc/services"], ("input", "less")),
        (["bash", "--norc", "-i"], ("input", "bash")),
        (["bash", "--norc", "-c", "read -n 1 x"], ("input", "bash")),
    ],
)  # fmt: skip
async def test_who_waits_for_input_is_found(
    open_pty: Open, argv: list[str], needs: tuple[str, str]
) -> None:
    process = await open_pty(*argv)

    def waits(front: Foreground) -> bool:
        found = needs_input(front, 1.0)
        return found is not None and found.kind == needs[0] and found.program.startswith(needs[1])

    await look_until(process, waits, f"{argv} was not seen to wait")


@pytest.mark.parametrize(
    "script",
    [
        "echo ready >&3; exec sleep 60",
        "echo ready >&3; sleep 60 & wait",
        "echo ready >&3; sleep 60 | cat",
        "mkfifo pipe; echo ready >&3; cat <pipe",
        "echo ready >&3; while :; do :; done",
    ],
)
async def test_who_does_not_read_the_terminal_waits_for_nothing(
    open_pty: Open, tmp_path: Path, script: str
) -> None:
    ready = tmp_path / "ready"
    process = await open_pty("sh", "-c", f"exec 3>{ready}; {script}")
    await until(lambda: ready.exists() and ready.read_text() != "")
    groups = GroupScan(OsProcessHost())
    for _ in range(20):
        front = await read_foreground(process, groups)
        assert front is not None
        assert needs_input(front, 60.0) is None
        await trio.sleep(0.01)
    busy = await look_until(process, lambda front: front.is_busy, "nobody waits for a key")
    assert busy.reader is None


POLLS = "import select, sys, threading, time; open('ready', 'w').write('x')\n"


@pytest.mark.parametrize(
    "code",
    [
        "select.select([0, 1], [], [])",
        "p = select.poll(); p.register(0, select.POLLIN); p.poll()",
        "p = select.epoll(); p.register(0, select.POLLIN); p.poll()",
        "threading.Thread(target=time.sleep, args=[600]).start(); "
        "p = select.epoll(); p.register(0, select.POLLIN); p.poll()",
    ],
)
async def test_a_program_that_waits_for_descriptors_is_not_called_busy(
    open_pty: Open, tmp_path: Path, code: str
) -> None:
    process = await open_pty(sys.executable, "-c", POLLS + code)
    await until((tmp_path / "ready").exists)
    # It computes until it waits.
    await look_until(process, lambda front: not front.is_busy, "it waits")
    groups = GroupScan(OsProcessHost())
    for _ in range(20):
        front = await read_foreground(process, groups)
        assert front is not None
        assert not front.is_busy
        await trio.sleep(0.01)


async def test_a_shell_that_reads_its_next_command_by_the_time_it_is_looked_at_is_not_seen_to_wait(
    open_pty: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await open_pty("bash", "--norc", "-i")
    await look_until(process, lambda front: front.edits_line, "no prompt came")
    at_prompt = process.line_discipline()
    assert at_prompt is not None
    during_command = attrs.evolve(at_prompt, is_canonical=True, echoes=True)
    answers = iter([during_command])
    monkeypatch.setattr(process, "line_discipline", lambda: next(answers, at_prompt))
    assert await read_foreground(process, GroupScan(OsProcessHost())) is None
    assert await read_foreground(process, GroupScan(OsProcessHost())) is not None


async def test_a_read_of_a_pipe_is_not_taken_for_one_of_the_terminal_that_is_restored_meanwhile(
    open_pty: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe, after = tmp_path / "pipe", tmp_path / "after"
    for each in (pipe, after):
        os.mkfifo(each)
    process = await open_pty("bash", "--norc", "-c", f"read x <{pipe}; echo >{after}; sleep 60; :")
    opened, answered = (os.open(each, os.O_RDWR) for each in (pipe, after))
    stdin, file_of = Path(f"/proc/{process.pid}/fd/0"), foreground._file
    await until(lambda: stdin.readlink() == pipe)
    groups = GroupScan(OsProcessHost())
    syscall = Path(f"/proc/{process.pid}/syscall")
    # It has the pipe a moment before it reads.
    await until(lambda: reads_descriptor(syscall.read_text(), platform.machine()) == 0)
    await look_until(process, lambda front: front.is_busy, "the shell does not read the pipe")
    looked: list[int] = []

    def file_after_the_end_of_the_read(pid: int, descriptor: int) -> str:
        if not looked:
            os.write(opened, b"\n")
            assert os.read(answered, 1) == b"\n"
        looked.append(descriptor)
        return file_of(pid, descriptor)

    monkeypatch.setattr(foreground, "_file", file_after_the_end_of_the_read)
    front = await read_foreground(process, groups)
    os.close(opened)
    os.close(answered)
    assert looked
    assert front is None or front.reader is None


async def test_a_reader_in_the_background_does_not_count(open_pty: Open) -> None:
    process = await open_pty("bash", "--norc", "-c", "set -m; cat & sleep 60")

    def sleeps(front: Foreground) -> bool:
        return front.program == "sleep"

    front = await look_until(process, sleeps, "nothing sleeps in front")
    assert needs_input(front, 60.0) is None


async def test_where_the_call_is_hidden_the_kernel_s_place_tells(
    open_pty: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreground, "_read", without("/syscall"))
    process = await open_pty("cat")
    front = await look_until(process, lambda front: front.reader == "cat", "cat does not read")
    assert needs_input(front, 0.1) == NeedsInput(kind="input", program="cat")


async def test_a_program_that_hides_all_is_known_by_its_name_and_the_tty(
    open_pty: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreground, "_read", without("/syscall", "/wchan"))
    process = await open_pty("sh", "-c", "stty -echo; exec cat")

    def silent(front: Foreground) -> bool:
        return front.program == "cat" and not front.echoes

    front = await look_until(process, silent, "cat is not in front")
    assert front.is_hidden
    assert needs_input(front, 0.1) == NeedsInput(kind="secret", program="cat")


async def test_of_a_terminal_that_is_gone_nothing_is_told(open_pty: Open) -> None:
    process = await open_pty("cat")
    assert process.line_discipline() is not None
    process.close()
    assert process.line_discipline() is None
    assert await read_foreground(process, GroupScan(OsProcessHost())) is None


async def test_each_exec_gives_a_process_another_image(open_pty: Open) -> None:
    process = await open_pty("sh", "-c", 'read _; exec sh -c \'read _; exec cat - "two words" ""\'')
    await look_until(process, lambda front: front.reader == "sh", "the first sh does not read")
    first = program_image(process.pid)
    await process.write(b"\n")
    await until(lambda: program_image(process.pid) not in (first, None))
    await look_until(process, lambda front: front.reader == "sh", "the second sh does not read")
    await process.write(b"\n")
    await until(lambda: words_of(process.pid)[:1] == ("cat",))
    assert words_of(process.pid) == ("cat", "-", "two words", "")
    assert program_image(2**22 + 1) is None


async def test_the_same_words_after_another_exec_are_another_image(open_pty: Open) -> None:
    process = await open_pty("bash", "--norc")
    await look_until(process, lambda front: front.edits_line, "bash shows no prompt")
    first = program_image(process.pid)
    assert program_image(process.pid) == first
    await process.write(b"exec bash --norc\r")
    await until(lambda: program_image(process.pid) not in (first, None))
    # Words and address are two files: what was read may be one of before and one of within it.
    await until(lambda: bool(words_of(process.pid)))
    assert words_of(process.pid) == ("bash", "--norc")


def words_of(pid: int) -> tuple[str, ...]:
    image = program_image(pid)
    return () if image is None else image.words  # none while it is exchanged


def without(*endings: str) -> Callable[[str], bytes | None]:
    """The real reader of /proc, to whom files with these names are forbidden."""
    real = foreground._read

    def read(path: str) -> bytes | None:
        return None if path.endswith(endings) else real(path)

    return read
