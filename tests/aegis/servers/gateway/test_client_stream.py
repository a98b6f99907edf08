from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from aegis.servers.gateway.client_stream import ClientStream

pytestmark = [pytest.mark.real, pytest.mark.every_python]


@asynccontextmanager
async def pair(send_limit_s: float = 20) -> AsyncIterator[tuple[ClientStream, trio.SocketStream]]:
    ours, theirs = trio.socket.socketpair(socket.AF_UNIX)
    async with (
        trio.SocketStream(theirs) as client,
        ClientStream(trio.SocketStream(ours), send_limit_s=send_limit_s) as stream,
    ):
        with trio.fail_after(60):
            yield stream, client


async def test_what_was_read_ahead_is_received_again_before_the_rest() -> None:
    async with pair() as (stream, client):
        await client.send_all(b"head|body")
        seen = await stream.read_ahead(lambda data: b"|" in data, 100)
        assert seen == b"head|body"
        await client.send_all(b" rest")
        await client.send_eof()
        received = b""
        while data := await stream.receive_some(3):
            received += data
        assert received == b"head|body rest"


async def test_reading_ahead_goes_on_byte_by_byte_until_it_is_enough(
    nursery: trio.Nursery,
) -> None:
    async with pair() as (stream, client):

        async def dribble() -> None:
            for byte in b"abc\n":
                await client.send_all(bytes([byte]))
                await trio.testing.wait_all_tasks_blocked()

        nursery.start_soon(dribble)
        assert await stream.read_ahead(lambda data: b"\n" in data, 100) == b"abc\n"


async def test_reading_ahead_ends_at_the_limit_and_at_the_end() -> None:
    async with pair() as (stream, client):
        await client.send_all(b"x" * 50)
        assert await stream.read_ahead(lambda _: False, 20) == b"x" * 20
        await client.send_eof()
        assert await stream.read_ahead(lambda _: False, 100) == b"x" * 50


async def test_a_client_that_does_not_read_is_cut_off() -> None:
    async with pair(send_limit_s=0.05) as (stream, _):
        with pytest.raises(trio.BrokenResourceError, match="does not read"):
            await stream.send_all(bytes(50_000_000))
        with pytest.raises(trio.ClosedResourceError):
            await stream.send_all(b"x")


async def test_a_message_that_the_socket_takes_in_parts_arrives_whole(
    nursery: trio.Nursery,
) -> None:
    data = b"".join(number.to_bytes(4, "big") for number in range(500_000))
    async with pair() as (stream, client):

        async def send() -> None:
            await stream.send_all(data)
            await stream.send_eof()

        nursery.start_soon(send)
        received = bytearray()
        async for part in client:
            received += part
        assert received == data


async def test_a_client_that_reads_slowly_gets_a_long_message_whole(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    data = os.urandom(8_000_000)
    ours, theirs = trio.socket.socketpair(socket.AF_UNIX)
    async with (
        trio.SocketStream(theirs) as client,
        ClientStream(trio.SocketStream(ours)) as stream,
    ):

        async def send() -> None:
            await stream.send_all(data)
            await stream.send_eof()

        nursery.start_soon(send)
        received = bytearray()
        while part := await client.receive_some(65_536):
            received += part
            await trio.sleep(1)
        assert received == data
        assert trio.current_time() > 100


async def test_nothing_is_sent_into_the_middle_of_another_message() -> None:
    async with pair() as (stream, client), trio.open_nursery() as nursery:
        nursery.start_soon(stream.send_all, bytes(2_000_000))
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(2):
            os.read(client.socket.fileno(), 50_000)  # the socket has room, and no task has run
            with pytest.raises(trio.BusyResourceError):
                await stream.send_all(b"x")
        nursery.cancel_scope.cancel()


async def test_an_abort_wakes_even_a_shielded_send(nursery: trio.Nursery) -> None:
    async with pair() as (stream, _):
        ended = trio.Event()

        async def send() -> None:
            with trio.CancelScope(shield=True), pytest.raises(trio.ClosedResourceError):
                await stream.send_all(bytes(50_000_000))
            ended.set()

        nursery.start_soon(send)
        await trio.testing.wait_all_tasks_blocked()
        stream.abort()
        await ended.wait()


async def test_a_stranger_may_send_only_its_allowance() -> None:
    async with pair() as (stream, client):
        stream.allowance = 10
        await client.send_all(b"x" * 10)
        assert await stream.receive_some() == b"x" * 10
        await client.send_all(b"x")
        with pytest.raises(trio.BrokenResourceError, match="too much"):
            await stream.receive_some()
        stream.allowance = None
        await client.send_all(b"y" * 1000)
        assert await stream.receive_some() == b"y" * 1000


async def test_what_was_read_ahead_counts_for_the_allowance() -> None:
    async with pair() as (stream, client):
        await client.send_all(b"x" * 10)
        await stream.read_ahead(lambda _: True, 100)
        await stream.read_ahead(lambda data: len(data) == 10, 100)
        stream.allowance = 9
        with pytest.raises(trio.BrokenResourceError):
            await stream.receive_some()
