"""Where a shell is, and where the program that runs on it says that it is.

Directories are text as ``aegis.path_text`` makes it.
"""

from __future__ import annotations

import os
from pathlib import Path

from aegis.path_text import path_of_text, text_of_path

REMOVED = ""
"""In place of a path: the working directory was removed, and has none."""

_SUFFIX = " (deleted)"


def directory_of(pid: int) -> str | None:
    """The working directory of a process, or REMOVED; None if it is gone or somebody else's."""
    link = f"/proc/{pid}/cwd"
    try:
        path = os.readlink(link)  # noqa: PTH115
        if path.endswith(_SUFFIX) and _is_removed(link, path):
            return REMOVED
        return text_of_path(path)
    except OSError:
        return None


def _is_removed(link: str, path: str) -> bool:
    """Whether the kernel added the suffix (proc(5)): a name may end in it as well."""
    try:
        return not Path(path).samefile(link)
    except FileNotFoundError:
        return True


def first_directory(wanted: str, otherwise: str) -> str:
    """``wanted``, unless it was removed meanwhile."""
    return wanted if Path(path_of_text(wanted)).is_dir() else otherwise


class Reports:
    """The newest directory that a program has reported, and the last one that was told on."""

    def __init__(self) -> None:
        self.newest: str | None = None
        self._told: str | None = None

    def take(self) -> str | None:
        """What is to be told: a directory that was reported since, and is another one."""
        newest, self.newest = self.newest, None
        if newest is None or newest == self._told:
            return None
        self._told = newest
        return newest

    def forget(self) -> None:
        """The prompt stands: what was told is no longer so."""
        self.newest = self._told = None
