"""Processes on real PTYs."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from aegis.errors import InvalidRequest, Unavailable
from aegis.processes.pty import READ_BYTES, PtyProcess, open_pty_process

pytestmark = [pytest.mark.real, pytest.mark.every_python]

ENV = {"PATH": os.environ["PATH"], "TERM": "xterm-256color"}

Open: TypeAlias = Callable[..., Awaitable[PtyProcess]]


@pytest.fixture
async def open_pty(tmp_path: Path) -> AsyncIterator[Open]:
    opened: list[PtyProcess] = []

    async def start(*argv: str, cols: int = 80, open_files: int | None = None) -> PtyProcess:
        process = await open_pty_process(
            argv, cwd=str(tmp_path), env=ENV, rows=24, cols=cols, open_files=open_files
        )
        opened.append(process)
        return process

    yield start
    for process in opened:
        process.close()
        with trio.move_on_after(1) as patience:
            await process.wait()
        if patience.cancelled_caught:
            os.kill(process.pid, signal.SIGKILL)
            await process.wait()


async def read_all(process: PtyProcess) -> str:
    parts = []
    with trio.fail_after(60):
        while data := await process.read():
            parts.append(data)
    return b"".join(parts).decode().replace("\r\n", "\n")


async def read_until(process: PtyProcess, text: str) -> str:
    seen = b""
    with trio.fail_after(60):
        while text.encode() not in seen:
            data = await process.read()
            assert data, f"ended before {text!r}: {seen!r}"
            seen += data
    return seen.decode()


async def test_output_comes_whole_and_then_the_end(open_pty: Open) -> None:
    process = await open_pty("sh", "-c", "echo one; echo two >&2; exit 3")
    assert await read_all(process) == "one\ntwo\n"
    assert await process.read() == b""
    assert await process.wait() == 3


async def test_death_by_a_signal_is_a_negative_status(open_pty: Open) -> None:
    process = await open_pty("sh", "-c", "kill -9 $$")
    assert await process.wait() == -9


async def test_the_process_leads_its_session_and_has_the_terminal(open_pty: Open) -> None:
    process = await open_pty("sh", "-c", "tty; ps -o pid=,sid=,tpgid= -p $$; read -r x")
    name, facts = (await read_until(process, f" {process.pid}\r\n")).split("\r\n")[:2]
    assert name.startswith("/dev/pts/")
    assert facts.split() == [str(process.pid)] * 3
    assert process.foreground_pgrp() == process.pid


async def test_the_size_is_set_and_changes_with_a_signal(open_pty: Open) -> None:
    process = await open_pty(
        "bash",
        "-c",
        "trap 'stty size; exit' WINCH; stty size; while :; do sleep 0.01; done",
        cols=91,
    )
    await read_until(process, "24 91")
    process.resize(30, 100)
    await read_until(process, "30 100")


async def test_the_environment_is_exactly_what_was_given(open_pty: Open) -> None:
    process = await open_pty("/usr/bin/env")
    assert sorted((await read_all(process)).split("\n")[:-1]) == sorted(
        f"{key}={value}" for key, value in ENV.items()
    )


async def test_no_descriptor_of_ours_but_the_terminal_reaches_the_process(open_pty: Open) -> None:
    other = await open_pty("cat")
    process = await open_pty("sh", "-c", "ls -l /proc/$$/fd")
    listing = await read_all(process)
    other.close()
    targets = {line.rsplit(" -> ")[-1] for line in listing.splitlines() if " -> " in line}
    assert len(targets) == 1
    assert targets.pop().startswith("/dev/pts/")


async def test_the_soft_limit_of_open_files_is_the_one_given(open_pty: Open) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(soft, 333)
    process = await open_pty("bash", "-c", "ulimit -Sn; ulimit -Hn", open_files=wanted)
    shown_hard = "unlimited" if hard == resource.RLIM_INFINITY else str(hard)
    assert (await read_all(process)).split() == [str(wanted), shown_hard]
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (soft, hard)


async def test_signals_have_their_default_effect(open_pty: Open) -> None:
    process = await open_pty(
        sys.executable,
        "-c",
        "import signal as s; print([int(n) for n in (s.SIGPIPE, s.SIGHUP, s.SIGTERM, s.SIGTSTP)"
        " if s.getsignal(n) is not s.SIG_DFL and n != s.SIGPIPE], s.pthread_sigmask(0, []))",
    )
    assert (await read_all(process)).strip() == "[] set()"


async def test_a_large_write_arrives_whole_while_the_echo_is_read(open_pty: Open) -> None:
    size = 300_000
    process = await open_pty("sh", "-c", f"stty raw -echo; echo ready; head -c {size} | cksum; cat")
    await read_until(process, "ready")
    data = os.urandom(size)
    expected = await trio.run_process(["cksum"], stdin=data, capture_stdout=True)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.write, data)
        await read_until(process, expected.stdout.decode().split()[0])


async def test_a_flood_is_read_in_bounded_pieces_that_lose_nothing(open_pty: Open) -> None:
    process = await open_pty("sh", "-c", "seq 1 200000")
    sizes, total = set(), b""
    while data := await process.read():
        sizes.add(len(data))
        total += data
    assert max(sizes) <= READ_BYTES
    assert total == b"".join(b"%d\r\n" % number for number in range(1, 200_001))


async def test_other_tasks_run_beside_a_flood(open_pty: Open) -> None:
    process = await open_pty("yes")
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        for reads in range(200):
            await process.read()
            assert turns >= reads // 2
        nursery.cancel_scope.cancel()


async def test_a_cancelled_read_loses_nothing(open_pty: Open) -> None:
    process = await open_pty("sh", "-c", "read -r x; seq 1 20000")
    with trio.move_on_after(0.01):
        await process.read()
    await process.write(b"go\r")
    parts: list[bytes] = []

    async def read_on(scope: trio.CancelScope) -> None:
        with scope:
            while data := await process.read():
                parts.append(data)

    for _ in range(30):
        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(read_on, scope)
            await trio.lowlevel.checkpoint()
            scope.cancel()
    parts.append((await read_all(process)).replace("\n", "\r\n").encode())
    assert b"".join(parts).endswith(b"".join(b"%d\r\n" % n for n in range(1, 20_001)))


async def test_a_closed_terminal_hangs_up_and_says_so_to_who_still_uses_it(open_pty: Open) -> None:
    process = await open_pty("sh", "-c", "echo ready; exec sleep 1000")
    await read_until(process, "ready")
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:

            async def read() -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await process.read()

            nursery.start_soon(read)
            await wait_all_tasks_blocked()
            process.close()
        assert await process.wait() == -signal.SIGHUP
    process.close()
    for use in (process.read(), process.write(b"x")):
        with pytest.raises(trio.ClosedResourceError):
            await use
    with pytest.raises(trio.ClosedResourceError):
        process.resize(2, 2)


async def test_writing_to_nobody_does_not_hang(open_pty: Open) -> None:
    process = await open_pty("true")
    await process.wait()
    assert await read_all(process) == ""
    with trio.fail_after(60), suppress(trio.BrokenResourceError):
        await process.write(b"x" * 1_000_000)


async def test_an_error_of_the_kernel_is_a_broken_terminal(
    open_pty: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await open_pty("true")

    def fail(descriptor: int, data: bytes) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(trio.BrokenResourceError, match="has the terminal open"):
        await process.write(b"x")


async def test_signals_go_to_the_group_in_front(open_pty: Open) -> None:
    process = await open_pty("bash", "--norc", "-i")
    # A loop, and no `read`: dash would read on after a signal that came right before.
    loop = b"while :; do sleep 0.01; done"
    await process.write(b"sh -c 'trap \"echo caught; exit 5\" INT; echo rea''dy; " + loop + b"'\r")
    await read_until(process, "ready\r\n")
    assert process.foreground_pgrp() != process.pid
    assert process.signal_foreground(signal.SIGINT)
    await read_until(process, "caught")
    await process.write(b"exit 7\r")
    assert await process.wait() == 7
    assert not process.signal_foreground(signal.SIGINT)


@pytest.mark.parametrize(
    ("stty", "canonical", "echo", "start"),
    [
        ("sane", True, True, b"\x11"),
        ("-icanon", False, True, b"\x11"),
        ("-echo", True, False, b"\x11"),
        ("raw -echo", False, False, b""),
        ("-ixon", True, True, b""),
    ],
)
async def test_the_state_of_the_tty_can_be_asked(
    open_pty: Open, stty: str, canonical: bool, echo: bool, start: bytes
) -> None:
    process = await open_pty("sh", "-c", f"stty {stty}; echo ready; read -r x")
    await read_until(process, "ready")
    assert process.is_canonical() is canonical
    assert process.echo_is_on() is echo
    assert process.start_character() == start


async def test_a_wait_is_for_that_process_only(open_pty: Open) -> None:
    first, second = await open_pty("sh", "-c", "exit 1"), await open_pty("sh", "-c", "exit 2")
    assert (await second.wait(), await first.wait()) == (2, 1)


# Nothing is left behind.


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    before = set(os.listdir("/proc/self/fd"))
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    born_before = children.read_text().split()
    yield
    assert set(os.listdir("/proc/self/fd")) <= before
    assert set(children.read_text().split()) <= set(born_before)


@pytest.mark.parametrize(
    "program", ["no-such-shell", "/no/such/shell", "./relative", "/etc/passwd", "/tmp"]
)
async def test_trap_19_a_bad_program_is_refused(tmp_path: Path, program: str) -> None:
    with nothing_left_behind(), pytest.raises(InvalidRequest, match="not an executable file"):
        await open_pty_process([program], cwd=str(tmp_path), env=ENV, rows=24, cols=80)


async def test_a_program_relative_to_the_directory_is_found(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("#!/bin/sh\necho mine\n")
    (tmp_path / "mine").chmod(0o755)
    process = await open_pty_process(["./mine"], cwd=str(tmp_path), env=ENV, rows=24, cols=80)
    assert await read_all(process) == "mine\n"
    await process.wait()
    process.close()


@pytest.mark.parametrize("kind", ["missing", "file", "unreadable"])
async def test_trap_19_a_bad_directory_is_refused(tmp_path: Path, kind: str) -> None:
    bad = tmp_path / kind
    if kind == "file":
        bad.touch()
    elif kind == "unreadable":
        if os.geteuid() == 0:
            pytest.skip("root may enter every directory")
        bad.mkdir(mode=0)
    with nothing_left_behind(), pytest.raises(InvalidRequest, match=r"cwd .* cannot be used"):
        await open_pty_process(["sh"], cwd=str(bad), env=ENV, rows=24, cols=80)


async def test_an_environment_beyond_the_systems_limit_is_refused(tmp_path: Path) -> None:
    env = ENV | {"HUGE": "x" * 5_000_000}
    with nothing_left_behind(), pytest.raises(InvalidRequest, match="environment is too long"):
        await open_pty_process(["sh"], cwd=str(tmp_path), env=env, rows=24, cols=80)


@contextmanager
def room_for(descriptors: int) -> Iterator[None]:
    """Only so many more descriptors can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    listed = os.listdir("/proc/self/fd")
    used = {int(name) for name in listed if os.path.exists(f"/proc/self/fd/{name}")}
    free = (number for number in range(soft) if number not in used)
    limit = next(itertools.islice(free, descriptors, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("room", range(4))
async def test_without_a_free_descriptor_it_is_refused_and_works_again_later(
    tmp_path: Path, room: int
) -> None:
    # Two for the PTY, two more to hear whether the program was started: each may be missing.
    await trio.to_thread.run_sync(lambda: None)
    refused = pytest.raises(Unavailable, match=r"files open, its limit \(RLIMIT_NOFILE\)")
    with nothing_left_behind(), room_for(room), refused:
        await open_pty_process(["true"], cwd=str(tmp_path), env=ENV, rows=24, cols=80)
    process = await open_pty_process(["true"], cwd=str(tmp_path), env=ENV, rows=24, cols=80)
    assert await process.wait() == 0
    process.close()


async def test_without_a_free_pty_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> tuple[int, int]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "openpty", none_left)
    with nothing_left_behind(), pytest.raises(Unavailable, match="cannot open a terminal: no PTY"):
        await open_pty_process(["sh"], cwd=str(tmp_path), env=ENV, rows=24, cols=80)


async def test_without_setsid_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with nothing_left_behind(), pytest.raises(Unavailable, match=r"'setsid'.*util-linux"):
        await open_pty_process(["/bin/sh"], cwd=str(tmp_path), env=ENV, rows=24, cols=80)
