"""The key of nodes in its file: who has it may join, and then runs commands as you.

The file of a root is signed like all of its state; a host that has a copy of it reads the key only.
"""

from __future__ import annotations

import os
from pathlib import Path

from actors.nodes.links.key import NodeKey, new_key, read_key
from aegis.daemon_process import keep_out_of_repositories
from aegis.errors import StartupError
from aegis.state.registration import WritableRegistry, claim_state
from aegis.state.registry import RegistryError
from aegis.state.root import State, UntrustedState
from aegis.state.sealing import Seal, opened_text, sealed_text
from aegis.state.state_files import UnsafeFile, read_safely, write_safely

MAX_FILE_BYTES = 256


def open_node_key(state: State) -> NodeKey:
    """The key of this root, made if there is none yet; it is synced then.

    Raises ``StartupError`` where the disk refuses or the state is not this user's own,
    ``BadNodeKey`` for a file that holds no key.
    """
    try:
        seal = claim_state(state).of(str(state.node_key))
        keep_out_of_repositories(state)
        _make_if_missing(str(state.node_key), seal)
        return read_own_key(state, seal)
    except (UntrustedState, RegistryError) as error:
        raise StartupError(str(error)) from error
    except UnsafeFile as error:
        raise StartupError(
            f"cannot use {state.node_key}: of {error.filename}, {error.strerror}"
        ) from error
    except OSError as error:
        raise StartupError(
            f"cannot use {state.node_key}: {error.strerror}; the key of nodes is kept there"
        ) from error


def _make_if_missing(path: str, seal: Seal) -> None:
    """Not by a link to a finished file, as is usual: a kill would leave it with two names."""
    if os.path.lexists(path):
        return
    with WritableRegistry.of_user().locked():
        if not os.path.lexists(path):  # else another process was faster
            text = new_key().secret.hex().encode() + b"\n"
            write_safely(path, sealed_text(text, seal), durable=True)


def read_own_key(state: State, seal: Seal) -> NodeKey:
    """The key in the file of this root. Raises ``StartupError``, ``BadNodeKey``, ``OSError``."""
    key = read_key(state.node_key)
    if opened_text(read_safely(str(state.node_key), MAX_FILE_BYTES) or b"", seal) is None:
        raise StartupError(
            f"{state.node_key} is not used: no aegis-actors of this user wrote it here, so another "
            "user may have the key. Remove it to get a new one, or take the state over with: "
            "aegis-actors up --trust"
        )
    return key


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
