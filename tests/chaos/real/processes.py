"""Processes of a root, and those that hold its files; each known beyond the reuse of its pid."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import attrs

LOCKED_S = 1.0
"""A child that was forked when its parent was killed closes the lock when it is executed."""

EXEC_LOOKS, EXEC_LOOK_S = 5, 0.002


@attrs.frozen(order=True)
class Process:
    """A live process; ``start`` is the time of its start, in ticks since the boot."""

    pid: int
    start: int
    words: str = attrs.field(eq=False, order=False)

    def __str__(self) -> str:
        return f"{self.words} (pid {self.pid})"


def processes_of(root: Path) -> frozenset[Process]:
    """Return every live process whose first environment names a terminal of this root."""
    cookie = f"AEGIS_TERMINAL={root}/".encode()
    return frozenset(process for path, process in _all() if _has_cookie(path, cookie))


def holders_of(directory: Path, *, before: int) -> frozenset[Process]:
    """Return every process, older than ``before``, that has a file of the directory open."""
    started = _process(Path(f"/proc/{before}"))
    if started is None:
        return frozenset()
    return frozenset(
        process
        for path, process in _all()
        if process.start < started.start and _holds(path, f"{directory}/")
    )


def is_locked(path: Path) -> bool:
    """Return whether a process has this file locked."""
    return not _can_lock(path) and (_later() or not _can_lock(path))


def _later() -> bool:
    return threading.Event().wait(LOCKED_S)


def _can_lock(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def _all() -> Iterator[tuple[Path, Process]]:
    for path in Path("/proc").glob("[0-9]*"):
        process = _process(path)
        if process is not None:
            yield path, process


def first_environment(path: Path) -> list[bytes]:
    """Return the entries of the first environment of the process at ``/proc/<pid>``.

    The kernel shows none during an exec, so the file is read again. Empty where it may not be read.
    """
    try:
        for _ in range(EXEC_LOOKS):
            environ = (path / "environ").read_bytes()
            has_memory = not (path / "statm").read_bytes().startswith(b"0 ")
            if environ or not has_memory:
                break
            threading.Event().wait(EXEC_LOOK_S)
    except OSError:
        return []
    return environ.split(b"\0")


def _has_cookie(path: Path, cookie: bytes) -> bool:
    return any(entry.startswith(cookie) for entry in first_environment(path))


def _holds(path: Path, directory: str) -> bool:
    try:
        links = [os.readlink(link) for link in (path / "fd").iterdir()]
    except OSError:
        return False
    return any(link.startswith(directory) for link in links)


def _process(path: Path) -> Process | None:
    try:
        words = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        state, *fields = (path / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else Process(int(path.name), int(fields[18]), words.strip())
