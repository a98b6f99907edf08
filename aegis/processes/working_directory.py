"""The working directory of a process, by ``/proc``; as text made by ``aegis.path_text``."""

from __future__ import annotations

import os
from pathlib import Path

from aegis.path_text import path_of_text, text_of_path

REMOVED = ""
"""In place of a path: the working directory was removed."""

_SUFFIX = " (deleted)"


def directory_of(pid: int) -> str | None:
    """Return the working directory of a process, or REMOVED.

    None if the process is gone or belongs to another user.
    """
    link = f"/proc/{pid}/cwd"
    try:
        path = os.readlink(link)  # noqa: PTH115
        if path.endswith(_SUFFIX) and _is_removed(link, path):
            return REMOVED
        return text_of_path(path)
    except OSError:
        return None


def _is_removed(link: str, path: str) -> bool:
    """Return whether the kernel added the suffix (proc(5)): a name may end in it as well."""
    try:
        return not Path(path).samefile(link)
    except FileNotFoundError:
        return True


def existing_directory(wanted: str, otherwise: str) -> str:
    """Return ``wanted`` if it is a directory, else ``otherwise``."""
    return wanted if Path(path_of_text(wanted)).is_dir() else otherwise
