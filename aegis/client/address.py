"""Addresses of daemons: the root of a local one, or a URL. Standard library only."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeGuard
from urllib.parse import SplitResult, urlsplit

from aegis.client.errors import ClientError, NoDaemon, NotServing
from aegis.path_text import text_of_path
from aegis.state.endpoint import BadEndpoint, Endpoint, read_endpoint
from aegis.state.root import StatePaths, find_root, how_to_start

WEBSOCKET_PATH = "/ws"
SESSION_PATH = "/mcp/s/"

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


class BadAddress(ClientError):
    """The address cannot be used; the sentence names what is accepted."""


class Remote(NamedTuple):
    """A daemon by the URL of its WebSocket, with one of the two keys."""

    url: str
    token: str | None
    session: str | None

    def __repr__(self) -> str:
        return f"Remote({self.url!r})"


class Local(NamedTuple):
    """The daemon of ``root``, over its Unix socket; the secret ``session`` binds to a handle."""

    root: Path
    session: str | None

    def __repr__(self) -> str:
        return f"Local({str(self.root)!r})"

    def endpoint(self) -> Endpoint:
        """Return the endpoint of the running daemon. Raises ``NoDaemon``."""
        try:
            found = read_endpoint(StatePaths(self.root))
        except BadEndpoint as error:
            raise NoDaemon(str(error)) from None
        if found is None:
            raise NotServing(
                f"no daemon runs for {text_of_path(self.root)}: {how_to_start(self.root)}"
            )
        return found


Address = Remote | Local


def address_of(
    root_or_url: str | Path | None, *, token: str | None = None, session: str | None = None
) -> Address:
    """Return the address of the daemon that ``root_or_url`` names.

    None: the nearest root from the current directory upwards. A path: the nearest root from there
    upwards. An ``http``, ``https``, ``ws`` or ``wss`` URL: the daemon at that URL; a session URL
    contains its key, any other URL needs ``token`` or ``session``. Raises ``BadAddress``.
    """
    if token is not None and session is not None:
        raise BadAddress("give token or session, not both")
    if is_url(root_or_url):
        return _remote(root_or_url, token, session)
    if token is not None:
        raise BadAddress("a token is for a URL; leave it out: the Unix socket of a root needs none")
    return Local(find_root(Path(root_or_url or ".")), session)


def is_url(root_or_url: str | Path | None) -> TypeGuard[str]:
    """Return whether ``root_or_url`` is a URL."""
    return isinstance(root_or_url, str) and "://" in root_or_url


def _remote(url: str, token: str | None, session: str | None) -> Remote:
    parts = _split(url)
    if parts.path.startswith(SESSION_PATH):
        if token is not None or session is not None:
            raise BadAddress("a session URL contains its key: give neither token nor session")
        session = parts.path.removeprefix(SESSION_PATH).rstrip("/").removesuffix("/mcp")
    if not (token or session):
        raise BadAddress("a URL needs a key: give token or session, or use a session URL")
    return Remote(f"{_SCHEMES[parts.scheme]}://{parts.netloc}{WEBSOCKET_PATH}", token, session)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _SCHEMES and parts.hostname is not None and parts.port != 0
    except ValueError:
        usable = False
    # The address itself is not shown: it may contain a key.
    if not usable:
        raise BadAddress("an address is like http://127.0.0.1:8420: http, https, ws or wss")
    return parts
