"""tractor's runtime in a process that joins the root of another one.

``tractor.open_root_actor`` would try the root for a second, and without an answer make this process
a root of its own; with one, it would listen at the host of that root, which is another machine.
Here the actor is made as what it is: one that is no root, and listens on loopback.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from actors.nodes.compat.loading import load
from actors.nodes.compat.network import LOOPBACK, NETWORK, Network
from actors.nodes.compat.nursery import LooseNursery
from actors.nodes.compat.root import ANY_FREE_PORT, close_connections, must_be_alone
from actors.nodes.compat.subactor import Subactor


@asynccontextmanager
async def open_guest(name: str, root: tuple[str, int], network: Network) -> AsyncIterator[Subactor]:
    """Open the runtime, register with ``root`` and yield a connection of its own to it.

    Raises ``MisuseError`` while a runtime is open in this process, ``OSError`` where the root
    cannot be reached or does not prove the key. Nothing of it is left afterwards; that takes no
    time if the connection was closed before.
    """
    tractor = load()
    must_be_alone(tractor)
    token = NETWORK.set(network)
    actor = tractor.actor.Actor(name, arbiter_addr=root, enable_modules=[])
    tractor.state._current_actor = actor
    try:
        async with LooseNursery() as nursery:
            await nursery.start(partial(actor._async_main, accept_addr=(LOOPBACK, ANY_FREE_PORT)))
            try:
                async with tractor.api.get_arbiter(*root) as portal:
                    yield Subactor(portal)
            finally:
                actor._arb_addr = None  # no goodbye to the registry: the root forgets who is gone
                close_connections(actor)
                await actor.cancel()
    finally:
        tractor.state._current_actor = None
        NETWORK.reset(token)
        for stream in network.opened:
            stream.socket.close()
