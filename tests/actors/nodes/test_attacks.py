"""What strangers may do to the port of the nodes: nothing, at no cost worth the name."""

from __future__ import annotations

import gc
import logging
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio

from actors.nodes import NodeRuntime, open_runtime
from actors.nodes.compat.message_frames import MESSAGE_LIMIT
from actors.nodes.links.authentication import MOST_UNPROVED, Doorkeeper, prove
from actors.nodes.links.handshake import OPENING_BYTES, PROOF_BYTES, Connector
from actors.nodes.links.key import NodeKey, new_key
from tests.actors.nodes.machine import (
    GUARD_S,
    descriptors,
    nothing_left,
    resident_kib,
    running,
    spec,
    until,
)

pytestmark = pytest.mark.real

NONCE = bytes(32)

Lines = list[str]


async def connect(runtime: NodeRuntime) -> trio.SocketStream:
    return await trio.open_tcp_stream(*runtime.address)


async def is_closed(stream: trio.SocketStream) -> bool:
    """Read what still comes; whether the other side closed the connection."""
    with trio.fail_after(GUARD_S):
        with suppress(trio.BrokenResourceError):
            while await stream.receive_some(4096):
                pass
    return True


async def exactly(stream: trio.SocketStream, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = await stream.receive_some(count - len(data))
        assert more
        data += more
    return data


async def still_serves(runtime: NodeRuntime) -> None:
    """A worker starts, answers and ends."""
    async with running(runtime, spec("echo", argument=b"alive")) as worker:
        assert await worker.receive() == b"alive"
        await worker.send(b"bye")
        await worker.ended.wait()


class Keep(logging.Handler):
    """Keeps what is logged, as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: Lines = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What is logged of nodes, as it comes."""
    keep, logger = Keep(), logging.getLogger("actors.nodes")
    logger.addHandler(keep)
    yield keep.lines
    logger.removeHandler(keep)


async def speak_http(stream: trio.SocketStream, key: NodeKey) -> None:
    await stream.send_all(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n{}")


async def speak_tls(stream: trio.SocketStream, key: NodeKey) -> None:
    await stream.send_all(bytes.fromhex("160301010001000000fc0303") + bytes(244))


async def speak_tractor(stream: trio.SocketStream, key: NodeKey) -> None:
    """A well-formed message, as an unprotected tractor would take it."""
    message = b"\x92\xa3bad\xa3uid"
    await stream.send_all(struct.pack("<I", len(message)) + message)


async def announce_much(stream: trio.SocketStream, key: NodeKey) -> None:
    await stream.send_all(b"\xff\xff\xff\xff" + bytes(100_000))


async def use_another_key(stream: trio.SocketStream, key: NodeKey) -> None:
    rules = Connector(new_key().secret, NONCE)
    await stream.send_all(rules.feed(await exactly(stream, OPENING_BYTES)))


async def reflect(stream: trio.SocketStream, key: NodeKey) -> None:
    greeting = await exactly(stream, OPENING_BYTES)
    await stream.send_all(greeting + bytes(PROOF_BYTES))


async def speak_too_much(stream: trio.SocketStream, key: NodeKey) -> None:
    """The right handshake, cut short, and then rubbish."""
    rules = Connector(key.secret, NONCE)
    said = rules.feed(await exactly(stream, OPENING_BYTES))
    await stream.send_all(said[:-1] + bytes([said[-1] ^ 1]) + bytes(1_000))


async def say_nothing_and_leave(stream: trio.SocketStream, key: NodeKey) -> None:
    await stream.send_eof()


async def leave_amid(stream: trio.SocketStream, key: NodeKey) -> None:
    await stream.send_all(b"AEGIS")
    await stream.send_eof()


ATTACKS: list[Callable[[trio.SocketStream, NodeKey], Awaitable[None]]] = [
    speak_http,
    speak_tls,
    speak_tractor,
    announce_much,
    use_another_key,
    reflect,
    speak_too_much,
    say_nothing_and_leave,
    leave_amid,
]


async def test_every_attack_is_refused_with_one_line_and_the_root_serves_on(lines: Lines) -> None:
    with nothing_left():
        async with open_runtime() as runtime:
            for attack in ATTACKS:
                before = len(lines)
                stream = await connect(runtime)
                with suppress(trio.BrokenResourceError):  # it was thrown out while it spoke
                    await attack(stream, runtime.key)
                assert await is_closed(stream)
                await stream.aclose()
                assert len(lines) - before == 1, attack
                assert lines[-1].startswith("refused a connection from 127.0.0.1 port "), attack
            await still_serves(runtime)
            assert len(lines) == len(ATTACKS)
            shown = "\n".join(lines)
            for secret in (runtime.key.secret.hex(), repr(runtime.key.secret), "Host: localhost"):
                assert secret not in shown


async def test_a_recorded_handshake_is_refused_at_another_time(lines: Lines) -> None:
    async with open_runtime() as runtime:
        first = await connect(runtime)
        rules = Connector(runtime.key.secret, NONCE)
        recorded = rules.feed(await exactly(first, OPENING_BYTES))
        await first.send_all(recorded)
        rules.feed(await exactly(first, PROOF_BYTES))
        assert rules.is_proved
        second = await connect(runtime)
        await second.send_all(recorded)
        assert await is_closed(second)
        assert lines == [f"refused a connection from {_name(second)}: It has another key."]
        await first.aclose()
        await second.aclose()
        await still_serves(runtime)


async def test_the_port_of_a_worker_is_guarded_like_that_of_the_root() -> None:
    async with open_runtime() as runtime, running(runtime, spec("echo")) as worker:
        await worker.receive()
        registry = runtime._actor._registry
        [address] = [tuple(a) for uid, a in registry.items() if uid[0] == worker.spec.name]
        for attack in (speak_http, speak_tractor, use_another_key, announce_much):
            stream = await trio.open_tcp_stream(*address)
            with suppress(trio.BrokenResourceError):
                await attack(stream, runtime.key)
            assert await is_closed(stream)
            await stream.aclose()
        await worker.send(b"still here")
        assert await worker.receive() == b"still here"


async def test_who_connects_to_a_port_without_the_key_is_told_why() -> None:
    async with open_runtime() as runtime:
        stream = await connect(runtime)
        with pytest.raises(ConnectionRefusedError, match="another key"):
            await prove(stream, new_key())


async def test_many_slow_connections_make_room_for_each_other_and_for_who_has_the_key(
    lines: Lines,
) -> None:
    many = 4 * MOST_UNPROVED
    with nothing_left():
        async with open_runtime() as runtime:
            before = descriptors()
            slow = [await connect(runtime) for _ in range(many)]
            for stream in slow:
                with suppress(trio.BrokenResourceError):
                    await stream.send_all(b"A")
            await until(lambda: len(lines) >= many - MOST_UNPROVED)
            # Ours, and of theirs no more than may be unproved: a refusal comes before its close.
            await until(lambda: descriptors() - before <= many + MOST_UNPROVED)
            await still_serves(runtime)
            assert any("dropped for newer" in line for line in lines)
            for stream in slow:
                await stream.aclose()
            await until(lambda: descriptors() <= before)
            assert len(lines) == many


@pytest.mark.long
async def test_a_flood_of_bad_connections_takes_no_memory() -> None:
    async with open_runtime() as runtime:

        async def flood(count: int) -> None:
            for _ in range(count):
                stream = await connect(runtime)
                with suppress(trio.BrokenResourceError):
                    await announce_much(stream, runtime.key)
                await stream.aclose()

        async def floods(count: int) -> None:
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(flood, count)
            gc.collect()

        await floods(100)
        before = resident_kib()
        await floods(400)
        assert resident_kib() - before < 8_192
        await still_serves(runtime)


@asynccontextmanager
async def authenticated(runtime: NodeRuntime) -> AsyncIterator[trio.SocketStream]:
    """A connection that has the key, and has said its name as tractor does."""
    stream = await connect(runtime)
    await prove(stream, runtime.key)
    await stream.send_all(struct.pack("<I", 9) + b"\x92\xa3bad\xa3uid"[:9])
    yield stream
    await stream.aclose()


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff\xff\xff\xff",
        struct.pack("<I", MESSAGE_LIMIT + 1),
        struct.pack("<I", 3) + b"\xc1\xc1\xc1",
        struct.pack("<I", 1) + b"\x01",
        struct.pack("<I", 1) + b"\x80",
        struct.pack("<I", 100) + b"cut",
    ],
)
async def test_who_has_the_key_and_speaks_nonsense_loses_its_connection_and_nothing_else(
    sent: bytes,
) -> None:
    async with open_runtime() as runtime, running(runtime, spec("echo")) as worker:
        assert await worker.receive() == b""
        async with authenticated(runtime) as stream:
            await stream.send_all(sent)
            await stream.send_eof()
            assert await is_closed(stream)
        await worker.send(b"unharmed")
        assert await worker.receive() == b"unharmed"


async def test_a_handshake_has_its_time(autojump_clock: trio.testing.MockClock) -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    door = Doorkeeper(new_key(), within_s=5.0)

    async def never(stream: trio.SocketStream) -> None:
        raise AssertionError

    began = trio.current_time()
    await door.admit(as_socket(ours), never)
    assert trio.current_time() - began == pytest.approx(5.0)
    assert door.unproved == 0
    with pytest.raises(trio.BrokenResourceError):
        await theirs.send_all(b"x")


def as_socket(stream: Any) -> trio.SocketStream:
    """A stream in memory, where a socket's is wanted."""

    class Peer:
        def getpeername(self) -> tuple[str, int]:
            return ("memory", 1)

    stream.socket = Peer()
    wrapped: trio.SocketStream = stream
    return wrapped


def _name(stream: trio.SocketStream) -> str:
    host, port = stream.socket.getsockname()
    return f"{host} port {port}"
