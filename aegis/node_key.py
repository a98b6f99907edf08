"""The key file of nodes. A host with the key may join and then runs commands as you.

The file of a root is signed like the rest of its state; a host that has a copy reads only the key.
"""

from __future__ import annotations

import os
from pathlib import Path

from actors.nodes.links.key import NodeKey, new_key, read_key
from aegis.daemon_process import keep_out_of_repositories
from aegis.errors import StartupError
from aegis.state.registration import WritableRegistry, claim_state
from aegis.state.registry import RegistryError
from aegis.state.root import StatePaths, UntrustedState
from aegis.state.sealing import Seal, opened_text, sealed_text
from aegis.state.state_files import UnsafeFile, read_safely, write_safely

MAX_FILE_BYTES = 256


def open_node_key(state: StatePaths) -> NodeKey:
    """Return the key of this root; create and sync one if there is none.

    Raises ``StartupError`` if the disk refuses or the state is not this user's own, ``BadNodeKey``
    for a file without a key.
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
    # Not by link(2) from a finished file: a kill would leave the key with two names, and a file
    # with two names is refused.
    if os.path.lexists(path):
        return
    with WritableRegistry.of_user().locked():
        if not os.path.lexists(path):  # otherwise another process was faster
            text = new_key().secret.hex().encode() + b"\n"
            write_safely(path, sealed_text(text, seal), durable=True)


def read_own_key(state: StatePaths, seal: Seal) -> NodeKey:
    """Read the key of this root. Raises ``StartupError``, ``BadNodeKey``, ``OSError``."""
    key = read_key(state.node_key)
    if opened_text(read_safely(str(state.node_key), MAX_FILE_BYTES) or b"", seal) is None:
        raise StartupError(
            f"{state.node_key} is not used: no aegis-actors of this user wrote it here, so another "
            "user may have the key. Remove it to get a new one, or take the state over with: "
            "aegis-actors up --trust"
        )
    return key


def read_node_key(path: Path) -> NodeKey:
    """Read the key from a file that the user copied here.

    Raises ``StartupError`` if the file is missing, ``BadNodeKey`` if it is unreadable or no key.
    """
    if not os.path.lexists(path):
        raise StartupError(
            f"there is no key at {path}: copy it from the root that is to be joined, where "
            "'aegis-actors node key' names it"
        )
    return read_key(path)
