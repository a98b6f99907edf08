"""tractor's runtime in a worker."""

from __future__ import annotations

from actors.nodes.compat.loading import load
from actors.nodes.compat.network import NETWORK, Network
from actors.nodes.links.key import NodeKey


def run_child(key: NodeKey, uid: tuple[str, str], parent: tuple[str, int]) -> None:
    """Connect to the parent and serve its calls until it ends this process."""
    tractor = load()
    NETWORK.set(Network(key))
    name, number = uid
    actor = tractor.actor.Actor(name, uid=number, spawn_method="trio")
    tractor.entry._trio_main(actor, parent_addr=tuple(parent[:2]))
