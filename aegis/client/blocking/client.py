"""The blocking client: ``with connect_sync() as client``, for scripts, without Trio."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from aegis.client.address import BadAddress, is_url
from aegis.client.blocking.daemon import Daemon, Sessions
from aegis.client.blocking.inboxes import Inboxes
from aegis.client.blocking.session import BlockingSession
from aegis.client.blocking.terminals import Terminals
from aegis.client.blocking.workspaces import Shells, Workspaces
from aegis.state.root import find_root

DEFAULT_PATIENCE_S = 30.0


class BlockingClient:
    """A connected client whose methods wait for their answers. A context manager.

    For one thread at a time: several threads take one client each. Methods raise ``ClientError``.
    """

    def __init__(self, session: BlockingSession) -> None:
        self._session = session
        self.terminals = Terminals(session)
        self.shells = Shells(session)
        self.workspaces = Workspaces(session)
        self.inboxes = Inboxes(session)
        self.sessions = Sessions(session)
        self.daemon = Daemon(session)
        self.open_shell = self.shells.open

    def close(self) -> None:
        """Close the connection; later calls raise ``ConnectionLost``."""
        self._session.close()

    def __enter__(self) -> BlockingClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def connect_sync(
    root: str | Path | None = None,
    *,
    handle: str | None = None,
    patience_s: float = DEFAULT_PATIENCE_S,
) -> BlockingClient:
    """Connect to the daemon of the nearest root at ``root``; default: the current directory.

    ``handle`` is under whom the operator acts. ``patience_s``: seconds that a call waits for a
    connection when that was lost. Raises ``NoDaemon``, ``ConnectionLost``, and ``BadAddress`` for
    an address, which only ``connect`` takes.
    """
    if is_url(root):
        raise BadAddress("connect_sync takes a directory; for an address use connect")
    session = BlockingSession(find_root(Path(root or ".")), handle=handle, patience_s=patience_s)
    session.connect()
    return BlockingClient(session)
