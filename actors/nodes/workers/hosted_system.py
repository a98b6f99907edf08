"""``hosted_system``: the tree of a worker, as a part of its parent's tree."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio

from actors.nodes.links.vocabulary import Vocabulary
from actors.nodes.names import Exports
from actors.nodes.peer import MessageChannel, PeerProcess
from actors.run import open_system
from actors.spec import SupervisorSpec
from actors.system import System


@asynccontextmanager
async def hosted_system(
    wire: MessageChannel,
    spec: SupervisorSpec,
    *,
    above: str,
    vocabulary: Vocabulary,
    exports: Exports,
    **options: Any,
) -> AsyncIterator[System]:
    """Start the tree of ``spec`` below the path ``above``, connected to the parent by ``wire``.

    All other paths are in the parent's process. ``exports`` selects the names that it learns;
    ``options`` are those of ``open_system``, whose errors are raised.
    """
    peers: list[PeerProcess] = []

    def prepare(system: System) -> None:
        # Connected from the start: a setup may send messages to the parent's actors.
        peer = begin_peer_above(system, "the parent", vocabulary, exports)
        peers.append(peer)
        nursery.start_soon(partial(peer.carry, wire, is_ready=False))

    async with trio.open_nursery() as nursery:
        async with open_system(spec, above=above, prepare=prepare, **options) as system:
            peers[0].send_ready()
            yield system
        nursery.cancel_scope.cancel()


def begin_peer_above(
    system: System, name: str, vocabulary: Vocabulary, exports: Exports
) -> PeerProcess:
    """Return a started peer for all paths that are not in ``system``; it is sent this tree.

    ``name`` is its display name.
    """
    peer = PeerProcess(
        system, name=name, root="", vocabulary=vocabulary, exports=exports, shows_tree=True
    )
    peer.begin()
    return peer
