"""Opening the files of a state directory: never through a link, and only files of this user.

A file that another user or a checkout put into the directory may be a link to a file outside it, a
second name of one, a FIFO that blocks the process that opens it, or a device. So every file is
opened without following a link and without waiting, and is checked before a byte of it is read,
written or truncated. Imports only the standard library: one-shot commands load this module.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
MAX_DEPTH = 16
"""The limit of nested directories; a state needs three levels."""

_SAFELY = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class UnsafeFile(OSError):
    """The error for a file or directory of the state that is not safe; ``strerror`` says why.

    It does not contain the path.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(errno.EPERM, why, path)


def open_safely(path: str, flags: int) -> int:
    """Open a regular file of this user with one name; a new file gets mode 0600.

    Raises ``UnsafeFile`` for anything else, with nothing changed; ``OSError``.
    """
    try:
        # Not O_TRUNC: the file is emptied once it is known to be ours.
        fd = os.open(path, (flags & ~os.O_TRUNC) | _SAFELY, FILE_MODE)
    except OSError as error:
        raise _better(path, error) from None
    try:
        found = os.fstat(fd)
        check_file(path, found)
        if flags & os.O_TRUNC and found.st_size:
            os.ftruncate(fd, 0)
    except OSError:
        os.close(fd)
        raise
    return fd


def open_directory(path: str) -> int:
    """Open a directory that is not a link. Raises ``UnsafeFile``, ``OSError``."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _better(path, error) from None


def read_safely(path: str, max_bytes: int) -> bytes | None:
    """Return the first ``max_bytes`` of a file; None if there is none.

    Raises ``UnsafeFile``, ``OSError``.
    """
    try:
        fd = open_safely(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:  # noqa: PTH123 -- the descriptor is what is opened
        return file.read(max_bytes)


def write_safely(path: str, content: bytes, *, durable: bool) -> None:
    """Replace the file atomically: a reader sees the old content or the new.

    ``durable``: synced when this returns. A killed process leaves a file with the suffix ``.new``,
    which the next call replaces. Raises ``OSError``.
    """
    fresh = f"{path}.new"
    _remove(fresh)
    fd = open_safely(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(fd, "wb") as file:  # noqa: PTH123
            file.write(content)
            file.flush()
            if durable:
                os.fsync(fd)
        os.replace(fresh, path)  # noqa: PTH105
    except OSError:
        _remove(fresh)
        raise
    if durable:
        sync_names(os.path.dirname(path))  # noqa: PTH120


def _remove(path: str) -> None:
    """Remove the file if possible; of a link only the link, not its target."""
    try:  # noqa: SIM105 -- contextlib is not loaded by one-shot commands
        os.unlink(path)  # noqa: PTH108
    except OSError:
        pass


def sync_names(directory: str) -> None:
    """Wait until the names in the directory are on the medium. Raises ``OSError``."""
    fd = open_directory(directory)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def check_file(path: str, found: os.stat_result) -> None:
    """Raise ``UnsafeFile`` unless it is a regular file of this user with one name.

    Raises ``IsADirectoryError`` for a directory.
    """
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(found.st_mode):
        raise UnsafeFile(path, f"it is {_kind(found.st_mode)}, not a regular file")
    _check_owner(path, found)
    if found.st_nlink > 1:
        raise UnsafeFile(path, "it has a second name (hard link), which may be outside the state")


def check_directory(path: str, found: os.stat_result) -> None:
    """Raise ``UnsafeFile`` unless it is a directory that only this user, its owner, may write to.

    Raises ``NotADirectoryError`` for a regular file.
    """
    if stat.S_ISREG(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    if not stat.S_ISDIR(found.st_mode):
        raise UnsafeFile(path, f"it is {_kind(found.st_mode)}, not a directory")
    _check_owner(path, found)
    if found.st_mode & _WRITABLE_BY_OTHERS:
        raise UnsafeFile(path, "other users may write to it: chmod go-w")


class HeldDirectory(namedtuple("HeldDirectory", ("directory", "device", "inode"))):
    """The state directory that a daemon holds: its path (text), and its device and inode."""

    __slots__ = ()

    def check(self, path: str) -> None:
        """Raise ``UnsafeFile`` unless all directories between this one and ``path`` are safe.

        Raised too if this directory was replaced: files of another daemon must not be changed. A
        path that is not below this directory passes. Raises ``FileNotFoundError`` if a directory is
        missing.
        """
        if not path.startswith(f"{self.directory}/"):
            return
        found = os.lstat(self.directory)
        if (found.st_dev, found.st_ino) != (self.device, self.inode):
            raise UnsafeFile(self.directory, "it was replaced while the daemon ran")
        end = path.find("/", len(self.directory) + 1)
        while end >= 0:
            check_directory(path[:end], os.lstat(path[:end]))
            end = path.find("/", end + 1)


def every_entry(directory: str, depth: int = 0) -> Iterator[os.DirEntry[str]]:
    """Yield each entry below the directory, a directory before its own entries; follow no link.

    An entry that disappears meanwhile is skipped. Raises ``UnsafeFile``, ``OSError``.
    """
    if depth > MAX_DEPTH:
        raise UnsafeFile(directory, "it is nested too deep for a directory of a state")
    try:
        entries = os.scandir(directory)
    except FileNotFoundError:
        return
    with entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from every_entry(entry.path, depth + 1)


def _check_owner(path: str, found: os.stat_result) -> None:
    if found.st_uid != os.geteuid():
        raise UnsafeFile(
            path, f"it belongs to user {found.st_uid}, and this is user {os.geteuid()}"
        )


def _better(path: str, error: OSError) -> OSError:
    """Return a clearer error where the kernel's own message would mislead."""
    if error.errno == errno.ELOOP:
        return UnsafeFile(path, "it is a symbolic link")
    if error.errno == errno.ENXIO:
        return UnsafeFile(path, "it is a FIFO, a socket or a device, not a regular file")
    if error.errno == errno.ENOTDIR and os.path.islink(path):  # noqa: PTH114
        return UnsafeFile(path, "it is a symbolic link")
    return error


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a symbolic link",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFSOCK: "a socket",
        stat.S_IFDIR: "a directory",
        stat.S_IFREG: "a regular file",
    }
    return kinds.get(stat.S_IFMT(mode), "a device")
