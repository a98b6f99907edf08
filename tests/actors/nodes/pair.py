"""Two systems in one process that are each other's peers, over a wire in memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import trio
import trio.testing

from actors import Actor, ChildSpec, Request, SupervisorSpec, System, open_system
from actors.errors import LinkLost, Refusal
from actors.nodes.links.vocabulary import Vocabulary
from actors.nodes.peer import PeerProcess
from actors.nodes.workers.hosted_system import begin_peer_above


@attrs.frozen
class Add:
    """Add this to the sum."""

    number: int


@attrs.frozen
class Sum(Request[int]):
    """What is the sum?"""


@attrs.frozen
class Echo(Request["Echo"]):
    """Give it back."""

    text: str
    data: bytes = b""


@attrs.frozen
class Do(Request[None]):
    """``how``: crash, refuse, hang, silent, raise."""

    how: str


@attrs.frozen
class Chain(Request[str]):
    """Ask the next of these paths, and so on."""

    paths: list[str]


@attrs.frozen
class Unknown:
    """A message that is in no vocabulary."""


class Odd(Exception):
    """An error that is in no vocabulary."""


class Worked(Actor[Add | Sum | Echo | Do | Chain]):
    """Does what it is told."""

    async def setup(self) -> None:
        self._sum = 0
        self.context.register("worked", self.context.path.rpartition("/")[2])

    async def receive(self, message: Add | Sum | Echo | Do | Chain) -> None:
        match message:
            case Add(number):
                self._sum += number
            case Sum():
                self.reply(message, self._sum)
            case Echo():
                self.reply(message, message)
            case Do(how):
                await self._do(message, how)
            case Chain([]):
                self.reply(message, self.context.path)
            case Chain([first, *rest]):
                further = self.context.system.ref(first)
                self.reply(message, await further.ask(Chain(rest)))

    async def _do(self, message: Do, how: str) -> None:
        if how == "crash":
            raise ValueError("told to")
        if how == "refuse":
            raise Refusal("not today")
        if how == "refuse a name":
            raise Refusal("no file \udcff")
        if how == "raise":
            self.defer(message).fail(Odd("very"))
        if how == "hang":
            await trio.sleep_forever()
        if how == "defer":
            self.defer(message)


VOCABULARY = Vocabulary((Add, Sum, Echo, Do, Chain))


def children(*names: str) -> tuple[ChildSpec, ...]:
    """Actors of these names."""
    return tuple(ChildSpec.of(name, Worked) for name in names)


class MemoryWire:
    """One side of a wire in memory."""

    def __init__(
        self, send: trio.MemorySendChannel[bytes], receive: trio.MemoryReceiveChannel[bytes]
    ) -> None:
        self._send = send
        self._receive = receive

    async def send(self, message: bytes) -> None:
        try:
            await self._send.send(message)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise LinkLost("cut") from None

    async def receive(self) -> bytes:
        try:
            return await self._receive.receive()
        except (trio.EndOfChannel, trio.ClosedResourceError):
            raise LinkLost("cut") from None

    def cut(self) -> None:
        self._send.close()
        self._receive.close()


def wires() -> tuple[MemoryWire, MemoryWire]:
    """Both sides of a wire."""
    there_in, there_out = trio.open_memory_channel[bytes](8)
    back_in, back_out = trio.open_memory_channel[bytes](8)
    return MemoryWire(there_in, back_out), MemoryWire(back_in, there_out)


@attrs.define(eq=False)
class Pair:
    """``above`` with actors ``root/<name>`` and ``below`` with ``root/w/<name>``."""

    above: System
    below: System
    to_below: PeerProcess
    to_above: PeerProcess
    nursery: trio.Nursery
    wire: MemoryWire | None = None

    async def connect(self) -> None:
        """Be connected by a new wire."""
        self.wire, other = wires()
        self.nursery.start_soon(self._carry, self.to_below, self.wire)
        self.nursery.start_soon(self._carry, self.to_above, other)
        await self.to_below.ready.wait()
        await self.to_above.ready.wait()

    async def cut(self) -> None:
        """Be connected no more."""
        assert self.wire is not None
        self.wire.cut()
        await trio.testing.wait_all_tasks_blocked()

    async def _carry(self, peer: PeerProcess, wire: MemoryWire) -> None:
        await peer.carry(wire)
        wire.cut()
        peer.connection_lost()


@asynccontextmanager
async def open_pair(
    above: tuple[ChildSpec, ...] = children("a", "b"),
    below: tuple[ChildSpec, ...] = children("x", "y"),
) -> AsyncIterator[Pair]:
    """Two systems that are connected."""
    peers: list[PeerProcess] = []

    def prepare_below(system: System) -> None:
        peers.append(begin_peer_above(system, "the parent", VOCABULARY, lambda *_: True))

    def prepare_above(system: System) -> None:
        peer = PeerProcess(
            system,
            name="worker w",
            root="root/w",
            vocabulary=VOCABULARY,
            exports=lambda _group, name: name == "a",
        )
        peer.begin()
        peers.append(peer)

    root = SupervisorSpec(name="root", children=above)
    worker = SupervisorSpec(name="w", children=below)
    async with (
        open_system(root, prepare=prepare_above) as over,
        open_system(worker, above="root", prepare=prepare_below) as under,
        trio.open_nursery() as nursery,
    ):
        pair = Pair(over, under, peers[0], peers[1], nursery)
        await pair.connect()
        try:
            yield pair
        finally:
            nursery.cancel_scope.cancel()
