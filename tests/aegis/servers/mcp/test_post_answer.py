"""The answer to a POST of MCP, with the SDK and the HTTP server played by the test."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from aegis.servers.mcp.post_answer import OPEN_AFTER_S, PING_S, PostAnswer

BOTH = b"application/json, text/event-stream"
BODY = {"type": "http.request", "body": b"{}", "more_body": False}
START: dict[str, Any] = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"application/json")],
}


@attrs.define
class Exchange:
    """A request under way: ``sent`` is what the HTTP server was given."""

    answer: PostAnswer
    sent: list[dict[str, Any]]
    gone: trio.Event = attrs.field(factory=trio.Event)
    abandoned: int = 0

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    def abandon(self) -> None:
        self.abandoned += 1

    async def reply(self, document: bytes) -> None:
        """Answer as the SDK does."""
        await self.answer.send(START)
        await self.answer.send({"type": "http.response.body", "body": document})

    @property
    def body(self) -> bytes:
        return b"".join(each.get("body", b"") for each in self.sent)

    @property
    def is_stream(self) -> bool:
        return (
            bool(self.sent) and (b"content-type", b"text/event-stream") in self.sent[0]["headers"]
        )


@asynccontextmanager
async def exchange(accept: bytes = BOTH, **headers: bytes) -> AsyncIterator[Exchange]:
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message)

    named = [(name.encode(), value) for name, value in headers.items()]
    under_way = Exchange(PostAnswer([(b"accept", accept), *named], BODY, send), sent)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(under_way.answer.watch, under_way.receive, under_way.abandon)
        yield under_way
        nursery.cancel_scope.cancel()


async def test_an_answer_in_time_is_passed_on_as_it_is(autojump_clock: Any) -> None:
    async with exchange() as under_way:
        under_way.answer.dispatched(1, None)
        await trio.sleep(OPEN_AFTER_S / 2)
        assert under_way.sent == []
        await under_way.reply(b'{"id":1}')
        await trio.sleep(10 * PING_S)
    assert [each["type"] for each in under_way.sent] == [
        "http.response.start",
        "http.response.body",
    ]
    assert under_way.body == b'{"id":1}'


async def test_a_late_answer_is_an_event_behind_pings(autojump_clock: Any) -> None:
    async with exchange() as under_way:
        under_way.answer.dispatched(1, "s1")
        await trio.sleep(OPEN_AFTER_S + 2.5 * PING_S)
        assert under_way.is_stream
        assert (b"mcp-session-id", b"s1") in under_way.sent[0]["headers"]
        assert under_way.body == 2 * b": ping\r\n\r\n"
        await under_way.reply(b'{"id":1}')
    assert under_way.body.endswith(b'event: message\r\ndata: {"id":1}\r\n\r\n')
    assert not under_way.sent[-1]["more_body"]


async def test_nothing_is_said_before_a_handler_has_the_request(autojump_clock: Any) -> None:
    async with exchange() as under_way:
        await trio.sleep(10 * PING_S)
        assert under_way.sent == []
        await under_way.reply(b"{}")
    assert not under_way.is_stream


async def test_a_client_that_takes_only_a_stream_gets_its_answer_as_an_event(
    autojump_clock: Any,
) -> None:
    start = {**START, "headers": [*START["headers"], (b"mcp-session-id", b"s1")]}
    async with exchange(b"text/event-stream") as under_way:
        under_way.answer.dispatched(1, None)
        await under_way.answer.send(start)
        await under_way.answer.send({"type": "http.response.body", "body": b'{"id":1}'})
    assert under_way.is_stream
    assert (b"mcp-session-id", b"s1") in under_way.sent[0]["headers"]
    assert under_way.body == b'event: message\r\ndata: {"id":1}\r\n\r\n'
    assert not under_way.sent[-1]["more_body"]


@pytest.mark.parametrize("accept", [b"application/json", b"application/*"])
async def test_who_takes_no_stream_gets_none(autojump_clock: Any, accept: bytes) -> None:
    async with exchange(accept) as under_way:
        under_way.answer.dispatched(1, None)
        await under_way.answer.notify_progress("t", 1, "line")
        await trio.sleep(10 * PING_S)
        assert under_way.sent == []
        await under_way.reply(b"{}")
    assert not under_way.is_stream


@pytest.mark.parametrize(
    "accept", [BOTH, b"*/*", b"", b"application/json;q=1, Text/Event-Stream;q=0.5"]
)
async def test_progress_opens_the_stream_at_once(autojump_clock: Any, accept: bytes) -> None:
    async with exchange(accept) as under_way:
        under_way.answer.dispatched(1, None)
        await under_way.answer.notify_progress("t", 1, "éne\nline")
        assert under_way.is_stream
        event = under_way.body.removeprefix(b"event: message\r\ndata: ").strip()
        assert json.loads(event)["params"] == {
            "progressToken": "t",
            "progress": 1,
            "message": "éne\nline",
        }
        await under_way.reply(b'{"id":1}')
        await under_way.answer.notify_progress("t", 2, "too late")
    assert under_way.body.count(b"event: message") == 2


async def test_an_event_is_written_whole_though_its_writer_is_cancelled(
    autojump_clock: Any,
) -> None:
    async with exchange() as under_way:
        under_way.answer.dispatched(1, None)
        with trio.CancelScope() as scope:
            scope.cancel()
            await under_way.answer.notify_progress("t", 1, "line")
        await under_way.reply(b"{}")
    assert under_way.body.count(b"event: message\r\ndata: ") == 2
    assert under_way.body.count(b"\r\n\r\n") == 2


@pytest.mark.parametrize("when", ["before the handler", "at once", "on the stream"])
async def test_a_client_that_goes_is_noticed_once_a_handler_has_its_request(
    autojump_clock: Any, when: str
) -> None:
    async with exchange() as under_way:
        if when == "before the handler":
            under_way.gone.set()
            await trio.testing.wait_all_tasks_blocked()
            assert under_way.abandoned == 0
        under_way.answer.dispatched(7, None)
        if when == "on the stream":
            await trio.sleep(3 * PING_S)
        under_way.gone.set()
        await trio.testing.wait_all_tasks_blocked()
        assert under_way.abandoned == 1
        assert under_way.answer.request_id == 7
        assert await under_way.answer.receive() == BODY
        assert await under_way.answer.receive() == {"type": "http.disconnect"}


async def test_a_stream_of_the_sdk_is_passed_on(autojump_clock: Any) -> None:
    async with exchange() as under_way:
        under_way.answer.dispatched(1, None)
        headers = [(b"content-type", b"text/event-stream")]
        await under_way.answer.send({**START, "headers": headers})
        await trio.sleep(10 * PING_S)
        part = {"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True}
        await under_way.answer.send(part)
    assert under_way.sent == [{**START, "headers": headers}, part]


@pytest.mark.parametrize("dispatched", [None, 0.0, 0.5, 1.5, 1.5 + PING_S / OPEN_AFTER_S])
async def test_a_stream_of_the_sdk_has_one_head_however_late_it_begins(
    autojump_clock: Any, dispatched: float | None
) -> None:
    """``dispatched``: how long before it begins, in ``OPEN_AFTER_S``; None: just after that."""
    start = {**START, "headers": [(b"content-type", b"text/event-stream")]}
    async with exchange() as under_way:
        if dispatched is not None:
            under_way.answer.dispatched(1, None)
            await trio.sleep(dispatched * OPEN_AFTER_S)
        await under_way.answer.send(start)
        if dispatched is None:
            under_way.answer.dispatched(1, None)
        for part in (b"data: 1\r\n\r\n", b"data: 2\r\n\r\n"):
            await trio.sleep(2 * PING_S)
            await under_way.answer.send(
                {"type": "http.response.body", "body": part, "more_body": True}
            )
        await under_way.answer.send({"type": "http.response.body", "body": b""})
    assert under_way.is_stream
    assert [each["type"] for each in under_way.sent].count("http.response.start") == 1
    assert under_way.body.endswith(b"data: 1\r\n\r\ndata: 2\r\n\r\n")
    assert not under_way.sent[-1].get("more_body")
