"""``SimulatedHost``: the processes and PTYs of a simulated machine, as one daemon uses them.

A machine outlives its daemons. ``kill`` is the ``kill -9`` of one: its PTYs hang up, init adopts
its shells, and everything else continues. The remains of that daemon have no effect any more: no
signal, key or process of its cleanup reaches the machine. The kernel closes the descriptors of a
killed process a moment after its last instruction, so its shells may read for ``LINGER_S`` more.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import attrs
import trio

from aegis.errors import InvalidRequest, Unavailable
from aegis.processes.line_discipline import LineDiscipline, LineEnds
from aegis.processes.process_host import (
    ErrorTerminal,
    Groups,
    Program,
    ProgramImage,
)
from aegis.processes.process_table import COOKIE_VARIABLE, OwnedProcess, ProcessInfo
from aegis.processes.pty import READ_BYTES
from tests.chaos.machine.simulated_processes import Machine, SimulatedProcess
from tests.chaos.machine.simulated_shell import SimulatedBash
from tests.chaos.machine.simulated_tty import SimulatedTty

LOOK_S = 0.005
"""The longest duration, in seconds, of a look at all processes."""

_LINE_ENDS = LineEnds(end=b"\n\x04\r", drop=b"\x15\x03\x1c\x1a")


class SimulatedPty:
    """A simulated shell and the master of its PTY, with the interface of ``ShellProcess``."""

    def __init__(self, process: SimulatedProcess, tty: SimulatedTty) -> None:
        self._process = process
        self._tty = tty
        self._is_open = True
        self.slave_name = tty.name

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self) -> bytes:
        """Return the next bytes; ``b""`` at the end of the stream.

        Raises ``trio.ClosedResourceError`` once closed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        data = self._open_tty().take(READ_BYTES)
        if data is not None:
            await trio.lowlevel.cancel_shielded_checkpoint()
            return data
        while data is None:
            await self._tty.stirs()
            data = self._open_tty().take(READ_BYTES)
        return data

    def read_now(self) -> bytes:
        """Return the available bytes; ``b""`` if there are none, or at the end of the stream."""
        return self._open_tty().take(READ_BYTES) or b""

    def write_now(self, data: bytes) -> int:
        """Type as much as there is room for."""
        return self._open_tty().give(data)

    async def write(self, data: bytes) -> None:
        """Type all, waiting for room."""
        await trio.lowlevel.checkpoint_if_cancelled()
        left = data[self.write_now(data) :]
        while left:
            await self._tty.stirs()
            left = left[self.write_now(left) :]
        await trio.lowlevel.cancel_shielded_checkpoint()

    def resize(self, rows: int, cols: int) -> None:
        """Resize the window, and signal the foreground group."""
        self.signal_foreground(signal.SIGWINCH)

    def foreground_pgrp(self) -> int | None:
        """Return the foreground process group."""
        return self._tty.foreground if self._is_open else None

    def signal_foreground(self, signum: signal.Signals) -> bool:
        """Signal the foreground group; return False if there was none."""
        group = self._open_tty().foreground
        return group is not None and self._process.machine.signal_group(group, signum)

    def line_discipline(self) -> LineDiscipline | None:
        """Return the settings of the terminal; None once it is closed."""
        if not self._is_open:
            return None
        return LineDiscipline(
            name=self._tty.name,
            is_canonical=self._tty.is_canonical,
            echoes=self._tty.echoes,
            line_ends=_LINE_ENDS,
        )

    def has_unread_keys(self) -> bool:
        """Return whether typed keys are unread."""
        return not self._is_open or self._tty.has_input

    async def wait(self) -> int:
        """Wait for the end of the shell, and return its status."""
        await self._process.ended.wait()
        return self._process.machine.reap(self._process)

    def close(self) -> None:
        """Close the master: the terminal hangs up."""
        if self.detach():
            self.hang_up()

    def detach(self) -> bool:
        """Stop using the master; return False if it was closed before."""
        was_open, self._is_open = self._is_open, False
        return was_open

    def hang_up(self) -> None:
        """Hang up the terminal, as the kernel does when the master is closed."""
        self._tty.hang_up()

    def _open_tty(self) -> SimulatedTty:
        if not self._is_open:
            raise trio.ClosedResourceError("this terminal was closed")
        return self._tty


GUARDED = 0.8
"""The share of agents whose guard outlives a killed daemon."""

GUARD_S = 0.05
"""The longest time, in seconds, until a guard has ended the processes of its agent."""

LINGER_S = 0.004
"""The longest time, in seconds, until the kernel has closed the files of a killed daemon."""


@attrs.frozen
class _Target:
    """A process to signal, with its end."""

    process: SimulatedProcess
    can_be_awaited: bool = True

    def send(self, signum: signal.Signals) -> None:
        """Signal it, and then send CONT."""
        self.process.take(signum)
        self.process.take(signal.SIGCONT)

    async def ended(self) -> None:
        await self.process.ended.wait()

    def close(self) -> None:
        """Do nothing: there is no descriptor."""


