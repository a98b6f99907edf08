"""``RemoteHosts``: the hosts that joined, and their terminals, for the daemon's directory.

The directory of a host owns its terminals, and continues while the host cannot be reached. This
process keeps a copy of their list and forwards requests; it starts, ends and deletes none of them.

A host may bring a name that is taken. The name then belongs to the daemon's own terminal, else to
the host that joined first, and to an open terminal before a closed one. The other terminal is not
listed and cannot be reached by that name until the owner of the name is closed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Literal

import attrs
import structlog
import trio

from actors import ActorStopped, AskError, Ref, Reply, System, describe
from aegis.clock import utc_now
from aegis.errors import AegisError, AlreadyExists, InvalidRequest, NotFound, Unavailable
from aegis.protocol import terminals as api
from aegis.protocol.naming import LOCAL_NODE, name_key
from aegis.protocol.nodes import (
    ForgetNode,
    Forgotten,
    KnownTerminals,
    ListNodes,
    NodeForgotten,
    NodeList,
    NodeMessage,
    NodeReachable,
    NodeStatus,
    NodeUnreachable,
    TerminalNames,
    unreachable,
)
from aegis.publishing import publish_terminal
from aegis.terminals.remote.nodes import KnownHost, NodeFile, NodeMap
from aegis.terminals.retry import ask_across_restarts
from aegis.terminals.sentences import no_such_node
from aegis.terminals.wakes.delivery import retry_delay

log = structlog.get_logger("aegis.terminals")

LEARN_S = 5.0
"""How long a host may take to name its terminals before the request is repeated."""

LIST_S = 2.0
"""How long a host may take to list its terminals before it is shown as unreachable."""

SPAWN_S = 30.0
CLOSE_S = 30.0

LINKS_S = 5.0


@attrs.frozen(eq=False)
class LinkedHost:
    """A link to the directory of a host, and the time (UTC) when it came up."""

    directory: Ref[Any]
    since: str


@attrs.frozen(kw_only=True)
class LocalTerminals:
    """The daemon's own terminals: which are open or have failed, and which have a history.

    ``places`` are the names of its own process and of its workers.
    """

    places: tuple[str, ...]

    has_open: Callable[[str], bool]
    has_history: Callable[[str], bool]


class RemoteHosts:
    """All hosts that joined; ``start_soon`` starts a helper task of the directory."""

    def __init__(
        self,
        system: System,
        local: LocalTerminals,
        file: NodeFile,
        start_soon: Callable[..., object],
    ) -> None:
        self._system = system
        self._local = local
        self._file = file
        self._nodes = file.nodes
        self._start_soon = start_soon
        self._links: dict[str, LinkedHost] = {}
        self._unresponsive: set[str] = set()
        self._spawning: dict[str, str] = {}
        self._changes: Counter[str] = Counter()
        for node in self._nodes:
            node.since = node.since or utc_now()

    @property
    def names(self) -> list[str]:
        """The names of the known hosts."""
        return [node.name for node in self._nodes]

    def statuses(self) -> list[NodeStatus]:
        """Return the last known status of each host."""
        return [self._status(node) for node in self._nodes]

    def _status(self, node: KnownHost) -> NodeStatus:
        link = self._links.get(name_key(node.name))
        return NodeStatus(
            name=node.name,
            kind="host",
            state="unreachable" if link is None else "up",
            terminals=len(node.open),
            since=node.since if link is None else link.since,
        )

    def handle(self, message: NodeMessage, defer: Callable[[Any], Reply[Any]]) -> None:
        """Handle a message about hosts; ``defer`` returns the reply to a request."""
        match message:
            case ListNodes():
                defer(message).send(NodeList(result=self.statuses()))
            case ForgetNode():
                self._start_soon(self._forget, message, defer(message))
            case NodeReachable():
                self.reachable(message)
            case NodeUnreachable():
                self.unreachable(message)

    # Links.

    def reachable(self, event: NodeReachable) -> None:
        """Handle a new link to a host: fetch the names of its terminals."""
        try:
            link = LinkedHost(self._system.ref(event.directory), utc_now())
        except ActorStopped as error:
            log.warning("node has no directory", node=event.name, why=describe(error))
            return
        self._links[name_key(event.name)] = link
        self._unresponsive.discard(name_key(event.name))
        self._nodes.joined(event.name)
        self._start_soon(self._learn, event.name, link)

    def unreachable(self, event: NodeUnreachable) -> None:
        """Handle the loss of a link; the host's terminals continue there."""
        node = self._nodes.find(event.name)
        if node is None or self._links.pop(name_key(event.name), None) is None:
            return
        log.warning("node unreachable", node=node.name, why=event.why)
        self._nodes.lost(node.name, utc_now())
        self._publish("terminal_changed", node)
        self._start_soon(self._file.save_soon)

    async def find_links(self) -> None:
        """Find the links again after a crash of the directory: the node service has them."""
        keeper = self._system.registry.find("service", "nodes")
        if keeper is None:
            return
        try:
            listed = await ask_across_restarts(keeper, ListNodes(), timeout=LINKS_S)
        except AskError as error:
            log.warning("nodes not listed", why=describe(error))
            return
        for node in listed.result:
            if (node.kind, node.state) == ("host", "up") and not self._link(node.name):
                path = f"root/nodes/{node.name}/terminal-directory"
                self.reachable(NodeReachable(name=node.name, directory=path))

    async def _learn(self, name: str, link: LinkedHost) -> None:
        """Fetch the names of the host's terminals; retry while this link exists."""
        tries, key = 0, name_key(name)
        while self._links.get(key) is link:
            changes = self._changes[key]
            try:
                names = await ask_across_restarts(link.directory, KnownTerminals(), timeout=LEARN_S)
            except (AskError, AegisError) as error:
                tries += 1
                log.debug("terminals of a node not learned", node=name, why=describe(error))
                await trio.sleep(retry_delay(tries))
                continue
            if self._links.get(key) is link and changes == self._changes[key]:
                self._learned(name, names)
                await self._file.save_soon()
                return

    def _learned(self, name: str, names: TerminalNames) -> None:
        spawning = [key for key, node in self._spawning.items() if node == name_key(name)]
        closed = [*names.closed, *spawning]
        self._nodes.learned(name, TerminalNames(open=names.open, closed=closed))
        node = self._nodes.find(name)
        assert node is not None
        for key, info in node.open.items():
            owner = self.node_of(key) or LOCAL_NODE
            if owner != node.name:
                log.warning("terminal hidden", terminal=info.name, node=node.name, by=owner)
        self._publish("terminal_changed", node)

    def _link(self, node: str) -> LinkedHost | None:
        return self._links.get(name_key(node))

    # Names.

    def node_of(self, name: str) -> str | None:
        """Return the host of the terminal ``name``; None for the daemon's own and unknown ones.

        Raises ``StorageError``.
        """
        holder = self._nodes.holder(name)
        if holder is None or self._local.has_open(name):
            return None
        return None if not holder.is_open and self._local.has_history(name) else holder.node

    def ref_for(self, name: str, *, by_front: bool = True) -> Ref[Any] | None:
        """Return the actor that answers for the terminal of a host; None as ``node_of`` does.

        It is the front if there is one and ``by_front`` is set, else the directory of the host.
        Raises ``Unavailable`` while the host cannot be reached.
        """
        node = self.node_of(name)
        if node is None:
            return None
        directory = self._directory_of(node, unreachable(name, node, self._since(node)))
        front = self._system.registry.find("terminal", name_key(name))
        return front if by_front and front is not None and not front.is_stopped else directory

    def _directory_of(self, node: str, sentence: str) -> Ref[Any]:
        link = self._link(node)
        if link is None:
            raise Unavailable(sentence)
        return link.directory

    def _since(self, node: str) -> str | None:
        known = self._nodes.find(node)
        return None if known is None else known.since

    # Listing.

    async def refresh(self) -> None:
        """Fetch the list of terminals of every reachable host, within ``LIST_S``."""
        async with trio.open_nursery() as nursery:
            for key, link in list(self._links.items()):
                nursery.start_soon(self._refresh_one, key, link)

    async def _refresh_one(self, key: str, link: LinkedHost) -> None:
        changes = self._changes[key]
        try:
            listed = await ask_across_restarts(link.directory, api.ListTerminals(), timeout=LIST_S)
        except (AskError, AegisError) as error:
            log.warning("node does not answer", node=key, why=describe(error))
            self._unresponsive.add(key)
            return
        self._unresponsive.discard(key)
        is_current = self._links.get(key) is link and changes == self._changes[key]
        if is_current and key not in self._spawning.values():
            self._nodes.seen_open(key, listed.result)

    def merged_with(self, local: Mapping[str, api.TerminalInfo]) -> dict[str, api.TerminalInfo]:
        """Return the ``local`` terminals and the open ones of all hosts, by the keys of names."""
        infos = dict(local)
        for node in self._nodes:
            for key, info in node.open.items():
                if key not in infos and not self._local.has_open(info.name):
                    infos[key] = self._shown(node, info)
        return infos

    def _shown(self, node: KnownHost, info: api.TerminalInfo) -> api.TerminalInfo:
        key = name_key(node.name)
        answers = key in self._links and key not in self._unresponsive
        state = info.state if answers else "unreachable"
        return attrs.evolve(info, node=node.name, state=state)

    def _publish(
        self, event: Literal["terminal_changed", "terminal_closed"], node: KnownHost
    ) -> None:
        for info in node.open.values():
            if self.node_of(info.name) == node.name:
                publish_terminal(self._system, event, self._shown(node, info))

    # Spawning and closing.

    def host_for(
        self, request: api.SpawnTerminal, check_local: Callable[[str | None], object]
    ) -> str | None:
        """Return the host on which to spawn the terminal; None: on the daemon's own machine.

        A closed terminal is opened again where its history is. ``check_local`` raises if the daemon
        cannot start the terminal on the requested node. Raises ``AegisError``.
        """
        name, wanted = request.name, self._wanted(request)
        holder = self._nodes.holder(name)
        node = self.node_of(name)
        if node is not None and holder is not None and holder.is_open:
            raise AlreadyExists(
                f"aegis_term_spawn: {unreachable(name, node, self._since(node))}"
                if self._link(node) is None
                else f"aegis_term_spawn: a terminal named {name!r} is open already on node "
                f"{node!r}; use it, or choose another name"
            )
        if wanted is not None and node is None and self._local.has_history(name):
            raise _has_its_history(name, LOCAL_NODE)
        if request.node is not None and node is not None and wanted != node:
            raise _has_its_history(name, node)
        chosen = node or wanted
        if chosen is not None:
            self._directory_of(chosen, self._cannot_spawn(chosen))
            return chosen
        try:
            check_local(request.node)
        except NotFound:
            if not self.names:
                raise
            raise no_such_node(
                "aegis_term_spawn", str(request.node), [*self._local.places, *self.names]
            ) from None
        return None

    def _wanted(self, request: api.SpawnTerminal) -> str | None:
        """Return the requested host, as it spells its name; None if no host was requested."""
        known = None if request.node is None else self._nodes.find(request.node)
        return None if known is None else known.name

    def _cannot_spawn(self, node: str) -> str:
        since = f" since {(self._since(node) or utc_now())[:19]}Z"
        return (
            f"aegis_term_spawn: node {node!r} is unreachable{since}; wait until the link is back, "
            "or choose another name and place"
        )

    async def spawn(
        self, node: str, request: api.SpawnTerminal, reply: Reply[api.TerminalInfo]
    ) -> None:
        """Spawn the terminal on the host. Its name is durably reserved first."""
        name, key = request.name, name_key(request.name)
        is_new = self._nodes.holder(name) is None
        self._spawning[key] = name_key(node)
        try:
            if is_new:
                self._changed(node).closed(node, name)
                await self._file.save()
            directory = self._directory_of(node, self._cannot_spawn(node))
            info = await directory.ask(attrs.evolve(request, node=None), timeout=SPAWN_S)
        except AegisError as refusal:
            if is_new:
                self._changed(node).purged(node, name)
            reply.fail(refusal)
            self._learn_again(node)
        except AskError as error:  # the host may have spawned it all the same
            reply.fail(error)
            self._learn_again(node)
        else:
            info = attrs.evolve(info, node=node)
            self._changed(node).opened(node, info)
            await self._file.save_soon()
            reply.send(info)
        finally:
            del self._spawning[key]

    async def close(self, node: str, request: api.CloseTerminal, reply: Reply[api.Closed]) -> None:
        """Close the terminal on its host."""
        name = request.name
        try:
            sentence = f"aegis_term_close: {unreachable(name, node, self._since(node))}"
            answer = await self._directory_of(node, sentence).ask(request, timeout=CLOSE_S)
        except (AegisError, AskError) as error:
            reply.fail(error)
            self._learn_again(node)
            return
        nodes = self._changed(node)
        if request.purge:
            nodes.purged(node, name)
        else:
            nodes.closed(node, name)
        await self._file.save_soon()
        reply.send(answer)

    def _changed(self, node: str) -> NodeMap:
        """Return the map for a change; answers of the host to earlier requests are then ignored."""
        self._changes[name_key(node)] += 1
        return self._nodes

    def _learn_again(self, node: str) -> None:
        """Fetch the host's terminals again after a failed request."""
        link = self._link(node)
        if link is not None:
            self._start_soon(self._learn, node, link)

    # Forgetting.

    async def _forget(self, request: ForgetNode, reply: Reply[Forgotten]) -> None:
        """Forget a host and its terminals, durably."""
        try:
            reply.send(await self._forgotten(request.node))
        except AegisError as error:
            reply.fail(error)

    async def _forgotten(self, name: str) -> Forgotten:
        node = self._nodes.find(name)
        if node is None:
            raise no_such_node("aegis_node_forget", name, self.names)
        if self._link(name) is not None:
            raise InvalidRequest(
                f"aegis_node_forget: node {node.name!r} is joined: stop it there first (Ctrl-C, or "
                "SIGTERM)"
            )
        gone = [info for info in node.open.values() if self.node_of(info.name) == node.name]
        self._nodes.forget(name)
        try:
            await self._file.save()
        except AegisError:
            self._nodes.restore(node)
            raise
        for info in gone:
            closed = attrs.evolve(info, node=node.name, state="closed")
            publish_terminal(self._system, "terminal_closed", closed)
        keeper = self._system.registry.find("service", "nodes")
        if keeper is not None:
            keeper.tell(NodeForgotten(name=node.name))
        names = {info.name for info in node.open.values()} | set(node.closed.values())
        return Forgotten(terminals=sorted(names))


def _has_its_history(name: str, node: str) -> InvalidRequest:
    return InvalidRequest(
        f"aegis_term_spawn: the history of terminal {name!r} is on node {node!r}: leave node out, "
        "choose another name, or purge it with aegis_term_close first"
    )
