"""Reading the files of a project, never through a link that leads out of it, and its user's.

Blocking.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Any

import attrs

BLOCK_BYTES = 1 << 20


class UnusableFile(Exception):
    """The error for a file that is not read; the sentence continues its name."""


@attrs.frozen
class FileRead:
    """The first bytes of a file; ``size`` is that of the whole file."""

    data: bytes = attrs.field(repr=False)
    size: int


def leads_out(top: str, path: str) -> bool:
    """Return whether ``path`` (absolute, below ``top``) is outside ``top`` once links are followed.

    Raises ``OSError``.
    """
    real, inside = os.path.realpath(path), os.path.realpath(top)
    return real != inside and not real.startswith(inside.rstrip("/") + "/")


def read_inside(top: str, name: str, most: int) -> FileRead | None:
    """Return at most ``most`` bytes of the file ``name`` of the directory ``top``.

    None: there is none. Raises ``UnusableFile``.
    """
    path = os.path.join(top, name)  # noqa: PTH118
    try:
        if not os.path.lexists(path):
            return None
        if leads_out(top, path):
            raise UnusableFile("is a link that leads out of the project")
        real = os.path.realpath(path)
        # A FIFO must not block, and a link that was put here meanwhile is not followed.
        fd = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise UnusableFile(f"cannot be read: {why}") from None
    try:
        return _read(fd, top, most)
    finally:
        os.close(fd)


def _read(fd: int, top: str, most: int) -> FileRead:
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise UnusableFile("is no regular file")
        # A directory of its path may have become a link since.
        if leads_out(top, f"/proc/self/fd/{fd}"):
            raise UnusableFile("is a link that leads out of the project")
        blocks: list[bytes] = []
        left = most
        while left > 0 and (block := os.read(fd, min(left, BLOCK_BYTES))):
            blocks.append(block)
            left -= len(block)
    except OSError as error:
        raise UnusableFile(f"cannot be read: {error.strerror}") from None
    return FileRead(b"".join(blocks), found.st_size)


def json_of_user(path: str, most: int) -> Any:
    """Return the JSON in a file of the user's own; None without any, or beyond ``most`` bytes."""
    try:
        with open(path, "rb", opener=_open) as file:
            data = file.read(most + 1) or b""
        return json.loads(data) if len(data) <= most else None
    except (OSError, ValueError, RecursionError):
        return None


def _open(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)  # a FIFO must not block
