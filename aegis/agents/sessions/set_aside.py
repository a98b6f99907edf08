"""The files that a rewind of an agent changes, set aside so that none is lost. Blocking.

An agent sets back all files of a turn or none, also those that others have changed since. So each
is copied before, below the directory of the session, and the copies are synced before the list of
them is. Afterwards the files of others are put back; if the rewind failed, or the daemon died
before its end was durable, all of them are.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import attrs

from actors.codec import structure
from aegis.errors import InvalidRequest, StorageError
from aegis.journal.disk import (
    Disk,
    make_directory,
    read_file,
    remove_tree,
    replace_file,
    sync_directory,
    write_all,
)
from aegis.path_text import path_of_text, text_of_path

LIST = "files.json"
"""The list of the copies, in their directory; without it the agent was not asked."""

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_TOTAL_BYTES = 256 * 1024 * 1024
"""The sizes of files that are set aside; a rewind with larger ones is refused."""

MAX_LIST_BYTES = 64 * 1024 * 1024

BLOCK_BYTES = 1024 * 1024

TEMPORARY = ".aegis-rewind"
"""The end of the name of a file that will replace another."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE})
"""Errors of a disk or a process that may have room later; any other is one of the file."""


@attrs.frozen(kw_only=True)
class SetAside:
    """A file that is set aside: its text is in the file ``copy``; ``digest`` ``""``: there is none.

    ``real`` is its path without links. ``is_others``: it is not as the agent left it.
    """

    path: str
    real: str
    copy: str
    digest: str
    size: int
    mode: int
    is_others: bool


@attrs.define
class PutBack:
    """The files that were put back: ``kept`` are pairs of a file and the copy of what it held.

    ``unable`` are the files that could not be put back, each with the copy of what it held before
    the rewind, and the reason.
    """

    kept: list[tuple[str, str]] = attrs.field(factory=list)
    unable: list[tuple[str, str, str]] = attrs.field(factory=list)


def digest_of(path: Path) -> str:
    """Return the digest of a regular file; ``""`` if there is none.

    Raises ``OSError`` if it is no regular file, or too large.
    """
    fd = _opened(path)
    if fd is None:
        return ""
    try:
        return _digest(fd)
    finally:
        os.close(fd)


def look_at(paths: Iterable[str], edited: Mapping[str, str]) -> list[SetAside]:
    """Return the files as ``set_aside`` does, without a copy of any.

    Raises ``InvalidRequest`` for a file that cannot be kept.
    """
    try:
        return [_look(path, edited, _digest) for path in paths]
    except OSError as error:
        raise InvalidRequest(f"a file cannot be read: {error.strerror}") from error


def set_aside(
    disk: Disk, directory: Path, paths: Iterable[str], edited: Mapping[str, str]
) -> list[SetAside]:
    """Copy the files into ``directory``, which is cleared, and store the list of them.

    ``edited`` has the digest of each file, by its real path, as the agent left it. Raises
    ``InvalidRequest`` for a file that cannot be kept, ``StorageError`` if the disk refuses a copy.
    """
    files: list[SetAside] = []
    try:
        make_directory(disk, directory)
        for number, path in enumerate(paths):
            copy = partial(_copy, disk, directory / str(number))
            files.append(_look(path, edited, copy, str(number)))
            _check_total(files)
        sync_directory(disk, directory)
        listed = json.dumps([attrs.asdict(each) for each in files]).encode()
        replace_file(disk, directory / LIST, [listed])
    except (InvalidRequest, OSError) as error:
        with contextlib.suppress(OSError):
            clear(disk, directory)
        if isinstance(error, InvalidRequest):
            raise
        raise StorageError(f"the files cannot be kept: {error.strerror}") from error
    return files


def files_aside(disk: Disk, directory: Path) -> list[SetAside]:
    """Return the files that are set aside; empty if the agent was not asked.

    Raises ``OSError``; ``ValueError`` or ``CodecError`` if the list is damaged.
    """
    data = read_file(disk, directory / LIST, max_bytes=MAX_LIST_BYTES)
    return [] if data is None else [structure(SetAside, each) for each in json.loads(data)]


