"""A root: the directory that one daemon serves, its state, and where its daemon is reached.

Standard library only, and little of it: one-shot commands start with this file. The names of the
state's files are part of the contract; see ``docs/operations.md``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from aegis.registry import (
    ID_FILE,
    Entry,
    ForeignState,
    Registry,
    RegistryError,
    find_entry,
    is_empty,
    new_state_id,
    seals_of,
)
from aegis.sealing import Seals, document_fits, sealed_document
from aegis.state_files import UnsafeFile, check_directory, read_safely, write_safely

CONFIG_NAME = ".aegis.yaml"
ENDPOINT_VERSION = 1


class BadEndpoint(Exception):
    """The endpoint file is there but cannot be used; the sentence says why and what to do."""


class UntrustedState(Exception):
    """The state of a root is not this user's own; the sentence says how that shows and what to do.

    ``why`` is the first half of the sentence.
    """

    def __init__(self, directory: Path, why: str) -> None:
        self.why = why
        super().__init__(
            f"{directory} is not used: {why}. Nothing of it was run or changed. If you trust what "
            "it holds (programs to start, keys), take it over with: aegis-actors up --trust; "
            "if not, move the directory away"
        )


class State(NamedTuple):
    """The paths below a root where its daemon keeps what must outlive it."""

    root: Path

    @property
    def directory(self) -> Path:
        """All of the state; mode 0700."""
        return self.root / ".aegis" / "state"

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


class Endpoint(NamedTuple):
    """Where a daemon is reached, and the operator's token for it."""

    pid: int
    url: str
    mcp: str
    ws: str
    socket: str
    token: str
    version: int = ENDPOINT_VERSION

    @property
    def socket_path(self) -> bytes:
        """The path of the Unix socket, as the kernel knows it, whatever the locale here."""
        return self.socket.encode("utf-8", "surrogateescape")

    def __repr__(self) -> str:
        return f"Endpoint(pid={self.pid}, url={self.url!r}, socket={self.socket!r})"


def find_root(start: Path) -> Path:
    """The nearest directory, ``start`` or above, that is a root; ``start`` itself if none is.

    A root holds a configuration (``.aegis.yaml``) or the endpoint of a daemon.
    """
    start = start.resolve()
    for directory in (start, *start.parents):
        marks = (directory / CONFIG_NAME, State(directory).endpoint)
        # Not Path.exists: it raises where a directory may not be searched.
        if any(os.path.exists(mark) for mark in marks):  # noqa: PTH110
            return directory
    return start


def how_to_start(root: Path) -> str:
    """What to do where ``root`` has no daemon: the words that start one, as typed here."""
    try:
        is_here = find_root(Path.cwd()) == root
    except OSError:
        is_here = False
    where = "" if is_here else f" --root {shlex.quote(str(root))}"
    return f"start one with: aegis-actors up{where}"


def make_directory(state: State) -> None:
    """Make the state's directory with mode 0700 where it is missing; raises ``OSError``.

    The one above it is nobody else's to write to either, whatever the umask: who could, would put
    a state of their own in the place of this one.
    """
    with contextlib.suppress(FileExistsError):
        state.directory.parent.mkdir(mode=0o755)
    with contextlib.suppress(FileExistsError):
        state.directory.mkdir(mode=0o700)
    check_directories(state)


def check_directories(state: State) -> None:
    """Raise ``UnsafeFile`` unless the state's directory, if there is one, is safe to use.

    It and the one above it must be directories of this user, no links, that nobody else may write
    to. The root itself may be anything that leads there: its path was resolved before.
    """
    for directory in (state.directory.parent, state.directory):
        try:
            check_directory(str(directory), os.lstat(directory))
        except FileNotFoundError:
            return


def open_seals(state: State) -> Seals:
    """Return the seals of a state that this user's daemons made in this root.

    Raises ``UntrustedState``, ``RegistryError``, ``OSError``.
    """
    check_directories(state)
    directory, registry = str(state.directory), Registry.of_user()
    try:
        state_id, _ = find_entry(registry, str(state.root), directory)
    except ForeignState as foreign:
        raise UntrustedState(state.directory, str(foreign)) from None
    return seals_of(registry, state_id, directory)


def claim(state: State) -> Seals:
    """Return the seals of the state; one that is empty or missing becomes this user's own.

    Raises ``UntrustedState``, ``RegistryError``, ``OSError``.
    """
    check_directories(state)
    registry = Registry.of_user()
    if is_empty(str(state.directory)):
        make_directory(state)
        with registry.locked():
            if is_empty(str(state.directory)):  # else another process was faster
                return found(state, registry)
    return open_seals(state)


def found(state: State, registry: Registry, configuration: str | None = None) -> Seals:
    """Make the state this user's own, by a new id.

    The registry has the id, synced, before it is written into the state: a kill leaves a state that
    is still empty, or one that is known. Raises ``RegistryError``, ``OSError``.
    """
    directory, state_id = str(state.directory), new_state_id()
    key = registry.make_key()
    inode = os.stat(directory).st_ino  # noqa: PTH116
    registry.enter(state_id, Entry(str(state.root), inode, configuration))
    write_safely(f"{directory}/{ID_FILE}", f"{state_id}\n".encode(), durable=True)
    registry.forget_others(state_id, str(state.root))
    return Seals(key, state_id, directory)


def write_endpoint(state: State, endpoint: Endpoint, seals: Seals | None = None) -> None:
    """Write the endpoint file: mode 0600, and whole or not at all for whoever reads meanwhile.

    Without ``seals`` an empty or missing state becomes this user's own. Raises ``OSError``,
    ``UntrustedState``, ``RegistryError``.
    """
    seals = claim(state) if seals is None else seals
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
    with contextlib.suppress(FileNotFoundError):
        state.endpoint.unlink()


def read_endpoint(state: State) -> Endpoint | None:
    """What the endpoint file says; None if there is none.

    Raises ``BadEndpoint`` if it cannot be read, does not hold an endpoint, is of a newer version,
    or was not written by a daemon of this user in this root: its author would be sent all that is
    typed.
    """
    try:
        check_directories(state)
        data = read_safely(str(state.endpoint), 65_536)
        if data is None:
            return None
        text = data.decode("utf-8")
    except UnsafeFile as error:
        raise BadEndpoint(
            f"{error.filename} cannot be read: {error.strerror}; run this as the user whose daemon "
            "it is, or remove it"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise BadEndpoint(f"{state.endpoint} cannot be read: {error}") from None
    return _parsed(state, text)


def _parsed(state: State, text: str) -> Endpoint:
    path = state.endpoint
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
    _check_author(state, document)
    return endpoint


def _check_author(state: State, document: object) -> None:
    try:
        seal = open_seals(state).of(str(state.endpoint))
    except UntrustedState as untrusted:
        raise BadEndpoint(
            f"{state.endpoint} is not used: of its directory, {untrusted.why}. If a daemon of "
            "yours runs there, use the HOME and XDG_STATE_HOME that it has, or restart it with: "
            "aegis-actors up --trust"
        ) from None
    except RegistryError as error:
        raise BadEndpoint(str(error)) from None
    except OSError as error:
        raise BadEndpoint(f"{state.endpoint} cannot be checked: {error}") from None
    if not document_fits(document, seal):
        raise BadEndpoint(
            f"{state.endpoint} is not used: no daemon of yours wrote it. Remove it, and restart "
            "the daemon if one runs"
        )


def _no_endpoint(path: Path) -> BadEndpoint:
    return BadEndpoint(
        f"{path} does not hold the address of a daemon: remove it and start one with: "
        "aegis-actors up"
    )
