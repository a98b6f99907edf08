"""A disk over real files whose calls can be made to fail, fall short, hang or end the process.

A killed process is played by ``Crash``: raised before the call that was chosen, and by every call
after it (a dead process calls nothing). What was written before stays, as it does in the kernel.
"""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from pathlib import Path

from aegis.journal.disk import OsDisk


class Crash(Exception):
    """The process was killed just before this call."""


class FaultyDisk(OsDisk):
    """Counts calls by name in ``calls``, with the threads that made them in ``threads``."""

    def __init__(self, *, crash_at: int | None = None) -> None:
        self.calls: Counter[str] = Counter()
        self.threads: dict[str, set[int]] = {}
        self.open_fds: set[int] = set()
        self._crash_at = crash_at
        self._errors: dict[str, deque[int]] = {}
        self._short: dict[str, deque[int]] = {}
        self._gates: dict[str, threading.Event] = {}
        self._entered: dict[str, threading.Semaphore] = {}

    def fail(self, call: str, code: int, times: int = 1) -> None:
        """The next ``times`` calls of that name raise ``OSError(code)``."""
        self._errors.setdefault(call, deque()).extend([code] * times)

    def pass_then_fail(self, call: str, passing: int, code: int) -> None:
        """The next ``passing`` calls of that name succeed, and the one after them raises."""
        self.fail(call, 0, times=passing)
        self.fail(call, code)

    def heal(self) -> None:
        """No error, short write or crash is left."""
        self._errors.clear()
        self._short.clear()
        self._crash_at = None

    def crash_after(self, calls: int) -> None:
        """The process is killed before the call after so many more."""
        self._crash_at = self.total + calls

    def shorten(self, call: str, *sizes: int) -> None:
        """The next calls of that name write at most so many bytes each."""
        self._short.setdefault(call, deque()).extend(sizes)

    def hold(self, call: str) -> None:
        """Calls of that name hang until ``release``."""
        self._gates[call] = threading.Event()
        self._entered[call] = threading.Semaphore(0)

    def release(self, call: str) -> None:
        """Let the calls that hang go on, and later ones through."""
        self._gates.pop(call).set()

    def wait_held(self, call: str) -> None:
        """Block until one more call of that name hangs."""
        assert self._entered[call].acquire(timeout=60)

    @property
    def total(self) -> int:
        """How many calls were made."""
        return sum(self.calls.values())

    def _enter(self, call: str) -> None:
        if self._crash_at is not None and self.total >= self._crash_at:
            raise Crash(call)
        self.calls[call] += 1
        self.threads.setdefault(call, set()).add(threading.get_ident())
        gate = self._gates.get(call)
        if gate is not None:
            self._entered[call].release()
            assert gate.wait(timeout=60)
        errors = self._errors.get(call)
        if errors:
            code = errors.popleft()
            if code != 0:
                raise OSError(code, os.strerror(code))

    def _cut(self, call: str, data: bytes | memoryview) -> bytes | memoryview:
        short = self._short.get(call)
        return data[: short.popleft()] if short else data

    def open(self, path: Path, flags: int) -> int:
        self._enter("open")
        fd = super().open(path, flags)
        self.open_fds.add(fd)
        return fd

    def close(self, fd: int) -> None:
        # Not a fault point: a process that dies closes its descriptors too.
        self.open_fds.remove(fd)
        super().close(fd)

    def dup(self, fd: int) -> int:
        self._enter("dup")
        copy = super().dup(fd)
        self.open_fds.add(copy)
        return copy

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        self._enter("pread")
        return super().pread(fd, size, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        self._enter("write")
        return super().write(fd, self._cut("write", data))

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        self._enter("pwrite")
        return super().pwrite(fd, self._cut("pwrite", data), offset)

    def ftruncate(self, fd: int, length: int) -> None:
        self._enter("ftruncate")
        super().ftruncate(fd, length)

    def fdatasync(self, fd: int) -> None:
        self._enter("fdatasync")
        super().fdatasync(fd)

    def fsync(self, fd: int) -> None:
        self._enter("fsync")
        super().fsync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self._enter("rename")
        super().rename(old, new)

    def unlink(self, path: Path) -> None:
        self._enter("unlink")
        super().unlink(path)

    def mkdir(self, path: Path) -> None:
        self._enter("mkdir")
        super().mkdir(path)

    def list_directory(self, path: Path) -> list[str]:
        self._enter("list_directory")
        return super().list_directory(path)
