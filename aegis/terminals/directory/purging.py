"""Deletion of a terminal's files; a kill at any point leaves all of them or none.

The directory is first renamed to a name that no terminal can have. A directory that a kill leaves
under such a name is deleted at the next start.
"""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

from aegis.journal.disk import Disk, remove_tree, sync_directory

PREFIX = ".purged-"
"""The start of such names: no name of a terminal begins with a dot."""


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
    """Delete a renamed directory, file or link. Raises ``OSError``."""
    # A link is deleted as a link: its target does not belong to the terminal.
    try:
        disk.unlink(doomed)
    except IsADirectoryError:
        remove_tree(disk, doomed)


def delete_left_over(disk: Disk, terminals: Path) -> None:
    """Delete the remains of interrupted purges; failed deletions are left to the next start."""
    # The rename is synced first: the purge may have been killed before its own sync. Otherwise a
    # loss of power could undo the rename of a terminal that has lost a part of its files.
    with contextlib.suppress(OSError):
        names = disk.list_directory(terminals)
        sync_directory(disk, terminals)
        for name in names:
            if name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    delete(disk, terminals / name)
