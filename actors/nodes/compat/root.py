"""tractor's runtime in this process: opened, closed, and made to forget workers that are gone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from actors.errors import MisuseError
from actors.nodes.compat.loading import load
from actors.nodes.compat.network import NETWORK, Network

ANY_FREE_PORT = 0


@asynccontextmanager
async def open_root(name: str, host: str, network: Network) -> AsyncIterator[Any]:
    """Open the runtime, with this process as its root; yield tractor's actor.

    Raises ``MisuseError`` while another is open in this process, ``OSError`` if it cannot listen.
    """
    tractor = load()
    if tractor.state.current_actor(err_on_no_runtime=False) is not None:
        raise MisuseError("A runtime of nodes is open in this process already: use that one.")
    # tractor looks whether somebody listens at the address that it is given, and joins whoever
    # does. At port 0 nobody can be; where to listen it is told by the network.
    nobody = (host, ANY_FREE_PORT)
    token = NETWORK.set(network)
    try:
        opened = tractor.api.open_root_actor(name=name, arbiter_addr=nobody, loglevel="critical")
        actor = await opened.__aenter__()
    finally:
        NETWORK.reset(token)
    actor._arb_addr = tuple(actor.accept_addr[:2])
    try:
        yield actor
    finally:
        close_connections(actor)
        await opened.__aexit__(None, None, None)


def close_connections(actor: Any) -> None:
    """Close all connections of the runtime, which else waits without limit for their other side."""
    for channels in list(actor._peers.values()):
        for channel in channels:
            channel.msgstream.stream.socket.close()


def forget(actor: Any, uid: tuple[str, str], others: frozenset[tuple[str, str]]) -> None:
    """Drop what tractor remembers of a worker that is gone: it keeps all that for ever.

    ``others`` are the workers that are not. Of everybody else nothing stays in the registry: what a
    worker said just before it died may be read only after it was forgotten.
    """
    for memory in ("_actoruid2nursery", "_peer_connected", "_peers"):
        getattr(actor, memory, {}).pop(uid, None)
    for key in [key for key in actor._contexts if key[0] == uid]:
        del actor._contexts[key]
    getattr(actor, "_waiters", {}).pop(uid[0], None)
    registry = getattr(actor, "_registry", {})
    for known in [known for known in registry if known not in (actor.uid, *others)]:
        del registry[known]


def remembered(actor: Any) -> dict[str, int]:
    """How much tractor remembers, by the name of the memory: what a leak would make grow."""
    memories = ("_actoruid2nursery", "_peer_connected", "_registry", "_contexts", "_waiters")
    kept = {memory: len(getattr(actor, memory, ())) for memory in (*memories, "_rpc_tasks")}
    return {**kept, "_peers": sum(bool(channels) for channels in actor._peers.values())}
