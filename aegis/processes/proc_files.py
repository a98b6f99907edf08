"""Reading ``/proc`` where no file descriptor is free: one is kept for it.

Without it a process that lives would look ended, and one that a terminal or an agent started would
look like any other of this user.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from aegis.limits import limit_reached

T = TypeVar("T")

BLOCK_BYTES = 64 * 1024

_NONE_FREE = (errno.EMFILE, errno.ENFILE)


def read_file(path: str, most: int = -1) -> bytes:
    """Return the first ``most`` bytes of a file, by default all.

    Raises ``OSError``, and of these ``LimitReached`` if another thread took the spare descriptor.
    """
    return _with_spare(lambda: _read(path, most))


def list_names(path: str) -> list[str]:
    """Return the names in a directory. Raises as ``read_file`` does."""
    return _with_spare(lambda: os.listdir(path))  # noqa: PTH208 - called for each process


class SpareDescriptor:
    """A descriptor that is closed while a file of ``/proc`` is read in its place."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._lent = threading.Lock()

    def keep(self) -> None:
        """Open it, if it is not open and one is free."""
        if self._descriptor is None and self._lent.acquire(blocking=False):
            try:
                self._open()
            finally:
                self._lent.release()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Close it meanwhile. Other threads wait."""
        with self._lent:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
            try:
                yield
            finally:
                self._open()

    def _open(self) -> None:
        if self._descriptor is None:
            try:
                self._descriptor = os.open("/proc", os.O_PATH | os.O_DIRECTORY)
            except OSError:
                self._descriptor = None


spare = SpareDescriptor()


def _with_spare(read: Callable[[], T]) -> T:
    try:
        result = read()
    except OSError as error:
        if error.errno not in _NONE_FREE:
            raise
    else:
        spare.keep()
        return result
    with spare.lent():
        try:
            return read()
        except OSError as error:
            if error.errno not in _NONE_FREE:
                raise
            raise limit_reached("look at a process", error) from None


def _read(path: str, most: int) -> bytes:
    # Not with ``open``, which makes two more system calls: this is called for each process.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if most >= 0:
            return os.read(descriptor, most)
        return b"".join(iter(lambda: os.read(descriptor, BLOCK_BYTES), b""))
    finally:
        os.close(descriptor)
