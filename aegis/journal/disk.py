"""The file operations of the journal, and safe sequences of them.

``Disk`` is the interface to the file system: each operation of the journal goes through it, so
tests can replace it by a simulated disk. The functions here raise ``OSError``; code that answers a
caller converts it to a ``StorageError`` with ``storage_error``.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from aegis.errors import LimitReached, StorageError
from aegis.journal.file_content import FilePlace
from aegis.journal.ledger import BLOCK_BYTES
from aegis.journal.shared_directory import SharedDirectory, os_shared_directory
from aegis.path_text import text_of_path
from aegis.state.sealing import Seal, Seals
from aegis.state.state_files import (
    DIRECTORY_MODE,
    HeldDirectory,
    UnsafeFile,
    open_directory,
    open_safely,
)

APPEND = os.O_RDWR | os.O_APPEND | os.O_CREAT
"""Flags of a file that is only appended to, and created if it is missing."""


class Disk(Protocol):
    """The POSIX system calls, by their names; each may raise ``OSError``.

    ``write`` and ``pwrite`` may write fewer bytes than given, ``pread`` may read fewer.
    """

    def seal(self, path: Path) -> Seal | None:
        """Return the seal that signs and checks the file; None on a disk without a key."""

    def open(self, path: Path, flags: int) -> int:
        """Return a new descriptor, closed on exec; a new file gets mode 0600.

        Raises ``UnsafeFile`` for a link, and for anything but a regular file of this user.
        """

    def close(self, fd: int) -> None:
        """Close the descriptor."""

    def dup(self, fd: int) -> int:
        """Return a second descriptor of the same open file, closed on exec."""

    def size(self, fd: int) -> int:
        """Return the length of the file in bytes."""

    def is_removed(self, fd: int) -> bool:
        """Return whether the file has no name any more: data written to it is lost."""

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        """Return up to ``size`` bytes from ``offset`` on; empty at the end of the file."""

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write at the end; return the number of bytes written."""

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write at ``offset``; return the number of bytes written."""

    def ftruncate(self, fd: int, length: int) -> None:
        """Set the length of the file."""

    def fdatasync(self, fd: int) -> None:
        """Wait until the file's data, and its length, are on the medium."""

    def fsync(self, fd: int) -> None:
        """Wait until the file, or the entries of the directory, are on the medium."""

    def rename(self, old: Path, new: Path) -> None:
        """Rename the file, replacing an existing one."""

    def unlink(self, path: Path) -> None:
        """Remove the name."""

    def mkdir(self, path: Path) -> None:
        """Make a directory of mode 0700."""

    def rmdir(self, path: Path) -> None:
        """Remove an empty directory."""

    def list_directory(self, path: Path) -> list[str]:
        """Return the names in the directory, unordered."""

    def is_directory(self, path: Path) -> bool:
        """Return whether ``path`` is a directory."""

    def shared_directory(self, place: FilePlace) -> AbstractContextManager[SharedDirectory]:
        """Open the directory of a file that other programs edit too."""


