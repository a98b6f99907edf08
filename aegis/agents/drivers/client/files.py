"""``SessionFiles``: the text files of a session's directory, for an agent that asks its client."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

import attrs
import trio

from aegis.errors import AegisError, Forbidden, InvalidRequest, NotFound, Unavailable
from aegis.limits import in_thread

MAX_TEXT_BYTES = 4 * 1024 * 1024
"""The largest text that is read or written at once."""

MAX_FILE_BYTES = 64 * 1024 * 1024
"""The largest file of which a part is read."""

MAX_PATH_CHARS = 4096

THREADS = 2
"""Calls of one agent that are in progress at a time; the others wait. A file system can hang."""


class SessionFiles:
    """Serves ``fs/*`` beneath ``directory``; a ``ClientPort``. No other method is served."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._threads = trio.CapacityLimiter(THREADS)

    async def serve(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the result of a method. Raises ``AegisError``."""
        path = params.get("path")
        if not isinstance(path, str) or not path.startswith("/") or len(path) > MAX_PATH_CHARS:
            raise InvalidRequest(f"{method}: path must be an absolute path of a file")
        if "\0" in path:
            raise InvalidRequest(f"{method}: path has a NUL character")
        match method:
            case "fs/read_text_file":
                line, limit = _count(params, "line"), _count(params, "limit")
                text = await self._run(path, partial(read_text, line=line or 1, limit=limit))
                return {"content": text}
            case "fs/write_text_file":
                content = params.get("content")
                if not isinstance(content, str):
                    raise InvalidRequest(f"{method}: content must be a text")
                await self._run(path, partial(write_text, text=content))
                return {}
        raise Unavailable(f"{method} is not served here")

    async def _run(self, path: str, act: Callable[[str, str], str]) -> str:
        try:
            # A thread that hangs is left alone: what it does is atomic.
            return await in_thread(
                act, self._directory, path, limiter=self._threads, abandon_on_cancel=True
            )
        except AegisError:
            raise
        except OSError as error:
            raise Unavailable(f"{path!r} cannot be used: {error.strerror}") from error


def _count(params: Mapping[str, Any], name: str) -> int | None:
    value = params.get(name)
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise InvalidRequest(
            f"fs/read_text_file: {name} must be a whole number from 0, not {value!r}"
        )
    return value


def read_text(directory: str, path: str, *, line: int = 1, limit: int | None = None) -> str:
    """Return ``limit`` lines of a file from ``line`` on, which is 1 for the first.

    A line ends with a newline character, which is part of it. Raises ``AegisError``, ``OSError``.
    """
    with find(directory, path) as place:
        if place.found is None:
            raise NotFound(f"{path!r} does not exist")
        _check_regular(place, path)
        # This opens the file that was found, even if its name is a link by now.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        with os.fdopen(os.open(f"/proc/self/fd/{place.found}", flags), "rb") as file:
            data = _lines(file, path, max(line, 1) - 1, limit)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{path!r} is not a text in UTF-8") from None


def _lines(file: BinaryIO, path: str, first: int, limit: int | None) -> bytes:
    """Return lines of a file, one after the other: it can have millions."""
    data = bytearray()
    lines = iter(partial(file.readline, MAX_TEXT_BYTES + 1), b"")
    # islice takes no larger number.
    last = None if limit is None else min(first + limit, sys.maxsize)
    for each in islice(lines, min(first, sys.maxsize), last):
        data += each
        if len(data) > MAX_TEXT_BYTES:
            raise InvalidRequest(
                f"{path!r} has more than {MAX_TEXT_BYTES} bytes of text there: read a smaller "
                "part of it with line and limit"
            )
    return bytes(data)


def _check_regular(place: FileBeneath, path: str) -> None:
    status = place.status
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise InvalidRequest(f"{path!r} is not a regular file")
    if status is not None and status.st_size > MAX_FILE_BYTES:
        raise InvalidRequest(f"{path!r} is larger than {MAX_FILE_BYTES} bytes")


def write_text(directory: str, path: str, *, text: str) -> str:
    """Write a file in one step, and keep its permission bits; return ``""``.

    A link is followed to its file. Raises ``AegisError``, ``OSError``.
    """
    data = text.encode()
    if len(data) > MAX_TEXT_BYTES:
        raise InvalidRequest(f"{path!r} would have {len(data)} bytes, more than {MAX_TEXT_BYTES}")
    with find(directory, path) as place:
        _check_regular(place, path)
        if place.status is not None and not place.status.st_mode & 0o222:
            raise Forbidden(f"{path!r} is read-only")
        _replace(place, data)
    return ""


def _replace(place: FileBeneath, data: bytes) -> None:
    spare = f".aegis-{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(
        spare, flags, 0o666 if place.status is None else 0o600, dir_fd=place.directory
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if place.status is not None:
                _keep_rights(descriptor, place.status)
        os.rename(spare, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
    except BaseException:
        with suppress(OSError):
            os.unlink(spare, dir_fd=place.directory)
        raise


def _keep_rights(descriptor: int, status: os.stat_result) -> None:
    with suppress(OSError):  # a group that the user is not in
        os.fchown(descriptor, -1, status.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & 0o777)


MAX_LINKS = 40
"""Links on the way to one file, as in Linux."""

MAX_COMPONENTS = 1_000
"""Components of a path, those of its links included."""

STATE = ".aegis"
"""The directory of the daemon's own files, which no agent gets."""

PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opening a device or a FIFO in this way has no effect on it."""


@attrs.frozen
class FileBeneath:
    """The place of a file: ``name`` in the directory of the descriptor ``directory``.

    ``found`` is a descriptor of the file (``O_PATH``), and ``status`` its state; both None: there
    is no such file. The descriptors are valid inside ``find`` only.
    """

    directory: int
    name: str
    found: int | None = None
    status: os.stat_result | None = None


@contextmanager
def find(root: str, path: str) -> Iterator[FileBeneath]:
    """Find the file at the absolute ``path``, which has to be beneath the directory ``root``.

    Raises ``AegisError`` with one sentence, ``OSError``.
    """
    with ExitStack() as opened:
        yield _Walk(root, path, opened).place()


class _Walk:
    """The walk to a file beneath a directory, which no link and no ``..`` leaves.

    Each component is opened relative to the descriptor of the one before, and links are followed
    here, not by the kernel. So a link or a directory that is replaced meanwhile leads nowhere else.
    """

    def __init__(self, root: str, path: str, opened: ExitStack) -> None:
        self._path = path
        self._opened = opened
        # Agents name the directory as they were given it, or as they resolved it.
        self._roots = (root, os.path.realpath(root))
        self._directories = [self._open(root, os.O_DIRECTORY | os.O_PATH | os.O_CLOEXEC, None)]
        self._todo = deque(_parts(self._inside(path)))
        self._links = 0

    def place(self) -> FileBeneath:
        """Walk to the end of the path."""
        steps = 0
        while self._todo:
            steps += 1
            if steps > MAX_COMPONENTS:
                raise InvalidRequest(f"{self._path!r} has too many components")
            place = self._step(self._todo.popleft())
            if place is not None:
                return place
        raise InvalidRequest(f"{self._path!r} is a directory, not a file")

    def _step(self, name: str) -> FileBeneath | None:
        """Enter a directory or follow a link; return the place of a file."""
        if name == "..":
            if len(self._directories) == 1:
                raise self._outside()
            self._directories.pop()
            return None
        if name == STATE:
            raise Forbidden(f"{self._path!r} belongs to the daemon: agents cannot use it")
        directory = self._directories[-1]
        try:
            found = self._open(name, PLACE, directory)
        except FileNotFoundError:
            if self._todo:
                raise NotFound(f"{self._path!r} does not exist: it has no directory") from None
            return FileBeneath(directory, name)
        status = os.fstat(found)
        if stat.S_ISLNK(status.st_mode):
            self._follow(found)
        elif stat.S_ISDIR(status.st_mode):
            self._directories.append(found)
        elif self._todo:
            raise NotFound(f"{self._path!r} does not exist: {name!r} in it is no directory")
        else:
            return FileBeneath(directory, name, found, status)
        return None

    def _follow(self, link: int) -> None:
        self._links += 1
        if self._links > MAX_LINKS:
            raise InvalidRequest(f"{self._path!r} leads through too many links")
        target = os.readlink("", dir_fd=link)
        if target.startswith("/"):
            del self._directories[1:]
            target = self._inside(target)
        self._todo.extendleft(reversed(_parts(target)))

    def _inside(self, path: str) -> str:
        """Return an absolute path relative to the root. Raises ``Forbidden``."""
        for root in self._roots:
            within = root.rstrip("/") + "/"
            if path == root or path.startswith(within):
                return path[len(within) :]
        raise self._outside()

    def _outside(self) -> Forbidden:
        return Forbidden(
            f"{self._path!r} is not inside the session's directory {self._roots[0]!r}: use a file "
            "in it"
        )

    def _open(self, name: str, flags: int, directory: int | None) -> int:
        descriptor = os.open(name, flags, dir_fd=directory)
        self._opened.callback(os.close, descriptor)
        return descriptor


def _parts(path: str) -> list[str]:
    return [each for each in path.split("/") if each not in ("", ".")]
