"""A root: the directory that one daemon serves, its state, and where its daemon is reached.

Little of the standard library only: one-shot commands start with this file. The names of the
state's files are part of the contract; see ``docs/operations.md``.
"""

from __future__ import annotations

import os
from collections import namedtuple

from aegis.path_text import shell_word
from aegis.state.registry import ForeignState, Registry, find_entry, seals_of
from aegis.state.sealing import Seals
from aegis.state.state_files import check_directory, write_safely

# A type checker takes this for true. To import typing and pathlib would cost an everyday command
# more than all else here.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from pathlib import Path

CONFIG_NAME = ".aegis.yaml"

ENDPOINT = ".aegis/state/endpoint.json"
_MARKS = (CONFIG_NAME, ENDPOINT)
"""Either of these makes a directory a root."""


class UntrustedState(Exception):
    """The state of a root is not this user's own; the sentence says how that shows and what to do.

    ``why`` is the first half of the sentence.
    """

    def __init__(self, directory: str, why: str) -> None:
        self.why = why
        super().__init__(
            f"{directory} is not used: {why}. Nothing of it was run or changed. If you trust what "
            "it holds (programs to start, keys), take it over with: aegis-actors up --trust; "
            "if not, move the directory away"
        )


# Named tuples without typing: the fields have no types, so the annotations are at the uses.
class State(namedtuple("State", ("root",))):
    """The paths below a root where its daemon keeps what must outlive it."""

    __slots__ = ()

    @property
    def directory(self) -> Path:
        """All of the state; mode 0700."""
        directory: Path = self.root / ".aegis" / "state"
        return directory

    @property
    def endpoint(self) -> Path:
        """Where the running daemon is reached (``Endpoint``); there only while it runs."""
        return self.directory / "endpoint.json"

    @property
    def keys(self) -> Path:
        """The operator's token and the secrets of sessions."""
        return self.directory / "keys.json"

    @property
    def lock(self) -> Path:
        """What the one daemon of this root holds locked."""
        return self.directory / "lock"

    @property
    def workspace(self) -> Path:
        """The names of the open terminals."""
        return self.directory / "workspace.json"

    @property
    def workspaces(self) -> Path:
        """The named directories, and which terminals are their shells."""
        return self.directory / "workspaces.json"

    @property
    def nodes(self) -> Path:
        """Which terminals hosts that joined have."""
        return self.directory / "nodes.json"

    @property
    def node_key(self) -> Path:
        """The key that hosts need to join."""
        return self.directory / "node.key"

    @property
    def terminals(self) -> Path:
        """A directory for each terminal."""
        return self.directory / "terminals"

    @property
    def inboxes(self) -> Path:
        """A directory for each inbox."""
        return self.directory / "inboxes"


def find_root(start: Path) -> Path:
    """The nearest directory, ``start`` or above, that is a root; ``start`` itself if none is.

    A root holds a configuration (``.aegis.yaml``) or the endpoint of a daemon.
    """
    return type(start)(nearest_root(os.fspath(start)))


def nearest_root(start: str) -> str:
    """As ``find_root``, for paths that are text."""
    start = directory = os.path.realpath(start)
    while True:
        # Not Path.exists: it raises where a directory may not be searched.
        if any(os.path.exists(f"{directory}/{mark}") for mark in _MARKS):  # noqa: PTH110
            return directory
        directory, below = os.path.dirname(directory), directory  # noqa: PTH120
        if directory == below:
            return start


def how_to_start(root: Path | str) -> str:
    """What to do where ``root`` has no daemon: the words that start one, as typed here."""
    try:
        is_here = nearest_root(os.getcwd()) == str(root)  # noqa: PTH109
    except OSError:
        is_here = False
    if is_here:
        return "start one with: aegis-actors up"
    return f"start one with: aegis-actors up --root {shell_word(root)}"


def make_directory(state: State) -> None:
    """Make the state's directory with mode 0700 where it is missing; raises ``OSError``.

    The one above it is nobody else's to write to either, whatever the umask: who could, would put
    a state of their own in the place of this one.
    """
    for directory, mode in ((state.directory.parent, 0o755), (state.directory, 0o700)):
        try:
            directory.mkdir(mode=mode)
        except FileExistsError:
            continue
    check_directories(str(state.root))


def check_directories(root: str) -> None:
    """Raise ``UnsafeFile`` unless the state's directory, if there is one, is safe to use.

    It and the one above it must be directories of this user, no links, that nobody else may write
    to. The root itself may be anything that leads there: its path was resolved before.
    """
    above = f"{root.rstrip('/')}/.aegis"
    for directory in (above, f"{above}/state"):
        try:
            check_directory(directory, os.lstat(directory))
        except FileNotFoundError:
            return


def open_seals(root: str) -> Seals:
    """Return the seals of the state of ``root``, which this user's daemons made there.

    Raises ``UntrustedState``, ``RegistryError``, ``OSError``.
    """
    check_directories(root)
    directory, registry = f"{root.rstrip('/')}/.aegis/state", Registry.of_user()
    try:
        state_id, _ = find_entry(registry, root, directory)
    except ForeignState as foreign:
        raise UntrustedState(directory, str(foreign)) from None
    return seals_of(registry, state_id, directory)


def write_whole(path: Path, text: str) -> None:
    """Put ``text`` in the file's place in one step, mode 0600; raises ``OSError``.

    A process that is killed meanwhile leaves the old content, and beside it a file of the suffix
    ``.new``, which the next one replaces. Nothing is synced.
    """
    write_safely(str(path), text.encode("utf-8", "surrogateescape"), durable=False)
