"""tractor's runtime in this process: opening, closing, and removing records of departed nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from actors.errors import MisuseError
from actors.nodes.compat.loading import load
from actors.nodes.compat.network import LOOPBACK, NETWORK, Network
from actors.nodes.compat.reception import RECEIVE, Receive, take_join

ANY_FREE_PORT = 0


@asynccontextmanager
async def open_root(name: str, network: Network, receive: Receive) -> AsyncIterator[Any]:
    """Open the runtime, with this process as its root; yield tractor's actor.

    ``receive`` is called with each caller of ``take_join``. Raises ``MisuseError`` while
    another runtime is open in this process, ``OSError`` if it cannot listen.
    """
    tractor = load()
    must_be_alone(tractor)
    # tractor checks for a listener at the given address, and joins it if there is one. At port 0
    # there is none; the address to listen at comes from the network.
    nobody = (LOOPBACK, ANY_FREE_PORT)
    tokens = NETWORK.set(network), RECEIVE.set(receive)
    try:
        opened = tractor.api.open_root_actor(
            name=name,
            arbiter_addr=nobody,
            loglevel="critical",
            enable_modules=[take_join.__module__],
        )
        actor = await opened.__aenter__()
    finally:
        NETWORK.reset(tokens[0])
        RECEIVE.reset(tokens[1])
    actor._arb_addr = tuple(actor.accept_addr[:2])
    try:
        yield actor
    finally:
        close_connections(actor)
        await opened.__aexit__(None, None, None)


def must_be_alone(tractor: Any) -> None:
    """Raise ``MisuseError`` while a runtime is open in this process."""
    if tractor.state.current_actor(err_on_no_runtime=False) is not None:
        raise MisuseError("A runtime of nodes is open in this process already: use that one.")


def listens_at(actor: Any, network: Network) -> tuple[str, int]:
    """Host and port at which others reach this process; its workers go to the first listener."""
    listener = actor._listeners[1 if network.is_open_to_others else 0]
    host, port = listener.socket.getsockname()[:2]
    return host, port


def close_connections(actor: Any) -> None:
    """Close all connections; otherwise the runtime waits for the other sides without a limit."""
    for channels in list(actor._peers.values()):
        for channel in channels:
            channel.msgstream.stream.socket.close()


def drop_worker(actor: Any, uid: tuple[str, str], others: frozenset[tuple[str, str]]) -> None:
    """Drop tractor's records of a worker that is gone: tractor keeps them for ever.

    ``others`` are the workers and nodes that are not gone. Nothing of other processes stays in the
    registry: a message that a worker sent just before it died may be read after this call.
    """
    for memory in ("_actoruid2nursery", "_peer_connected", "_peers"):
        getattr(actor, memory, {}).pop(uid, None)
    for key in [key for key in actor._contexts if key[0] == uid]:
        del actor._contexts[key]
    getattr(actor, "_waiters", {}).pop(uid[0], None)
    drop_departed(actor, others)


def drop_departed(actor: Any, others: frozenset[tuple[str, str]]) -> None:
    """Drop the records of processes that are neither connected nor among ``others``."""
    connected = {uid for uid, channels in actor._peers.items() if channels}
    kept = {actor.uid, *others, *connected}
    names = {name for name, _ in kept}
    registry = getattr(actor, "_registry", {})
    waiters = getattr(actor, "_waiters", {})
    for uid in registry.keys() - (others | {actor.uid}):
        del registry[uid]
    for name in waiters.keys() - names:
        del waiters[name]
    for key in [key for key in actor._contexts if key[0] not in kept]:
        del actor._contexts[key]


def remembered(actor: Any) -> dict[str, int]:
    """How much tractor remembers, by the name of the memory: what a leak would make grow."""
    memories = ("_actoruid2nursery", "_peer_connected", "_registry", "_contexts", "_waiters")
    kept = {memory: len(getattr(actor, memory, ())) for memory in (*memories, "_rpc_tasks")}
    return {**kept, "_peers": sum(bool(channels) for channels in actor._peers.values())}
