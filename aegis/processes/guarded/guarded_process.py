"""An agent's process below its guard: start, the guard's reports, and the end of all processes."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import attrs
import trio

from aegis.errors import LimitReached, Unavailable
from aegis.limits import in_thread_or_here, limit_reached, open_process
from aegis.processes.guarded import guard
from aegis.processes.process_scan import ProcessScan
from aegis.processes.process_table import COOKIE_VARIABLE
from aegis.processes.reaper import ROUNDS, SHORT_ROUNDS, end_processes

START_S = 30.0
"""Time limit, in seconds, for a guard to start its agent. Most take 20 milliseconds."""

GUARD_MARGIN_S = 2.0
"""Time, in seconds, that a guard has beyond its grace period; then its processes are ended here."""

QUICK_S = 0.3
"""Time, in seconds, that a guard has to kill its processes when there is no grace period."""

WAIT_S = 0.1
"""Time, in seconds, that the end of a killed guard may take."""

_MAX_REPORT_BYTES = 65_536


@attrs.frozen(kw_only=True)
class Launch:
    """How an agent's program is started.

    ``environment`` is the whole one, with the cookie. ``term_s`` is the time, in seconds, that all
    processes have between TERM and KILL. ``open_files`` is the soft limit of open files; None keeps
    the daemon's, which it may have raised. ``tty`` is the path of a terminal that takes all output
    of a program without input; empty: the program has pipes.
    """

    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str] = attrs.field(repr=False)
    term_s: float = 3.0
    open_files: int | None = None
    tty: str = ""

    @property
    def cookie(self) -> str:
        """The cookie of all processes of the agent."""
        return self.environment[COOKIE_VARIABLE]


class GuardedProcess:
    """A running agent and its guard. ``follow`` must run in a task."""

    def __init__(
        self, launch: Launch, guard_process: trio.Process, control: _Control, pid: int
    ) -> None:
        self._launch = launch
        self._guard = guard_process
        self._control = control
        stdin, stdout, stderr = guard_process.stdin, guard_process.stdout, guard_process.stderr
        assert isinstance(stdin, trio.lowlevel.FdStream)
        assert isinstance(stdout, trio.lowlevel.FdStream)
        assert isinstance(stderr, trio.lowlevel.FdStream)
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        """The standard streams of the agent."""
        self.pid = pid
        self.ended = trio.Event()
        """Set when the agent has ended, or its guard, whose death is the end of the agent too."""
        self.exit_code: int | None = None
        """Minus the number of a signal; None while the agent runs, or if its end was not seen."""
        self.lost_guard = False
        """Whether the guard was killed: it ended before its agent."""
        self.done = trio.Event()
        """Set when the guard has ended."""

    async def follow(self) -> None:
        """Read the reports of the guard until it ends."""
        while (report := await self._control.report()) is not None:
            word, _, rest = report.partition(" ")
            if word == "exited":
                self.exit_code = int(rest)
                self.ended.set()
            elif word in ("gone", "left"):
                break
        self.lost_guard = not self.ended.is_set()
        self.ended.set()
        self.done.set()

    async def end(self, scan: ProcessScan, *, quickly: bool = False) -> tuple[str, ...]:
        """End every process of the agent and the guard; return the names of the remaining ones.

        ``quickly``: within a second, as an actor's cleanup must be. ``follow`` need not run then.
        """
        limit_s = QUICK_S if quickly else self._launch.term_s + GUARD_MARGIN_S
        with trio.move_on_after(limit_s):
            self._control.order(guard.KILL_ORDER if quickly else guard.END_ORDER)
            await self._guard.wait()
            if not quickly:  # its last reports, with the exit code, may not have been read yet
                await self.done.wait()
        # From here on the guard ends its processes even if this task is cancelled.
        self._control.close()
        rounds = SHORT_ROUNDS if quickly else ROUNDS
        left = await end_processes([], [self._launch.cookie], rounds, scan=scan)
        with trio.move_on_after(WAIT_S):
            await self._guard.wait()
        return tuple(map(str, left))

    async def release(self) -> None:
        """Close the streams. Idempotent."""
        for stream in (self.stdin, self.stdout, self.stderr):
            await trio.aclose_forcefully(stream)


class _Control:
    """The daemon's end of the control socket of a guard."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket = trio.socket.from_stdlib_socket(ours)
        self._data = b""

    async def report(self) -> str | None:
        """Return the next line of the guard; None at the end."""
        while b"\n" not in self._data:
            try:
                data = await self._socket.recv(4096)
            except (OSError, trio.ClosedResourceError):
                return None
            if not data or len(self._data) > _MAX_REPORT_BYTES:
                return None
            self._data += data
        line, _, self._data = self._data.partition(b"\n")
        return line.decode("ascii", "replace")

    def order(self, order: bytes) -> None:
        """Let the guard end its processes and report it."""
        with suppress(OSError):
            os.write(self._socket.fileno(), order)

    def close(self) -> None:
        """Close the socket. Idempotent."""
        self._socket.close()


