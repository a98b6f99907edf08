"""A root: the directory that one daemon serves, its state, and where its daemon is reached.

Little of the standard library only: one-shot commands start with this file. The names of the
state's files are part of the contract; see ``docs/operations.md``.
"""

from __future__ import annotations

import json
import os
from collections import namedtuple

from aegis.path_text import shell_word

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


def write_endpoint(state: State, endpoint: Endpoint) -> None:
    """Write the endpoint file: mode 0600, and whole or not at all for whoever reads meanwhile."""
    text = json.dumps({"version": endpoint.version, **endpoint._asdict()}, indent=1)
    write_whole(state.endpoint, text + "\n")


def write_whole(path: Path, text: str) -> None:
    """Put ``text`` in the file's place in one step, mode 0600; raises ``OSError``.

    A process that is killed meanwhile leaves the old content, and beside it a file of the suffix
    ``.new``, which the next one replaces. Nothing is synced.
    """
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(opened, "w") as file:
            file.write(text)
        fresh.replace(path)
    except OSError:
        try:  # noqa: SIM105 -- contextlib is not loaded here
            fresh.unlink()
        except OSError:
            pass
        raise


def remove_endpoint(state: State) -> None:
    """Remove the endpoint file if it is there."""
    state.endpoint.unlink(missing_ok=True)


def read_endpoint(state: State) -> Endpoint | None:
    """As ``endpoint_of``, for the root's state."""
    return endpoint_of(str(state.root))


def endpoint_of(root: str) -> Endpoint | None:
    """What the endpoint file of ``root`` says; None if there is none.

    Raises ``BadEndpoint`` if it cannot be read, does not hold an endpoint, is of a newer version,
    or belongs to somebody else: whoever wrote it would be sent all that is typed.
    """
    path = f"{root.rstrip('/')}/{_ENDPOINT}"
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123
            owner = os.fstat(file.fileno()).st_uid
            text = file.read(65_536)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BadEndpoint(f"{path} cannot be read: {error}") from None
    if os.geteuid() not in (owner, 0):
        raise BadEndpoint(f"{path} belongs to user {owner}, so it is not used")
    return _parsed(path, text)


def _parsed(path: str, text: str) -> Endpoint:
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
    return endpoint


def _no_endpoint(path: str) -> BadEndpoint:
    return BadEndpoint(
        f"{path} does not hold the address of a daemon: remove it and start one with: "
        "aegis-actors up"
    )
