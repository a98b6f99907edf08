"""The blocking client: ``with connect_sync() as client``, for scripts, without Trio."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from aegis.client.address import BadAddress, is_url
from aegis.client.blocking.agents import Agents
from aegis.client.blocking.canvases import Canvases
from aegis.client.blocking.daemon import Daemon, Pages, Push, Sessions
from aegis.client.blocking.groups import Groups
from aegis.client.blocking.inboxes import Inboxes
from aegis.client.blocking.queues import Queues
from aegis.client.blocking.requests import Requests
from aegis.client.blocking.session import BlockingSession
from aegis.client.blocking.terminals import Terminals
from aegis.client.blocking.workflows import Workflows
from aegis.client.blocking.workspaces import Shells, Workspaces
from aegis.state.root import find_root

DEFAULT_PATIENCE_S = 30.0


class BlockingClient:
    """A connected client whose methods block until the answer. A context manager.

    Not thread-safe: use one client per thread. Every method raises ``ClientError``.
    """

    def __init__(self, session: BlockingSession) -> None:
        self._session = session
        self.terminals = Terminals(session)
        self.shells = Shells(session)
        self.workspaces = Workspaces(session)
        self.agents = Agents(session)
        self.inboxes = Inboxes(session)
        self.requests = Requests(session)
        self.queues = Queues(session)
        self.canvases = Canvases(session)
        self.workflows = Workflows(session)
        self.groups = Groups(session)
        self.sessions = Sessions(session)
        self.pages = Pages(session)
        self.push = Push(session)
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
    """Connect to the daemon of the nearest root from ``root`` upwards (default: current directory).

    ``handle``: the handle that the operator acts under (default: ``human``). ``patience_s``:
    seconds that a call waits for a new connection. Raises ``NoDaemon``, ``ConnectionLost``, and
    ``BadAddress`` for a URL, which only ``connect`` accepts.
    """
    if is_url(root):
        raise BadAddress("connect_sync takes a directory; for a URL use connect")
    session = BlockingSession(find_root(Path(root or ".")), handle=handle, patience_s=patience_s)
    session.connect()
    return BlockingClient(session)
