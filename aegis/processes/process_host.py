"""``ProcessHost``: the port to the operating system's processes and PTYs.

``OsProcessHost`` (``os_processes``) is the real one; a simulation passes its own to the tree.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import attrs

from aegis.processes.input_wait import Doubt
from aegis.processes.line_discipline import LineDiscipline
from aegis.processes.process_table import OwnedProcess, ProcessInfo

Groups = Mapping[int, Sequence[int]]
"""The pids of each process group."""


@attrs.frozen(kw_only=True)
class ProgramImage:
    """The program of a process: its arguments, and their address in its memory.

    Together they identify one exec.
    """

    words: tuple[str, ...]
    address: int


@attrs.frozen(kw_only=True)
class Program:
    """A process by name; ``reads``: it is reading the terminal (None: unknown).

    ``is_busy``: none of its threads waits for any descriptor, as far as the system shows. ``doubt``
    is about a process that reads; ``is_piped``: its standard input is a pipe. ``works``: it does
    not only wait for a child or for the other end of a pipe.
    """

    name: str
    reads: bool | None
    is_busy: bool = False
    doubt: Doubt = None
    is_piped: bool = False
    works: bool = False


class ShellProcess(Protocol):
    """A shell and the master of its PTY, as ``PtyProcess`` documents it."""

    slave_name: str

    @property
    def pid(self) -> int:
        """The process id, also the id of its session and first process group."""

    async def read(self) -> bytes:
        """Return the next bytes; ``b""`` at the end of the stream."""

    def read_now(self) -> bytes:
        """Return the bytes that are ready; ``b""`` without any, and at the end of the stream."""

    def write_now(self, data: bytes) -> int:
        """Write as much as there is room for; return the number of bytes."""

    async def write(self, data: bytes) -> None:
        """Write all, waiting for room."""

    def resize(self, rows: int, cols: int) -> None:
        """Set the size of the window."""

    def foreground_pgrp(self) -> int | None:
        """Return the foreground process group, None without one."""

    def signal_foreground(self, signum: signal.Signals) -> bool:
        """Signal the foreground process group; return False without one."""

    def line_discipline(self) -> LineDiscipline | None:
        """Return the state of the tty; None once it is closed."""

    def has_unread_keys(self) -> bool:
        """Return whether the tty holds keys that no program has read, also if that is unknown."""

    async def wait(self) -> int:
        """Wait for the end; return the exit code, or minus the signal number."""

    def close(self) -> None:
        """Close the master. Idempotent."""


class ErrorTerminal(Protocol):
    """A PTY for the standard error of commands, as ``ErrorPty`` documents it."""

    path: str

    async def read(self) -> bytes:
        """Return the next bytes; ``b""`` at the end of the stream."""

    def read_now(self) -> bytes:
        """Return the bytes that are ready."""

    def resize(self, rows: int, cols: int) -> None:
        """Set the size of the window."""

    def close(self) -> None:
        """Close both sides. Idempotent."""


class Target(Protocol):
    """One process to signal, identified by more than its pid: the pid may be reused."""

    @property
    def can_be_awaited(self) -> bool:
        """Whether ``ended()`` returns at the process's end."""

    def send(self, signum: signal.Signals) -> None:
        """Signal the process, and continue it if it is stopped. Errors are ignored."""

    async def ended(self) -> None:
        """Wait for the process's end."""

    def close(self) -> None:
        """Release the descriptor."""


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
        """Start a process on a new PTY. Raises ``InvalidRequest`` and ``Unavailable``."""

    def starting(self, env: Mapping[str, str]) -> AbstractContextManager[Callable[[int], None]]:
        """Start a child in another way in this block, and call the result with its pid.

        The cookie in ``env`` is remembered for it.
        """

    def startup_directory(self, terminal: Path) -> Path:
        """Return the directory (mode 0700) for a shell's start-up files, by its terminal's one.

        Its files are for one start of a shell, and not durable.
        """

    def open_error_pty(self, rows: int, cols: int) -> ErrorTerminal:
        """Open a PTY for standard error. Raises ``Unavailable``."""

    async def all_processes(self) -> Sequence[OwnedProcess]:
        """Return every live process with its cookie, except this one and its ancestors."""

    async def groups(self) -> Groups:
        """Return the pids of every process group."""

    def process_of(self, pid: int) -> ProcessInfo | None:
        """Return the process with this pid, None without one."""

    def open_target(self, process: ProcessInfo) -> Target | None:
        """Open this process for signals; None if it is gone. The caller closes the target."""

    def program_of(self, pid: int, terminal: str) -> Program | None:
        """Return the process's name and whether it reads the terminal; None if it is gone."""

    def program_image(self, pid: int) -> ProgramImage | None:
        """Return the program that a process runs; None if that is unknown."""

    def environment_of(self, pid: int) -> Mapping[str, str]:
        """Return the environment that a process's program was given; empty if it is hidden."""

    def executable_of(self, pid: int) -> str | None:
        """Return the path of the program that a process runs; None if that is unknown."""

    def directory_of(self, pid: int) -> str | None:
        """Return the working directory, as ``working_directory.directory_of`` does."""

    def is_installed(self, program: str, cwd: str, path: str | None) -> bool:
        """Return whether there is such a program: in ``path`` (a PATH), or a file from ``cwd`` on.

        Blocking.
        """
        ...

    def current_boot(self) -> str:
        """Return the id of this boot of the machine."""
