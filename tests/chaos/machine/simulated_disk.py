"""``SimulatedDisk``: the disk of the journal, in memory, that fails or dies where a test says.

It has the calls of ``aegis.journal.disk.Disk``. A ``DiskPlan`` says what strikes at which call of
which name: an error, a write that falls short, a pause, or the death of the process. A dead process
calls nothing: every later call raises ``ProcessDied`` too, so whatever runs on while the exception
passes through the tree changes nothing any more. ``disk.model`` then has all that a loss of power
at that moment may leave.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from aegis.state.sealing import KEY_BYTES, Seal, Seals
from tests.chaos.machine.disk_model import DiskModel, Image, OpenMode, SyncTicket
from tests.chaos.machine.file_content import FailedSync

CALLS = (
    "open",
    "dup",
    "size",
    "is_removed",
    "pread",
    "write",
    "pwrite",
    "ftruncate",
    "fdatasync",
    "fsync",
    "rename",
    "unlink",
    "mkdir",
    "rmdir",
    "list_directory",
    "is_directory",
)
"""What a plan may name. Closing is no such call: a process that dies closes what it has open."""

ANY = "any"
"""A plan may name this too: all calls, counted together."""


SEALS = Seals(bytes(KEY_BYTES), "0" * 32, "")
"""What signs the files of a simulated disk, by their whole path."""


class ProcessDied(BaseException):
    """The simulated process was killed. No ``Exception``: nobody who handles errors sees it."""


@attrs.frozen
class Die:
    """The process is killed before the call."""


@attrs.frozen
class Fail:
    """The call raises ``OSError(code)``; of a sync, ``fate`` is what becomes of the pages."""

    code: int
    fate: FailedSync = FailedSync.DROPPED


@attrs.frozen
class FallShort:
    """The call writes the first half of what it was given, but at least one byte."""


@attrs.frozen
class Stall:
    """The call takes ``seconds`` more. Only off the loop: for syncs through a flusher."""

    seconds: float


DiskFault = Die | Fail | FallShort | Stall


class DiskPlan:
    """Faults by the name of the call and its number, the first being 1. ``hits`` counts calls."""

    def __init__(self, faults: Mapping[tuple[str, int], DiskFault] | None = None) -> None:
        self.faults = dict(faults or {})
        self.hits: Counter[str] = Counter()

    def strike(self, call: str) -> DiskFault | None:
        """Count a call; what is due at it."""
        self.hits.update((call, ANY))
        fault = self.faults.get((call, self.hits[call]))
        return fault or self.faults.get((ANY, self.hits[ANY]))


class SimulatedDisk:
    """A disk in memory, for one process at a time; ``image`` is what it holds at first."""

    def __init__(self, image: Image | None = None, plan: DiskPlan | None = None) -> None:
        self.model = DiskModel() if image is None else DiskModel.of(image)
        self.plan = plan or DiskPlan()
        self.is_dead = False
        self.on_death: Callable[[], None] | None = None
        """Called when the process is killed: what else of it ends at this moment."""

    def die(self) -> ProcessDied:
        """The process is killed now; raise what this gives."""
        self.is_dead = True
        if self.on_death is not None:
            self.on_death()
        return ProcessDied()

    def check_alive(self) -> None:
        """Raise ``ProcessDied`` if the process was killed."""
        if self.is_dead:
            raise ProcessDied

    # The calls of ``Disk``.

    def seal(self, path: Path) -> Seal | None:
        """See ``Disk``."""
        return SEALS.of(str(path))

    def open(self, path: Path, flags: int) -> int:
        """See ``Disk``."""
        self._enter("open")
        return self.model.open(str(path), mode_of(flags))

    def close(self, fd: int) -> None:
        """See ``Disk``."""
        self.model.close(fd)

    def dup(self, fd: int) -> int:
        """See ``Disk``."""
        self._enter("dup")
        return self.model.dup(fd)

    def size(self, fd: int) -> int:
        """See ``Disk``."""
        self._enter("size")
        return self.model.size(fd)

    def is_removed(self, fd: int) -> bool:
        """See ``Disk``."""
        self._enter("is_removed")
        return self.model.is_removed(fd)

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """See ``Disk``."""
        self._enter("pread")
        return self.model.pread(fd, size, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """See ``Disk``."""
        return self.model.write(fd, self._taken("write", data))

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """See ``Disk``."""
        return self.model.pwrite(fd, self._taken("pwrite", data), offset)

    def ftruncate(self, fd: int, length: int) -> None:
        """See ``Disk``."""
        self._enter("ftruncate")
        self.model.ftruncate(fd, length)

    def fdatasync(self, fd: int) -> None:
        """See ``Disk``."""
        self._sync("fdatasync", fd)

    def fsync(self, fd: int) -> None:
        """See ``Disk``."""
        self._sync("fsync", fd)

    def rename(self, old: Path, new: Path) -> None:
        """See ``Disk``."""
        self._enter("rename")
        self.model.rename(str(old), str(new))

    def unlink(self, path: Path) -> None:
        """See ``Disk``."""
        self._enter("unlink")
        self.model.unlink(str(path))

    def mkdir(self, path: Path) -> None:
        """See ``Disk``."""
        self._enter("mkdir")
        self.model.mkdir(str(path))

    def rmdir(self, path: Path) -> None:
        """See ``Disk``."""
        self._enter("rmdir")
        self.model.rmdir(str(path))

    def list_directory(self, path: Path) -> list[str]:
        """See ``Disk``."""
        self._enter("list_directory")
        return self.model.list_directory(str(path))

    def is_directory(self, path: Path) -> bool:
        """See ``Disk``."""
        self._enter("is_directory")
        return self.model.is_directory(str(path))

    # A sync in two steps, for whoever lets time pass between them.

    def begin_sync(self, fd: int, call: str) -> tuple[SyncTicket, DiskFault | None]:
        """The sync ``call`` begins; with what is to become of it."""
        self.check_alive()
        fault = self.plan.strike(call)
        if isinstance(fault, Die):
            raise self.die()
        return self.model.begin_sync(fd), fault

    def end_sync(self, ticket: SyncTicket, fault: DiskFault | None) -> None:
        """It ends. Raises ``OSError`` if it fails, ``ProcessDied`` if the process did meanwhile."""
        self.check_alive()
        if isinstance(fault, Fail):
            self.model.fail_sync(ticket, fault.fate)
            raise _error(fault.code)
        self.model.end_sync(ticket)

    def _sync(self, call: str, fd: int) -> None:
        ticket, fault = self.begin_sync(fd, call)
        self.end_sync(ticket, fault)

    def _taken(self, call: str, data: bytes | memoryview) -> bytes:
        fault = self._enter(call)
        size = len(data)
        return bytes(data[: max(1, size // 2)] if isinstance(fault, FallShort) else data)

    def _enter(self, call: str) -> DiskFault | None:
        self.check_alive()
        fault = self.plan.strike(call)
        if isinstance(fault, Die):
            raise self.die()
        if isinstance(fault, Fail):
            raise _error(fault.code)
        return fault


def mode_of(flags: int) -> OpenMode:
    """The flags of ``open`` by their meaning."""
    access = flags & os.O_ACCMODE
    return OpenMode(
        read=access in (os.O_RDONLY, os.O_RDWR),
        write=access in (os.O_WRONLY, os.O_RDWR),
        append=bool(flags & os.O_APPEND),
        create=bool(flags & os.O_CREAT),
        exclusive=bool(flags & os.O_EXCL),
        truncate=bool(flags & os.O_TRUNC),
        directory=bool(flags & os.O_DIRECTORY),
    )


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))
