"""``ProcessHost``: what terminals need of the operating system's processes and PTYs.

``OsProcessHost`` (``os_processes.py``) is the real one. The tree is given one at its construction,
so that a simulation can give another.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from aegis.processes.line_length import LineEnds
from aegis.processes.process_table import OwnedProcess, ProcessInfo

Groups = Mapping[int, Sequence[int]]
"""The pids of each process group."""


@attrs.frozen(kw_only=True)
class LineDiscipline:
    """The tty called ``name``: whether it collects lines, and echoes what is typed.

    ``line_ends`` counts while it collects lines.
    """

    name: str
    is_canonical: bool
    echoes: bool
    line_ends: LineEnds


@attrs.frozen(kw_only=True)
class ProgramImage:
    """The words that a process was started with, and where they lie: no two execs have both."""

    words: tuple[str, ...]
    place: int


@attrs.frozen(kw_only=True)
class Program:
    """One process: its name, whether it reads the terminal (None: that cannot be known)."""

    name: str
    reads: bool | None


class ShellProcess(Protocol):
    """A shell and the master of its PTY; ``PtyProcess`` says what each method does."""

    slave_name: str

    @property
    def pid(self) -> int:
        """The process id, which is also its session and first group."""

    async def read(self) -> bytes:
        """The next bytes; ``b""`` at the end of the stream."""

    def read_now(self) -> bytes:
        """What lies ready; ``b""`` if nothing does, or at the end of the stream."""

    def write_now(self, data: bytes) -> int:
        """Write what there is room for; gives how many bytes."""

    async def write(self, data: bytes) -> None:
        """Write all, waiting for room."""

    def resize(self, rows: int, cols: int) -> None:
        """Set the size of the window."""

    def foreground_pgrp(self) -> int | None:
        """The process group in front; None if there is none."""

    def signal_foreground(self, signum: signal.Signals) -> bool:
        """Send a signal to the process group in front; False if there was none."""

    def line_discipline(self) -> LineDiscipline | None:
        """How the tty takes keys now; None once it is closed."""

    def has_unread_keys(self) -> bool:
        """Whether keys wait in the tty for a program to read them, or that cannot be known."""

    async def wait(self) -> int:
        """Wait for the end: the exit code, or minus the number of a signal."""

    def close(self) -> None:
        """Close the master. Again is harmless."""


class ErrorTerminal(Protocol):
    """A PTY for standard error of commands, as ``ErrorPty`` is."""

    path: str

    async def read(self) -> bytes:
        """The next bytes; ``b""`` at the end of the stream."""

    def read_now(self) -> bytes:
        """What lies ready."""

    def resize(self, rows: int, cols: int) -> None:
        """Set the size of the window."""

    def close(self) -> None:
        """Close both sides. Again is harmless."""


class Target(Protocol):
    """Exactly one process, which is to be signalled, whoever gets its pid later."""

    @property
    def tells_its_end(self) -> bool:
        """Whether ``ended`` may be waited for."""

    def send(self, signum: signal.Signals) -> None:
        """Signal it, and let it go on if it is stopped. One that is gone, or not ours: nothing."""

    async def ended(self) -> None:
        """Wait until it has ended."""

    def close(self) -> None:
        """Let go of it."""


class ProcessHost(Protocol):
    """The machine's processes and PTYs."""

    async def open_pty_process(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        rows: int,
        cols: int,
        open_files: int | None,
    ) -> ShellProcess:
        """Start a process on a PTY of its own. Raises ``InvalidRequest`` and ``Unavailable``."""

    def startup_directory(self, terminal: Path) -> Path:
        """Where a shell of this machine finds its start-up files, for that terminal's directory.

        It exists, mode 0700. What lies there is between daemon and shell, for one start, and
        durable in nothing.
        """

    def open_error_pty(self, rows: int, cols: int) -> ErrorTerminal:
        """A PTY for standard error. Raises ``Unavailable``."""

    async def all_processes(self) -> Sequence[OwnedProcess]:
        """Every live process but this one and its ancestors, with its cookie."""

    async def groups(self) -> Groups:
        """The pids of every process group."""

    def process_of(self, pid: int) -> ProcessInfo | None:
        """The process with this pid now; None if there is none."""

    def aim(self, process: ProcessInfo) -> Target | None:
        """Exactly this process, to be closed; None if it is gone."""

    def program_of(self, pid: int, terminal: str) -> Program | None:
        """What this process is called, and whether it reads the terminal; None if it is gone."""

    def program_image(self, pid: int) -> ProgramImage | None:
        """What a process runs since its last exec; None if that cannot be known."""

    def directory_of(self, pid: int) -> str | None:
        """As ``whereabouts.directory_of``."""

    def current_boot(self) -> str:
        """What tells this boot of the machine from all others."""
