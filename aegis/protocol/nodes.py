"""Nodes: worker processes and joined hosts that run terminals, beside the daemon's process."""

from __future__ import annotations

from typing import Literal

import attrs

from actors.messages import Request
from aegis.protocol.command import Command, described, matching
from aegis.protocol.naming import NAME_PATTERN, NAME_RULE
from aegis.protocol.terminals import TerminalInfo

NodeKind = Literal["worker", "host"]
NodeState = Literal["up", "starting", "unreachable"]


@attrs.frozen(kw_only=True)
class NodeStatus:
    """A worker process of the daemon, or a host that has joined it.

    ``pid`` is that of a worker, ``address`` that of a joined host. ``since`` is when it entered
    this ``state`` (UTC, ISO 8601), if that is known. ``terminals`` counts the open ones.
    """

    name: str
    kind: NodeKind
    state: NodeState
    terminals: int
    pid: int | None = None
    address: str | None = None
    since: str | None = None


@attrs.frozen(kw_only=True)
class NodeList:
    """``result`` lists nodes by name."""

    result: list[NodeStatus]


@attrs.frozen(kw_only=True)
class ListNodes(Request[NodeList]):
    """List the nodes. Used inside the daemon only."""


@attrs.frozen(kw_only=True)
class NodeReachable:
    """The host ``name`` has joined or reconnected; ``directory`` is the path of its actor.

    Used inside the daemon only.
    """

    name: str
    directory: str


@attrs.frozen(kw_only=True)
class NodeUnreachable:
    """The connection to the host ``name`` was lost; ``why`` is for the log."""

    name: str
    why: str


@attrs.frozen(kw_only=True)
class TerminalNames:
    """The terminals of one node: the ``open`` ones, and the names of the ``closed`` ones."""

    open: list[TerminalInfo]
    closed: list[str]


@attrs.frozen(kw_only=True)
class KnownTerminals(Request[TerminalNames]):
    """List the terminals of this node, without those of hosts that have joined it."""


@attrs.frozen(kw_only=True)
class Forgotten:
    """The node was forgotten; ``terminals`` are the names that are free again."""

    terminals: list[str]


@attrs.frozen(kw_only=True)
class ForgetNode(Command[Forgotten]):
    """Forget a host that will not join again; the names of its terminals become free.

    Nothing on the host changes: if it joins again, its terminals are available again. Refused while
    it is joined.
    """

    node: str = attrs.field(
        validator=matching(NAME_PATTERN, NAME_RULE),
        metadata=described(
            f"The name of the host: {NAME_RULE}.",
            "The name of the host.",
            pattern=f"^{NAME_PATTERN}$",
        ),
    )


@attrs.frozen(kw_only=True)
class NodeForgotten:
    """The host ``name`` was forgotten. For the keeper of the links, inside the daemon only."""

    name: str


NodeMessage = ListNodes | ForgetNode | NodeReachable | NodeUnreachable
"""Messages about hosts to the directory of terminals."""


def unreachable(name: str, node: str, since: str | None = None) -> str:
    """Return the sentence for terminal ``name`` on an unreachable host. ``since`` is UTC."""
    when = "" if since is None else f" since {since[:19]}Z"
    return (
        f"terminal {name!r} is on node {node!r}, which is unreachable{when}; it keeps running "
        "there and answers when the connection is restored"
    )


def merged_nodes(running: list[NodeStatus], remembered: list[NodeStatus]) -> list[NodeStatus]:
    """Merge the running nodes and the remembered ones into one list by name.

    A node in both has the running one's fields and the remembered number of terminals.
    """
    nodes = {each.name: each for each in remembered}
    for each in running:
        known = nodes.get(each.name)
        nodes[each.name] = each if known is None else attrs.evolve(each, terminals=known.terminals)
    return [nodes[name] for name in sorted(nodes)]
