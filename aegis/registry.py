"""The registry of one user: a key, and the states that this user's daemons have made.

    $XDG_STATE_HOME/aegis-actors/           (~/.local/state/aegis-actors)
      key                 # 64 hexadecimal digits, mode 0600
      states/<id>.json    # {"version": 1, "root": …, "inode": …, "configuration": …}

A state directory names its id in ``state.id``. It is used only where the registry has that id for
this root; its files carry codes made with the key (``aegis.sealing``). Nothing in a checkout, and
nothing that another user writes, can be made to pass both.

Standard library only, and little of it: one-shot commands load this file.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from aegis.sealing import KEY_BYTES, Seals
from aegis.state_files import (
    UnsafeFile,
    check_directory,
    every_entry,
    open_directory,
    read_safely,
    sync_names,
    write_safely,
)

NAME = "aegis-actors"
ID_FILE = "state.id"
ENTRY_VERSION = 1

MAX_ENTRY_BYTES = 65_536

_ID = re.compile(r"[0-9a-f]{32}\Z")
_KEY = re.compile(rb"[0-9a-f]{64}\n?\Z")

HARMLESS = frozenset({"lock", ".gitignore"})
"""Files in a state that counts as empty, beside those that end in ``.new``.

A start that was killed leaves these. Nothing is ever read from a file that ends in ``.new``.
"""


class RegistryError(Exception):
    """The registry cannot be used; the sentence says why and what to do."""


class ForeignState(Exception):
    """The state is not one that this user's daemons made here; the sentence says how that shows."""


class Entry(NamedTuple):
    """What the registry knows of a state.

    ``root`` is the directory that it belongs to, ``inode`` the number of its own directory, which
    stays when the root is moved. ``configuration`` is the digest of a trusted ``.aegis.yaml``.
    """

    root: str
    inode: int
    configuration: str | None = None


class Registry:
    """The registry in ``directory``, which need not exist yet."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._key_path = f"{directory}/key"
        self._is_locked = False
        self._states = f"{directory}/states"

    @classmethod
    def of_user(cls) -> Registry:
        """Return the registry that the environment says; it is not created here.

        Raises ``RegistryError`` where there is no home directory.
        """
        base = os.environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(base):  # noqa: PTH117 -- so the XDG specification: else it is ignored
            base = os.path.expanduser("~/.local/state")  # noqa: PTH111
        if not os.path.isabs(base):  # noqa: PTH117
            raise RegistryError(
                "this user has no home directory: set HOME, or XDG_STATE_HOME, to a directory for "
                "the key that signs state"
            )
        return cls(os.path.join(os.path.realpath(base), NAME))  # noqa: PTH118

    def key(self) -> bytes | None:
        """Return the key; None if there is none yet. Raises ``RegistryError``."""
        with self._explained("read"):
            if not self._check_directories():
                return None
            text = read_safely(self._key_path, 2 * KEY_BYTES + 2)
        if text is None:
            return None
        if not _KEY.match(text):
            raise RegistryError(
                f"{self._key_path} does not hold a key: remove it, then start each daemon once "
                "with: aegis-actors up --trust"
            )
        return bytes.fromhex(text.decode())

    def make_key(self) -> bytes:
        """Return the key, created and synced if there is none yet. Raises ``RegistryError``."""
        with self.locked(), self._explained("write"):
            known = self.key()
            if known is not None:
                return known
            fresh = os.urandom(KEY_BYTES)
            write_safely(self._key_path, fresh.hex().encode() + b"\n", durable=True)
            return fresh

    def entry(self, state_id: str) -> Entry | None:
        """Return what is known of a state; None if nothing is. Raises ``RegistryError``."""
        with self._explained("read"):
            if not self._check_directories():
                return None
            text = read_safely(f"{self._states}/{state_id}.json", MAX_ENTRY_BYTES)
        return None if text is None else _entry_in(text)

    def enter(self, state_id: str, entry: Entry) -> None:
        """Put an entry in the place of the one before, synced. Raises ``RegistryError``."""
        document = {"version": ENTRY_VERSION, **entry._asdict()}
        content = json.dumps(document, indent=1).encode() + b"\n"
        with self.locked(), self._explained("write"):
            write_safely(f"{self._states}/{state_id}.json", content, durable=True)

    def forget_others(self, state_id: str, root: str) -> None:
        """Remove the entries of states that ``root`` had before this one. Raises nothing."""
        with contextlib.suppress(OSError, RegistryError), self.locked():
            for name in os.listdir(self._states):  # noqa: PTH208
                other = name.removesuffix(".json")
                if other == state_id or not _ID.match(other):
                    continue
                known = self.entry(other)
                if known is not None and known.root == root:
                    os.unlink(f"{self._states}/{name}")  # noqa: PTH108

    def _check_directories(self) -> bool:
        """Return whether the directories exist. Raises ``UnsafeFile``."""
        for path in (self.directory, self._states):
            try:
                check_directory(path, os.lstat(path))
            except FileNotFoundError:
                return False
        return True

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes and threads from writing; the directories are made if need be.

        Raises ``RegistryError``.
        """
        if self._is_locked:
            yield
            return
        with self._explained("write"):
            _check_parent(self._states)
            _make_directory(self._states)
            self._check_directories()
            fd = open_directory(self.directory)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            self._is_locked = True
            yield
        finally:
            self._is_locked = False
            os.close(fd)

    @contextlib.contextmanager
    def _explained(self, action: str) -> Iterator[None]:
        try:
            yield
        except UnsafeFile as error:
            raise RegistryError(
                f"{error.filename} is not used: {error.strerror}; it keeps the key of this user's "
                "states. Run this as its owner, with HOME (or XDG_STATE_HOME) of that user"
            ) from None
        except OSError as error:
            raise RegistryError(
                f"cannot {action} {error.filename or self.directory}: {error.strerror}; the key of "
                "this user's states is there: make it readable and writable for this user, or set "
                "XDG_STATE_HOME to a directory that is"
            ) from None


