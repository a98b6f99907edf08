"""Adding a state to the registry of its user: only daemons and ``node key`` do that."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator

from aegis.path_text import text_of_path
from aegis.state.registry import ID, ID_FILE, RegisteredState, RegistryError, StateRegistry
from aegis.state.root import StatePaths, check_directories, make_directory, open_seals
from aegis.state.sealing import KEY_BYTES, Seals
from aegis.state.state_files import (
    UnsafeFile,
    every_entry,
    open_directory,
    sync_names,
    write_safely,
)

ENTRY_VERSION = 1

MAX_MOVED = 16
"""The entries that are kept of states that were once at a path where another one is now."""

HARMLESS = frozenset({"lock", ".gitignore"})
"""Files in a state that counts as empty, beside those that end in ``.new``.

A start that was killed leaves these files. Files that end in ``.new`` are never read.
"""


class WritableRegistry(StateRegistry):
    """The registry, for programs that change it."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)
        self._is_locked = False

    @classmethod
    def of_user(cls) -> WritableRegistry:
        return cls(StateRegistry.of_user().directory)

    def check_usable(self) -> None:
        """Raise ``RegistryError`` unless this user may have a registry here. Nothing is written."""
        with self._explained():
            _check_parent(self.states)
            self.exists()

    def make_key(self) -> bytes:
        """Return the key, created and synced if there is none yet. Raises ``RegistryError``."""
        with self.locked(), self._explained():
            known = self.key()
            if known is not None:
                return known
            fresh = os.urandom(KEY_BYTES)
            write_safely(self.key_path, fresh.hex().encode() + b"\n", durable=True)
            return fresh

    def enter(self, state_id: str, entry: RegisteredState) -> None:
        """Add or replace an entry, synced. Raises ``RegistryError``."""
        root = text_of_path(entry.root)
        document = {"version": ENTRY_VERSION, **entry._replace(root=root)._asdict()}
        content = json.dumps(document, indent=1).encode() + b"\n"
        with self.locked(), self._explained():
            write_safely(f"{self.states}/{state_id}.json", content, durable=True)

    def remove(self, state_id: str) -> None:
        """Remove the entry of a state that is deleted. Raises nothing."""
        with contextlib.suppress(OSError, RegistryError), self.locked():
            os.unlink(f"{self.states}/{state_id}.json")  # noqa: PTH108

    def remove_others(self, state_id: str, root: str, inode: int) -> None:
        """Remove the entries of earlier states of ``root`` that are gone. Raises nothing."""
        # A state in another directory may have been moved away with its root, before a new project
        # was started here: the newest of these entries are kept.
        others: list[tuple[float, str]] = []
        with contextlib.suppress(OSError, RegistryError), self.locked():
            for name in os.listdir(self.states):  # noqa: PTH208
                other, path = name.removesuffix(".json"), f"{self.states}/{name}"
                if other == state_id or not ID.match(other):
                    continue
                known = self.entry(other)
                if known is not None and known.root == root:
                    is_gone = known.inode == inode
                    others.append((0.0 if is_gone else os.stat(path).st_mtime, path))  # noqa: PTH116
            kept = sorted(others)[-MAX_MOVED:]
            for changed_at, path in others:
                if not changed_at or (changed_at, path) not in kept:
                    os.unlink(path)  # noqa: PTH108

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the registry against other processes and threads; create its directories if missing.

        Raises ``RegistryError``.
        """
        if self._is_locked:
            yield
            return
        with self._explained():
            _check_parent(self.states)
            _make_directory(self.states)
            self.exists()
            fd = open_directory(self.directory)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            self._is_locked = True
            yield
        finally:
            self._is_locked = False
            os.close(fd)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self.refusal("write", error) from None


def claim_state(state: StatePaths) -> Seals:
    """Return the seals of the state; register an empty or missing one for this user.

    Raises ``UntrustedState``, ``RegistryError``, ``OSError``.
    """
    check_directories(str(state.root))
    registry = WritableRegistry.of_user()
    if is_empty(str(state.directory)):
        with registry.locked():  # refused before anything is made
            make_directory(state)
            if is_empty(str(state.directory)):  # else another process was faster
                return register_state(state, registry)
    return open_seals(str(state.root))


def register_state(
    state: StatePaths, registry: WritableRegistry, configuration: str | None = None
) -> Seals:
    """Register the state for this user, with a new id.

    The id is in the registry, synced, before it is written into the state: after a kill the state
    is either still empty or registered. Raises ``RegistryError``, ``OSError``.
    """
    directory, state_id = str(state.directory), new_state_id()
    key = registry.make_key()
    inode = os.stat(directory).st_ino  # noqa: PTH116
    registry.enter(state_id, RegisteredState(str(state.root), inode, configuration))
    write_safely(f"{directory}/{ID_FILE}", f"{state_id}\n".encode(), durable=True)
    registry.remove_others(state_id, str(state.root), inode)
    return Seals(key, state_id, directory)


def is_empty(directory: str) -> bool:
    """Return whether the directory contains no state, or is missing. Raises ``OSError``."""
    return all(
        entry.is_dir(follow_symlinks=False) or entry.name in HARMLESS or entry.name.endswith(".new")
        for entry in every_entry(directory)
    )


def new_state_id() -> str:
    """Return a new, unique id."""
    return os.urandom(16).hex()


def _make_directory(path: str) -> None:
    """Make the directory and its parents, mode 0700, with synced names. Raises ``OSError``."""
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_directory(os.path.dirname(path))  # noqa: PTH120
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)  # noqa: PTH102
    sync_names(os.path.dirname(path))  # noqa: PTH120


def _check_parent(path: str) -> None:
    """Raise ``UnsafeFile`` if root would make a directory in the home of another user.

    That user could not use the directory later: ``sudo`` may leave HOME unchanged.
    """
    while not os.path.lexists(path):
        path = os.path.dirname(path)  # noqa: PTH120
    owner = os.stat(path).st_uid  # noqa: PTH116
    if os.geteuid() == 0 != owner:
        raise UnsafeFile(path, f"it belongs to user {owner}, and this is root")
