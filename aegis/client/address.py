"""Where a client connects: the daemon of a root, or an address. Standard library only."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, TypeGuard
from urllib.parse import SplitResult, urlsplit

from aegis.client.errors import ClientError, NoDaemon
from aegis.path_text import text_of_path
from aegis.state.endpoint import BadEndpoint, Endpoint, read_endpoint
from aegis.state.root import State, find_root, how_to_start

WEBSOCKET_PATH = "/ws"
SESSION_PATH = "/mcp/s/"

_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


class BadAddress(ClientError):
    """The address cannot be used; the sentence says what is allowed."""


class Remote(NamedTuple):
    """A daemon by its address: that of the WebSocket, and one of the two keys."""

    url: str
    token: str | None
    session: str | None

    def __repr__(self) -> str:
        return f"Remote({self.url!r})"


class Local(NamedTuple):
    """The daemon of a root, over its Unix socket; ``session`` binds to a handle."""

    root: Path
    session: str | None

    def __repr__(self) -> str:
        return f"Local({str(self.root)!r})"

    def endpoint(self) -> Endpoint:
        """Where it is reached now. Raises ``NoDaemon``."""
        try:
            found = read_endpoint(State(self.root))
        except BadEndpoint as error:
            raise NoDaemon(str(error)) from None
        if found is None:
            raise NoDaemon(
                f"no daemon runs for {text_of_path(self.root)}: {how_to_start(self.root)}"
            )
        return found


Address = Remote | Local


def address_of(
    root_or_url: str | Path | None, *, token: str | None = None, session: str | None = None
) -> Address:
    """Where ``root_or_url`` leads.

    None: the nearest root at the current directory or above. A path: the nearest there. An
    ``http``, ``https``, ``ws`` or ``wss`` address: that daemon; of a session URL the secret is the
    key, any other needs ``token`` or ``session``. Raises ``BadAddress``.
    """
    if token is not None and session is not None:
        raise BadAddress("give token or session, not both")
    if is_url(root_or_url):
        return _remote(root_or_url, token, session)
    if token is not None:
        raise BadAddress("a token goes with an address; the Unix socket of a root needs none")
    return Local(find_root(Path(root_or_url or ".")), session)


def is_url(root_or_url: str | Path | None) -> TypeGuard[str]:
    """Whether this is an address, not a directory."""
    return isinstance(root_or_url, str) and "://" in root_or_url


def _remote(url: str, token: str | None, session: str | None) -> Remote:
    parts = _split(url)
    if parts.path.startswith(SESSION_PATH):
        if token is not None or session is not None:
            raise BadAddress("a session URL is its own key: give neither token nor session")
        session = parts.path.removeprefix(SESSION_PATH).rstrip("/").removesuffix("/mcp")
    if not (token or session):
        raise BadAddress("an address needs a key: give token or session, or use a session URL")
    return Remote(f"{_SCHEMES[parts.scheme]}://{parts.netloc}{WEBSOCKET_PATH}", token, session)


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in _SCHEMES and parts.hostname is not None and parts.port != 0
    except ValueError:
        usable = False
    # The address itself is not shown: it may be a key.
    if not usable:
        raise BadAddress("an address is like http://127.0.0.1:8420: http, https, ws or wss")
    return parts
