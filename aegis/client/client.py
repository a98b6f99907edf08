"""The asynchronous client: ``async with connect() as client``, on Trio over the WebSocket."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import trio

from aegis.client.address import Remote, address_of
from aegis.client.nouns.agents import Agents
from aegis.client.nouns.canvases import Canvases
from aegis.client.nouns.daemon import Daemon, Pages, Push, Sessions, Tree
from aegis.client.nouns.groups import Groups
from aegis.client.nouns.inboxes import Inboxes
from aegis.client.nouns.queues import Queues
from aegis.client.nouns.requests import Requests
from aegis.client.nouns.terminals import Terminals
from aegis.client.nouns.workflows import Workflows
from aegis.client.nouns.workspaces import Shells, Workspaces
from aegis.client.session import DEFAULT_PATIENCE_S, ClientSession
from aegis.client.stream_kinds import EventKind, EventValue
from aegis.client.streams import Stream
from aegis.client.transport import dial, place_of


class Client:
    """A connected client with every command of the daemon, grouped by noun.

    Any task of the event loop may call it. Up to 64 calls are in progress at once; further calls
    are queued. Every method raises ``ClientError``.
    """

    def __init__(self, session: ClientSession) -> None:
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
        self.tree = Tree(session)
        self.open_shell = self.shells.open

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now. A lost connection is replaced automatically."""
        return self._session.is_connected

    async def wait_connected(self, wanted: bool = True) -> None:
        """Wait until there is a connection or, with ``wanted`` False, until there is none."""
        await self._session.wait_connected(wanted)

    def events(self) -> AbstractAsyncContextManager[Stream[EventValue]]:
        """Open the stream of events of terminals and commands, with ``async with``."""
        return self._session.watch(Stream(self._session, EventKind(self._session.handle)))


@asynccontextmanager
async def connect(
    root_or_url: str | Path | None = None,
    *,
    handle: str | None = None,
    token: str | None = None,
    session: str | None = None,
    patience_s: float = DEFAULT_PATIENCE_S,
) -> AsyncIterator[Client]:
    """Connect to a daemon, and reconnect whenever the connection is lost.

    ``root_or_url``: a directory, whose nearest root is used (default: the current directory), or a
    URL: a session URL, or an ``http``, ``https``, ``ws``, ``wss`` URL with the operator's ``token``
    or the secret of a ``session``. ``handle``: the handle that the operator acts under (default:
    ``human``); a session has its own. ``patience_s``: seconds that a call waits for a connection.

    Raises ``NoDaemon``, ``ConnectionLost``, ``BadAddress``, or ``CommandFailed`` with the code
    ``forbidden`` for an invalid key.
    """
    address = address_of(root_or_url, token=token, session=session)
    connection = ClientSession(
        functools.partial(dial, address),
        place_of(address),
        token=address.token if isinstance(address, Remote) else None,
        session=address.session,
        handle=handle,
        patience_s=patience_s,
    )
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(connection.run)
        try:
            await connection.first()
            yield Client(connection)
        except Exception as error:
            # Raised outside the nursery, which would wrap it in a group.
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
