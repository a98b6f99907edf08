"""Reading and exchanging files that other programs edit at the same time.

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
from functools import partial

from aegis.journal import faults
from aegis.journal.disk import Disk
from aegis.journal.file_content import NO_FILE, Exchanged, FilePlace, Look, digest_of
from aegis.journal.shared_directory import SharedDirectory

_NO_EXCHANGE = frozenset({errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP})


def look(disk: Disk, place: FilePlace, max_bytes: int, *, durable: bool = False) -> Look:
    """Return the first ``max_bytes`` of the file and of its swap file. Raises ``OSError``.

    Not while the file is being exchanged. ``durable``: the names are synced first, so a power loss
    does not undo an exchange that was found, and whose process was killed before its sync.
    """
    with disk.shared_directory(place) as directory:
        _finish_steps(directory, place)
        if durable:
            directory.sync()
        return Look(
            file=directory.read(place.name, max_bytes),
            swap=directory.read(place.swap, max_bytes),
        )


def discard(disk: Disk, place: FilePlace, keep_as: str = "") -> None:
    """Remove the swap file, or give it the name ``keep_as``. Raises ``OSError``."""
    with disk.shared_directory(place) as directory:
        if keep_as:
            directory.rename(place.swap, keep_as)
        else:
            directory.remove(place.swap)


def exchange(disk: Disk, place: FilePlace, data: bytes, expected: str, max_bytes: int) -> Exchanged:
    """Put ``data`` in place of the file if its digest is ``expected``; keep its permissions.

    Synced when this returns ``exchanged``. Raises ``OSError``: then look at both files.
    """
    with disk.shared_directory(place) as directory:
        state = _state_of(directory, place.name, expected, max_bytes)
        if state is not None:
            return state
        _write_beside(directory, place, data)
        try:
            state = _state_of(directory, place.name, expected, max_bytes)
            if state is not None:
                directory.remove(place.swap)
                return state
            faults.EXCHANGE_WRITTEN.hit(place.name)
            return _exchange(directory, place, digest_of(data), expected, max_bytes)
        finally:
            directory.remove(place.fresh)


def _exchange(
    directory: SharedDirectory, place: FilePlace, new: str, expected: str, max_bytes: int
) -> Exchanged:
    if expected == NO_FILE:
        if not _put_new(directory, place):
            return "changed"
    else:
        _swap(directory, place)
        faults.EXCHANGE_AFTER.hit(place.name)
        displaced = directory.read(place.swap, max_bytes)
        if displaced.digest != expected or displaced.is_open:
            # Another program was faster: its file gets its name back before anything is lost.
            _swap(directory, place)
            if directory.read(place.swap, max_bytes).digest != new:
                return "unclear"
            directory.remove(place.swap)
            directory.sync()  # or a power loss may bring back what was refused
            return "changed" if displaced.digest != expected else "open"
    directory.sync()
    faults.EXCHANGE_SYNCED.hit(place.name)
    directory.remove(place.swap)
    return "exchanged"


def _put_new(directory: SharedDirectory, place: FilePlace) -> bool:
    """Give the written file its name, unless a file has it by now."""
    try:
        directory.rename_new(place.swap, place.name)
    except FileExistsError:
        directory.remove(place.swap)
        return False
    faults.EXCHANGE_AFTER.hit(place.name)
    return True


def _swap(directory: SharedDirectory, place: FilePlace) -> None:
    try:
        directory.exchange(place.swap, place.name)
    except OSError as error:
        if error.errno not in _NO_EXCHANGE:
            raise
        _swap_in_steps(directory, place)


def _swap_in_steps(directory: SharedDirectory, place: FilePlace) -> None:
    """Exchange the names where the file system has no such step.

    A program that renames over the file between the two renames loses its edit: a stated limit.
    """
    directory.link(place.name, place.displaced)
    # Otherwise a power loss may leave the next change without this one: the old file has no name.
    directory.sync()
    directory.rename(place.swap, place.name)
    directory.rename(place.displaced, place.swap)


def _finish_steps(directory: SharedDirectory, place: FilePlace) -> None:
    """Finish an exchange in steps, if the process was killed between two of them."""
    directory.remove(place.fresh)
    if directory.is_same(place.name, place.swap):
        directory.remove(place.swap)
    try:
        if directory.is_same(place.name, place.displaced):
            directory.remove(place.displaced)
        else:
            directory.rename_new(place.displaced, place.swap)
    except FileNotFoundError:
        return
    except FileExistsError:
        directory.remove(place.displaced)  # another program has replaced it


def _state_of(
    directory: SharedDirectory, name: str, expected: str, max_bytes: int
) -> Exchanged | None:
    """Return why the file cannot be exchanged now, or None."""
    found = directory.read(name, max_bytes)
    if found.is_open:
        return "open"
    return None if found.digest == expected else "changed"


def _write_beside(directory: SharedDirectory, place: FilePlace, data: bytes) -> None:
    """Write the new file as the swap file, synced, with the permissions of the old one."""
    directory.remove(place.fresh)
    with contextlib.ExitStack() as undo:
        undo.callback(directory.remove, place.fresh)
        begin = partial(faults.EXCHANGE_WRITE.hit, place.name)
        directory.create(place.fresh, place.name, data, begin)
        # The swap file is never a part of the content: recovery judges by its digest.
        directory.rename(place.fresh, place.swap)
        undo.pop_all()
