"""``SharedFiles``: reading and exchanging files that other programs edit at the same time.

A file is named by a directory that may be trusted (its *base*) and a path below it. Each directory
of the path is opened in the one before it and without following links, so a directory that becomes
a link later leads nowhere else. The file must be a regular file of this user with one name.

An exchange never overwrites a file that nobody has looked at. The new content is written beside the
file and synced, takes the name ``<beside>.swap``, and the two names are exchanged in one step of
the kernel (``RENAME_EXCHANGE``). What was displaced is read then; if it is not what was expected,
the names are exchanged back. A program that has the file open for writing is noticed by a lease,
which the kernel refuses meanwhile: its bytes would go to the displaced file.

Blocking: call these in a thread. They raise ``OSError``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath

from aegis.journal import faults
from aegis.journal.exchange import exchange_names, rename_new
from aegis.journal.file_content import (
    NO_FILE,
    Exchanged,
    FileContent,
    FilePlace,
    Look,
    digest_of,
)
from aegis.state.state_files import UnsafeFile, check_file

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PERMISSIONS = 0o7777

_NO_EXCHANGE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP})


def look(place: FilePlace, max_bytes: int) -> Look:
    """Return the first ``max_bytes`` of the file and of its swap file. Raises ``OSError``.

    Not while the file is being exchanged.
    """
    with open_directory_of(place) as directory:
        _remove_second_names(directory, place)
        return Look(
            file=_read(directory, place.name, max_bytes),
            swap=_read(directory, place.swap, max_bytes),
        )


def discard(place: FilePlace, keep_as: str = "") -> None:
    """Remove the swap file, or give it the name ``keep_as``. Raises ``OSError``."""
    with open_directory_of(place) as directory:
        if keep_as:
            os.rename(place.swap, keep_as, src_dir_fd=directory, dst_dir_fd=directory)
        else:
            _remove(directory, place.swap)


def exchange(place: FilePlace, data: bytes, expected: str, max_bytes: int) -> Exchanged:
    """Put ``data`` in place of the file if its digest is ``expected``; keep its permissions.

    Synced when this returns ``exchanged``. Raises ``OSError``: then look at both files.
    """
    with open_directory_of(place) as directory:
        state = _state_of(directory, place.name, expected, max_bytes)
        if state is not None:
            return state
        _write_beside(directory, place, data)
        try:
            state = _state_of(directory, place.name, expected, max_bytes)
            if state is not None:
                _remove(directory, place.swap)
                return state
            faults.EXCHANGE_WRITTEN.hit(place.name)
            return _exchange(directory, place, digest_of(data), expected, max_bytes)
        finally:
            _remove(directory, place.fresh)


def _exchange(
    directory: int, place: FilePlace, new: str, expected: str, max_bytes: int
) -> Exchanged:
    if expected == NO_FILE:
        if not _put_new(directory, place):
            return "changed"
    else:
        _swap(directory, place)
        faults.EXCHANGE_AFTER.hit(place.name)
        displaced = _read(directory, place.swap, max_bytes)
        if displaced.digest != expected or displaced.is_open:
            # Another program was faster: its file gets its name back before anything is lost.
            _swap(directory, place)
            if _read(directory, place.swap, max_bytes).digest != new:
                return "unclear"
            _remove(directory, place.swap)
            return "changed" if displaced.digest != expected else "open"
    os.fsync(directory)
    faults.EXCHANGE_SYNCED.hit(place.name)
    _remove(directory, place.swap)
    return "exchanged"


def _put_new(directory: int, place: FilePlace) -> bool:
    """Give the written file its name, unless a file has it by now."""
    try:
        rename_new(directory, place.swap, place.name)
    except FileExistsError:
        _remove(directory, place.swap)
        return False
    faults.EXCHANGE_AFTER.hit(place.name)
    return True


def _swap(directory: int, place: FilePlace) -> None:
    try:
        exchange_names(directory, place.swap, place.name)
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
        _swap_in_steps(directory, place)


def _swap_in_steps(directory: int, place: FilePlace) -> None:
    """Exchange the names where the file system has no such step.

    A program that renames over the file between the two renames loses its edit: a stated limit.
    """
    os.link(
        place.name, place.fresh, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False
    )
    os.rename(place.swap, place.name, src_dir_fd=directory, dst_dir_fd=directory)
    os.rename(place.fresh, place.swap, src_dir_fd=directory, dst_dir_fd=directory)


def _remove_second_names(directory: int, place: FilePlace) -> None:
    """Remove what an exchange in steps left, if the process was killed between two of them."""
    _remove(directory, place.fresh)
    with contextlib.suppress(FileNotFoundError):
        found, beside = (
            os.stat(name, dir_fd=directory, follow_symlinks=False)
            for name in (place.name, place.swap)
        )
        if os.path.samestat(found, beside):
            _remove(directory, place.swap)


def _state_of(directory: int, name: str, expected: str, max_bytes: int) -> Exchanged | None:
    """Return why the file cannot be exchanged now, or None."""
    found = _read(directory, name, max_bytes)
    if found.is_open:
        return "open"
    return None if found.digest == expected else "changed"


def _write_beside(directory: int, place: FilePlace, data: bytes) -> None:
    """Write the new file as the swap file, synced, with the permissions of the old one."""
    _remove(directory, place.fresh)
    # Without an old file the umask decides, as for any other program.
    fd = os.open(place.fresh, _NEW, 0o666, dir_fd=directory)
    with contextlib.ExitStack() as undo:
        undo.callback(_remove, directory, place.fresh)
        with open(fd, "wb") as file:  # noqa: PTH123 -- the descriptor is what is opened
            _copy_permissions(directory, place.name, fd)
            faults.EXCHANGE_WRITE.hit(place.name)
            file.write(data)
            file.flush()
            os.fsync(fd)
        # The swap file is never a part of the content: recovery judges by its digest.
        os.rename(place.fresh, place.swap, src_dir_fd=directory, dst_dir_fd=directory)
        undo.pop_all()


def _copy_permissions(directory: int, name: str, fd: int) -> None:
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return
    with contextlib.suppress(PermissionError):  # of a group that this user is not in
        os.fchown(fd, -1, found.st_gid)
    os.fchmod(fd, found.st_mode & _PERMISSIONS)


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


def _read(directory: int, name: str, max_bytes: int) -> FileContent:
    """Return the content of a file, one byte more than ``max_bytes`` at most."""
    try:
        fd = os.open(name, _FILE, dir_fd=directory)
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


def _remove(directory: int, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
