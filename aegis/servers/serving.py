"""``Gateway``: the actor whose nursery runs all servers: HTTP, MCP, WebSocket, JSON lines."""

from __future__ import annotations

import errno
import resource
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import attrs
import structlog
import trio

from actors import Actor, System
from aegis.errors import StartupError
from aegis.limits import in_thread
from aegis.protocol.resources import ResourceChanged
from aegis.protocol.streams import (
    CommandItem,
    TerminalItem,
)
from aegis.protocol.tool_sets import Offer
from aegis.servers.access.admission import allowed_hosts
from aegis.servers.access.auth import Keys
from aegis.servers.access.pages import PageKeys
from aegis.servers.calls import OPERATOR, Identity
from aegis.servers.connection import NO_NAMES, Names, RightsCheck, refuse_nothing
from aegis.servers.dispatcher import Dispatcher, connection_spec
from aegis.servers.gateway.gateway import Routes, serve_gateway
from aegis.servers.gateway.http_app import HttpApp
from aegis.servers.gateway.open_connections import MAX_CONNECTIONS, Limits, OpenConnections
from aegis.servers.gateway.sockets import port_of, tcp_listeners, unix_listener
from aegis.servers.gateway.uploads import Uploads
from aegis.servers.mcp.lazy import LazyMcp
from aegis.servers.streams.event_hub import EventHub
from aegis.servers.streams.sources import Sources
from aegis.servers.web.site import Site
from aegis.servers.wires.conversation import ServerContext
from aegis.servers.wires.unix import serve_unix
from aegis.servers.wires.websocket import serve_websocket

log = structlog.get_logger("aegis.servers")

END_PAGES_S = 15.0
"""Seconds between two looks for pages and links whose time is over."""


IdentifyPeer = Callable[[System, int], Awaitable[Identity]]
"""Returns the identity of a process of this user, by its pid. Raises ``AegisError``."""


async def operator_only(system: System, pid: int) -> Identity:
    """Take every process of this user for the operator: for a daemon without agents."""
    return OPERATOR


