"""``SimulatedHost``: the processes and PTYs of a simulated machine, as one daemon uses them.

A machine outlives its daemons. ``kill`` is the ``kill -9`` of one: its PTYs hang up, its shells go
to init, and everything else goes on. What is left of that daemon can do nothing any more: no
signal, key or process of its cleaning-up reaches the machine. The kernel closes the descriptors of
a killed process a moment after its last instruction, so its shells may read on for ``LINGER_S``.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
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
"""How long a look at all processes takes at most."""

_LINE_ENDS = LineEnds(end=b"\n\x04\r", drop=b"\x15\x03\x1c\x1a")


class SimulatedPty:
    """A simulated shell and the master of its PTY: what ``ShellProcess`` is to a real one."""

    def __init__(self, process: SimulatedProcess, tty: SimulatedTty) -> None:
        self._process = process
        self._tty = tty
        self._is_open = True
        self.slave_name = tty.name

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    async def read(self) -> bytes:
        """The next bytes; ``b""`` at the end of the stream.

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
        """What lies ready; ``b""`` if nothing does, or at the end of the stream."""
        return self._open_tty().take(READ_BYTES) or b""

    def write_now(self, data: bytes) -> int:
        """Type what there is room for."""
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
        """Tell the group in front."""
        self.signal_foreground(signal.SIGWINCH)

    def foreground_pgrp(self) -> int | None:
        """The group in front."""
        return self._tty.foreground if self._is_open else None

    def signal_foreground(self, signum: signal.Signals) -> bool:
        """Signal the group in front; False if there was none."""
        group = self._open_tty().foreground
        return group is not None and self._process.machine.signal_group(group, signum)

    def line_discipline(self) -> LineDiscipline | None:
        """How the terminal takes keys; None once it is closed."""
        if not self._is_open:
            return None
        return LineDiscipline(
            name=self._tty.name,
            is_canonical=self._tty.is_canonical,
            echoes=self._tty.echoes,
            line_ends=_LINE_ENDS,
        )

    def has_unread_keys(self) -> bool:
        """Whether keys wait for whoever reads next."""
        return not self._is_open or self._tty.has_input

    async def wait(self) -> int:
        """Wait for the end of the shell, and take its status."""
        await self._process.ended.wait()
        return self._process.machine.reap(self._process)

    def close(self) -> None:
        """Close the master: the terminal hangs up."""
        if self.detach():
            self.hang_up()

    def detach(self) -> bool:
        """Use the master no more; False if it was closed before."""
        was_open, self._is_open = self._is_open, False
        return was_open

    def hang_up(self) -> None:
        """Let the terminal hang up, as the kernel does when the master is closed."""
        self._tty.hang_up()

    def _open_tty(self) -> SimulatedTty:
        if not self._is_open:
            raise trio.ClosedResourceError("this terminal was closed")
        return self._tty


LINGER_S = 0.004
"""How long it takes at most until the kernel has closed what a killed daemon had open."""


@attrs.frozen
class _Target:
    """A process to signal; it tells of its end."""

    process: SimulatedProcess
    can_be_awaited: bool = True

    def send(self, signum: signal.Signals) -> None:
        """Signal it, with CONT behind."""
        self.process.take(signum)
        self.process.take(signal.SIGCONT)

    async def ended(self) -> None:
        """Wait until it has ended."""
        await self.process.ended.wait()

    def close(self) -> None:
        """There is nothing to let go of."""


class SimulatedHost:
    """What one daemon knows of ``machine``; ``ProcessHost`` says what each method does.

    ``scratch`` is a real directory for the start-up files of shells, in one directory for each
    terminal; without one they lie in the directory of their terminal, which is then to be real.
    """

    def __init__(self, machine: Machine, scratch: Path | None = None) -> None:
        self.machine = machine
        self._scratch = scratch
        self.is_dead = False
        self._ptys: list[SimulatedPty] = []

    def kill(self, *, lingers: bool = True) -> None:
        """End the daemon. Its PTYs hang up at once unless it ``lingers``. Idempotent."""
        if self.is_dead:
            return
        self.is_dead = True
        still_open = [pty for pty in self._ptys if pty.detach()]
        if lingers:
            later = self.machine.chance.uniform(0, LINGER_S)
            self.machine.after(later, partial(self._hang_up, still_open))
        else:
            self._hang_up(still_open)

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
        """Start a bash: ``argv`` is what ``shells.bash`` makes of its hook."""
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

    def startup_directory(self, terminal: Path) -> Path:
        """A real one, also where the terminal's own is on a simulated disk."""
        if self._scratch is None:
            return terminal
        directory = self._scratch / terminal.name
        directory.mkdir(mode=0o700, exist_ok=True)
        return directory

    def open_error_pty(self, rows: int, cols: int) -> ErrorTerminal:
        """Standard error apart is not modelled."""
        raise Unavailable("a simulated machine has no PTY for standard error: leave stderr out")

    async def all_processes(self) -> Sequence[OwnedProcess]:
        """The live processes; of a dead daemon nobody asks."""
        await trio.sleep(self.machine.chance.uniform(0, LOOK_S))
        return () if self.is_dead else self.machine.owned()

    async def groups(self) -> Groups:
        """The pids of every group."""
        await trio.sleep(self.machine.chance.uniform(0, LOOK_S))
        return self.machine.groups()

    def process_of(self, pid: int) -> ProcessInfo | None:
        """The process with this pid; None if there is none."""
        process = self.machine.find(pid)
        return None if process is None else process.info

    def open_target(self, process: ProcessInfo) -> _Target | None:
        """Exactly this process; None if it is gone."""
        found = None if self.is_dead else self.machine.find(process.pid)
        if found is None or found.start_time != process.start_time:
            return None
        return _Target(found)

    def program_of(self, pid: int, terminal: str) -> Program | None:
        """What this process is called, and whether it reads the terminal."""
        process = self.machine.find(pid)
        if process is None or not process.is_alive:
            return None
        reads = process.reads_tty and process.tty is not None and process.tty.name == terminal
        return Program(name=process.name, reads=reads)

    def program_image(self, pid: int) -> ProgramImage | None:
        """What a process runs: nothing here runs another program than its first."""
        process = self.machine.find(pid)
        if process is None or not process.is_alive:
            return None
        return ProgramImage(words=process.words, address=process.start_time)

    def directory_of(self, pid: int) -> str | None:
        """The working directory of a process; None if it is gone."""
        process = self.machine.find(pid)
        return process.cwd if process is not None and process.is_alive else None

    def current_boot(self) -> str:
        """What tells this machine from all others."""
        return self.machine.boot
