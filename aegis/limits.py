"""Threads and processes, and the refusal that names the limit which a missing one has reached.

A thread, a process, a file descriptor or a PTY may be refused by a limit of this process, of its
user, of its control group or of the machine. The caller of the day's work gets ``LimitReached``;
what belongs to a start is tried again; nothing else ends.
"""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import trio

from aegis.errors import LimitReached

T = TypeVar("T")
A = TypeVarTuple("A")

_NO_THREAD = "can't start new thread"
"""The text of CPython's RuntimeError; it has no class of its own."""

_OF_PROCESSES = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_OF_PTYS = (*_OF_PROCESSES, errno.ENOSPC, errno.ENOENT, errno.EIO)

_PTY_MAX = Path("/proc/sys/kernel/pty/max")
_FILE_MAX = Path("/proc/sys/fs/file-max")
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")


async def in_thread(
    blocking: Callable[[*A], T],
    *arguments: *A,
    abandon_on_cancel: bool = False,
    limiter: trio.CapacityLimiter | None = None,
) -> T:
    """Call a blocking function in a thread. Raises as it does, and ``LimitReached``."""
    try:
        return await trio.to_thread.run_sync(
            blocking, *arguments, abandon_on_cancel=abandon_on_cancel, limiter=limiter
        )
    except RuntimeError as error:
        if not is_no_thread(error):
            raise
        raise no_thread() from None


async def in_thread_or_here(blocking: Callable[[*A], T], *arguments: *A) -> T:
    """Call a function that takes milliseconds in a thread, on the event loop if there is none.

    For what must be done at the limit too, such as the search for processes to end.
    """
    try:
        return await in_thread(blocking, *arguments)
    except LimitReached:
        return blocking(*arguments)


async def open_process(command: Sequence[str], **options: Any) -> trio.Process:
    """Call ``trio.lowlevel.open_process``. Raises ``LimitReached``, ``OSError``, ``ValueError``."""
    try:
        return await trio.lowlevel.open_process(command, **options)
    except RuntimeError as error:  # Trio forks in a thread
        if not is_no_thread(error):
            raise
        raise no_thread("start a process") from None
    except OSError as error:
        if error.errno not in _OF_PROCESSES:
            raise
        raise limit_reached("start a process", error) from None


def open_pty() -> tuple[int, int]:
    """Return the master and the slave of a new PTY, closed on exec. Raises ``LimitReached``."""
    try:
        return os.openpty()
    except OSError as error:
        if error.errno not in _OF_PTYS:
            raise
        raise limit_reached("open a terminal", error) from None


def is_no_thread(error: RuntimeError) -> bool:
    """Return whether this is the error of Python for a thread that the system refused."""
    return str(error) == _NO_THREAD


def no_thread(action: str = "start a thread") -> LimitReached:
    """Return the refusal for ``action``, which needs a thread."""
    return limit_reached(action, OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)))


def limit_reached(action: str, error: OSError) -> LimitReached:
    """Return the refusal for ``action``, a verb phrase after "cannot", with the limit's name."""
    number = error.errno or 0
    match number:
        case errno.EMFILE:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            limit = f"it has {soft} files open, its limit (RLIMIT_NOFILE)"
            remedy = "close terminals, or raise it (ulimit -n) and restart the daemon"
        case errno.ENFILE:
            limit = f"the machine has {_number(_FILE_MAX)} files open, its limit (fs.file-max)"
            remedy = "end some programs, or raise it with sysctl"
        case errno.ENOMEM:
            limit, remedy = "no memory is free", "end some programs"
        case errno.EAGAIN:
            limit, remedy = _process_limit()
        case _ if number in _OF_PTYS:
            limit = (
                f"no PTY is free (kernel.pty.max is {_number(_PTY_MAX)}; the option max of devpts "
                "may be lower)"
            )
            remedy = "close terminals, or raise it with sysctl"
        case _:
            limit, remedy = error.strerror or str(error), "free some resources"
    return LimitReached(number, f"the daemon cannot {action}: {limit}; {remedy}, then try again")


def _process_limit() -> tuple[str, str]:
    """Return the limit of processes that was reached most probably, and the remedy."""
    for directory in _control_groups():
        most = _number(directory / "pids.max")
        if most.isdecimal() and int(_number(directory / "pids.current") or 0) >= int(most):
            return (
                f"its control group has {most} processes and threads, its limit (pids.max)",
                "end some, or raise it",
            )
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:  # root is exempt: setrlimit(2)
        return (
            f"user {os.geteuid()} has {soft} processes and threads, the limit (RLIMIT_NPROC)",
            "end some, or raise it (ulimit -u)",
        )
    return (
        "the machine has no process left (kernel.threads-max, kernel.pid_max)",
        "end some programs",
    )


def _control_groups() -> Iterator[Path]:
    """Yield the directories of this process's control group and of the ones above it."""
    try:
        lines = _OWN_GROUP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, _, name = line.rpartition(":")
        if line.startswith("0::") or ":pids:" in line:
            base = _CGROUPS if line.startswith("0::") else _CGROUPS / "pids"
            directory = base / name.strip("/")
            above = [each for each in directory.parents if base == each or base in each.parents]
            yield from (directory, *above)


def _number(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
