"""``NodeKeeper``: knows the workers and the hosts, and lets hosts join."""

from __future__ import annotations

from typing import Any

import attrs
import structlog
import trio

from actors import Actor, ActorStopped, AskError, ChildSpec, Reply, StartFailed, describe
from actors.errors import CodecError
from actors.nodes import NodeRuntime
from actors.nodes.joining.joins import Joined
from actors.nodes.workers.worker_node import DescribeWorker
from aegis import __version__
from aegis.errors import AegisError
from aegis.names import shorten
from aegis.nodes.hello import decode_hello, refusal_reason
from aegis.nodes.host_link import DescribeHost, HostLink, JoinQueue
from aegis.protocol.naming import LOCAL_NODE, NAME_RULE, is_name, name_key
from aegis.protocol.nodes import ListNodes, NodeForgotten, NodeList, NodeStatus
from aegis.terminals.directory.hosting import SUPERVISOR
from aegis.terminals.directory.placed_subtrees import WORKERS

log = structlog.get_logger("aegis.nodes")

HOSTS = "root/nodes"
"""The path below which each joined host is, by its name."""

MAX_HOSTS = 64

DESCRIBE_S = 1.0


class NodeKeeper(Actor[ListNodes | NodeForgotten]):
    """The keeper of the ``workers`` of these names, and of hosts that join through ``runtime``.

    ``takes_hosts``: hosts may join. ``directory`` is the path of the terminal directory.
    """

    def __init__(
        self, *, runtime: NodeRuntime, workers: tuple[str, ...], takes_hosts: bool, directory: str
    ) -> None:
        self._runtime = runtime
        self._workers = workers
        self._takes_hosts = takes_hosts
        self._directory = directory
        self._arrivals: dict[str, JoinQueue] = {}

    async def setup(self) -> None:
        """Register the service; start to accept hosts."""
        self.context.register("service", "nodes")
        if self._takes_hosts:
            self.context.start_soon(self._take_joins)

    async def receive(self, message: ListNodes | NodeForgotten) -> None:
        """List the nodes, or stop the link of a host that was forgotten."""
        match message:
            case ListNodes():
                self.context.start_soon(self._list, self.defer(message))
            case NodeForgotten(name=name):
                self._arrivals.pop(name_key(name), None)
                self.context.start_soon(self._hosts.stop_child, name)

    @property
    def _hosts(self) -> Any:
        return self.context.system.supervisor(HOSTS)

    # Hosts.

    async def _take_joins(self) -> None:
        while True:
            joined = await self._runtime.next_join()
            try:
                await self._take(joined)
            except (AegisError, CodecError, ActorStopped, StartFailed) as error:
                log.warning("node refused", node=shorten(joined.name), why=describe(error))
                joined.refuse(str(error))

    async def _take(self, joined: Joined) -> None:
        """Add a host's connection. Raises ``AegisError`` or ``CodecError`` if it may not join."""
        name = joined.name
        self._check_name(name)
        hello = decode_hello(joined.hello)
        known = self._arrivals.get(name_key(name))
        identity = None if known is None else known.identity
        why = refusal_reason(name, hello, version=__version__, known=identity)
        if why is not None:
            raise AegisError(why)
        if known is None:
            known = await self._admit(name, hello.identity)
        known.add(joined)

    def _check_name(self, name: str) -> None:
        if not is_name(name):
            raise AegisError(f"{shorten(name)!r} is not a valid node name: it must be {NAME_RULE}")
        if name_key(name) in (LOCAL_NODE, *self._workers):
            raise AegisError(f"{name!r} is a name of this daemon's own: choose another name")
        if len(self._arrivals) >= MAX_HOSTS and name_key(name) not in self._arrivals:
            raise AegisError(f"{MAX_HOSTS} hosts have joined, which is the limit")

    async def _admit(self, name: str, identity: str) -> JoinQueue:
        arrivals = JoinQueue(identity)
        spec = ChildSpec.of(name, HostLink, name=name, arrivals=arrivals, directory=self._directory)
        if name in self._hosts.names:  # of an earlier incarnation of this actor
            await self._hosts.stop_child(name)
        await self._hosts.start_child(spec)
        self._arrivals[name_key(name)] = arrivals
        return arrivals

    # The list.

    async def _list(self, reply: Reply[NodeList]) -> None:
        found: dict[str, NodeStatus] = {}
        async with trio.open_nursery() as nursery:
            for name in self._workers:
                nursery.start_soon(self._add_worker, name, found)
            for name in self._hosts.names:
                nursery.start_soon(self._add_host, name, found)
        reply.send(NodeList(result=[found[name] for name in sorted(found)]))

    async def _add_worker(self, name: str, found: dict[str, NodeStatus]) -> None:
        path = f"{WORKERS}/{name}"
        status = NodeStatus(
            name=name, kind="worker", state="starting", terminals=self._terminals_at(path)
        )
        try:
            described = await self.context.system.ref(path).ask(
                DescribeWorker(), timeout=DESCRIBE_S
            )
            status = attrs.evolve(status, state="up", pid=described.pid)
        except AskError as error:
            log.debug("worker not described", node=name, why=describe(error))
        found[name] = status

    async def _add_host(self, name: str, found: dict[str, NodeStatus]) -> None:
        try:
            link = self.context.system.ref(f"{HOSTS}/{name}")
            found[name] = await link.ask(DescribeHost(), timeout=DESCRIBE_S)
        except AskError as error:
            log.debug("host not described", node=name, why=describe(error))

    def _terminals_at(self, path: str) -> int:
        """Return the number of terminals below ``path``."""
        below = self.context.system.routers.nodes_below(path)
        return sum(len(each.children) for each in below if each.name == SUPERVISOR)
