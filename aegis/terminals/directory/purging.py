"""Deleting a terminal's files so that a kill in the middle leaves all of them or none.

The directory first gets a name that no terminal can have; from then on the terminal is gone. What
a kill leaves under such a name is deleted at the next start.
"""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

from aegis.journal.disk import Disk, remove_tree, sync_directory

PREFIX = ".purged-"
"""No name of a terminal begins with a dot."""


def take_name(disk: Disk, directory: Path) -> Path | None:
    """Rename a terminal's directory, durably; None if there is none. Raises ``OSError``."""
    doomed = directory.with_name(f"{PREFIX}{uuid.uuid4().hex}")
    try:
        disk.rename(directory, doomed)
    except FileNotFoundError:
        return None
    sync_directory(disk, directory.parent)
    return doomed


def delete(disk: Disk, doomed: Path) -> None:
    """Delete what has lost its name, a directory or not. Raises ``OSError``.

    A link to a directory is a link: what it leads to is not a terminal's to delete.
    """
    try:
        disk.unlink(doomed)
    except IsADirectoryError:
        remove_tree(disk, doomed)


def delete_left_over(disk: Disk, terminals: Path) -> None:
    """Delete what earlier purges left; what cannot be deleted is left to the next start.

    The names are synced before: an earlier life may have been killed before it had done so. Else a
    loss of power could give a terminal its name back when a part of its files is deleted.
    """
    with contextlib.suppress(OSError):
        names = disk.list_directory(terminals)
        sync_directory(disk, terminals)
        for name in names:
            if name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    delete(disk, terminals / name)