def put_back(
    disk: Disk, directory: Path, files: Sequence[SetAside], keep_in: Path, *, keeps_newer: bool
) -> PutBack:
    """Put the files back that differ from their copies. Idempotent.

    The copy of a file that cannot be put back is copied into ``keep_in``; with ``keeps_newer``,
    what each of the others holds now is too. Raises ``OSError`` if the disk refuses; the copies
    stay then.
    """
    done = PutBack()
    for each in files:
        try:
            path = Path(path_of_text(each.path))
            _check_links(path, each)
            if digest_of(path) == each.digest:
                continue
            if keeps_newer and (newer := _keep(disk, keep_in, path)):
                done.kept.append((each.path, newer))
            _replace(disk, directory, each, path)
        except OSError as error:
            if error.errno in NO_ROOM:
                raise
            copy = _keep(disk, keep_in, directory / each.copy) if each.copy else ""
            done.unable.append((each.path, copy, error.strerror or "it cannot be written"))
    return done


def clear(disk: Disk, directory: Path) -> None:
    """Delete the copies, their list first. Idempotent. Raises ``OSError``."""
    with contextlib.suppress(FileNotFoundError):
        disk.unlink(directory / LIST)
        sync_directory(disk, directory)
    with contextlib.suppress(FileNotFoundError):
        remove_tree(disk, directory)


def _look(
    path: str, edited: Mapping[str, str], read: Callable[[int], str], copy: str = ""
) -> SetAside:
    """Return a file, of which ``read`` returns the digest."""
    real = text_of_path(Path(os.path.realpath(path_of_text(path))))
    try:
        fd = _opened(Path(path_of_text(path)))
    except OSError as error:
        raise InvalidRequest(
            f"{path!r} cannot be kept ({error.strerror}): move it away, then try again"
        ) from error
    digest, size, mode = "", 0, 0
    if fd is not None:
        try:
            found = os.fstat(fd)
            digest, size, mode = read(fd), found.st_size, stat.S_IMODE(found.st_mode)
        finally:
            os.close(fd)
    # A file that the agent has deleted with a tool for files has an empty digest too.
    return SetAside(
        path=path,
        real=real,
        copy="" if fd is None else copy,
        digest=digest,
        size=size,
        mode=mode,
        is_others=edited.get(real) != digest,
    )


def _check_total(files: Sequence[SetAside]) -> None:
    if sum(each.size for each in files) > MAX_TOTAL_BYTES:
        raise InvalidRequest(f"the files have more than {MAX_TOTAL_BYTES >> 20} MiB together")


def _check_links(path: Path, file: SetAside) -> None:
    # What is put back would be written to another place.
    if text_of_path(Path(os.path.realpath(path))) != file.real:
        raise OSError(errno.ELOOP, "a link has taken its place")


def _digest(fd: int, take: Callable[[bytes], None] = lambda block: None) -> str:
    digest, size = hashlib.sha256(), 0
    while block := os.read(fd, BLOCK_BYTES):
        size += len(block)
        if size > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, "it is too large")
        digest.update(block)
        take(block)
    return digest.hexdigest()


def _copy(disk: Disk, copy: Path, fd: int) -> str:
    out = disk.open(copy, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        digest = _digest(fd, partial(write_all, disk, out))
        disk.fsync(out)
    finally:
        disk.close(out)
    return digest


def _keep(disk: Disk, directory: Path, path: Path) -> str:
    """Copy what a file holds now into a new file; return its path, ``""`` if there is none."""
    fd = _opened(path)
    if fd is None:
        return ""
    try:
        make_directory(disk, directory)
        taken = {*disk.list_directory(directory)}
        number = next(each for each in range(len(taken) + 1) if str(each) not in taken)
        _copy(disk, directory / str(number), fd)
        sync_directory(disk, directory)
    finally:
        os.close(fd)
    return text_of_path(directory / str(number))


def _replace(disk: Disk, directory: Path, file: SetAside, path: Path) -> None:
    if not file.copy:
        path.unlink(missing_ok=True)
        sync_directory(disk, path.parent)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name[:200]}{TEMPORARY}")
    with contextlib.suppress(FileNotFoundError):
        fresh.unlink()  # of an attempt before
    source = disk.open(directory / file.copy, os.O_RDONLY)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        out = os.open(fresh, flags, 0o600)
        try:
            _digest(source, partial(write_all, disk, out))
            os.fchmod(out, file.mode)
            disk.fsync(out)
        finally:
            os.close(out)
    finally:
        disk.close(source)
    fresh.replace(path)
    sync_directory(disk, path.parent)


def _opened(path: Path) -> int | None:
    """Return a descriptor of a regular file; None if there is none. Raises ``OSError``."""
    # O_NONBLOCK: the open of a FIFO would wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path, flags)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a link") from error
        raise
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
        os.close(fd)
        if stat.S_ISREG(found.st_mode):
            raise OSError(errno.EFBIG, "it is too large")
        raise OSError(errno.EINVAL, "it is no regular file")
    return fd
