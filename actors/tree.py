"""The live tree, as data."""

from __future__ import annotations

import attrs
import trio

from actors.cell import Cell
from actors.spec import ChildSpec


@attrs.frozen(kw_only=True)
class Node:
    """One place of the tree. ``mailbox`` counts waiting messages, ``uptime_s`` the present life."""

    path: str
    name: str
    kind: str
    state: str
    mailbox: int
    restarts: int
    uptime_s: float
    children: list[Node]


def snapshot(cell: Cell) -> Node:
    """``cell`` and everything below it as it is now, in the order of starting."""
    spec = cell.spec
    return Node(
        path=cell.path,
        name=spec.name,
        kind=spec.actor.__name__ if isinstance(spec, ChildSpec) else "Supervisor",
        state=cell.state.value,
        mailbox=len(cell.mailbox),
        restarts=cell.restarts,
        uptime_s=round(trio.current_time() - cell.began_at, 3),
        children=[snapshot(child) for child in cell.children.values()],
    )


def count(node: Node) -> int:
    """How many places ``node`` and everything below it are."""
    return 1 + sum(count(child) for child in node.children)
