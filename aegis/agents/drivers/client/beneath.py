"""``find``: the walk to a file beneath a directory, which no link and no ``..`` leaves.

Each component is opened relative to the descriptor of the one before, and links are followed here,
not by the kernel. So a link or a directory that is replaced meanwhile leads nowhere else.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import attrs

from aegis.errors import Forbidden, InvalidRequest, NotFound

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