class OsDisk:
    """The real disk. Files below the directory of ``guard`` are opened without following links."""

    _seals: Seals | None = None
    _guard: HeldDirectory | None = None

    def __init__(self, seals: Seals | None = None, guard: HeldDirectory | None = None) -> None:
        self._seals = seals
        self._guard = guard

    def seal(self, path: Path) -> Seal | None:
        return None if self._seals is None else self._seals.of(str(path))

    def _check(self, path: Path) -> None:
        if self._guard is not None:
            self._guard.check(str(path))

    def open(self, path: Path, flags: int) -> int:
        self._check(path)
        if flags & os.O_DIRECTORY:
            return open_directory(str(path))
        return open_safely(str(path), flags)

    def close(self, fd: int) -> None:
        os.close(fd)

    def dup(self, fd: int) -> int:
        return os.dup(fd)

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def is_removed(self, fd: int) -> bool:
        return os.fstat(fd).st_nlink == 0

    def pread(self, fd: int, size: int, offset: int) -> bytes:
        return os.pread(fd, size, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return os.write(fd, data)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        return os.pwrite(fd, data, offset)

    def ftruncate(self, fd: int, length: int) -> None:
        os.ftruncate(fd, length)

    def fdatasync(self, fd: int) -> None:
        os.fdatasync(fd)

    def fsync(self, fd: int) -> None:
        os.fsync(fd)

    def rename(self, old: Path, new: Path) -> None:
        self._check(old)
        if new.parent != old.parent:
            self._check(new)
        os.rename(old, new)  # noqa: PTH104 (the call by its name)

    def unlink(self, path: Path) -> None:
        self._check(path)
        os.unlink(path)  # noqa: PTH108 (the call by its name)

    def mkdir(self, path: Path) -> None:
        self._check(path)
        os.mkdir(path, DIRECTORY_MODE)  # noqa: PTH102 (the call by its name)

    def rmdir(self, path: Path) -> None:
        self._check(path)
        os.rmdir(path)  # noqa: PTH106 (the call by its name)

    def list_directory(self, path: Path) -> list[str]:
        self._check(path)
        return os.listdir(path)  # noqa: PTH208 (the call by its name)

    def is_directory(self, path: Path) -> bool:
        try:
            found = os.stat(path)  # noqa: PTH116 (the call by its name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return stat.S_ISDIR(found.st_mode)

    def shared_directory(self, place: FilePlace) -> AbstractContextManager[SharedDirectory]:
        return os_shared_directory(place)


def write_all(disk: Disk, fd: int, data: bytes) -> None:
    """Append all of ``data``, in several writes if one write takes only a part."""
    left = memoryview(data)
    while left:
        left = left[write_some(disk, fd, left) :]


def pwrite_all(disk: Disk, fd: int, data: bytes, offset: int) -> None:
    """Write all of ``data`` at ``offset``, in several writes if one write takes only a part."""
    written = 0
    while written < len(data):
        taken = disk.pwrite(fd, memoryview(data)[written:], offset + written)
        written += _some(taken)


def write_some(disk: Disk, fd: int, data: memoryview) -> int:
    """Append at least one byte of ``data``; return the number of bytes written."""
    return _some(disk.write(fd, data))


def _some(written: int) -> int:
    # A file that takes no byte and reports no error would keep its writer in an endless loop.
    if written == 0:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return written


def read_exactly(disk: Disk, fd: int, size: int, offset: int) -> bytes:
    """Return the ``size`` bytes from ``offset`` on; ``OSError`` (EIO) if the file ends before."""
    data = disk.pread(fd, size, offset)
    while len(data) < size:
        more = disk.pread(fd, size - len(data), offset + len(data))
        if not more:
            raise OSError(errno.EIO, "the file became shorter while it was read")
        data += more
    return data


def read_blocks(disk: Disk, fd: int, start: int, end: int) -> Iterator[bytes]:
    """Yield the bytes ``[start, end)`` of a file in blocks, to limit the use of memory."""
    for offset in range(start, end, BLOCK_BYTES):
        yield read_exactly(disk, fd, min(BLOCK_BYTES, end - offset), offset)


def read_file(disk: Disk, path: Path, *, max_bytes: int) -> bytes | None:
    """Return the first ``max_bytes`` of a small file; ``None`` if there is no such file."""
    try:
        fd = disk.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return read_exactly(disk, fd, min(disk.size(fd), max_bytes), 0)
    finally:
        disk.close(fd)


def file_size(disk: Disk, path: Path) -> int:
    """Return the size of a file in bytes. Raises ``OSError``."""
    fd = disk.open(path, os.O_RDONLY)
    try:
        return disk.size(fd)
    finally:
        disk.close(fd)


def is_there(disk: Disk, path: Path) -> bool:
    """Return whether a file of this name can be opened. Raises ``OSError``."""
    try:
        disk.close(disk.open(path, os.O_RDONLY))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def make_directory(disk: Disk, directory: Path, *, durable: bool = True) -> None:
    """Make the directory and its missing parents, mode 0700; ``durable``: sync each entry."""
    try:
        disk.mkdir(directory)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_directory(disk, directory.parent, durable=durable)
        with contextlib.suppress(FileExistsError):  # another thread may have made it first
            disk.mkdir(directory)
    if durable:
        sync_directory(disk, directory.parent)


def remove_tree(disk: Disk, directory: Path) -> None:
    """Remove the directory and its content without a sync; links are removed, not followed."""
    for name in disk.list_directory(directory):
        try:
            disk.unlink(directory / name)
        except IsADirectoryError:
            remove_tree(disk, directory / name)
    disk.rmdir(directory)


def sync_directory(disk: Disk, directory: Path) -> None:
    """Wait until the directory's entries (new, renamed, removed files) are on the medium."""
    fd = disk.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)


def sync_file(disk: Disk, path: Path) -> None:
    """Wait until the file's content is on the medium, including data written by other processes."""
    fd = disk.open(path, os.O_RDONLY)
    try:
        disk.fsync(fd)
    finally:
        disk.close(fd)


