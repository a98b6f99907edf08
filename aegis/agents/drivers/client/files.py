"""``SessionFiles``: the text files of a session's directory, for an agent that asks its client."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

import trio

from aegis.agents.drivers.client.beneath import FileBeneath, find
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
