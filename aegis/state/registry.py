"""The registry of one user: a key, and the states that this user's daemons have made.

    $XDG_STATE_HOME/aegis-actors/           (~/.local/state/aegis-actors)
      key                 # 64 hexadecimal digits, mode 0600
      states/<id>.json    # {"version": 1, "root": …, "inode": …, "configuration": …,
                        #  "projects": […]}

A state directory names its id in ``state.id``. It is used only if the registry has that id for this
root; its files carry codes made with the key (``sealing``). Nothing in a checkout, and nothing that
another user writes, can pass both checks.

Imports little, and only the standard library: one-shot commands load this module.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections import namedtuple

from aegis.path_text import path_of_text, text_of_path
from aegis.state.sealing import Seals
from aegis.state.state_files import UnsafeFile, check_directory, read_safely

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "aegis-actors"
ID_FILE = "state.id"

MAX_ENTRY_BYTES = 65_536

ID = re.compile(r"[0-9a-f]{32}\Z")
_KEY = re.compile(rb"[0-9a-f]{64}\n?\Z")


class RegistryError(Exception):
    """The error for a registry that cannot be used; the sentence says why and what to do."""


class ForeignState(Exception):
    """The error for a state that this user's daemons did not make here; the sentence says why."""


class RegisteredState(
    namedtuple(
        "RegisteredState", ("root", "inode", "configuration", "projects"), defaults=(None, ())
    )
):
    """The registry's entry about a state.

    ``root`` (text) is the directory that the state belongs to, as Python passes it to the system;
    the file has it as ``text_of_path`` writes it, so that it is the same in every locale. ``inode``
    is the number of the state's own directory, which does not change when the root is moved.
    ``configuration`` is the digest of a trusted ``.aegis.yaml``, or None. ``projects`` are those of
    directories whose settings agents may use, the newest last.
    """

    __slots__ = ()


class StateRegistry:
    """The registry in ``directory``, which need not exist yet."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.key_path = f"{directory}/key"
        self.states = f"{directory}/states"

    @classmethod
    def of_user(cls) -> StateRegistry:
        """Return the registry at the path that the environment gives; it is not created here.

        Raises ``RegistryError`` if there is no home directory.
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
        text = self._read(self.key_path)
        if text is None:
            return None
        if not _KEY.match(text):
            raise RegistryError(
                f"{self.key_path} does not hold a key: remove it, then start each daemon once "
                "with: aegis-actors up --trust"
            )
        return bytes.fromhex(text.decode())

    def entry(self, state_id: str) -> RegisteredState | None:
        """Return the entry of a state; None if there is none. Raises ``RegistryError``."""
        text = self._read(f"{self.states}/{state_id}.json")
        return None if text is None else _entry_in(text)

    def refusal(self, action: str, error: OSError) -> RegistryError:
        """Return the error for an error of the system; ``action`` fits after "cannot"."""
        if isinstance(error, UnsafeFile):
            return RegistryError(
                f"{error.filename} is not used: {error.strerror}; it keeps the key of this user's "
                "states. Run this as its owner, with HOME (or XDG_STATE_HOME) of that user"
            )
        return RegistryError(
            f"cannot {action} {error.filename or self.directory}: {error.strerror}; the key of "
            "this user's states is there: make it readable and writable for this user, or set "
            "XDG_STATE_HOME to a directory that is"
        )

    def _read(self, path: str) -> bytes | None:
        try:
            return read_safely(path, MAX_ENTRY_BYTES) if self.exists() else None
        except OSError as error:
            raise self.refusal("read", error) from None

    def check_writable(self) -> None:
        """Raise ``RegistryError`` if a new state could not be registered; change nothing."""
        place = self.states
        while not os.path.lexists(place):
            place = os.path.dirname(place)  # noqa: PTH120
        if not os.access(place, os.W_OK | os.X_OK):
            denied = PermissionError(errno.EACCES, os.strerror(errno.EACCES), place)
            raise self.refusal("write", denied)

    def exists(self) -> bool:
        """Return whether the directories exist. Raises ``UnsafeFile``."""
        for path in (self.directory, self.states):
            try:
                check_directory(path, os.lstat(path))
            except FileNotFoundError:
                return False
        return True


def read_state_id(directory: str) -> str | None:
    """Return the id that the state directory names; None if it names none.

    Raises ``OSError``.
    """
    data = read_safely(f"{directory}/{ID_FILE}", 64)
    text = "" if data is None else data.decode("ascii", "replace").strip()
    return text if ID.match(text) else None


def find_entry(registry: StateRegistry, root: str, directory: str) -> tuple[str, RegisteredState]:
    """Return the id of the state in ``directory``, which belongs to ``root``, and its entry.

    Raises ``ForeignState`` unless this user's daemons made it here, ``RegistryError``, ``OSError``.
    """
    state_id = read_state_id(directory)
    if state_id is None:
        raise ForeignState("it was made by another user or program, or by an older aegis-actors")
    entry = registry.entry(state_id)
    if entry is None:
        raise ForeignState(
            f"the registry of this user ({registry.directory}) does not know it: it was "
            "copied from another machine or user, or its daemon had another registry (HOME, "
            "XDG_STATE_HOME)"
        )
    if entry.root == root or is_same(entry.root, directory):
        return state_id, entry
    is_at_home = _id_at(entry.root) == state_id
    if os.stat(directory).st_ino == entry.inode and not is_at_home:  # noqa: PTH116
        # The root was moved; another project may have been started at its old path since. A link
        # to it or a copy of it is refused.
        return state_id, entry
    raise ForeignState(f"it is a copy of the state of {text_of_path(entry.root)}")


def is_same(root: str, directory: str) -> bool:
    """Return whether ``directory`` is the state directory of ``root``, also by another path."""
    try:
        return os.path.samestat(os.stat(state_of(root)), os.stat(directory))  # noqa: PTH116
    except (OSError, ValueError):
        return False


def seals_of(registry: StateRegistry, state_id: str, directory: str) -> Seals:
    """Return the seals of a registered state. Raises ``RegistryError``."""
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


def _id_at(root: str) -> str | None:
    """Return the id of the state of ``root``; None if there is none that this user can read."""
    try:
        return read_state_id(state_of(root))
    except (OSError, ValueError):
        return None


def _entry_in(text: bytes) -> RegisteredState | None:
    try:
        document: Any = json.loads(text)
        match document:
            case {"root": str(root), "inode": int(inode), "configuration": str() | None as digest}:
                given = document.get("projects")
                projects = given if isinstance(given, list) else ()
                known = tuple(each for each in projects if isinstance(each, str))
                return RegisteredState(path_of_text(root), inode, digest, known)
    except ValueError:
        pass
    return None