def sync_found(disk: Disk, path: Path) -> None:
    """Sync an existing file and its name: its writer may have been killed before its own sync."""
    sync_file(disk, path)
    sync_directory(disk, path.parent)


def replace_file(disk: Disk, path: Path, chunks: Iterable[bytes], *, durable: bool = True) -> None:
    """Replace the content of the file atomically: a reader sees the old content or the new.

    ``durable``: synced when this returns, so it also survives a power loss; otherwise it survives
    only a killed process. The temporary file has the suffix ``.new``; one left by a crash is
    deleted.
    """
    disk.close(install_file(disk, path, chunks, durable=durable))
    if durable:
        sync_directory(disk, path.parent)


def install_file(disk: Disk, path: Path, chunks: Iterable[bytes], *, durable: bool = False) -> int:
    """Replace the file as ``replace_file`` does, and return an open descriptor of the new file.

    The caller closes the descriptor; it is not in append mode. The directory is not synced.
    """
    fresh = path.with_name(path.name + ".new")
    with contextlib.ExitStack() as undo:
        fd = _create(disk, fresh)
        undo.callback(discard_file, disk, fd, fresh)
        for chunk in chunks:
            write_all(disk, fd, chunk)
        if durable:
            disk.fsync(fd)
        disk.rename(fresh, path)
        undo.pop_all()
    return fd


def _create(disk: Disk, path: Path) -> int:
    """Open a file that is new, and open for reading and writing; delete one of that name."""
    # Not O_TRUNC: until the file is synced, a power loss may leave old pages beside new ones. An
    # old slot of a note would then be read as its newest one, in a later incarnation.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    try:
        return disk.open(path, flags)
    except FileExistsError:
        disk.unlink(path)
        return disk.open(path, flags)


def discard_file(disk: Disk, fd: int, path: Path) -> None:
    """Close a file that is not needed, and delete it if the disk permits. Blocking."""
    disk.close(fd)
    with contextlib.suppress(OSError):
        disk.unlink(path)


_REMEDIES = {
    errno.ENOSPC: "free some space, then try again",
    errno.EDQUOT: "free some of your quota, then try again",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f), then try again",
    errno.EIO: "the disk fails: see the system log, back up the data, then try again",
    errno.EROFS: "mount the file system writable, then try again",
    errno.EACCES: "give this user the right to write there, then try again",
    errno.EPERM: "give this user the right to write there, then try again",
    errno.EMFILE: "raise the limit on open files (RLIMIT_NOFILE, ulimit -n), then try again",
    errno.ENFILE: "end some programs, or raise the limit (fs.file-max), then try again",
    errno.ENOENT: "another program removed it: restore it, or restart the daemon",
    errno.EISDIR: "a directory is in the file's place: move it away, then try again",
    errno.ENOTDIR: "a file is in the directory's place: move it away, then try again",
}


def stored_names(disk: Disk, directory: Path) -> list[str]:
    """Return the names in a directory of the state, sorted; none before the directory is made.

    Raises ``StorageError``.
    """
    with storage_errors("list", directory):
        try:
            return sorted(disk.list_directory(directory))
        except (FileNotFoundError, NotADirectoryError):
            return []


def storage_error(action: str, path: Path, error: OSError) -> StorageError:
    """Return the error for a caller: the failed action, the cause, and what to do.

    ``action`` is a verb that fits between "cannot" and the file's name.
    """
    if isinstance(error, LimitReached):
        return error  # not the disk's refusal: it names its own limit and remedy
    remedy = _REMEDIES.get(error.errno or 0, "check the disk, then try again")
    if isinstance(error, UnsafeFile):
        remedy = "move it away, then try again"
    reason = error.strerror or type(error).__name__
    return StorageError(f"cannot {action} {shown(path)}: {reason}; {remedy}")


@contextlib.contextmanager
def storage_errors(action: str, path: Path) -> Iterator[None]:
    """Raise the ``storage_error`` of an ``OSError`` in the block."""
    try:
        yield
    except OSError as error:
        raise storage_error(action, path, error) from error


def shown(path: Path) -> str:
    """Return the path from ``.aegis`` on, or the last three parts of a long one."""
    parts = path.parts
    if ".aegis" in parts:
        return text_of_path(Path(*parts[parts.index(".aegis") :]))
    return text_of_path(path if len(parts) <= 4 else Path("…", *parts[-3:]))
