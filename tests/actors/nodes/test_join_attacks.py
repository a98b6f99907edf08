"""What may be done to a root that takes joins, with and without its key.

Around each attack there are a worker and a node that has joined: both go on, as does the root.
"""

from __future__ import annotations

import gc
import itertools
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pytest
import trio

from actors.errors import LinkLost
from actors.nodes import Joined, Link, NodeKey, NodeRuntime, Worker, open_runtime
from actors.nodes.compat.message_frames import framed
from actors.nodes.compat.reception import take_join
from actors.nodes.joining.joins import MOST_WAITING
from actors.nodes.joining.request import SAID_LIMIT
from actors.nodes.links.authentication import MOST_UNPROVED, prove
from actors.nodes.links.handshake import OPENING_BYTES, PROOF_BYTES, Connector
from actors.nodes.links.key import new_key, write_key
from actors.nodes.links.window import MOST_MESSAGES
from actors.nodes.links.wire import BeatFrame, MessageFrame, OutcomeFrame, OutcomeKind, encode
from tests.actors.nodes.machine import GUARD_S, descriptors, resident_kib, running, spec, until
from tests.actors.nodes.processes import node_program
from tests.actors.nodes.test_attacks import ATTACKS, NONCE, connect, exactly, is_closed

pytestmark = [
    pytest.mark.real,
    # tractor makes one, finds that the connection has ended, and drops it.
    pytest.mark.filterwarnings("ignore:coroutine 'take_join' was never awaited:RuntimeWarning"),
]

GOOD: dict[str, Any] = {"hello": b"hi", "every_s": 1.0, "lost_after_s": 5.0}


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Find what was dropped while it is known by which test."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def key() -> NodeKey:
    return new_key()


