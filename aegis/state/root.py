"""A root: the directory that one daemon serves, its state, and where its daemon is reached.

Little of the standard library only: one-shot commands start with this file. The names of the
state's files are part of the contract; see ``docs/operations.md``.
"""

from __future__ import annotations

import json
import os
from collections import namedtuple

from aegis.path_text import shell_word
from aegis.state.registry import ForeignState, Registry, RegistryError, find_entry, seals_of
from aegis.state.sealing import Seals, document_fits, sealed_document
from aegis.state.state_files import UnsafeFile, check_directory, read_safely, write_safely

# A type checker takes this for true. To import typing and pathlib would cost an everyday command
# more than all else here.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

CONFIG_NAME = ".aegis.yaml"
ENDPOINT_VERSION = 1

_ENDPOINT = ".aegis/state/endpoint.json"
_MARKS = (CONFIG_NAME, _ENDPOINT)
"""What makes a directory a root."""


class BadEndpoint(Exception):
    """The endpoint file is there but cannot be used; the sentence says why and what to do."""


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


class Endpoint(
    namedtuple(
        "Endpoint",
        ("pid", "url", "mcp", "ws", "socket", "token", "version"),
        defaults=(ENDPOINT_VERSION,),
    )
):
    """Where a daemon is reached, and the operator's token for it: texts, ``pid`` is an int."""

    __slots__ = ()

    @property
    def socket_path(self) -> bytes:
        """The path of the Unix socket, as the kernel knows it, whatever the locale here."""
        path: bytes = self.socket.encode("utf-8", "surrogateescape")
        return path

    def __repr__(self) -> str:
        return f"Endpoint(pid={self.pid}, url={self.url!r}, socket={self.socket!r})"


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


def write_endpoint(state: State, endpoint: Endpoint, seals: Seals | None = None) -> None:
    """Write the endpoint file: mode 0600, and whole or not at all for whoever reads meanwhile.

    Without ``seals`` an empty or missing state becomes this user's own. Raises ``OSError``,
    ``UntrustedState``, ``RegistryError``.
    """
    if seals is None:
        from aegis.state.registering import claim  # no client needs it

        seals = claim(state)
    document = {"version": endpoint.version, **endpoint._asdict()}
    seal = seals.of(str(state.endpoint))
    text = json.dumps(sealed_document(document, seal), indent=1)
    write_whole(state.endpoint, text + "\n")


def write_whole(path: Path, text: str) -> None:
    """Put ``text`` in the file's place in one step, mode 0600; raises ``OSError``.

    A process that is killed meanwhile leaves the old content, and beside it a file of the suffix
    ``.new``, which the next one replaces. Nothing is synced.
    """
    write_safely(str(path), text.encode("utf-8", "surrogateescape"), durable=False)


def remove_endpoint(state: State) -> None:
    """Remove the endpoint file if it is there."""
    state.endpoint.unlink(missing_ok=True)


def read_endpoint(state: State) -> Endpoint | None:
    """As ``endpoint_of``, for the root's state."""
    return endpoint_of(str(state.root))


def endpoint_of(root: str) -> Endpoint | None:
    """What the endpoint file of ``root`` says; None if there is none.

    Raises ``BadEndpoint`` if it cannot be read, does not hold an endpoint, is of a newer version,
    or was not written by a daemon of this user in this root: its author would be sent all that is
    typed.
    """
    path = f"{root.rstrip('/')}/{_ENDPOINT}"
    try:
        check_directories(root)
        data = read_safely(path, 65_536)
        if data is None:
            return None
        text = data.decode("utf-8")
    except UnsafeFile as error:
        raise BadEndpoint(
            f"{error.filename} cannot be read: {error.strerror}; run this as the user whose daemon "
            "it is, or remove it"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadEndpoint(f"{path} cannot be read: {error}") from None
    return _parsed(root, path, text)


def _parsed(root: str, path: str, text: str) -> Endpoint:
    try:
        document: Any = json.loads(text)
        endpoint = Endpoint(**{name: document[name] for name in Endpoint._fields})
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _no_endpoint(path) from None
    if type(endpoint.version) is int and endpoint.version > ENDPOINT_VERSION:
        raise BadEndpoint(
            f"{path} is of version {endpoint.version}, made by a newer aegis-actors: upgrade"
        )
    *texts, version = endpoint[1:]
    if type(endpoint.pid) is not int or type(version) is not int:
        raise _no_endpoint(path)
    if any(type(text) is not str for text in texts):
        raise _no_endpoint(path)
    _check_author(root, path, document)
    return endpoint


def _check_author(root: str, path: str, document: object) -> None:
    try:
        seal = open_seals(root).of(path)
    except UntrustedState as untrusted:
        raise BadEndpoint(
            f"{path} is not used: of its directory, {untrusted.why}. If a daemon of yours runs "
            "there, use the HOME and XDG_STATE_HOME that it has, or restart it with: "
            "aegis-actors up --trust"
        ) from None
    except RegistryError as error:
        raise BadEndpoint(str(error)) from None
    except OSError as error:
        raise BadEndpoint(f"{path} cannot be checked: {error}") from None
    if not document_fits(document, seal):
        raise BadEndpoint(
            f"{path} is not used: no daemon of yours wrote it. Remove it, and restart the daemon "
            "if one runs"
        )


def _no_endpoint(path: str) -> BadEndpoint:
    return BadEndpoint(
        f"{path} does not hold the address of a daemon: remove it and start one with: "
        "aegis-actors up"
    )
