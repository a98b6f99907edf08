"""What tractor needs of the class that reads and writes its messages, of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.errors import NodeError
from actors.nodes.compat.message_frames import MESSAGE_LIMIT
from actors.nodes.compat.messaging import MessageTransport, Payload
from actors.nodes.compat.network import open_tcp_stream

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[3]


class Closed(trio.ClosedResourceError):
    """What tractor expects at the end of a connection."""


def encode(message: Any) -> bytes:
    return json.dumps(message, default=lambda data: data.hex()).encode()


def decode(data: bytes) -> Any:
    return json.loads(data)


@asynccontextmanager
async def two() -> AsyncIterator[tuple[MessageTransport, MessageTransport]]:
    """Both ends of a connection."""
    [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
    here = await trio.open_tcp_stream(*listener.socket.getsockname()[:2])
    there = await listener.accept()
    await listener.aclose()
    async with here, there:
        ends = (MessageTransport(each, encode, decode, Closed) for each in (here, there))
        yield next(ends), next(ends)


async def test_messages_go_both_ways_in_order_and_each_end_knows_both_addresses() -> None:
    async with two() as (here, there):
        for number in range(100):
            await here.send({"number": number})
        assert [(await there.recv())["number"] for _ in range(100)] == list(range(100))
        await there.send(None)
        with pytest.raises(Closed, match="sends no more"):
            await here.recv()
        assert here.ended.is_set()
        assert (here.laddr, here.raddr) == (there.raddr, there.laddr)
        assert here.connected()
        for end in (here, there):
            await end.stream.aclose()
            assert not end.connected()


async def test_nothing_more_is_read_from_a_connection_that_was_closed_here() -> None:
    async with two() as (here, there):
        for number in range(3):
            await there.send(number)
        assert await here.recv() == 0
        here.stream.socket.close()
        with pytest.raises(Closed, match="on this side"):
            await here.recv()
        assert here.ended.is_set()
        await there.stream.aclose()


async def test_the_end_of_a_connection_is_the_error_that_tractor_expects_and_an_event() -> None:
    async with two() as (here, there):
        await here.send("last")
        await here.stream.aclose()
        assert [message async for message in there.drain()] == ["last"]
        with pytest.raises(Closed):
            await there.recv()
        assert there.ended.is_set()
        await there.stream.aclose()


async def test_closing_this_end_lets_go_whoever_receives() -> None:
    async with two() as (here, there):

        async def receive() -> None:
            with pytest.raises(Closed):
                await here.recv()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(receive)
            await trio.testing.wait_all_tasks_blocked()
            here.stream.socket.close()
        await there.stream.aclose()


async def test_a_message_that_is_none_ends_the_connection() -> None:
    async with two() as (here, there):
        await here.stream.send_all(b"\x03\x00\x00\x00{{{")
        with pytest.raises(NodeError, match="A message came that is none"):
            await there.recv()
        assert there.ended.is_set()


async def test_a_message_that_is_too_long_is_not_sent_and_the_next_one_is() -> None:
    async with two() as (here, there):
        with pytest.raises(NodeError, match="not sent"):
            await here.send("x" * MESSAGE_LIMIT)
        await here.send("short")
        assert await there.recv() == "short"


def test_a_payload_is_shown_by_its_size_whatever_is_in_it() -> None:
    assert repr({"yield": Payload(b"secret" * 1000)}) == "{'yield': <6000 bytes>}"


async def test_a_payload_is_sent_as_its_bytes() -> None:
    async with two() as (here, there):
        await here.send({"yield": Payload(b"\x01\x02"), "cid": "c"})
        assert await there.recv() == {"yield": "0102", "cid": "c"}


async def test_nothing_is_connected_without_a_key() -> None:
    async with two() as (here, _):
        with pytest.raises(LookupError):
            await open_tcp_stream(*here.raddr)


LEASHED = """
from actors.nodes.workers.leash import take_leash
import os, sys, time
leash = take_leash()
assert os.read(0, 1) == b""
print(os.get_inheritable(leash), flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize("closed_before", [True, False])
def test_a_process_ends_with_its_leash_also_if_that_was_let_go_before(closed_before: bool) -> None:
    reading, writing = os.pipe()
    if closed_before:
        os.close(writing)
    command = [sys.executable, "-c", LEASHED]
    with subprocess.Popen(command, cwd=ROOT, stdin=reading, stdout=subprocess.PIPE) as process:
        os.close(reading)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not closed_before:
            assert line == b"False\n"
            os.close(writing)
        assert process.wait(60) == -9