class SimulatedHost:
    """The view of ``machine`` by one daemon; ``ProcessHost`` documents the methods.

    ``scratch`` is a real directory for the start-up files of shells, in one directory for each
    terminal; without one they are in the directory of their terminal, which must then be real.
    """

    def __init__(self, machine: Machine, scratch: Path | None = None) -> None:
        self.machine = machine
        self._scratch = scratch
        self.is_dead = False
        self._ptys: list[SimulatedPty] = []
        self._guarded: list[str] = []

    def guard(self, cookie: str) -> None:
        """Let a guard watch the processes with this cookie."""
        self._guarded.append(cookie)

    def kill(self, *, lingers: bool = True) -> None:
        """End the daemon. Its PTYs hang up at once unless it ``lingers``. Idempotent."""
        if self.is_dead:
            return
        self.is_dead = True
        still_open = [pty for pty in self._ptys if pty.detach()]
        if lingers:
            later = self.machine.chance.uniform(0, LINGER_S)
            self.machine.after(later, partial(self._hang_up, still_open))
            self._end_guarded()
        else:
            self._hang_up(still_open)

    def _end_guarded(self) -> None:
        """Let the guards that were not killed too end their agents."""
        for cookie in self._guarded:
            is_there = any(each.cookie == cookie for each in self.machine.alive)
            if is_there and self.machine.chance.random() < GUARDED:
                later = self.machine.chance.uniform(0, GUARD_S)
                self.machine.after(later, partial(self._end_tree, cookie))

    def _end_tree(self, cookie: str) -> None:
        for each in self.machine.alive:
            if each.cookie == cookie:
                each.take(signal.SIGKILL)

    def _hang_up(self, still_open: Sequence[SimulatedPty]) -> None:
        for pty in still_open:
            pty.hang_up()
        self.machine.orphan([pty.pid for pty in self._ptys])

    async def open_pty_process(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        rows: int,
        cols: int,
        open_files: int | None,
    ) -> SimulatedPty:
        """Start a bash: ``argv`` comes from ``shells.bash`` with its hook."""
        if self.is_dead:
            await trio.sleep_forever()
        await trio.lowlevel.checkpoint()
        match argv:
            case [program, "--rcfile", init, "-i"] if program.endswith("bash"):
                hook = Path(init).parent
            case _:
                raise InvalidRequest(f"a simulated machine has no shell but bash, not {argv[0]!r}")
        tty = self.machine.new_tty()
        bash = SimulatedBash(hook, tty, env)
        process = self.machine.start(
            bash.main, argv, cwd=cwd, cookie=env.get(COOKIE_VARIABLE), tty=tty
        )
        tty.session = tty.foreground = process.pid
        pty = SimulatedPty(process, tty)
        self._ptys.append(pty)
        return pty

    def starting(self, env: Mapping[str, str]) -> AbstractContextManager[Callable[[int], None]]:
        """Remember nothing: a simulated machine has no sockets whose peers would be identified."""
        return nullcontext(lambda pid: None)

    def startup_directory(self, terminal: Path) -> Path:
        """Return a real directory, also where the terminal's own is on a simulated disk."""
        if self._scratch is None:
            return terminal
        directory = self._scratch / terminal.name
        directory.mkdir(mode=0o700, exist_ok=True)
        return directory

    def open_error_pty(self, rows: int, cols: int) -> ErrorTerminal:
        """Fail: split standard error is not modelled."""
        raise Unavailable("a simulated machine has no PTY for standard error: leave stderr out")

    async def all_processes(self) -> Sequence[OwnedProcess]:
        """Return the live processes; a dead daemon does not ask."""
        await trio.sleep(self.machine.chance.uniform(0, LOOK_S))
        return () if self.is_dead else self.machine.owned()

    async def groups(self) -> Groups:
        """Return the pids of every group."""
        await trio.sleep(self.machine.chance.uniform(0, LOOK_S))
        return self.machine.groups()

    def process_of(self, pid: int) -> ProcessInfo | None:
        """Return the process with this pid; None if there is none."""
        process = self.machine.find(pid)
        return None if process is None else process.info

    def open_target(self, process: ProcessInfo) -> _Target | None:
        """Return exactly this process; None if it has ended."""
        found = None if self.is_dead else self.machine.find(process.pid)
        if found is None or found.start_time != process.start_time:
            return None
        return _Target(found)

    def program_of(self, pid: int, terminal: str) -> Program | None:
        """Return the name of this process, and whether it reads the terminal."""
        process = self.machine.find(pid)
        if process is None or not process.is_alive:
            return None
        reads = process.reads_tty and process.tty is not None and process.tty.name == terminal
        return Program(name=process.name, reads=reads)

    def program_image(self, pid: int) -> ProgramImage | None:
        """Return the program of a process: no simulated process changes it."""
        process = self.machine.find(pid)
        if process is None or not process.is_alive:
            return None
        return ProgramImage(words=process.words, address=process.start_time)

    def environment_of(self, pid: int) -> Mapping[str, str]:
        """Return no environment: no simulated process replaces another."""
        return {}

    def executable_of(self, pid: int) -> str | None:
        """Return the first word of a process; None if it has ended."""
        process = self.machine.find(pid)
        return process.words[0] if process is not None and process.is_alive else None

    def directory_of(self, pid: int) -> str | None:
        """Return the working directory of a process; None if it has ended."""
        process = self.machine.find(pid)
        return process.cwd if process is not None and process.is_alive else None

    def is_installed(self, program: str, cwd: str, path: str | None) -> bool:
        """Return whether there is such a program: every one is simulated."""
        return True

    def current_boot(self) -> str:
        """Return an identifier of this machine."""
        return self.machine.boot
