"""The guard: the end of the daemon, of the guard, and of both."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest
import trio

from aegis.agents.drivers.cookie import DriverCookies, cookie_of_driver
from aegis.processes.os_processes import OsProcessHost, process_of
from aegis.processes.process_scan import ProcessScan
from aegis.processes.reaper import end_processes, find_processes
from tests.aegis.agents.drivers.driving import GUARD_S, driven, plan_for

pytestmark = [pytest.mark.real, pytest.mark.every_python]

OWNER = Path(__file__).with_name("owner.py")
ROOT = Path(__file__).parents[4]


@attrs.frozen(kw_only=True)
class Owned:
    """A process that owns a driver, and the children that its agent named."""

    process: trio.Process
    cookie: str
    children: list[int]

    @property
    def tree(self) -> list[int]:
        """The pids of the agent's processes and of its guard."""
        return [each.pid for each in find_processes([], [self.cookie])]

    def guard(self) -> int:
        found = find_processes([], [self.cookie])
        return next(each.pid for each in found if each.parent == self.process.pid)


@asynccontextmanager
async def owned(directory: Path, *orders: str) -> AsyncIterator[Owned]:
    """Run an owner whose agent has carried out the orders; in the end nothing is left."""
    cookie = cookie_of_driver(str(directory), secrets.token_hex(4), 1)
    command = [sys.executable, str(OWNER), str(directory), cookie, "\n".join([*orders, "SAY done"])]
    process = await trio.lowlevel.open_process(
        command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    children: list[int] = []
    try:
        assert process.stdout is not None
        with trio.fail_after(GUARD_S):
            data = b""
            while b"done\n" not in data:
                piece = await process.stdout.receive_some()
                assert piece, data
                data += piece
        children += [int(line.split()[1]) for line in data.splitlines() if b"child" in line]
        yield Owned(process=process, cookie=cookie, children=children)
    finally:
        with trio.CancelScope(shield=True):
            process.kill()
            await process.wait()
            if process.stdout is not None:
                await process.stdout.aclose()
            await end_processes([], [cookie])
            for pid in children:
                if is_alive(pid):
                    os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    found = process_of(pid)
    return found is not None and found.is_alive


def resident_kilobytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(each for each in status.splitlines() if each.startswith("VmRSS"))
    return int(line.split()[1])


async def all_ended(pids: Iterable[int]) -> None:
    """Wait for the end of these processes."""
    with trio.fail_after(GUARD_S):
        for pid in pids:
            try:
                pidfd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            try:
                await trio.lowlevel.wait_readable(pidfd)
            finally:
                os.close(pidfd)


STUBBORN = ("STUBBORN", "STAY", "SPAWN setsid", "SPAWN double", "SPAWN bare")


@pytest.mark.long
async def test_a_killed_daemon_leaves_no_process_of_an_agent(tmp_path: Path) -> None:
    async with owned(tmp_path, *STUBBORN) as it:
        tree = it.tree
        assert len(tree) >= 4  # the guard, the agent, two children; the third has no environment
        it.process.kill()
        await all_ended([*tree, *it.children])
        assert find_processes([], [it.cookie]) == []


@pytest.mark.long
async def test_a_killed_daemon_ends_an_agent_in_the_middle_of_a_turn_at_once(
    tmp_path: Path,
) -> None:
    async with owned(tmp_path, "SAY working", "SAY on it") as it:
        tree = it.tree
        it.process.kill()
        with trio.fail_after(15):  # the agent would have 20 s to end by itself
            await all_ended(tree)


@pytest.mark.long
async def test_a_killed_guard_is_noticed_and_its_tree_is_ended(tmp_path: Path) -> None:
    async with owned(tmp_path, *STUBBORN[:4]) as it:
        os.kill(it.guard(), signal.SIGKILL)
        await all_ended([*it.tree, *it.children])


@pytest.mark.long
async def test_the_next_daemon_finds_what_a_killed_daemon_and_a_killed_guard_left(
    tmp_path: Path,
) -> None:
    async with owned(tmp_path, *STUBBORN[:4]) as it:
        it.process.send_signal(signal.SIGSTOP)  # it cannot act on the death of the guard
        os.kill(it.guard(), signal.SIGKILL)
        it.process.kill()
        await it.process.wait()
        assert [pid for pid in it.children if not is_alive(pid)] == []
        scan = ProcessScan(OsProcessHost())
        assert await end_processes([], DriverCookies(root=str(tmp_path)), scan=scan) == []
        assert [pid for pid in it.children if is_alive(pid)] == []


async def test_signals_to_the_guard_and_its_group_do_not_end_it(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("SAY here")
        await it.log.text("here")
        guard = it.pid_of_guard()
        assert os.getpgid(guard) == os.getsid(guard) == guard
        for each in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGTSTP", "SIGTTOU", "SIGUSR1"):
            os.killpg(guard, getattr(signal, each))
        await it.turn("SAY still here", "u2")
        await it.log.text("still here")
        assert (await it.close()).exit_code == 0


async def test_the_agent_has_default_signals_and_a_session_of_its_own(tmp_path: Path) -> None:
    argv = ["sh", "-c", "cat /proc/$$/status /proc/$$/stat >&2"]
    async with driven(plan_for(tmp_path, argv=argv)) as it:
        await it.log.driver_end()
    shown = (tmp_path / "stderr").read_text()
    ignored = next(line for line in shown.splitlines() if line.startswith("SigIgn"))
    assert int(ignored.split()[1], 16) & ~(0b11 << 31) == 0  # 32 and 33 are libc's own
    fields = shown.splitlines()[-1].rpartition(")")[2].split()
    pid = int(shown.splitlines()[-1].split()[0])
    assert int(fields[3]) == pid  # its session


async def test_the_guard_holds_no_stream_and_no_directory_of_the_agent(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("SAY here")
        await it.log.text("here")
        guard = it.pid_of_guard()
        held = [os.readlink(f"/proc/{guard}/fd/{each}") for each in os.listdir(f"/proc/{guard}/fd")]
        assert [each for each in held if each.startswith("pipe:")] != []  # its own, for children
        streams = {os.readlink(f"/proc/{it.pid_of_agent()}/fd/{each}") for each in (0, 1, 2)}
        assert streams & set(held) == set()
        assert os.readlink(f"/proc/{guard}/cwd") == "/"
        agents = os.listdir(f"/proc/{it.pid_of_agent()}/fd")
        assert sorted(map(int, agents)) == [0, 1, 2]


async def test_a_guard_is_small(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("SAY here")
        await it.log.text("here")
        resident = resident_kilobytes(it.pid_of_guard())
    assert resident < 12 * 1024


async def test_the_limit_of_open_files_is_that_of_the_plan(tmp_path: Path) -> None:
    argv = ["sh", "-c", "ulimit -n >&2"]
    async with driven(plan_for(tmp_path, argv=argv, open_files=321)) as it:
        await it.log.driver_end()
    assert (tmp_path / "stderr").read_text() == "321\n"


@pytest.mark.long
async def test_a_stopped_guard_is_ended_with_its_agent(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path, eof_s=0.1, term_s=0.1)) as it:
        await it.turn("STUBBORN\nSTAY\nSPAWN setsid\nSAY here")
        await it.log.text("here")
        os.kill(it.pid_of_guard(), signal.SIGSTOP)
        await it.close()
        assert it.processes == []


async def test_a_driver_that_is_stopped_while_it_starts_leaves_no_process(tmp_path: Path) -> None:
    for _ in range(5):
        async with driven(plan_for(tmp_path)) as it:
            it.driver.stop()
            await it.log.driver_end()
            assert it.processes == []


async def test_a_driver_that_is_stopped_in_a_turn_leaves_no_process(tmp_path: Path) -> None:
    async with driven(plan_for(tmp_path)) as it:
        await it.turn("STUBBORN\nSTAY\nSPAWN setsid\nSPAWN bare\nSAY here\nHANG")
        await it.log.text("here")
        children = [int(each.split()[1]) for each in it.log.texts[:-1]]
        it.driver.stop()
        await it.log.driver_end()
        assert it.processes == []
        assert [pid for pid in children if is_alive(pid)] == []


async def test_an_agent_that_does_not_end_at_the_end_of_its_input_is_terminated(
    tmp_path: Path,
) -> None:
    async with driven(plan_for(tmp_path, eof_s=0.1, term_s=GUARD_S)) as it:
        await it.turn("STAY\nSAY here")
        await it.log.text("here")
        assert (await it.close()).exit_code == -signal.SIGTERM


async def test_an_agent_that_forks_faster_than_it_is_killed_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "hydra.sh"
    script.write_text(
        'trap \'sh "$0" & sh "$0" &\' TERM HUP\necho here >&2\nwhile :; do sleep 0.01; done\n'
    )
    async with driven(plan_for(tmp_path, argv=["sh", str(script)], eof_s=0.1)) as it:
        with trio.fail_after(GUARD_S):
            while not (tmp_path / "stderr").exists():  # noqa: ASYNC110 -- a thread writes it
                await trio.sleep(0.01)
        ended = await it.close()
        assert it.processes == []
    assert ended.stderr.startswith("here")
