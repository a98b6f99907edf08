"""``SimulatedDisk``: the disk of the journal, in memory, that fails or dies as a test plans.

It has the calls of ``aegis.journal.disk.Disk``. A ``DiskPlan`` has the faults by name and number of
the call: an error, a write that falls short, a pause, or the death of the process. A dead process
calls nothing: every later call raises ``ProcessDied`` too, so cleanup code that runs while the
exception passes through the tree changes nothing. ``disk.model`` then has the images that a loss of
power at that moment may leave.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

from aegis.journal.disk import write_all
from aegis.journal.file_content import FileContent, FilePlace
from aegis.journal.shared_directory import SharedDirectory
from aegis.state.sealing import KEY_BYTES, Seal, Seals
from tests.chaos.machine.disk_model import DiskModel, Image, SyncTicket
from tests.chaos.machine.file_content import FailedSync
from tests.chaos.machine.open_file import OpenMode

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
    "link",
    "rename_new",
    "exchange",
    "is_same",
)
"""The calls that a plan may name. Closing is not among them: a dying process closes its files."""

ANY = "any"
"""The name for all calls, counted together, in a plan."""


SEALS = Seals(bytes(KEY_BYTES), "0" * 32, "")
"""The seals of the files of a simulated disk, by their whole path."""


class ProcessDied(BaseException):
    """The simulated process was killed. Not an ``Exception``: no error handler catches it."""


@attrs.frozen
class Die:
    """A kill of the process before the call."""


@attrs.frozen
class Fail:
    """An ``OSError(code)`` from the call; of a sync, ``fate`` is the effect on the pages."""

    code: int
    fate: FailedSync = FailedSync.DROPPED


@attrs.frozen
class FallShort:
    """A short write: the first half of the data, but at least one byte."""


@attrs.frozen
class Stall:
    """A delay of the call by ``seconds``. Only off the loop: for syncs through a flusher."""

    seconds: float


DiskFault = Die | Fail | FallShort | Stall


class DiskPlan:
    """Faults by the name of the call and its number, the first being 1. ``hits`` counts calls."""

    def __init__(self, faults: Mapping[tuple[str, int], DiskFault] | None = None) -> None:
        self.faults = dict(faults or {})
        self.hits: Counter[str] = Counter()

    def strike(self, call: str) -> DiskFault | None:
        """Count a call; return the fault that is due at it."""
        self.hits.update((call, ANY))
        fault = self.faults.get((call, self.hits[call]))
        return fault or self.faults.get((ANY, self.hits[ANY]))


class SimulatedDisk:
    """A disk in memory, for one process at a time; ``image`` is its first content."""

    def __init__(self, image: Image | None = None, plan: DiskPlan | None = None) -> None:
        self.model = DiskModel() if image is None else DiskModel.of(image)
        self.plan = plan or DiskPlan()
        self.is_dead = False
        self.on_death: Callable[[], None] | None = None
        """The function that is called when the process is killed, to end the rest of it."""
        self.before_call: Callable[[str], None] = lambda _: None
        """The function that is called before each call with its name: another program acts."""
        self.can_exchange = True
        """Whether the file system exchanges two names in one step."""

    def die(self) -> ProcessDied:
        """Kill the process now; the caller raises the returned exception."""
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
        return SEALS.of(str(path))

    def open(self, path: Path, flags: int) -> int:
        self._enter("open")
        return self.model.open(str(path), mode_of(flags))

    def close(self, fd: int) -> None:
        self.model.close(fd)

    def dup(self, fd: int) -> int:
        self._enter("dup")
        return self.model.dup(fd)

    def size(self, fd: int) -> int:
        self._enter("size")
        return self.model.size(fd)

    def is_removed(self, fd: int) -> bool:
        self._enter("is_removed")
        return self.model.is_removed(fd)

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        self._enter("pread")
        return self.model.pread(fd, size, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return self.model.write(fd, self._taken("write", data))

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        return self.model.pwrite(fd, self._taken("pwrite", data), offset)

    def ftruncate(self, fd: int, length: int) -> None:
        self._enter("ftruncate")
        self.model.ftruncate(fd, length)

    def fdatasync(self, fd: int) -> None:
        self._sync("fdatasync", fd)

    def fsync(self, fd: int) -> None:
        self._sync("fsync", fd)

    def rename(self, old: Path, new: Path) -> None:
        self._enter("rename")
        self.model.rename(str(old), str(new))

    def unlink(self, path: Path) -> None:
        self._enter("unlink")
        self.model.unlink(str(path))

    def mkdir(self, path: Path) -> None:
        self._enter("mkdir")
        self.model.mkdir(str(path))

    def rmdir(self, path: Path) -> None:
        self._enter("rmdir")
        self.model.rmdir(str(path))

    def list_directory(self, path: Path) -> list[str]:
        self._enter("list_directory")
        return self.model.list_directory(str(path))

    def is_directory(self, path: Path) -> bool:
        self._enter("is_directory")
        return self.model.is_directory(str(path))

    # The calls on files that other programs edit too.

    @contextmanager
    def shared_directory(self, place: FilePlace) -> Iterator[SharedDirectory]:
        path = (Path(place.base) / place.path).parent
        fd = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield SimulatedDirectory(self, path, fd)
        finally:
            self.close(fd)

    def link(self, old: Path, new: Path) -> None:
        self._enter("link")
        self.model.link(str(old), str(new))

    def rename_new(self, old: Path, new: Path) -> None:
        self._enter("rename_new")
        self.model.rename_new(str(old), str(new))

    def exchange(self, one: Path, other: Path) -> None:
        self._enter("exchange")
        if not self.can_exchange:
            raise _error(errno.EINVAL)
        self.model.exchange(str(one), str(other))

    def is_same(self, one: Path, other: Path) -> bool:
        self._enter("is_same")
        return self.model.is_same(str(one), str(other))

    # A sync in two steps, so that time may pass between them.

    def begin_sync(self, fd: int, call: str) -> tuple[SyncTicket, DiskFault | None]:
        """Begin the sync ``call``; return its ticket and its fault."""
        self.check_alive()
        fault = self.plan.strike(call)
        if isinstance(fault, Die):
            raise self.die()
        return self.model.begin_sync(fd), fault

    def end_sync(self, ticket: SyncTicket, fault: DiskFault | None) -> None:
        """End it. Raises ``OSError`` if it fails, ``ProcessDied`` if the process died meanwhile."""
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
        self.before_call(call)
        fault = self.plan.strike(call)
        if isinstance(fault, Die):
            raise self.die()
        if isinstance(fault, Fail):
            raise _error(fault.code)
        return fault


@attrs.frozen
class SimulatedDirectory:
    """A ``SharedDirectory`` of the simulated disk: ``path``, open as ``fd``."""

    disk: SimulatedDisk
    path: Path
    fd: int

    def read(self, name: str, max_bytes: int) -> FileContent:
        try:
            fd = self.disk.open(self.path / name, os.O_RDONLY)
        except FileNotFoundError:
            return FileContent(None)
        try:
            data = self.disk.pread(fd, max_bytes + 1, 0)
            return FileContent(data, is_open=self.disk.model.is_written_outside(fd))
        finally:
            self.disk.close(fd)

    def create(self, name: str, like: str, data: bytes, before: Callable[[], object]) -> None:
        del like  # permissions are not modelled
        fd = self.disk.open(self.path / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            before()
            write_all(self.disk, fd, data)
            self.disk.fsync(fd)
        finally:
            self.disk.close(fd)

    def rename(self, old: str, new: str) -> None:
        self.disk.rename(self.path / old, self.path / new)

    def rename_new(self, old: str, new: str) -> None:
        self.disk.rename_new(self.path / old, self.path / new)

    def exchange(self, one: str, other: str) -> None:
        self.disk.exchange(self.path / one, self.path / other)

    def link(self, old: str, new: str) -> None:
        self.disk.link(self.path / old, self.path / new)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.disk.unlink(self.path / name)

    def is_same(self, one: str, other: str) -> bool:
        return self.disk.is_same(self.path / one, self.path / other)

    def sync(self) -> None:
        self.disk.fsync(self.fd)


def mode_of(flags: int) -> OpenMode:
    """Return the flags of ``open`` by their meaning."""
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
