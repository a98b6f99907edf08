"""``OsProcessHost``: the processes and PTYs of this machine, by ``/proc`` and pidfds."""

from __future__ import annotations

import functools
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs
import trio

from aegis.path_text import path_of_text
from aegis.processes import foreground, pty, whereabouts
from aegis.processes.process_groups import look_at_groups
from aegis.processes.process_host import Groups, Program, ProgramImage, Target
from aegis.processes.process_table import (
    OwnedProcess,
    ProcessInfo,
    cookie_of,
    environment_place,
    line_of,
    parse_stat,
)

EXEC_S = 0.2
"""How long a look at all processes waits for one of them that is within an exec: most take less
than a millisecond, but one may wait for its program's pages from the disk."""

EXEC_LOOK_S = 0.0005

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class OsProcessHost:
    """The machine that this runs on; ``ProcessHost`` says what each method does."""

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
        """As ``pty.open_pty_process``."""
        return await pty.open_pty_process(
            argv, cwd=path_of_text(cwd), env=env, rows=rows, cols=cols, open_files=open_files
        )

    def startup_directory(self, terminal: Path) -> Path:
        """See ``ProcessHost``: its own directory."""
        return terminal

    def open_error_pty(self, rows: int, cols: int) -> pty.ErrorPty:
        """As ``pty.open_error_pty``."""
        return pty.open_error_pty(rows, cols)

    async def all_processes(self) -> Sequence[OwnedProcess]:
        """Look in a thread: some hundred processes take milliseconds."""
        return await trio.to_thread.run_sync(look_at_all)

    async def groups(self) -> Groups:
        """Look in a thread, as for all processes."""
        return await trio.to_thread.run_sync(look_at_groups)

    def process_of(self, pid: int) -> ProcessInfo | None:
        """As ``process_of``."""
        return process_of(pid)

    def aim(self, process: ProcessInfo) -> Target | None:
        """By a pidfd, or by its pid where no descriptor is free for one."""
        return aim(process)

    def program_of(self, pid: int, terminal: str) -> Program | None:
        """As ``foreground.program_of``."""
        return foreground.program_of(pid, terminal)

    def program_image(self, pid: int) -> ProgramImage | None:
        """As ``foreground.program_image``."""
        return foreground.program_image(pid)

    def directory_of(self, pid: int) -> str | None:
        """As ``whereabouts.directory_of``."""
        return whereabouts.directory_of(pid)

    def current_boot(self) -> str:
        """The id that the kernel gave to the present boot (random(4))."""
        return _current_boot()


@functools.cache
def _current_boot() -> str:
    return _BOOT_ID.read_text(encoding="ascii").strip()


def look_at_all() -> list[OwnedProcess]:
    """Every live process but this one and its ancestors, with its cookie."""
    found = {pid: process for pid in _pids() if (process := process_of(pid)) is not None}
    spared = line_of(os.getpid(), found)
    alive = [pid for pid, process in found.items() if process.is_alive and pid not in spared]
    environments = {pid: _environment(pid) for pid in alive}
    environments |= _behind_execs([pid for pid, shown in environments.items() if shown == b""])
    return [
        OwnedProcess(found[pid], cookie_of(shown or b"")) for pid, shown in environments.items()
    ]


def process_of(pid: int) -> ProcessInfo | None:
    """The process with this pid now; None if there is none."""
    try:
        return parse_stat(_read(f"/proc/{pid}/stat"))
    except (OSError, ValueError):
        return None


def aim(process: ProcessInfo) -> OsTarget | None:
    """Exactly this process; None if it is gone."""
    try:
        pidfd: int | None = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    except OSError:  # no descriptor is free: better by its pid than not at all
        pidfd = None
    now = process_of(process.pid)
    if now is None or now.start_time != process.start_time:
        if pidfd is not None:
            os.close(pidfd)
        return None
    return OsTarget(process.pid, pidfd)


@attrs.frozen
class OsTarget:
    """A process to signal; ``pidfd`` is None where no descriptor was free for it."""

    pid: int
    pidfd: int | None

    @property
    def tells_its_end(self) -> bool:
        """Whether there is a descriptor that tells."""
        return self.pidfd is not None

    def send(self, signum: signal.Signals) -> None:
        """Signal it, with CONT behind."""
        try:
            # What is stopped takes a signal only once it goes on.
            for each in (signum, signal.SIGCONT):
                if self.pidfd is None:
                    os.kill(self.pid, each)
                else:
                    signal.pidfd_send_signal(self.pidfd, each)
        except OSError:
            # Gone, or not ours to signal: the next scan tells.
            return

    async def ended(self) -> None:
        """Wait until it has ended; for ever where nothing tells."""
        if self.pidfd is None:
            await trio.sleep_forever()
        else:
            await trio.lowlevel.wait_readable(self.pidfd)

    def close(self) -> None:
        """Close the descriptor."""
        if self.pidfd is not None:
            os.close(self.pidfd)


def _pids() -> list[int]:
    names = os.listdir("/proc")  # noqa: PTH208 - a Path for each process costs more than it
    return [int(name) for name in names if name.isdigit()]


def _environment(pid: int) -> bytes | None:
    """The first environment of a process; None if it is gone, or hides it."""
    try:
        return _read(f"/proc/{pid}/environ")
    except OSError:
        return None


def _place(pid: int) -> tuple[int, int] | None:
    try:
        return environment_place(_read(f"/proc/{pid}/stat"))
    except (OSError, ValueError):
        return None


def _behind_execs(pids: Sequence[int]) -> dict[int, bytes]:
    """The environments of those of these that showed none because they were within an exec."""
    found: dict[int, bytes] = {}
    places = {pid: place for pid in pids if (place := _place(pid)) is not None}
    patience = time.monotonic() + EXEC_S
    while places and time.monotonic() < patience:
        time.sleep(EXEC_LOOK_S)
        earlier, places = places, {}
        for pid, before in earlier.items():
            if shown := _environment(pid):
                found[pid] = shown
            elif (now := _place(pid)) is not None and (now != before or now[0] == 0):
                places[pid] = now
    return found


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - called for each process
        return file.read()
