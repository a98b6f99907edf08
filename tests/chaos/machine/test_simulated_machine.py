"""The simulated machine: signals, sessions, remaining processes, and a daemon that is killed."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from random import Random

import attrs
import pytest
import trio
import trio.testing

from aegis.errors import InvalidRequest, Unavailable
from aegis.processes.process_host import ProcessHost, ShellProcess
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import COOKIE_VARIABLE
from aegis.processes.reaper import end_processes
from aegis.terminals.hooks import bash
from aegis.terminals.hooks.adapter import ShellAdapter
from tests.chaos.machine.simulated_host import SimulatedHost, SimulatedPty
from tests.chaos.machine.simulated_processes import FIRST_PID, Machine, SimulatedProcess

COOKIE = "/root/build/life"


@pytest.fixture
def machine(nursery: trio.Nursery) -> Machine:
    return Machine(nursery, Random("machine"))


async def sleeper(process: SimulatedProcess) -> int:
    await process.sleep(1000)
    return 0


def start(machine: Machine, *ignored: signal.Signals) -> SimulatedProcess:
    return machine.start(sleeper, ("sleep",), cwd="/", ignored=ignored)


async def settled() -> None:
    await trio.testing.wait_all_tasks_blocked()


@attrs.frozen
class Shell:
    """A simulated bash at its prompt."""

    process: SimulatedPty
    adapter: ShellAdapter

    async def run(self, cmd: str) -> None:
        """Submit a command and wait until the next prompt has been drawn."""
        await self.process.write(self.adapter.encode(cmd))
        await trio.sleep(1)
        await self.read()

    async def read(self) -> bytes:
        """Return the output until it pauses for a second."""
        found = b""
        with trio.move_on_after(1):
            while data := await self.process.read():
                found += data
        return found


async def shell_on(host: SimulatedHost, directory: Path) -> Shell:
    hook = directory / f"hook{host.machine.chance.random()}"
    hook.mkdir(mode=0o700)
    adapter = bash.prepare("/bin/bash", hook)
    env: Mapping[str, str] = {COOKIE_VARIABLE: COOKIE}
    process = await host.open_pty_process(
        adapter.argv, cwd="/", env=env, rows=24, cols=80, open_files=None
    )
    shell = Shell(process, adapter)
    await shell.read()
    return shell


def names(machine: Machine) -> list[str]:
    return sorted(each.name for each in machine.alive)


async def test_a_signal_ends_is_ignored_or_is_handled(
    machine: Machine, autojump_clock: trio.testing.MockClock
) -> None:
    plain, deaf, handling = start(machine), start(machine, signal.SIGTERM), start(machine)
    handled: list[str] = []
    handling.handle(signal.SIGTERM, lambda: handled.append("TERM"))
    for each in (plain, deaf, handling):
        each.take(signal.SIGTERM)
    await settled()
    assert [each.is_alive for each in (plain, deaf, handling)] == [False, True, True]
    assert (plain.status, handled) == (-signal.SIGTERM, ["TERM"])
    for each in (deaf, handling):
        each.take(signal.SIGKILL)
    await settled()
    assert machine.alive == []


async def test_what_is_stopped_takes_a_signal_once_it_goes_on_and_kill_at_once(
    machine: Machine, autojump_clock: trio.testing.MockClock
) -> None:
    first, second = start(machine), start(machine)
    for each in (first, second):
        each.take(signal.SIGSTOP)
        each.take(signal.SIGTERM)
    await settled()
    assert [each.info.state for each in (first, second)] == ["T", "T"]
    first.take(signal.SIGCONT)
    second.take(signal.SIGKILL)
    await settled()
    assert [first.status, second.status] == [-signal.SIGTERM, -signal.SIGKILL]


async def test_one_that_has_ended_is_a_zombie_until_its_parent_takes_its_status(
    machine: Machine, autojump_clock: trio.testing.MockClock
) -> None:
    parent = start(machine)
    child = machine.fork(parent, sleeper, ("sleep",))
    child.take(signal.SIGKILL)
    await settled()
    assert machine.find(child.pid) is child
    assert not child.info.is_alive
    parent.take(signal.SIGKILL)
    await settled()
    assert machine.find(child.pid) is None


async def test_a_pid_that_is_given_again_is_no_target(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    machine = Machine(nursery, Random("pids"), pids=FIRST_PID + 1)
    host = SimulatedHost(machine)
    first = start(machine)
    stale = first.info
    first.take(signal.SIGKILL)
    await settled()
    machine.reap(first)
    start(machine).take(signal.SIGKILL)
    await settled()
    again = start(machine)
    assert again.pid == stale.pid
    assert host.open_target(stale) is None
    assert host.open_target(again.info) is not None
    again.take(signal.SIGKILL)


@pytest.mark.long
@pytest.mark.parametrize("how", ["nohup", "setsid", "deaf", "hold"])
async def test_whatever_stays_of_a_shell_is_found_and_ended_by_the_reaper(
    how: str, machine: Machine, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    host = SimulatedHost(machine)
    shell = await shell_on(host, tmp_path)
    await shell.run(f"play stay {how} 1000")
    assert names(machine) == ["bash", "sleep"]
    shell.process.close()
    await settled()
    assert names(machine) == ["sleep"]
    scan = ProcessScan(host)
    assert await end_processes([shell.process.pid], [COOKIE], scan=scan) == []
    assert machine.alive == []


@pytest.mark.long
async def test_a_killed_daemon_leaves_what_does_not_heed_a_hang_up_to_the_next_one(
    machine: Machine, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    host = SimulatedHost(machine)
    shell = await shell_on(host, tmp_path)
    await shell.run("play stay nohup 1000; play stay deaf 1000; play stay setsid 1000")
    await shell.process.write(shell.adapter.encode("sleep 1000"))
    await trio.sleep(1)
    assert names(machine) == ["bash", *["sleep"] * 4]
    host.kill()
    await trio.sleep(1)
    assert names(machine) == ["sleep"] * 3
    dead = ProcessScan(host)
    assert await end_processes([], [COOKIE], scan=dead) == []
    assert names(machine) == ["sleep"] * 3
    assert await end_processes([], [COOKIE], scan=ProcessScan(SimulatedHost(machine))) == []
    assert machine.alive == []


async def test_the_foreground_group_gets_a_hang_up_when_the_shell_is_killed(
    machine: Machine, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    host = SimulatedHost(machine)
    shell = await shell_on(host, tmp_path)
    await shell.process.write(shell.adapter.encode("sleep 1000"))
    await trio.sleep(1)
    found = machine.find(shell.process.pid)
    assert found is not None
    found.take(signal.SIGKILL)
    assert await shell.process.wait() == -signal.SIGKILL
    await settled()
    assert machine.alive == []
    await shell.read()
    assert await shell.process.read() == b""


async def test_the_tty_and_proc_show_the_foreground_group(
    machine: Machine, tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    host: ProcessHost = SimulatedHost(machine)
    assert isinstance(host, SimulatedHost)
    shell = await shell_on(host, tmp_path)
    process: ShellProcess = shell.process
    tty = process.line_discipline()
    assert tty is not None
    assert (tty.is_canonical, tty.echoes) == (False, False)
    assert process.foreground_pgrp() == process.pid
    await process.write(shell.adapter.encode("play secret 'key: '"))
    await trio.sleep(1)
    group = process.foreground_pgrp()
    assert group not in (None, process.pid)
    assert group is not None
    tty = process.line_discipline()
    assert tty is not None
    assert (tty.is_canonical, tty.echoes) == (True, False)
    program = host.program_of(group, tty.name)
    assert program is not None
    assert (program.name, program.reads) == ("play", True)
    assert (await host.groups())[group] == [group]
    assert process.signal_foreground(signal.SIGINT)
    await settled()
    assert host.program_of(group, tty.name) is None
    process.close()
    assert process.line_discipline() is None


async def test_what_is_not_modelled_is_refused(
    machine: Machine, autojump_clock: trio.testing.MockClock
) -> None:
    host = SimulatedHost(machine)
    with pytest.raises(Unavailable):
        host.open_error_pty(24, 80)
    with pytest.raises(InvalidRequest):
        await host.open_pty_process(["zsh"], cwd="/", env={}, rows=24, cols=80, open_files=None)
