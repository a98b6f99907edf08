"""``HostLink``: a joined host in the daemon's tree. The host's actors are below it.

It remains when the connection is lost: requests to the host fail as unreachable until it has joined
again.
"""

from __future__ import annotations

import attrs
import structlog
import trio

from actors import Actor, Ref, Request
from actors.errors import LinkLost
from actors.nodes.joining.joins import Joined
from actors.nodes.links.link import Link
from actors.nodes.peer import PeerProcess
from aegis.clock import utc_now
from aegis.nodes.vocabulary import VOCABULARY, known_to_nodes
from aegis.protocol.nodes import NodeReachable, NodeStatus, NodeUnreachable

log = structlog.get_logger("aegis.nodes")

DIRECTORY = "terminal-directory"
"""The name of the host's terminal directory, below the host's path."""


@attrs.frozen(kw_only=True)
class DescribeHost(Request[NodeStatus]):
    """Ask for the state of the connection."""


class JoinQueue:
    """New connections of the host with this ``identity``; a newer one replaces an older one."""

    def __init__(self, identity: str) -> None:
        self.identity = identity
        self._newest: Joined | None = None
        self._came = trio.Event()

    def add(self, joined: Joined) -> None:
        """Add a connection; refuse the one that it replaces."""
        if self._newest is not None:
            self._newest.refuse("the same host has joined again.")
        self._newest = joined
        self._came.set()

    async def wait(self) -> None:
        """Wait for a connection."""
        await self._came.wait()

    async def next(self) -> Joined:
        """Wait for a connection and remove it from the queue."""
        await self._came.wait()
        assert self._newest is not None
        taken, self._newest = self._newest, None
        self._came = trio.Event()
        return taken


class HostLink(Actor[DescribeHost]):
    """The link to the host ``name``; it reports its state to the actor at ``directory``."""

    def __init__(self, *, name: str, arrivals: JoinQueue, directory: str) -> None:
        self._name = name
        self._arrivals = arrivals
        self._directory_path = directory
        self._address: str | None = None
        self._since = utc_now()
        self._is_up = False

    async def setup(self) -> None:
        """Add the peer of the host to the system, and wait for connections."""
        system = self.context.system
        self._directory: Ref[NodeReachable | NodeUnreachable] = system.ref(self._directory_path)
        self._peer = PeerProcess(
            system,
            name=f"node {self._name}",
            root=self.context.path,
            vocabulary=VOCABULARY,
            exports=known_to_nodes,
        )
        self._peer.begin()
        self.context.start_soon(self._take_joins)

    async def teardown(self) -> None:
        """End the peer of the host."""
        self._peer.end("it is no longer a node here", crashed=False)

    async def receive(self, message: DescribeHost) -> None:
        """Answer with the state of the connection."""
        status = NodeStatus(
            name=self._name,
            kind="host",
            state="up" if self._is_up else "unreachable",
            terminals=0,
            address=self._address,
            since=self._since,
        )
        self.reply(message, status)

    async def _take_joins(self) -> None:
        while True:
            await self._serve(await self._arrivals.next())

    async def _serve(self, joined: Joined) -> None:
        """Use one connection until it is lost, or the same host has joined again."""
        self._address = joined.address
        joined.accept()
        why = await self._carry(joined.link)
        self._peer.connection_lost()
        if self._is_up:
            self._is_up, self._since = False, utc_now()
            self._directory.tell(NodeUnreachable(name=self._name, why=why))

    async def _carry(self, link: Link) -> str:
        why = ""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._report_when_ready)
            nursery.start_soon(self._end_when_joined_anew, nursery.cancel_scope)
            why = await run_link(self._peer, link)
            nursery.cancel_scope.cancel()
        return why or "it joined anew"

    async def _report_when_ready(self) -> None:
        await self._peer.ready.wait()
        self._is_up, self._since = True, utc_now()
        log.info("node joined", node=self._name, address=self._address)
        path = f"{self.context.path}/{DIRECTORY}"
        self._directory.tell(NodeReachable(name=self._name, directory=path))

    async def _end_when_joined_anew(self, scope: trio.CancelScope) -> None:
        await self._arrivals.wait()
        scope.cancel()


async def run_link(peer: PeerProcess, link: Link) -> str:
    """Carry the messages of ``peer`` over ``link`` until it is lost; return the reason."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_run, link)
        why = await peer.carry(link)
        nursery.cancel_scope.cancel()
    return why


async def _run(link: Link) -> None:
    try:
        await link.run()
    except LinkLost as error:  # ``peer.carry`` returns the reason
        log.debug("link lost", why=str(error))