def _make_directory(path: str) -> None:
    """Make the directory and those above it, mode 0700, their names synced. Raises ``OSError``."""
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
    """Raise ``UnsafeFile`` where root would make a directory in the home of another user.

    That user could not use it any more: ``sudo`` may leave HOME as it was.
    """
    while not os.path.lexists(path):
        path = os.path.dirname(path)  # noqa: PTH120
    owner = os.stat(path).st_uid  # noqa: PTH116
    if os.geteuid() == 0 != owner:
        raise UnsafeFile(path, f"it belongs to user {owner}, and this is root")


def new_state_id() -> str:
    """Return an id that no state has."""
    return os.urandom(16).hex()


def read_state_id(directory: str) -> str | None:
    """Return the id that the state directory names; None if it names none.

    Raises ``OSError``.
    """
    data = read_safely(f"{directory}/{ID_FILE}", 64)
    text = "" if data is None else data.decode("ascii", "replace").strip()
    return text if _ID.match(text) else None


def is_empty(directory: str) -> bool:
    """Return whether there is no state in the directory, or no directory. Raises ``OSError``."""
    return all(
        entry.is_dir(follow_symlinks=False) or entry.name in HARMLESS or entry.name.endswith(".new")
        for entry in every_entry(directory)
    )


def find_entry(registry: Registry, root: str, directory: str) -> tuple[str, Entry]:
    """Return the id of the state in ``directory``, which belongs to ``root``, and its entry.

    Raises ``ForeignState`` unless this user's daemons made it here, ``RegistryError``, ``OSError``.
    """
    state_id = read_state_id(directory)
    if state_id is None:
        raise ForeignState("it was made by another user or program, or by an older aegis-actors")
    entry = registry.entry(state_id)
    if entry is None:
        raise ForeignState(
            f"the registry of this user ({registry.directory}) does not know it: it came from "
            "elsewhere, or the registry is not the one that its daemon had (HOME, XDG_STATE_HOME)"
        )
    if entry.root == root or is_same(entry.root, directory):
        return state_id, entry
    if os.stat(directory).st_ino == entry.inode and not _has_state(entry.root):  # noqa: PTH116
        return state_id, entry  # the root was moved: what is a link to it, or a copy, is not
    raise ForeignState(f"it is a copy of the state of {entry.root}")


def is_same(root: str, directory: str) -> bool:
    """Return whether the state directory of ``root`` is this one, by whatever path."""
    try:
        return os.path.samestat(os.stat(state_of(root)), os.stat(directory))  # noqa: PTH116
    except OSError:
        return False


def seals_of(registry: Registry, state_id: str, directory: str) -> Seals:
    """Return the seals of a state that is known. Raises ``RegistryError``."""
    key = registry.key()
    if key is None:
        raise RegistryError(
            f"{registry.directory} has lost its key: start each daemon once with: "
            "aegis-actors up --trust"
        )
    return Seals(key, state_id, directory)


def state_of(root: str) -> str:
    """Return the path of the state directory of ``root``."""
    return os.path.join(root, ".aegis", "state")  # noqa: PTH118


def _has_state(root: str) -> bool:
    try:
        return os.path.lexists(f"{state_of(root)}/{ID_FILE}")
    except ValueError:
        return False


def _entry_in(text: bytes) -> Entry | None:
    try:
        document: Any = json.loads(text)
    except ValueError:
        return None
    match document:
        case {"root": str(root), "inode": int(inode), "configuration": str() | None as digest}:
            return Entry(root, inode, digest)
    return None
