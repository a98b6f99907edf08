"""A process on a pseudo-terminal of its own. The only file that does I/O on a PTY.

The process is started through ``setsid -c``: it leads a session whose controlling terminal is the
PTY, and no code of this process runs between fork and exec. Rules:

- The master is non-blocking and closed on exec; the slave is closed here once the process has it.
- EIO on the master is the end of the stream: no process has the slave open any more.
- Only this one process is waited for, never "any child".
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import resource
import shutil
import signal
import struct
import sys
import termios
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import trio

from aegis.errors import AegisError, InvalidRequest, LimitReached, Unavailable
from aegis.limits import in_thread_or_here, open_process, open_pty
from aegis.path_text import text_of_path
from aegis.processes.line_discipline import LineDiscipline, LineEnds

READ_BYTES = 4096
"""Limit of one read, in bytes.

A tty returns at most a page less one byte, and refills its buffer while those are processed.
Collecting several pages first would make the event loop wait for each refill (measured).
"""

_LOCAL_FLAGS = 3
_INPUT_FLAGS = 0
_CONTROL_CHARACTERS = 6


async def open_pty_process(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    rows: int,
    cols: int,
    open_files: int | None = None,
) -> PtyProcess:
    """Start ``argv`` in ``cwd`` with exactly the environment ``env`` on a PTY of that size.

    ``open_files`` is the process's soft limit of open files; None keeps the daemon's, which it may
    have raised. Raises ``InvalidRequest`` for a program or directory that cannot be used, and
    ``Unavailable`` when the system has no PTY, descriptor or process left.
    """
    # In a thread: PATH and the directory may be on a network file system that stalls.
    await in_thread_or_here(_check_program, argv[0], cwd, env)
    starter = _starter(open_files)
    master, slave = open_pty()
    with ExitStack() as undo:
        undo.callback(os.close, master)
        try:
            os.set_blocking(master, False)
            _set_size(slave, rows, cols)
            process = await _start([*starter, *argv], cwd, env, slave)
            name = _name(slave)
        finally:
            os.close(slave)
        undo.pop_all()
    return PtyProcess(process, master, name)


def _name(slave: int) -> str:
    """Return the path of a tty; empty where it has none, as in some containers."""
    try:
        return os.ttyname(slave)
    except OSError:
        return ""


def _starter(open_files: int | None) -> list[str]:
    """Return the command prefix: lower the limit, then give the PTY to a new session."""
    path = os.environ.get("PATH", os.defpath)
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    is_kept = open_files is None or open_files == soft
    limit = [] if is_kept else [_tool("prlimit", path), f"--nofile={open_files}:"]
    return [*limit, _tool("setsid", path), "-c"]


@functools.cache
def _tool(name: str, path: str) -> str:
    """Return the path of a program that every start needs; looked up once per PATH."""
    found = shutil.which(name, path=path)
    if found is None:
        raise Unavailable(f"the program {name!r} (package util-linux) was not found in PATH")
    return found


async def _start(
    command: Sequence[str], cwd: str, env: Mapping[str, str], slave: int
) -> trio.Process:
    try:
        return await open_process(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=cwd, env=dict(env)
        )
    except LimitReached:
        raise
    except OSError as error:
        raise _start_error(error, cwd) from error


def _start_error(error: OSError, cwd: str) -> AegisError:
    if error.filename == cwd:
        return InvalidRequest(f"cwd {text_of_path(cwd)!r} cannot be used: {_reason(error)}")
    if error.errno == errno.E2BIG:
        return InvalidRequest("the environment is too long for the system: pass fewer variables")
    return Unavailable(f"no process can be started now: {_reason(error)}")


def _check_program(program: str, cwd: str, env: Mapping[str, str]) -> None:
    """Raise ``InvalidRequest`` unless ``program`` can be run from ``cwd``."""
    if not Path(cwd).is_dir():
        return
    if os.sep in program:
        found = shutil.which(Path(cwd, program))
    else:
        found = shutil.which(program, path=env.get("PATH", os.defpath))
    if found is None:
        raise InvalidRequest(
            f"shell {text_of_path(program)!r} is not an executable file: give a path, or a name "
            "found in PATH"
        )


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error)


def _set_size(descriptor: int, rows: int, cols: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def _line_ends(attributes: termios._AttrReturn) -> LineEnds:
    characters: list[bytes] = attributes[_CONTROL_CHARACTERS]
    end = [characters[which] for which in (termios.VEOF, termios.VEOL, termios.VEOL2)]
    drop = [characters[termios.VKILL]]
    if attributes[_INPUT_FLAGS] & termios.ICRNL:
        end.append(b"\r")
    if attributes[_LOCAL_FLAGS] & termios.ISIG:
        drop += [characters[which] for which in (termios.VINTR, termios.VQUIT, termios.VSUSP)]
    # A NUL switches a character off.
    return LineEnds(
        end=b"\n" + b"".join(end).replace(b"\0", b""), drop=b"".join(drop).replace(b"\0", b"")
    )


class PtyMaster:
    """The master of a PTY."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._is_dry = False

    async def read(self) -> bytes:
        """Return the next bytes, at most ``READ_BYTES``; ``b""`` at the end of the stream.

        Always a checkpoint; a cancelled call loses no bytes. Raises ``trio.ClosedResourceError``
        once closed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        data = None if self._is_dry else self._read_ready()
        if data is not None:
            await trio.lowlevel.cancel_shielded_checkpoint()
            return data
        while data is None:  # the wait is the checkpoint
            await trio.lowlevel.wait_readable(self._open_master())
            data = self._read_ready()
        return data

    def read_now(self) -> bytes:
        """Return the ready bytes, at most ``READ_BYTES``; ``b""`` without any, and at the end.

        Raises ``trio.ClosedResourceError`` once closed.
        """
        return self._read_ready() or b""

    def _read_ready(self) -> bytes | None:
        """Return the bytes that are ready; None: none yet, and the next ``read`` waits first."""
        self._is_dry = False
        try:
            return os.read(self._open_master(), READ_BYTES)
        except BlockingIOError:
            self._is_dry = True
            return None
        except OSError as error:
            # Linux: a master whose slave was closed by all processes.
            if error.errno != errno.EIO:
                raise
            return b""

    def resize(self, rows: int, cols: int) -> None:
        """Set the size of the window; the kernel sends SIGWINCH to the foreground processes."""
        _set_size(self._open_master(), rows, cols)

    def close(self) -> None:
        """Close the master; the kernel sends SIGHUP to the foreground processes. Idempotent."""
        if self._master < 0:
            return
        master, self._master = self._master, -1
        trio.lowlevel.notify_closing(master)
        os.close(master)

    def _open_master(self) -> int:
        if self._master < 0:
            raise trio.ClosedResourceError("this terminal was closed")
        return self._master


class ErrorPty(PtyMaster):
    """A PTY for output alone, at ``path``: of standard error, or of a command without input."""

    # The slave stays open here: else the PTY would end with the first command that uses it.

    def __init__(self, master: int, slave: int) -> None:
        super().__init__(master)
        self._slave = slave
        self.path = os.ttyname(slave)

    def close(self) -> None:
        """Close both sides. Idempotent."""
        if self._master >= 0:
            os.close(self._slave)
        super().close()


def open_error_pty(rows: int, cols: int) -> ErrorPty:
    """Open a PTY for standard error. Raises ``Unavailable`` when the system has none left."""
    master, slave = open_pty()
    os.set_blocking(master, False)
    _set_size(slave, rows, cols)
    return ErrorPty(master, slave)


class PtyProcess(PtyMaster):
    """A process and the master of its PTY. ``pid`` is also its session and first process group.

    ``slave_name`` is the path of the slave, empty if it has none.
    """

    def __init__(self, process: trio.Process, master: int, slave_name: str) -> None:
        super().__init__(master)
        self._process = process
        self.slave_name = slave_name

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def write_now(self, data: bytes) -> int:
        """Write as much of ``data`` as there is room for; return the number of bytes.

        Raises as ``write`` does.
        """
        try:
            return os.write(self._open_master(), data)
        except BlockingIOError:
            return 0
        except OSError as error:
            _raise_broken(error)

    async def write(self, data: bytes) -> None:
        """Write all of ``data``, waiting for room. One writer at a time.

        A cancelled call may have written a part. When no process has the terminal open any more,
        the kernel either drops the bytes or ``trio.BrokenResourceError`` is raised. Raises
        ``trio.ClosedResourceError`` once closed.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        left = data[self.write_now(data) :]
        while left:
            await trio.lowlevel.wait_writable(self._master)
            left = left[self.write_now(left) :]
        await trio.lowlevel.cancel_shielded_checkpoint()

    def foreground_pgrp(self) -> int | None:
        """Return the foreground process group, None without one."""
        try:
            return os.tcgetpgrp(self._open_master()) or None
        except OSError:
            return None

    def signal_foreground(self, signum: signal.Signals) -> bool:
        """Signal the foreground process group; return False without one."""
        group = self.foreground_pgrp()
        if group is None:
            return False
        try:
            os.killpg(group, signum)
        except ProcessLookupError:
            return False
        return True

    def is_canonical(self) -> bool:
        """Return whether the tty collects lines: it silently truncates one after 4,095 bytes."""
        return bool(self._attributes()[_LOCAL_FLAGS] & termios.ICANON)

    def echo_is_on(self) -> bool:
        """Return whether the tty echoes keys. Without echo in canonical mode a secret is read."""
        return bool(self._attributes()[_LOCAL_FLAGS] & termios.ECHO)

    def line_discipline(self) -> LineDiscipline | None:
        """Return the state of the tty; None once it is closed."""
        if self._master < 0:
            return None
        try:
            attributes = self._attributes()
        except termios.error:
            return None
        local = attributes[_LOCAL_FLAGS]
        return LineDiscipline(
            name=self.slave_name,
            is_canonical=bool(local & termios.ICANON),
            echoes=bool(local & termios.ECHO),
            line_ends=_line_ends(attributes),
        )

    def has_unread_keys(self) -> bool:
        """Return whether the tty holds keys that no program has read, also if that is unknown."""
        # The count is available on the slave's side only.
        try:
            slave = os.open(self.slave_name, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return True
        try:
            count = fcntl.ioctl(slave, termios.FIONREAD, bytes(4))
        except OSError:
            return True
        finally:
            os.close(slave)
        return bool(int.from_bytes(count, sys.byteorder))

    def start_character(self) -> bytes:
        """Return the character that resumes output after a Ctrl-S; empty without flow control.

        The tty consumes it: no program reads it.
        """
        attributes = self._attributes()
        if not attributes[_INPUT_FLAGS] & termios.IXON:
            return b""
        start: bytes = attributes[_CONTROL_CHARACTERS][termios.VSTART]
        return start

    def _attributes(self) -> termios._AttrReturn:
        return termios.tcgetattr(self._open_master())

    async def wait(self) -> int:
        """Wait for the process's end; return the exit code, or minus the signal number."""
        return await self._process.wait()


def _raise_broken(error: OSError) -> NoReturn:
    if error.errno == errno.EIO:
        raise trio.BrokenResourceError("no process has the terminal open any more") from error
    raise error
