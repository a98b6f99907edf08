"""``OsProcessHost``: the processes and PTYs of this machine, by ``/proc`` and pidfds."""

from __future__ import annotations

import functools
import os
import select
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs
import trio

from aegis.errors import LimitReached
from aegis.limits import in_thread_or_here
from aegis.path_text import path_of_text
from aegis.processes import foreground, pty, working_directory
from aegis.processes.children import ChildCookies
from aegis.processes.proc_files import list_names, read_file
from aegis.processes.process_host import Groups, Program, ProgramImage, Target
from aegis.processes.process_table import (
    COOKIE_VARIABLE,
    OwnedProcess,
    ProcessInfo,
    cookie_of,
    environment_range,
    group_of,
    parse_stat,
    with_ancestors,
)

EXEC_S = 0.2
"""Time, in seconds, that a scan waits for processes within an exec.

Most take less than a millisecond, but one may wait for its program's pages from the disk.
"""

EXEC_POLL_S = 0.0005

STAT_BYTES = 1024
"""More than a ``stat`` file of a process has; read whole, it would be read twice."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class OsProcessHost:
    """The machine of this process, as a ``ProcessHost``.

    ``children`` gets the cookies of the processes that are started with one.
    """

    def __init__(self, children: ChildCookies | None = None) -> None:
        self._children = ChildCookies() if children is None else children

    async def open_pty_process(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        rows: int,
        cols: int,
        open_files: int | None,
    ) -> pty.PtyProcess:
        with self.starting(env) as started:
            process = await pty.open_pty_process(
                argv, cwd=path_of_text(cwd), env=env, rows=rows, cols=cols, open_files=open_files
            )
            started(process.pid)
        return process

    @contextmanager
    def starting(self, env: Mapping[str, str]) -> Iterator[Callable[[int], None]]:
        def started(pid: int) -> None:
            if COOKIE_VARIABLE in env:
                self._children.add(process_of(pid), env[COOKIE_VARIABLE], process_of)

        with self._children.starting():
            yield started

    def startup_directory(self, terminal: Path) -> Path:
        return terminal

    def open_error_pty(self, rows: int, cols: int) -> pty.ErrorPty:
        return pty.open_error_pty(rows, cols)

    async def all_processes(self) -> Sequence[OwnedProcess]:
        # In a thread: some hundred processes take milliseconds.
        return await in_thread_or_here(read_processes)

    async def groups(self) -> Groups:
        return await in_thread_or_here(read_groups)

    def process_of(self, pid: int) -> ProcessInfo | None:
        return process_of(pid)

    def open_target(self, process: ProcessInfo) -> Target | None:
        return open_target(process)

    def program_of(self, pid: int, terminal: str) -> Program | None:
        return foreground.program_of(pid, terminal)

    def program_image(self, pid: int) -> ProgramImage | None:
        return foreground.program_image(pid)

    def environment_of(self, pid: int) -> Mapping[str, str]:
        try:
            entries = os.fsdecode(environment_of(pid) or b"").split("\0")
        except LimitReached:
            return {}
        pairs = (entry.partition("=") for entry in entries)
        return {name: text for name, equals, text in pairs if name and equals}

    def executable_of(self, pid: int) -> str | None:
        try:
            return os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115
        except OSError:
            return None

    def directory_of(self, pid: int) -> str | None:
        return working_directory.directory_of(pid)

    def is_installed(self, program: str, cwd: str, path: str | None) -> bool:
        """Return whether there is such a program, as ``ProcessHost`` documents it."""
        name = str(Path(cwd, program)) if "/" in program else program
        return shutil.which(name, path=os.defpath if path is None else path) is not None

    def current_boot(self) -> str:
        # The kernel's id of the current boot: random(4).
        return _current_boot()


@functools.cache
def _current_boot() -> str:
    return _BOOT_ID.read_text(encoding="ascii").strip()


def read_processes() -> list[OwnedProcess]:
    """Return every live process with its cookie, except this one and its ancestors.

    Raises ``OSError``, ``LimitReached`` where no descriptor is free to look at all.
    """
    found = {pid: process for pid in _pids() if (process := known_process(pid)) is not None}
    excluded = with_ancestors(os.getpid(), found)
    alive = [pid for pid, process in found.items() if process.is_alive and pid not in excluded]
    environments = {pid: environment_of(pid) for pid in alive}
    environments |= _after_exec([pid for pid, shown in environments.items() if shown == b""])
    return [
        OwnedProcess(found[pid], cookie_of(shown or b"")) for pid, shown in environments.items()
    ]


def read_groups() -> Groups:
    """Return the pids of every process group. Takes milliseconds: call it in a thread."""
    groups: dict[int, list[int]] = {}
    for pid in _pids():
        try:
            groups.setdefault(group_of(read_file(f"/proc/{pid}/stat", STAT_BYTES)), []).append(pid)
        except (OSError, ValueError):  # it has just ended
            continue
    return groups


def process_of(pid: int) -> ProcessInfo | None:
    """Return the process with this pid; None without one, or if no descriptor is free."""
    try:
        return known_process(pid)
    except LimitReached:
        return None


def known_process(pid: int) -> ProcessInfo | None:
    """Return the process with this pid, None without one. Raises ``LimitReached``."""
    stat = _read(f"/proc/{pid}/stat", STAT_BYTES)
    try:
        return None if stat is None else parse_stat(stat)
    except ValueError:
        return None


def open_target(process: ProcessInfo) -> OsTarget | None:
    """Open this process for signals; None if it is gone."""
    try:
        pidfd: int | None = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    except OSError:  # no descriptor is free: the pid is used
        pidfd = None
    # Checked after the pidfd was opened: from there on the pid cannot be reused unnoticed.
    now = process_of(process.pid)
    if now is None or now.start_time != process.start_time:
        if pidfd is not None:
            os.close(pidfd)
        return None
    return OsTarget(process.pid, pidfd)


@attrs.frozen
class OsTarget:
    """A ``Target``; ``pidfd`` is None where no descriptor was free."""

    pid: int
    pidfd: int | None

    @property
    def can_be_awaited(self) -> bool:
        return self.pidfd is not None

    def send(self, signum: signal.Signals) -> None:
        try:
            # A stopped process handles a signal only once it continues.
            for each in (signum, signal.SIGCONT):
                if self.pidfd is None:
                    os.kill(self.pid, each)
                else:
                    signal.pidfd_send_signal(self.pidfd, each)
        except OSError:
            # Gone, or not ours to signal: the next scan shows which.
            return

    async def ended(self) -> None:
        if self.pidfd is None:
            await trio.sleep_forever()
        else:
            await trio.lowlevel.wait_readable(self.pidfd)

    def close(self) -> None:
        if self.pidfd is not None:
            os.close(self.pidfd)


def _pids() -> list[int]:
    return [int(name) for name in list_names("/proc") if name.isdigit()]


def environment_of(pid: int) -> bytes | None:
    """Return a process's first environment; None if it is gone or the environment is hidden.

    Raises ``LimitReached``.
    """
    return _read(f"/proc/{pid}/environ")


def _range(pid: int) -> tuple[int, int] | None:
    stat = _read(f"/proc/{pid}/stat", STAT_BYTES)
    try:
        return None if stat is None else environment_range(stat)
    except ValueError:
        return None


def _after_exec(pids: Sequence[int]) -> dict[int, bytes]:
    """Return the environments of the processes whose environment was empty during an exec."""
    # Between the old memory and the new one /proc shows an empty environment; env_start and env_end
    # then are 0 or change at the next look.
    found: dict[int, bytes] = {}
    ranges = {pid: found_at for pid in pids if (found_at := _range(pid)) is not None}
    deadline = time.monotonic() + EXEC_S
    while ranges and time.monotonic() < deadline:
        select.select([], [], [], EXEC_POLL_S)  # time.sleep fails under libfaketime
        earlier, ranges = ranges, {}
        for pid, before in earlier.items():
            if shown := environment_of(pid):
                found[pid] = shown
            elif (now := _range(pid)) is not None and (now != before or now[0] == 0):
                ranges[pid] = now
    return found


def _read(path: str, most: int = -1) -> bytes | None:
    """Return a file of ``/proc``; None if it cannot be read. Raises ``LimitReached``."""
    try:
        return read_file(path, most)
    except LimitReached:
        raise
    except OSError:
        return None
