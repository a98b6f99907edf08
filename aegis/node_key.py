"""The key of nodes in its file: who has it may join, and then runs commands as you."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from actors.nodes.key import NodeKey, new_key, read_key, write_key
from aegis.errors import StartupError
from aegis.journal.disk import OsDisk, sync_directory, sync_file
from aegis.process import keep_out_of_repositories
from aegis.root import State, make_directory


def open_node_key(state: State) -> NodeKey:
    """The key of this root, made if there is none yet; it is synced then.

    Raises ``StartupError`` where the disk refuses, ``BadNodeKey`` for a file that is none.
    """
    try:
        if not os.path.lexists(state.node_key):
            make_directory(state)
            keep_out_of_repositories(state)
            _make(state.node_key)
        return read_key(state.node_key)
    except OSError as error:
        raise StartupError(
            f"cannot use {state.node_key}: {error.strerror}; the key of nodes is kept there"
        ) from error


def read_node_key(path: Path) -> NodeKey:
    """The key that somebody brought here.

    Raises ``StartupError`` if it is not there, ``BadNodeKey`` if it cannot be read or is none.
    """
    if not os.path.lexists(path):
        raise StartupError(
            f"there is no key at {path}: copy it from the root that is to be joined, where "
            "'aegis-actors node key' names it"
        )
    return read_key(path)


def _make(path: Path) -> None:
    """Whole or not at all, and never in the place of another one."""
    disk = OsDisk()
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")
    write_key(fresh, new_key())
    try:
        sync_file(disk, fresh)
        with contextlib.suppress(FileExistsError):  # somebody else was faster
            path.hardlink_to(fresh)
    finally:
        fresh.unlink()
    sync_directory(disk, path.parent)