@attrs.define(eq=False)
class Address:
    """The address of the daemon. ``port`` is the bound port once ``is_bound``.

    ``fall_back``: if the port is taken, choose another one. ``find_socket`` chooses the path of the
    socket anew, when its directory is gone; it raises ``StartupError`` if there is none.
    ``names`` are further names by which clients call it.
    """

    host: str
    port: int
    socket: Path
    fall_back: bool = False
    is_bound: bool = False
    find_socket: Callable[[], Path] | None = None
    names: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """The base of every HTTP address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


class Gateway(Actor[ResourceChanged | TerminalItem | CommandItem]):
    """The servers of the daemon at ``address``; it receives the events that clients may watch.

    ``pages`` are the logged-in web pages; None: the daemon serves no page.
    ``settings`` are the defaults of arguments that callers omit, by the keys of the configuration.
    ``refuse`` checks the rights of callers that are bound to a handle. ``identify`` returns the
    identity of a process at the Unix socket. ``names`` are those of agent sessions.
    ``offer`` returns the tools of a driven session by its handle, None for other handles.
    """

    def __init__(
        self,
        *,
        address: Address,
        keys: Keys,
        pages: PageKeys | None = None,
        open_connections: OpenConnections,
        version: str,
        connections: str,
        handles: str,
        handle_seen: type,
        settings: Mapping[str, object],
        refuse: RightsCheck = refuse_nothing,
        identify: IdentifyPeer = operator_only,
        names: Names = NO_NAMES,
        offer: Callable[[str], Offer | None] = lambda handle: None,
    ) -> None:
        self._address = address
        self._keys = keys
        self._pages = pages
        self._open_connections = open_connections
        self._version = version
        self._connections = connections
        self._handles = handles
        self._handle_seen = handle_seen
        self._settings = settings
        self._refuse = refuse
        self._identify = identify
        self._names = names
        self._offer = offer
        self._events = EventHub()
        self._stop = trio.Event()
        self._stopped = trio.Event()

    async def setup(self) -> None:
        """Listen and start all servers."""
        port = Dispatcher(
            self.context.system,
            self._connections,
            partial(
                connection_spec,
                on_handle=self.context.system.ref(self._handles),
                seen=self._handle_seen,
                refuse=self._refuse,
                names=self._names,
            ),
            self._settings,
            self._offer_of,
        )
        context = ServerContext(
            port=port,
            streams=self._sources(),
            keys=self._keys,
            server=f"aegis-actors/{self._version}",
            pages=self._pages,
        )
        self._mcp = mcp = LazyMcp(port, version=self._version)
        await self.context.start(mcp.run)
        self.context.register("service", "resources")
        hosts = allowed_hosts(self._address.host, self._address.names)
        web, uploads = None, None
        if self._pages is not None:
            web, uploads = Site(self._pages, hosts), Uploads(self._pages, self._keys, hosts)
            self.context.start_soon(uploads.run)
        routes = Routes(
            identify=partial(self._identify, self.context.system),
            http=HttpApp(self._keys, hosts, mcp, web, uploads),
            websocket=partial(serve_websocket, context=context, hosts=hosts),
            lines=partial(serve_unix, context=context, mcp=mcp.converse),
            end_sessions=mcp.end_sessions,
        )
        await self.context.start(self._serve, await self._listen(), routes)
        if self._pages is not None:
            self.context.start_soon(self._end_pages, self._pages)

    async def receive(self, message: ResourceChanged | TerminalItem | CommandItem) -> None:
        """Forward a changed resource to MCP, an event of a terminal to its subscribers."""
        if isinstance(message, ResourceChanged):
            self._mcp.changed(message.key)
        else:
            self._events.publish(message)

    async def _end_pages(self, pages: PageKeys) -> None:
        """End the connections of pages and links whose time is over."""
        while True:
            await trio.sleep(END_PAGES_S)
            try:
                ended = await in_thread(pages.drop_ended)
            except OSError as error:
                log.warning("ended pages not removed", error=error.strerror)
            else:
                self._open_connections.revoke(ended)

    def _offer_of(self, identity: Identity) -> Offer:
        if identity.handle is None:
            return Offer()
        return self._offer(identity.handle) or Offer(self._keys.tools(identity.handle))

    def _sources(self) -> Sources:
        """Return the sources of streams."""
        # Registered as "events" with the first subscriber: until then no event is built or sent.
        handles = self.context.system.ref(self._handles)
        return Sources(
            self.context.system,
            self._events,
            names=self._names,
            on_listener=lambda: self.context.register("service", "events"),
            on_handle=lambda handle: handles.tell(self._handle_seen(handle=handle)),
            refuse=self._refuse,
        )

    async def teardown(self) -> None:
        """Accept nothing new, and give requests in progress a grace period."""
        self._stop.set()
        if self._address.is_bound:
            await self._stopped.wait()

    async def _listen(self) -> list[trio.SocketListener]:
        address = self._address
        try:
            listeners = await tcp_listeners(address.host, address.port)
        except StartupError as error:
            cause = error.__cause__
            taken = isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE
            if not taken or not address.fall_back or address.is_bound:
                raise
            log.info("port is taken, choosing another", port=address.port)
            listeners = await tcp_listeners(address.host, 0)
        address.port = port_of(listeners[0])
        listeners.append(unix_listener(address.socket))
        address.is_bound = True
        return listeners

    def _listen_again(self) -> trio.SocketListener:
        address = self._address
        found = address.socket if address.find_socket is None else address.find_socket()
        listener = unix_listener(found)
        address.socket = found
        return listener

    async def _serve(
        self,
        listeners: list[trio.SocketListener],
        routes: Routes,
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        try:
            await serve_gateway(
                listeners,
                routes,
                stop=self._stop,
                listen_again=self._listen_again,
                open_connections=self._open_connections,
                task_status=task_status,
            )
        finally:
            self._stopped.set()


def limits_of_system() -> Limits:
    """Return the limits of connections: over each transport an eighth of the open files at most."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    connections = max(1, min(MAX_CONNECTIONS, files // 8))
    return Limits(connections=connections, unauthenticated=max(1, connections // 4))
