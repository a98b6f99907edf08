"""Nodes: the places beside the daemon's own process where terminals run, and how each stands."""

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

    ``pid`` is that of a worker, ``address`` where a joined host came from. It is in this ``state``
    ``since`` then (UTC, ISO 8601), as far as that is known. ``terminals`` counts the open ones.
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
    """Say which nodes there are. Inside the daemon only."""


@attrs.frozen(kw_only=True)
class NodeReachable:
    """The host ``name`` has joined, or is back; ``directory`` is the path of its terminals' owner.

    Inside the daemon only, as the next two are.
    """

    name: str
    directory: str


@attrs.frozen(kw_only=True)
class NodeUnreachable:
    """The connection to the host ``name`` is cut; ``why`` is for the log."""

    name: str
    why: str


@attrs.frozen(kw_only=True)
class TerminalNames:
    """The terminals of one place: those that are ``open``, and the names of those ``closed``."""

    open: list[TerminalInfo]
    closed: list[str]


@attrs.frozen(kw_only=True)
class KnownTerminals(Request[TerminalNames]):
    """Say which terminals this place has, not those of hosts that have joined it."""


@attrs.frozen(kw_only=True)
class Forgotten:
    """The node is forgotten; ``terminals`` are the names that are free again."""

    terminals: list[str]


@attrs.frozen(kw_only=True)
class ForgetNode(Command[Forgotten]):
    """Forget a host that will not join again, and what terminals it had; their names become free.

    Nothing on the host changes: should it join again after all, its terminals are back. Refused
    while it is joined.
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
    """The host ``name`` has been forgotten. To who keeps the links, inside the daemon only."""

    name: str


NodeMessage = ListNodes | ForgetNode | NodeReachable | NodeUnreachable
"""What the owner of terminals is told and asked of hosts."""


def unreachable(name: str, node: str, since: str | None = None) -> str:
    """The sentence for terminal ``name`` on a host whose connection is cut. ``since`` is UTC."""
    when = "" if since is None else f" since {since[:19]}Z"
    return (
        f"terminal {name!r} is on node {node!r}, which is unreachable{when}; it goes on there and "
        "answers when the link is back"
    )


def merged_nodes(running: list[NodeStatus], remembered: list[NodeStatus]) -> list[NodeStatus]:
    """One list of nodes by name, of those that run and those whose terminals are remembered.

    A node in both is as it runs, with the terminals that are remembered of it.
    """
    nodes = {each.name: each for each in remembered}
    for each in running:
        known = nodes.get(each.name)
        nodes[each.name] = each if known is None else attrs.evolve(each, terminals=known.terminals)
    return [nodes[name] for name in sorted(nodes)]
