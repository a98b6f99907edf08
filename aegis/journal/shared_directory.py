"""``SharedDirectory``: the calls on a directory whose files other programs edit at the same time.

A file is named by a directory that may be trusted (its *base*) and a path below it. Each directory
of the path is opened in the one before it and without following links, so a directory that becomes
a link later leads nowhere else. The file must be a regular file of this user with one name.

Blocking: call these in a thread. They raise ``OSError``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Protocol

import attrs

from aegis.journal.exchange import exchange_names, rename_new
from aegis.journal.file_content import FileContent, FilePlace
from aegis.state.state_files import UnsafeFile, check_file

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PERMISSIONS = 0o7777


class SharedDirectory(Protocol):
    """An open directory. Its names are those of files in it; each call may raise ``OSError``."""

    def read(self, name: str, max_bytes: int) -> FileContent:
        """Return the content of a file, one byte more than ``max_bytes`` at most."""

    def create(self, name: str, like: str, data: bytes, before: Callable[[], object]) -> None:
        """Write a new file, synced, with the permissions of the file ``like`` if there is one.

        ``before`` is called before the data is written.
        """

    def rename(self, old: str, new: str) -> None:
        """Rename a file, and replace one of that name."""

    def rename_new(self, old: str, new: str) -> None:
        """Rename a file. Raises ``FileExistsError`` if ``new`` exists."""

    def exchange(self, one: str, other: str) -> None:
        """Exchange two names in one step.

        ENOSYS, EINVAL or EOPNOTSUPP: the kernel or the file system cannot.
        """

    def link(self, old: str, new: str) -> None:
        """Give a file a second name."""

    def remove(self, name: str) -> None:
        """Remove a name, if it exists."""

    def is_same(self, one: str, other: str) -> bool:
        """Return whether two names lead to one file; False if one of them does not exist."""

    def sync(self) -> None:
        """Wait until the names are on the medium."""


@attrs.frozen
class OsSharedDirectory:
    """The real directory behind the descriptor ``fd``."""

    fd: int

    def read(self, name: str, max_bytes: int) -> FileContent:
        try:
            fd = os.open(name, _FILE, dir_fd=self.fd)
        except FileNotFoundError:
            return FileContent(None)
        except OSError as error:
            raise _better(name, error) from None
        with open(fd, "rb") as file:  # noqa: PTH123
            check_file(name, os.fstat(fd))
            # Before and after: a program may open it in between, or write its last bytes.
            was_open = is_open_elsewhere(fd)
            data = file.read(max_bytes + 1)
            return FileContent(data, is_open=was_open or is_open_elsewhere(fd))

    def create(self, name: str, like: str, data: bytes, before: Callable[[], object]) -> None:
        # Without an old file the umask decides, as for any other program.
        fd = os.open(name, _NEW, 0o666, dir_fd=self.fd)
        with open(fd, "wb") as file:  # noqa: PTH123 -- the descriptor is what is opened
            self._copy_permissions(like, fd)
            before()
            file.write(data)
            file.flush()
            os.fsync(fd)

    def _copy_permissions(self, name: str, fd: int) -> None:
        try:
            found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        with contextlib.suppress(PermissionError):  # of a group that this user is not in
            os.fchown(fd, -1, found.st_gid)
        os.fchmod(fd, found.st_mode & _PERMISSIONS)

    def rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd)

    def rename_new(self, old: str, new: str) -> None:
        rename_new(self.fd, old, new)

    def exchange(self, one: str, other: str) -> None:
        exchange_names(self.fd, one, other)

    def link(self, old: str, new: str) -> None:
        os.link(old, new, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)

    def remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.fd)

    def is_same(self, one: str, other: str) -> bool:
        try:
            found, second = (
                os.stat(each, dir_fd=self.fd, follow_symlinks=False) for each in (one, other)
            )
        except FileNotFoundError:
            return False
        return os.path.samestat(found, second)

    def sync(self) -> None:
        os.fsync(self.fd)


@contextmanager
def open_directory_of(place: FilePlace) -> Iterator[int]:
    """Open the directory of the file, one step after another, without following a link.

    Raises ``OSError``.
    """
    fd = os.open(place.base, _DIRECTORY)
    try:
        for part in PurePath(place.path).parent.parts:
            try:
                below = os.open(part, _DIRECTORY, dir_fd=fd)
            except NotADirectoryError:
                raise UnsafeFile(
                    part, f"its directory {part!r} is a link, or no directory"
                ) from None
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


@contextmanager
def os_shared_directory(place: FilePlace) -> Iterator[SharedDirectory]:
    """Open the real directory of a file. Raises ``OSError``."""
    with open_directory_of(place) as fd:
        yield OsSharedDirectory(fd)


def is_open_elsewhere(fd: int) -> bool:
    """Return whether a program has the file open for writing; False if the kernel cannot say."""
    try:
        # The kernel reports a broken lease by a signal; the usual one would end the process.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    return False


def _better(name: str, error: OSError) -> OSError:
    if error.errno == errno.ELOOP:
        return UnsafeFile(name, "it is a symbolic link")
    if error.errno == errno.ENXIO:
        return UnsafeFile(name, "it is a FIFO, a socket or a device, not a regular file")
    return error
