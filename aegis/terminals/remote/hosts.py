"""``Elsewhere``: the terminals of hosts that joined, as the daemon's directory sees them.

They live in the directory of their host, which goes on while it cannot be reached: nothing of them
is started, ended or deleted here. What is known of them is kept, and questions are forwarded.

A name may be taken twice, where a host brings it along. Then the daemon's own terminal counts, and
after it that of the host which joined first; an open one before a closed one. The other cannot be
reached by that name, and is not listed, until the one that counts is closed.
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
from aegis.terminals.remote.nodes import NodeFile, NodeMap, Remembered
from aegis.terminals.retry import ask_again
from aegis.terminals.sentences import no_such_node
from aegis.terminals.wakes.delivery import retry_delay

log = structlog.get_logger("aegis.terminals")

LEARN_S = 5.0
"""How long a host may take to name its terminals before it is asked again."""

LIST_S = 2.0
"""How long it may take to list them before it is shown as unreachable."""

SPAWN_S = 30.0
CLOSE_S = 30.0

LINKS_S = 5.0


@attrs.frozen(eq=False)
class Link:
    """The way to the directory of a host, and since when there is one (UTC)."""

    directory: Ref[Any]
    since: str


@attrs.frozen(kw_only=True)
class Here:
    """What the daemon has itself: what is open or has failed, whose history is kept, and where.

    ``places`` are the names of its own process and of its workers.
    """

    places: tuple[str, ...]

    has_open: Callable[[str], bool]
    has_history: Callable[[str], bool]


class Elsewhere:
    """Those of all hosts; ``start_soon`` starts a helper task of the directory."""

    def __init__(
        self, system: System, here: Here, file: NodeFile, start_soon: Callable[..., object]
    ) -> None:
        self._system = system
        self._here = here
        self._file = file
        self._nodes = file.nodes
        self._start_soon = start_soon
        self._links: dict[str, Link] = {}
        self._silent: set[str] = set()
        self._coming: dict[str, str] = {}
        self._changes: Counter[str] = Counter()
        for node in self._nodes:
            node.since = node.since or utc_now()

    @property
    def names(self) -> list[str]:
        """The hosts that are known."""
        return [node.name for node in self._nodes]

    def statuses(self) -> list[NodeStatus]:
        """How they stand, as far as it is known here."""
        return [self._status(node) for node in self._nodes]

    def _status(self, node: Remembered) -> NodeStatus:
        link = self._links.get(name_key(node.name))
        return NodeStatus(
            name=node.name,
            kind="host",
            state="unreachable" if link is None else "up",
            terminals=len(node.open),
            since=node.since if link is None else link.since,
        )

    def take(self, message: NodeMessage, defer: Callable[[Any], Reply[Any]]) -> None:
        """Do or answer what hosts are about; ``defer`` gives the reply that is owed."""
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

    def reachable(self, news: NodeReachable) -> None:
        """A host is there: learn what it has."""
        try:
            link = Link(self._system.ref(news.directory), utc_now())
        except ActorStopped as error:
            log.warning("node has no directory", node=news.name, why=describe(error))
            return
        self._links[name_key(news.name)] = link
        self._silent.discard(name_key(news.name))
        self._nodes.joined(news.name)
        self._start_soon(self._learn, news.name, link)

    def unreachable(self, news: NodeUnreachable) -> None:
        """The link to a host is cut; what it has goes on there."""
        node = self._nodes.find(news.name)
        if node is None or self._links.pop(name_key(news.name), None) is None:
            return
        log.warning("node unreachable", node=node.name, why=news.why)
        self._nodes.gone(node.name, utc_now())
        self._tell("terminal_changed", node)
        self._start_soon(self._file.save_soon)

    async def find_links(self) -> None:
        """The directory has crashed: learn from who keeps the links which hosts are there."""
        keeper = self._system.registry.find("service", "nodes")
        if keeper is None:
            return
        try:
            listed = await ask_again(keeper, ListNodes(), timeout=LINKS_S)
        except AskError as error:
            log.warning("nodes not listed", why=describe(error))
            return
        for node in listed.result:
            if (node.kind, node.state) == ("host", "up") and not self._link(node.name):
                path = f"root/nodes/{node.name}/terminal-directory"
                self.reachable(NodeReachable(name=node.name, directory=path))

    async def _learn(self, name: str, link: Link) -> None:
        """Ask until the host has answered, or this link is no more."""
        tries, key = 0, name_key(name)
        while self._links.get(key) is link:
            changes = self._changes[key]
            try:
                names = await ask_again(link.directory, KnownTerminals(), timeout=LEARN_S)
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
        coming = [key for key, node in self._coming.items() if node == name_key(name)]
        closed = [*names.closed, *coming]
        self._nodes.learned(name, TerminalNames(open=names.open, closed=closed))
        node = self._nodes.find(name)
        assert node is not None
        for key, info in node.open.items():
            counts = self._place_that_counts(key)
            if counts != node.name:
                log.warning("terminal hidden", terminal=info.name, node=node.name, by=counts)
        self._tell("terminal_changed", node)

    def _link(self, node: str) -> Link | None:
        return self._links.get(name_key(node))

    def _place_that_counts(self, name: str) -> str:
        return self.node_of(name) or LOCAL_NODE

    # Who has what.

    def node_of(self, name: str) -> str | None:
        """The host that has the terminal ``name``; None if it is the daemon's own, or nobody's.

        Raises ``StorageError``.
        """
        holder = self._nodes.holder(name)
        if holder is None or self._here.has_open(name):
            return None
        return None if not holder.is_open and self._here.has_history(name) else holder.node

    def way_to(self, name: str, *, by_front: bool = True) -> Ref[Any] | None:
        """Who answers for the terminal of a host: its front if it has one, else its directory.

        Where not ``by_front``, its directory. None as ``node_of`` says. Raises ``Unavailable``
        while the host cannot be reached.
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
        """Ask every host that can be reached how its terminals stand; ``LIST_S`` at most."""
        async with trio.open_nursery() as nursery:
            for key, link in list(self._links.items()):
                nursery.start_soon(self._refresh_one, key, link)

    async def _refresh_one(self, key: str, link: Link) -> None:
        changes = self._changes[key]
        try:
            listed = await ask_again(link.directory, api.ListTerminals(), timeout=LIST_S)
        except (AskError, AegisError) as error:
            log.warning("node does not answer", node=key, why=describe(error))
            self._silent.add(key)
            return
        self._silent.discard(key)
        is_current = self._links.get(key) is link and changes == self._changes[key]
        if is_current and key not in self._coming.values():
            self._nodes.seen_open(key, listed.result)

    def listed_with(self, here: Mapping[str, api.TerminalInfo]) -> dict[str, api.TerminalInfo]:
        """``here`` and what is open on the hosts, by the keys of their names."""
        infos = dict(here)
        for node in self._nodes:
            for key, info in node.open.items():
                if key not in infos and not self._here.has_open(info.name):
                    infos[key] = self._shown(node, info)
        return infos

    def _shown(self, node: Remembered, info: api.TerminalInfo) -> api.TerminalInfo:
        key = name_key(node.name)
        answers = key in self._links and key not in self._silent
        state = info.state if answers else "unreachable"
        return attrs.evolve(info, node=node.name, state=state)

    def _tell(
        self, event: Literal["terminal_changed", "terminal_closed"], node: Remembered
    ) -> None:
        for info in node.open.values():
            if self.node_of(info.name) == node.name:
                publish_terminal(self._system, event, self._shown(node, info))

    # Spawning and closing.

    def place_of(
        self, request: api.SpawnTerminal, check_here: Callable[[str | None], object]
    ) -> str | None:
        """The host that the terminal is to be spawned on; None: the daemon sees to it itself.

        A closed one goes on where its history is. ``check_here`` raises where the daemon cannot
        start it at the place that was asked for. Raises ``AegisError``.
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
        if wanted is not None and node is None and self._here.has_history(name):
            raise _has_its_history(name, LOCAL_NODE)
        if request.node is not None and node is not None and wanted != node:
            raise _has_its_history(name, node)
        chosen = node or wanted
        if chosen is not None:
            self._directory_of(chosen, self._cannot_spawn(chosen))
            return chosen
        try:
            check_here(request.node)
        except NotFound:
            if not self.names:
                raise
            raise no_such_node(
                "aegis_term_spawn", str(request.node), [*self._here.places, *self.names]
            ) from None
        return None

    def _wanted(self, request: api.SpawnTerminal) -> str | None:
        """The host that was asked for, as it calls itself; None if no host was."""
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
        """Have the host spawn it. Its name is durably known to be there before."""
        name, key = request.name, name_key(request.name)
        is_new = self._nodes.holder(name) is None
        self._coming[key] = name_key(node)
        try:
            if is_new:
                self._changed(node).closed(node, name)
                await self._file.save()
            directory = self._directory_of(node, self._cannot_spawn(node))
            there = attrs.evolve(request, node=None)
            info = await directory.ask(there, timeout=SPAWN_S)
        except AegisError as refusal:
            if is_new:
                self._changed(node).purged(node, name)
            reply.fail(refusal)
            self._look_again(node)
        except AskError as error:  # it may be spawned all the same
            reply.fail(error)
            self._look_again(node)
        else:
            info = attrs.evolve(info, node=node)
            self._changed(node).opened(node, info)
            await self._file.save_soon()
            reply.send(info)
        finally:
            del self._coming[key]

    async def close(self, node: str, request: api.CloseTerminal, reply: Reply[api.Closed]) -> None:
        """Have the host close it."""
        name = request.name
        try:
            sentence = f"aegis_term_close: {unreachable(name, node, self._since(node))}"
            answer = await self._directory_of(node, sentence).ask(request, timeout=CLOSE_S)
        except (AegisError, AskError) as error:
            reply.fail(error)
            self._look_again(node)
            return
        nodes = self._changed(node)
        if request.purge:
            nodes.purged(node, name)
        else:
            nodes.closed(node, name)
        await self._file.save_soon()
        reply.send(answer)

    def _changed(self, node: str) -> NodeMap:
        """What is remembered, which is about to change: what the host says meanwhile is older."""
        self._changes[name_key(node)] += 1
        return self._nodes

    def _look_again(self, node: str) -> None:
        """It did not go as was thought: learn how it stands there."""
        link = self._link(node)
        if link is not None:
            self._start_soon(self._learn, node, link)

    # Forgetting.

    async def _forget(self, request: ForgetNode, reply: Reply[Forgotten]) -> None:
        """Remember nothing of a host any more, durably."""
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
