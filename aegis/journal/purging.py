"""Deletion of a directory of the state; a kill at any point leaves all of it or none.

The directory is first renamed to a name that nothing in the state can have. A directory that a kill
leaves under such a name is deleted at the next start.
"""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

from aegis.journal.disk import Disk, remove_tree, sync_directory

PREFIX = ".purged-"
"""The start of such names: no name of a terminal or a session begins with a dot."""


def take_name(disk: Disk, directory: Path) -> Path | None:
    """Rename a directory, durably; None if there is none. Raises ``OSError``."""
    doomed = directory.with_name(f"{PREFIX}{uuid.uuid4().hex}")
    try:
        disk.rename(directory, doomed)
    except FileNotFoundError:
        return None
    sync_directory(disk, directory.parent)
    return doomed


def delete(disk: Disk, doomed: Path) -> None:
    """Delete a renamed directory, file or link. Raises ``OSError``."""
    # A link is deleted as a link: its target does not belong to the state.
    try:
        disk.unlink(doomed)
    except IsADirectoryError:
        remove_tree(disk, doomed)


def delete_left_over(disk: Disk, directory: Path) -> None:
    """Delete what interrupted purges left in ``directory``, as far as the disk permits."""
    # The rename is synced first: the purge may have been killed before its own sync. Otherwise a
    # loss of power could undo the rename of a directory that has lost a part of its files.
    with contextlib.suppress(OSError):
        names = disk.list_directory(directory)
        sync_directory(disk, directory)
        for name in names:
            if name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    delete(disk, directory / name)
