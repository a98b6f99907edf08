"""The endpoint file of a root: the address and the token of its running daemon.

Imports little of the standard library: one-shot commands load this module.
"""

from __future__ import annotations

import json
from collections import namedtuple

from aegis.path_text import path_of_text, text_of_path
from aegis.state.registry import RegistryError, is_same, state_of
from aegis.state.root import (
    ENDPOINT,
    StatePaths,
    UntrustedState,
    check_directories,
    open_seals,
    write_whole,
)
from aegis.state.sealing import Seals, document_fits, sealed_document
from aegis.state.state_files import UnsafeFile, read_safely

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENDPOINT_VERSION = 1


class BadEndpoint(Exception):
    """The error for an endpoint file that cannot be used; the sentence says why and what to do."""


class Endpoint(
    namedtuple(
        "Endpoint",
        ("pid", "url", "mcp", "ws", "socket", "token", "version"),
        defaults=(ENDPOINT_VERSION,),
    )
):
    """The address of a daemon and the operator's token for it: texts, ``pid`` is an int."""

    __slots__ = ()

    @property
    def socket_path(self) -> bytes:
        """The path of the Unix socket, as the kernel knows it, independent of the locale."""
        path: bytes = self.socket.encode("utf-8", "surrogateescape")
        return path

    def __repr__(self) -> str:
        return f"Endpoint(pid={self.pid}, url={self.url!r}, socket={self.socket!r})"


def write_endpoint(state: StatePaths, endpoint: Endpoint, seals: Seals | None = None) -> None:
    """Write the endpoint file atomically, mode 0600: a reader sees the old file or the new.

    Without ``seals`` an empty or missing state is registered for this user. Raises ``OSError``,
    ``UntrustedState``, ``RegistryError``.
    """
    if seals is None:
        from aegis.state.registration import claim_state  # clients never write

        seals = claim_state(state)
    root = text_of_path(state.root)
    document = {"version": endpoint.version, "root": root, **endpoint._asdict()}
    seal = seals.of(str(state.endpoint))
    text = json.dumps(sealed_document(document, seal), indent=1)
    write_whole(state.endpoint, text + "\n")


def remove_endpoint(state: StatePaths) -> None:
    """Remove the endpoint file if it exists."""
    state.endpoint.unlink(missing_ok=True)


def read_endpoint(state: StatePaths) -> Endpoint | None:
    """Read the endpoint file of the root's state, as ``endpoint_of`` does."""
    return endpoint_of(str(state.root))


def endpoint_of(root: str) -> Endpoint | None:
    """Read the endpoint file of ``root``; None if there is none.

    None too for one that a killed daemon left before the root was moved: its socket and port may be
    those of another project's daemon by now.

    Raises ``BadEndpoint`` if it cannot be read, does not contain an endpoint, is of a newer
    version, or was not written by a daemon of this user in this root: its author would get
    everything that is typed.
    """
    path = f"{root.rstrip('/')}/{ENDPOINT}"
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


def _parsed(root: str, path: str, text: str) -> Endpoint | None:
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
    written_at = document.get("root")
    if isinstance(written_at, str) and path_of_text(written_at) != root:
        return endpoint if is_same(path_of_text(written_at), state_of(root)) else None
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
