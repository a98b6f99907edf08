"""Streams of one connection: credit, gaps, ends; no terminals, a clock that jumps."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from actors import Reply
from aegis.errors import Busy, NotFound
from aegis.protocol.output_streams import TitleItem
from aegis.protocol.streams import (
    MAX_CHUNK_BYTES,
    MAX_STREAMS,
    Claim,
    OutputBytes,
    Release,
    pack_keys,
    unpack_output,
)
from aegis.protocol.tool_sets import Offer
from aegis.servers.access.auth import open_keys
from aegis.servers.calls import OPERATOR, Face, Identity
from aegis.servers.streams.outlet import BYTES_PER_S, StreamOut
from aegis.servers.streams.pace import FRAME_S
from aegis.servers.wires.conversation import MAX_STRIKES, EndReason, ServerContext, converse
from aegis.servers.wires.open_streams import MAX_UNANSWERED
from tests.fakes.streams import ScriptedStreams, Source, TestWire

IDLE = TitleItem(title="idle")


class NoCalls:
    """A ``CallPort`` that nobody calls."""

    async def call(self, *given: object) -> object:
        raise AssertionError(given)

    async def report_progress(self, *given: object) -> None:
        raise AssertionError(given)

    def opened(self, caller: object) -> None:
        pass

    def offer(self, identity: Identity) -> Offer:
        return Offer()

    def listed(self, caller: object) -> None:
        pass

    def closed(self, caller: object) -> None:
        pass


class Talk:
    """A conversation under way."""

    def __init__(self, wire: TestWire, port: ScriptedStreams, stopping: trio.Event) -> None:
        self.wire = wire
        self.port = port
        self.stopping = stopping
        self.ends: list[EndReason] = []

    async def open(self, stream: str = "terminal_output", number: int = 1, credit: int = 0) -> None:
        await self.wire.say(type="open", id=number, stream=stream, arguments={}, credit=credit)


@pytest.fixture
def talk(tmp_path: Path) -> Any:
    @asynccontextmanager
    async def talking(
        *, face: Face = "websocket", identity: Identity = OPERATOR, **sources: Source
    ) -> AsyncIterator[Talk]:
        port, wire, stopping = ScriptedStreams(**sources), TestWire(), trio.Event()
        context = ServerContext(
            port=NoCalls(), streams=port, keys=open_keys(tmp_path), server="test"
        )
        talk = Talk(wire, port, stopping)

        async def serve() -> None:
            talk.ends.append(await converse(wire, context, face, identity, stopping))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            yield talk
            wire.hang_up()

    return talking


def opened(number: int = 1, channel: int | None = 1) -> dict[str, Any]:
    return {"type": "opened", "id": number, "channel": channel}


async def items_for_ever(out: StreamOut, _: Mapping[str, object]) -> str:
    await out.opened(None)
    while True:
        await out.room()
        await out.item(IDLE)


ITEM = {"type": "item", "id": 1, "item": {"title": "idle"}}
ITEM_COST = len('{"type":"item","id":1,"item":{"state":"idle"}}')


async def test_without_credit_nothing_comes_but_that_it_is_open(talk: Any) -> None:
    async with talk(terminal_output=items_for_ever) as client:
        await client.open(credit=0)
        assert client.wire.take() == [opened()]


@pytest.mark.parametrize(
    ("credit", "items"),
    [(1, 1), (ITEM_COST, 1), (ITEM_COST + 1, 2), (3 * ITEM_COST, 3), (3 * ITEM_COST + 1, 4)],
)
async def test_items_come_for_the_credit_and_overdraw_by_one_at_most(
    talk: Any, credit: int, items: int
) -> None:
    async with talk(terminal_output=items_for_ever) as client:
        await client.open(credit=credit)
        assert client.wire.take() == [opened(), *[ITEM] * items]


async def test_what_was_overdrawn_is_paid_first(talk: Any) -> None:
    async with talk(terminal_output=items_for_ever) as client:
        await client.open(credit=1)
        assert client.wire.take() == [opened(), ITEM]
        await client.wire.say(type="credit", id=1, amount=ITEM_COST - 1)
        assert client.wire.take() == []
        await client.wire.say(type="credit", id=1, amount=1)
        assert client.wire.take() == [ITEM]


def chunks(data: bytes, position: int = 0) -> Source:
    async def send(out: StreamOut, _: Mapping[str, object]) -> str:
        await out.opened(None)
        at = position
        while at < position + len(data):
            size = await out.room_for_bytes()
            part = data[at - position : at - position + size]
            await out.output(at, part)
            at += len(part)
        return "terminal 'build' was closed"

    return send


async def test_bytes_are_cut_to_the_credit_and_go_on_where_they_were_cut(talk: Any) -> None:
    async with talk(terminal_output=chunks(b"0123456789", 100)) as client:
        await client.open(credit=4)
        assert client.wire.take() == [opened(), *_output(100, b"0123")]
        await client.wire.say(type="credit", id=1, amount=3)
        assert client.wire.take() == _output(104, b"456")
        await client.wire.say(type="credit", id=1, amount=300)
        *output, end = client.wire.take()
        assert output == _output(107, b"789")
        assert end == {
            "type": "ended",
            "id": 1,
            "code": "closed",
            "message": "terminal 'build' was closed",
        }


def _output(cursor: int, data: bytes) -> list[bytes]:
    return [(1).to_bytes(4, "big") + cursor.to_bytes(8, "big") + data]


async def test_a_flood_comes_in_large_messages_one_in_each_stretch_of_time(
    talk: Any, autojump_clock: trio.testing.MockClock
) -> None:
    whole = bytes(range(256)) * 2048
    async with talk(terminal_output=chunks(whole)) as client:
        await client.open(credit=len(whole))
        await trio.sleep(1)
        times = client.wire.heard_at[1:9]
        assert min(after - before for before, after in pairwise(times)) >= 0.999 * FRAME_S
        assert times[-1] - times[0] <= 7.001 * FRAME_S
        _, *messages, end = client.wire.take()
        assert end["code"] == "closed"
        parts = [unpack_output(message) for message in messages]
        assert b"".join(part.data for part in parts) == whole
        assert [len(part.data) for part in parts] == [MAX_CHUNK_BYTES] * 8


async def test_floods_of_all_streams_share_a_rate_and_a_key_does_not_wait_for_them(
    talk: Any, autojump_clock: trio.testing.MockClock
) -> None:
    number, each = 30, 16 * MAX_CHUNK_BYTES

    async def flood(out: StreamOut, arguments: Mapping[str, object]) -> str:
        return await chunks(bytes(each if arguments.get("flood") else 1))(out, arguments)

    async with talk(terminal_output=flood) as client:
        for index in range(number):
            arguments = {"flood": True}
            await client.wire.say(
                type="open", id=index, stream="terminal_output", arguments=arguments, credit=each
            )
        await client.open(number=99, credit=100)
        at_once = client.wire.take()[-1]  # the first message of each, and this
        assert (at_once["id"], at_once["code"]) == (99, "closed")
        await trio.sleep(0.5)
        parts = [unpack_output(each) for each in client.wire.take() if isinstance(each, bytes)]
        sent = sum(len(part.data) for part in parts)
        assert 0.45 * BYTES_PER_S < sent < 0.55 * BYTES_PER_S
        by_channel = Counter(part.channel for part in parts)
        assert max(by_channel.values()) - min(by_channel.values()) <= 1
        await trio.sleep(2)
        ends = [frame for frame in client.wire.take() if isinstance(frame, dict)]
        assert [end["code"] for end in ends] == ["closed"] * number


async def test_a_stream_is_closed_by_its_client_once(talk: Any) -> None:
    async with talk(tree=items_for_ever) as client:
        await client.open("tree", credit=1)
        client.wire.take()
        await client.wire.say(type="close", id=1)
        assert client.wire.take() == [{"type": "ended", "id": 1, "code": None, "message": None}]
        await client.wire.say(type="close", id=1)
        await client.wire.say(type="credit", id=1, amount=5)
        assert client.wire.take() == []
        await client.open("tree", credit=1)
        assert client.wire.take()[0] == opened(channel=None), "the id is free again"


async def test_one_that_is_closed_before_it_is_open_is_answered(talk: Any) -> None:
    async def never_open(out: StreamOut, _: Mapping[str, object]) -> str:
        await trio.sleep_forever()
        raise AssertionError

    async with talk(tree=never_open) as client:
        await client.open("tree")
        await client.wire.say(type="close", id=1)
        (answer,) = client.wire.take()
        assert (answer["type"], answer["code"]) == ("error", "cancelled")


async def test_a_source_that_crashes_ends_its_stream_and_nothing_else(talk: Any) -> None:
    async def crash(out: StreamOut, _: Mapping[str, object]) -> str:
        await out.opened(None)
        raise RuntimeError("an internal detail")

    async with talk(tree=crash, terminal_output=items_for_ever) as client:
        await client.open("terminal_output", 2, credit=1)
        client.wire.take()
        with capture_logs() as logs:
            await client.open("tree")
        assert client.wire.take() == [
            opened(channel=None),
            {
                "type": "ended",
                "id": 1,
                "code": "internal",
                "message": "stream tree failed with an internal error; see the daemon's log",
            },
        ]
        assert [entry["event"] for entry in logs] == ["a stream failed"]
        await client.wire.say(type="credit", id=2, amount=ITEM_COST)
        assert client.wire.take() == [{**ITEM, "id": 2}]


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_refusal_is_an_error_before_the_stream_is_open_and_its_end_later(
    talk: Any, is_open: bool
) -> None:
    async def refuse(out: StreamOut, _: Mapping[str, object]) -> str:
        if is_open:
            await out.opened(None)
        raise NotFound("there is no terminal 'x'")

    async with talk(tree=refuse) as client:
        await client.open("tree")
        answer = client.wire.take()[-1]
        assert answer["type"] == ("ended" if is_open else "error")
        assert (answer["code"], answer["message"]) == ("not_found", "there is no terminal 'x'")


async def test_an_unknown_stream_is_told_what_there_is(talk: Any) -> None:
    async with talk() as client:
        await client.open("terminal_outptu")
        (answer,) = client.wire.take()
        assert (answer["type"], answer["code"]) == ("error", "not_found")
        assert "did you mean 'terminal_output'" in answer["message"]


async def test_the_tree_is_the_operators_alone(talk: Any) -> None:
    async with talk(identity=Identity(handle="alice", operator=False)) as client:
        await client.open("tree")
        (answer,) = client.wire.take()
        assert (answer["type"], answer["code"]) == ("error", "forbidden")
        await client.open("events")
        assert client.wire.take() == [opened(channel=None)]


async def test_lines_have_no_streams(talk: Any) -> None:
    async with talk(face="line") as client:
        await client.open("events")
        (answer,) = client.wire.take()
        assert (answer["id"], answer["code"]) == (1, "invalid_request")
        assert "WebSocket" in answer["message"]


async def test_one_connection_has_only_so_many_streams(talk: Any) -> None:
    async with talk() as client:
        for number in range(MAX_STREAMS):
            await client.open("events", number)
        client.wire.take()
        await client.open("events", 99)
        assert [frame["code"] for frame in client.wire.take()] == ["busy"]
        await client.wire.say(type="close", id=5)
        client.wire.take()
        await client.open("events", 99)
        assert client.wire.take() == [opened(99, None)]


async def test_an_id_in_use_is_refused(talk: Any) -> None:
    async with talk() as client:
        await client.open("events")
        client.wire.take()
        await client.open("events")
        await client.wire.say(type="request", id=1, command="term_list")
        assert [(frame["id"], frame["code"]) for frame in client.wire.take()] == [
            (None, "invalid_request")
        ] * 2


async def test_streams_end_when_the_daemon_stops_also_those_that_wait_for_credit(talk: Any) -> None:
    async with talk(tree=items_for_ever) as client:
        await client.open("tree", 1, credit=1)
        await client.open("events", 2, credit=0)
        client.wire.take()
        client.stopping.set()
        await trio.testing.wait_all_tasks_blocked()
        assert sorted((frame["id"], frame["code"]) for frame in client.wire.take()) == [
            (1, "unavailable"),
            (2, "unavailable"),
        ]
        assert client.ends == [EndReason.STOPPING]


async def test_a_client_that_goes_away_ends_its_streams(talk: Any) -> None:
    ended = trio.Event()

    async def noticing(out: StreamOut, _: Mapping[str, object]) -> str:
        try:
            await out.opened(None)
            await trio.sleep_forever()
        finally:
            ended.set()
        raise AssertionError

    async with talk(tree=noticing) as client:
        await client.open("tree")
        client.wire.hang_up()
        await ended.wait()
    assert client.ends == [EndReason.CLIENT_GONE]


async def test_what_of_a_stream_is_not_taken_counts_among_all_that_waits(talk: Any) -> None:
    async with talk(terminal_output=items_for_ever) as client:
        await client.open(credit=5)
        assert client.wire.unsent.total == 0, "what came was taken"
        client.wire.deaf_to = "item"
        await client.open(number=2, credit=5)
        assert client.wire.unsent.total == ITEM_COST
    assert client.wire.unsent.total == 0


async def test_abuse_ends_a_connection_that_takes_nothing_of_a_stream(talk: Any) -> None:
    async with talk(terminal_output=items_for_ever) as client:
        client.wire.deaf_to = "item"
        await client.open(credit=5)
        for _ in range(MAX_STRIKES):
            await client.wire.say(type="nonsense")
        assert client.ends == [EndReason.ABUSE]


async def test_an_item_that_is_not_taken_holds_up_no_other_stream(talk: Any) -> None:
    async with talk(terminal_output=items_for_ever, tree=chunkless) as client:
        client.wire.deaf_to = "item"
        await client.open(credit=5)
        await client.open("tree", 2)
        assert client.wire.take() == [
            opened(),
            opened(2, None),
            {"type": "ended", "id": 2, "code": "closed", "message": "that was all"},
        ]


async def chunkless(out: StreamOut, _: Mapping[str, object]) -> str:
    await out.opened(None)
    return "that was all"


# Keys.


class Terminal:
    """Takes keys and answers when it is told to."""

    def __init__(self) -> None:
        self.typed: list[bytes] = []
        self.sizes: list[Claim | Release] = []
        self.replies: list[Reply[Any]] = []
        self.refusal: Exception | None = None

    async def serve(self, out: StreamOut, _: Mapping[str, object]) -> str:
        out.takes_input(self._take, self._take_size)
        await out.opened(None)
        await trio.sleep_forever()
        raise AssertionError

    def _take_size(self, frame: Claim | Release) -> Reply[Any]:
        self.sizes.append(frame)
        self.replies.append(Reply())
        return self.replies[-1]

    def _take(self, keys: bytes) -> Reply[Any]:
        if self.refusal is not None:
            raise self.refusal
        self.typed.append(keys)
        self.replies.append(Reply())
        return self.replies[-1]


async def test_a_claim_arrives_and_its_refusal_is_an_item(talk: Any) -> None:
    terminal = Terminal()
    async with talk(terminal_output=terminal.serve) as client:
        await client.open(credit=1000)
        await client.wire.say(type="claim", id=1, cols=80, rows=24)
        await client.wire.say(type="release", id=1)
        assert terminal.sizes == [Claim(id=1, cols=80, rows=24), Release(id=1)]
        terminal.replies[0].fail(Busy("it belongs to bob"))
        await trio.testing.wait_all_tasks_blocked()
        refused = {"code": "busy", "message": "it belongs to bob"}
        assert client.wire.heard[-1]["item"] == {"size_refused": refused}


@pytest.mark.parametrize(
    "size",
    [{"cols": 1, "rows": 24}, {"cols": 80, "rows": 0}, {"cols": 80}, {"cols": 80, "rows": "9"}],
)
async def test_a_claim_of_no_size_is_refused_before_the_terminal(
    talk: Any, size: dict[str, Any]
) -> None:
    terminal = Terminal()
    async with talk(terminal_output=terminal.serve) as client:
        await client.open(credit=1000)
        await client.wire.say(type="claim", id=1, **size)
        assert terminal.sizes == []
        assert client.wire.heard[-1]["type"] == "error"


async def test_a_ping_is_answered_at_once(talk: Any) -> None:
    async with talk() as client:
        await client.wire.say(type="hello", version=1)
        await client.wire.say(type="ping", id=5)
        assert client.wire.heard[-1] == {"type": "pong", "id": 5}


async def test_keys_arrive_in_order_and_wait_for_no_answer(talk: Any) -> None:
    terminal = Terminal()
    async with talk(terminal_output=terminal.serve) as client:
        await client.open()
        for number in range(100):
            await client.wire.say(pack_keys(1, b"%d" % number))
        assert terminal.typed == [b"%d" % number for number in range(100)]


@pytest.mark.parametrize("is_late", [False, True])
async def test_refused_keys_are_told_when_there_is_credit(talk: Any, is_late: bool) -> None:
    terminal = Terminal()
    async with talk(terminal_output=terminal.serve) as client:
        await client.open()
        client.wire.take()
        terminal.refusal = None if is_late else Busy("somebody types there")
        await client.wire.say(pack_keys(1, b"x"))
        for reply in terminal.replies:
            reply.fail(Busy("somebody types there"))
        await trio.testing.wait_all_tasks_blocked()
        assert client.wire.take() == []
        await client.wire.say(type="credit", id=1, amount=1)
        (frame,) = client.wire.take()
        assert frame["item"] == {
            "keys_refused": {"code": "busy", "message": "somebody types there"}
        }


async def test_keys_that_a_terminal_does_not_answer_are_bounded(talk: Any) -> None:
    terminal = Terminal()
    async with talk(terminal_output=terminal.serve) as client:
        await client.open(credit=1000)
        client.wire.take()
        for _ in range(MAX_UNANSWERED + 5):
            await client.wire.say(pack_keys(1, b"x"))
        assert len(terminal.typed) == MAX_UNANSWERED
        assert client.wire.take()[0]["item"]["keys_refused"]["code"] == "busy"
        for reply in terminal.replies:
            reply.send(None)
        await trio.testing.wait_all_tasks_blocked()
        await client.wire.say(pack_keys(1, b"y"))
        assert terminal.typed[-1] == b"y"


async def test_keys_for_a_stream_that_ended_a_moment_ago_do_nothing(talk: Any) -> None:
    terminal = Terminal()
    async with talk(terminal_output=terminal.serve) as client:
        await client.open()
        await client.wire.say(type="close", id=1)
        client.wire.take()
        await client.wire.say(pack_keys(1, b"x"))
        assert (terminal.typed, client.wire.take()) == ([], [])


@pytest.mark.parametrize("message", [b"", b"\0\0\0", pack_keys(0, b"x"), pack_keys(7, b"x")])
async def test_keys_for_nothing_that_ever_was_are_a_malformed_message(
    talk: Any, message: bytes
) -> None:
    async with talk() as client:
        await client.open()
        client.wire.take()
        await client.wire.say(message)
        (frame,) = client.wire.take()
        assert (frame["id"], frame["code"]) == (None, "invalid_request")


def test_output_has_a_head_of_twelve_bytes() -> None:
    assert _output(5, b"x") == [b"\0\0\0\1\0\0\0\0\0\0\0\5x"]
    assert unpack_output(_output(5, b"x")[0]) == OutputBytes(1, 5, b"x")