@pytest.fixture(scope="module")
def key_file(key: NodeKey, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    write_key(path, key)
    return path


@attrs.define
class Raw:
    """Somebody with the key who speaks tractor's messages by hand."""

    stream: trio.SocketStream
    uid: tuple[str, str]
    numbers: Iterator[int] = attrs.field(factory=itertools.count)

    async def send(self, message: object) -> None:
        await self.stream.send_all(framed(msgspec.msgpack.encode(message)))

    async def receive(self) -> Any:
        """The next message; ``None`` at the end."""
        with trio.fail_after(GUARD_S), suppress(trio.BrokenResourceError):
            head = await self.stream.receive_some(1)
            if head:
                [length] = struct.unpack("<I", head + await exactly(self.stream, 3))
                return msgspec.msgpack.decode(await exactly(self.stream, length))
        return None

    async def call(self, said: object, *, function: object = "take_join", cid: object = "") -> str:
        """Call a function of the root; return the number of the call."""
        number = f"call-{next(self.numbers)}"
        named = [take_join.__module__, function, said, list(self.uid), cid or number]
        await self.send({"cmd": named})
        return number

    async def answer(self) -> Any:
        """What the root says first to what was called, or ``None`` if it ends the connection."""
        while (message := await self.receive()) is not None:
            if "started" in message:
                return message["started"]
        return None


@asynccontextmanager
async def raw(runtime: NodeRuntime, name: str = "raw") -> AsyncIterator[Raw]:
    stream = await connect(runtime)
    async with stream:
        await prove(stream, runtime.key)
        one = Raw(stream, (name, f"{name}-{id(stream)}"))
        await one.receive()  # the root says its name first
        await one.send(list(one.uid))
        yield one


@attrs.frozen
class Besieged:
    """A root with a worker and a node."""

    runtime: NodeRuntime
    worker: Worker
    node: Joined

    async def assert_unharmed(self) -> None:
        with trio.fail_after(GUARD_S):
            for other in (self.worker, self.node.link):
                await other.send(b"unharmed?")
                assert await other.receive() == b"unharmed?"

    async def until_alone(self) -> None:
        """Wait until nothing is remembered but the root, the worker and the node."""
        alone = {"_peers": 2, "_rpc_tasks": 1, "_contexts": 3, "_actoruid2nursery": 1}
        alone |= {"_peer_connected": 0, "workers": 1, "joins": 1}

        def is_alone() -> bool:
            now = self.runtime.remembered()
            # A node's registration goes with the connection by which it came, if it is not in yet.
            known = now.pop("_registry"), now.pop("_waiters")
            return now == alone and known in ((2, 2), (3, 3))

        await until(is_alone)


@asynccontextmanager
async def besieged(key: NodeKey, key_file: Path) -> AsyncIterator[Besieged]:
    """The root, which is to be as it was when the block is left."""
    async with (
        open_runtime(key=key) as runtime,
        running(runtime, spec("echo")) as worker,
        node_program(key_file, runtime.address[1]) as node,
        trio.open_nursery() as nursery,
    ):
        assert await worker.receive() == b""
        joined = await runtime.next_join()
        joined.accept(b"welcome")
        nursery.start_soon(joined.link.run)
        await node.line("joined")
        root = Besieged(runtime, worker, joined)
        await root.assert_unharmed()
        await root.until_alone()
        before = descriptors()
        yield root
        await root.assert_unharmed()
        await root.until_alone()
        await until(lambda: descriptors() <= before)
        joined.link.ask_to_stop()
        with trio.fail_after(GUARD_S):
            await joined.link.over.wait()


async def test_without_the_key_nothing_is_done_to_a_root_that_takes_joins(
    key: NodeKey, key_file: Path
) -> None:
    async with besieged(key, key_file) as root:
        for attack in ATTACKS:
            stream = await connect(root.runtime)
            with suppress(trio.BrokenResourceError):
                await attack(stream, root.runtime.key)
            assert await is_closed(stream)
            await stream.aclose()
            await root.assert_unharmed()


async def test_a_recorded_handshake_of_a_node_is_refused(key: NodeKey, key_file: Path) -> None:
    async with (
        besieged(key, key_file) as root,
        await connect(root.runtime) as first,
        await connect(root.runtime) as second,
    ):
        rules = Connector(key.secret, NONCE)
        recorded = rules.feed(await exactly(first, OPENING_BYTES))
        await first.send_all(recorded)
        rules.feed(await exactly(first, PROOF_BYTES))
        assert rules.is_proved
        await second.send_all(recorded)
        assert await is_closed(second)


async def test_slow_handshakes_keep_no_node_from_joining(key: NodeKey, key_file: Path) -> None:
    async with besieged(key, key_file) as root:
        slow = [await connect(root.runtime) for _ in range(2 * MOST_UNPROVED)]
        for stream in slow:
            with suppress(trio.BrokenResourceError):
                await stream.send_all(b"A")
        async with node_program(key_file, root.runtime.address[1], name="gpu2") as node:
            another = await root.runtime.next_join()
            another.refuse("One is enough.")
            assert "One is enough." in await node.line("JoinFailed")
        for stream in slow:
            await stream.aclose()


RUBBISH: list[object] = [
    {},
    {**GOOD, "hello": None},
    {**GOOD, "hello": 7},
    {**GOOD, "hello": ["deep", {"er": b""}]},
    {**GOOD, "hello": "text"},
    {**GOOD, "hello": bytes(SAID_LIMIT + 1)},
    {**GOOD, "hello": bytes(800_000)},
    {**GOOD, "every_s": -1.0},
    {**GOOD, "every_s": float("nan")},
    {**GOOD, "lost_after_s": float("inf")},
    {**GOOD, "lost_after_s": 1e300},
    {**GOOD, "lost_after_s": []},
    {**GOOD, "name": "another"},
]


@pytest.mark.parametrize("name", ["raw", "", "x" * 100_000, "\x1b[2J", "gpu1"])
async def test_with_the_key_rubbish_is_no_join_and_is_told_so(
    key: NodeKey, key_file: Path, name: str
) -> None:
    async with besieged(key, key_file) as root:
        for said in RUBBISH:
            async with raw(root.runtime, name) as one:
                await one.call(said)
                accepted, why = await one.answer()
                assert not accepted
                assert why.endswith(b".")
                assert len(why) < 200
                assert await is_closed(one.stream)


@pytest.mark.long
@pytest.mark.parametrize("said", [None, [], "text", 7, {1: 2}, {"ctx": 1, **GOOD}, {"self": 1}])
async def test_with_the_key_a_call_that_cannot_be_made_ends_at_most_its_connection(
    key: NodeKey, key_file: Path, said: object
) -> None:
    async with besieged(key, key_file) as root, raw(root.runtime) as one:
        await one.call(said)
        await one.call(GOOD, function=said)
        await one.call(GOOD, cid=[1])
        with suppress(trio.BrokenResourceError):
            await one.send({"cmd": said})
            await one.send(said)
            await one.stream.send_eof()
        assert await is_closed(one.stream)


@pytest.mark.long
async def test_a_flood_of_joins_is_refused_and_those_that_wait_in_time(
    key: NodeKey, key_file: Path
) -> None:
    answers: list[bytes] = []

    async def flood(root: Besieged, number: int) -> None:
        async with raw(root.runtime, f"raw-{number}") as one:
            await one.call(GOOD)
            accepted, why = await one.answer()
            assert not accepted
            answers.append(why)

    async with besieged(key, key_file) as root:
        async with trio.open_nursery() as nursery:
            for number in range(3 * MOST_WAITING):
                nursery.start_soon(flood, root, number)
            await until(lambda: len(answers) == 2 * MOST_WAITING)
            await root.assert_unharmed()
            assert all(b"16 nodes wait to join already" in why for why in answers)
        assert sum(b"Nobody took the join" in why for why in answers) == MOST_WAITING


@pytest.mark.long
async def test_a_flood_of_joins_on_one_connection_ends_it_and_takes_no_memory(
    key: NodeKey, key_file: Path
) -> None:
    async with besieged(key, key_file) as root:
        for attempt in range(4):
            if attempt == 1:
                before = resident_kib()
            async with raw(root.runtime) as one:
                with suppress(trio.BrokenResourceError):
                    for _ in range(3_000):
                        await one.call(GOOD)
                assert await is_closed(one.stream)
        assert resident_kib() - before < 8_192


@asynccontextmanager
async def accepted(root: Besieged, one: Raw) -> AsyncIterator[tuple[str, Link]]:
    """One that behaved until it was in; its link is to be lost in the block."""
    number = await one.call(GOOD)
    with trio.fail_after(GUARD_S):
        joined = await root.runtime.next_join()
    joined.accept()
    assert await one.answer() == [True, b""]

    async def lose() -> None:
        with pytest.raises(LinkLost):
            await joined.link.run()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(lose)
        yield number, joined.link
        with trio.fail_after(GUARD_S):
            await joined.link.over.wait()


FRAMES: list[dict[str, object]] = [
    {"yield": b"\xff"},
    {"yield": b""},
    {"yield": "text"},
    {"yield": {"no": "frame"}},
    {"yield": encode(BeatFrame()) + b"more"},
    {"stop": True},
    {"error": {"tb_str": "x", "type_str": "ValueError"}},
    {"error": "rubbish"},
    {"return": b"so soon"},
    {"started": b"again"},
    {},
]


@pytest.mark.parametrize("frame", FRAMES)
async def test_who_was_let_in_and_speaks_nonsense_loses_its_link_and_nothing_else(
    key: NodeKey, key_file: Path, frame: dict[str, object]
) -> None:
    async with besieged(key, key_file) as root, raw(root.runtime) as one:
        async with accepted(root, one) as (number, _):
            await one.send({**frame, "cid": number})
        assert await is_closed(one.stream)


async def test_who_was_let_in_and_sends_more_than_may_be_under_way_is_lost(
    key: NodeKey, key_file: Path
) -> None:
    async with besieged(key, key_file) as root, raw(root.runtime) as one:
        async with accepted(root, one) as (number, _):
            with suppress(trio.BrokenResourceError):
                for _ in range(3 * MOST_MESSAGES):
                    await one.send({"yield": encode(MessageFrame(bytes(10_000))), "cid": number})
        assert await is_closed(one.stream)


async def test_who_says_a_lot_before_it_was_let_in_harms_nobody(
    key: NodeKey, key_file: Path
) -> None:
    async with besieged(key, key_file) as root, raw(root.runtime) as one:
        number = await one.call(GOOD)
        with suppress(trio.BrokenResourceError):
            for _ in range(3 * MOST_MESSAGES):
                await one.send({"yield": encode(MessageFrame(b"early")), "cid": number})
        joined = await root.runtime.next_join()
        await root.assert_unharmed()
        joined.refuse("You talk too much.")
        assert await is_closed(one.stream)


async def test_who_was_let_in_and_says_no_more_is_lost(key: NodeKey, key_file: Path) -> None:
    async with besieged(key, key_file) as root, raw(root.runtime) as one:
        quick = {**GOOD, "every_s": 0.1, "lost_after_s": 0.5}
        await one.call(quick)
        joined = await root.runtime.next_join()
        joined.accept()
        with pytest.raises(LinkLost, match="silent"), trio.fail_after(GUARD_S):
            await joined.link.run()
        assert await is_closed(one.stream)


async def test_who_never_reads_its_outcome_holds_nothing_up(key: NodeKey, key_file: Path) -> None:
    async with besieged(key, key_file) as root, raw(root.runtime) as one:
        number = await one.call(GOOD)
        joined = await root.runtime.next_join()
        joined.accept()
        await one.send({"yield": encode(OutcomeFrame(OutcomeKind.DONE)), "cid": number})
        with trio.fail_after(GUARD_S):
            assert await joined.link.run() == OutcomeFrame(OutcomeKind.DONE)
        # It neither reads nor hangs up, and is gone all the same.
        await root.until_alone()