async def start_guarded(launch: Launch, scan: ProcessScan) -> GuardedProcess:
    """Start an agent below a guard. Raises ``Unavailable`` with one sentence.

    Not cancelled half-way: the process would be nobody's.
    """
    program = await in_thread_or_here(_find_program, launch)
    with trio.CancelScope(shield=True):
        ours, theirs = _socket_pair(launch)
        control = _Control(ours)
        try:
            with theirs:
                process = await _open_guard(launch, program, theirs.fileno())
        except Unavailable:
            control.close()
            raise
        word, rest = "", ""
        with trio.move_on_after(START_S) as patience:
            word, _, rest = (await control.report() or "").partition(" ")
        if word == "started":
            return GuardedProcess(launch, process, control, int(rest))
        failed = GuardedProcess(launch, process, control, 0)
        await failed.end(scan, quickly=True)
        await failed.release()
    if word == "refused":
        raise Unavailable(_cannot_start(launch, int(rest)))
    if not patience.cancelled_caught:
        raise Unavailable(
            f"{launch.argv[0]!r} was not started: the process that guards it was killed; try again"
        )
    raise Unavailable(
        f"{launch.argv[0]!r} was not started within {START_S:g} s; the machine may be overloaded, "
        "try again"
    )


def _socket_pair(launch: Launch) -> tuple[socket.socket, socket.socket]:
    try:
        return socket.socketpair()
    except OSError as error:
        raise limit_reached(f"start {launch.argv[0]!r}", error) from error


async def _open_guard(launch: Launch, program: str, theirs: int) -> trio.Process:
    command = [sys.executable, "-I", "-S", guard.__file__, str(theirs), str(launch.term_s)]
    command += [str(launch.open_files or 0), launch.tty, program, *launch.argv[1:]]
    start = partial(
        open_process,
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=launch.cwd,
        env=launch.environment,
        pass_fds=[theirs],
        start_new_session=True,
    )
    try:
        return await start()
    except LimitReached:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Unavailable(
            f"{launch.argv[0]!r} cannot be started in {launch.cwd!r}: {reason}"
        ) from error


def _find_program(launch: Launch) -> str:
    name = launch.argv[0]
    if not Path(launch.cwd).is_dir():
        raise Unavailable(
            f"{name!r} cannot be started: there is no directory {launch.cwd!r}; create it, or "
            "choose another one"
        )
    if "/" in name:
        return name
    found = shutil.which(name, path=launch.environment.get("PATH", os.defpath))
    if found is None:
        raise Unavailable(
            f"the program {name!r} was not found in PATH; install it, or set the command of the "
            "profile"
        )
    return found


def _cannot_start(launch: Launch, number: int) -> str:
    name = launch.argv[0]
    if number == errno.ENOENT:
        return (
            f"the program {name!r} was not found, or the interpreter in its first line was not; "
            "install it, or set the command of the profile"
        )
    return f"the program {name!r} cannot be started: {os.strerror(number)}"
