from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs
from trio_websocket import (
    ConnectionClosed,
    WebSocketConnection,
    wrap_client_stream,
)

from aegis.servers.calls import OPERATOR, Identity
from aegis.servers.requests import MAX_FRAME_BYTES
from aegis.servers.wires import conversation, websocket
from aegis.servers.wires.conversation import MAX_STRIKES
from aegis.servers.wires.websocket import UNAUTHENTICATED_BYTES

pytestmark = [pytest.mark.real, pytest.mark.every_python]

Open = Callable[..., Any]

HANDSHAKE = {
    "upgrade": "websocket",
    "connection": "upgrade",
    "sec_websocket_version": "13",
    "sec_websocket_key": "dGhlIHNhbXBsZSBub25jZQ==",
}


class Client:
    """Speaks the frames over a WebSocket."""

    def __init__(self, connection: WebSocketConnection) -> None:
        self.connection = connection

    async def ask(self, **document: object) -> dict[str, Any]:
        await self.send(**document)
        return await self.receive()

    async def send(self, **document: object) -> None:
        await self.connection.send_message(json.dumps(document))

    async def receive(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(await self.connection.get_message())
        return document

    async def request(self, command: str, number: int = 1, **arguments: object) -> dict[str, Any]:
        return await self.ask(type="request", id=number, command=command, arguments=arguments)

    async def closed(self) -> int:
        """Wait for the server's close; gives its code."""
        with suppress(ConnectionClosed):
            while True:
                await self.connection.get_message()
        assert self.connection.closed is not None
        return self.connection.closed.code


@pytest.fixture
def connect(daemon: Any) -> Open:
    """``async with connect(authorization=…) as client``: the operator, unless told otherwise."""

    @asynccontextmanager
    async def connected(path: str = "/ws", **headers: str) -> AsyncIterator[Client]:
        shown = {"authorization": daemon.bearer, **headers}
        extra = [(name.encode(), value.encode()) for name, value in shown.items() if value]
        async with trio.open_nursery() as nursery:
            connection = await wrap_client_stream(
                nursery,
                await daemon.connect(),
                f"127.0.0.1:{daemon.tcp}",
                path,
                extra_headers=extra,
                max_message_size=2 * MAX_FRAME_BYTES,
                receive_buffer_size=65_536,
            )
            try:
                yield Client(connection)
            finally:
                with trio.move_on_after(5):
                    await connection.aclose()

    return connected


async def test_the_token_in_the_header_makes_the_operator(daemon: Any, connect: Open) -> None:
    async with connect() as client:
        answer = await client.request("term_run", 7, name="build", cmd="echo hi")
    assert (answer["id"], answer["result"]["stdout"]) == (7, "echo hi")
    caller, _, _ = daemon.port.calls[0]
    assert (caller.identity, caller.face) == (OPERATOR, "websocket")
    await daemon.port.until(lambda: daemon.port.gone == daemon.port.here == [caller])


async def test_the_token_in_a_hello_does_as_well(daemon: Any, connect: Open) -> None:
    async with connect(authorization="") as client:
        hello = await client.ask(type="hello", version=1, token=daemon.keys.operator_token)
        assert len(hello.pop("instance")) == 16
        assert hello == {"type": "hello", "version": 1, "server": "aegis-actors/0", "handle": None}
        assert (await client.request("term_list"))["type"] == "reply"


@pytest.mark.parametrize("authorization", ["", "the token"])
async def test_a_session_in_a_hello_binds_to_its_handle(
    daemon: Any, connect: Open, authorization: str
) -> None:
    shown = daemon.bearer if authorization else ""
    secret = daemon.keys.session_secret("alice")
    async with connect(authorization=shown) as client:
        assert (await client.ask(type="hello", version=1, session=secret))["handle"] == "alice"
        await client.request("term_list")
        assert (await client.request("status"))["code"] == "forbidden"
    assert daemon.port.calls[0][0].identity == Identity(handle="alice", operator=False)


@pytest.mark.parametrize(
    "first",
    [
        {"type": "hello", "version": 1},
        {"type": "hello", "version": 1, "token": "x"},
        {"type": "hello", "version": 1, "session": "x"},
        {"type": "request", "id": 1, "command": "term_list"},
    ],
)
async def test_a_stranger_is_refused_and_sent_away(
    daemon: Any, connect: Open, first: dict[str, object]
) -> None:
    async with connect(authorization="") as client:
        answer = await client.ask(**first)
        assert (answer["type"], answer["id"], answer["code"]) == ("error", None, "forbidden")
        assert await client.closed() == 1008
    assert (daemon.port.here, daemon.port.calls) == ([], [])


async def test_a_stranger_that_says_nothing_is_sent_away(
    connect: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "HELLO_LIMIT_S", 0.05)
    async with connect(authorization="") as client:
        assert await client.closed() == 1008


async def test_a_stranger_may_not_send_much(daemon: Any, connect: Open) -> None:
    async with connect(authorization="") as client:
        with suppress(ConnectionClosed):
            await client.connection.send_message("x" * UNAUTHENTICATED_BYTES)
        with pytest.raises(ConnectionClosed):
            await client.receive()
    assert daemon.port.here == []


async def test_the_limit_for_strangers_ends_with_the_hello(daemon: Any, connect: Open) -> None:
    async with connect(authorization="") as client:
        await client.ask(type="hello", version=1, token=daemon.keys.operator_token)
        text = "x" * (2 * UNAUTHENTICATED_BYTES)
        answer = await client.request("term_run", name="t", cmd=text)
        assert answer["result"]["stdout"] == text


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/ws", {"authorization": "Bearer x"}, 401),
        ("/ws", {"authorization": "Basic x"}, 401),
        ("/", {}, 404),
        ("/ws/x", {}, 404),
        ("/mcp", {}, 404),
        ("/ws?token=x", {}, 400),
        ("/ws", {"origin": "http://evil.example"}, 403),
        ("/ws", {"origin": "null"}, 403),
        ("/ws", {"host": "evil.example"}, 421),
        ("/ws", {"sec_websocket_version": "8"}, 426),
        ("/ws", {"sec_websocket_key": ""}, 400),
    ],
)
async def test_whoever_may_not_come_in_gets_no_websocket(
    daemon: Any, response: Any, path: str, headers: dict[str, str], status: int
) -> None:
    stream = await daemon.connect()
    await stream.send_all(daemon.http(path=path, method="GET", **{**HANDSHAKE, **headers}))
    found, _, body = await response(stream)
    assert (found, body.count(b"\n")) == (status, 1)
    assert await stream.receive_some() == b""


async def test_a_page_of_the_daemon_itself_may_come_in(daemon: Any, connect: Open) -> None:
    async with connect(origin=daemon.url) as client:
        assert (await client.request("term_list"))["type"] == "reply"


async def test_it_works_over_the_unix_socket(daemon: Any, nursery: trio.Nursery) -> None:
    stream = await daemon.connect_unix()
    headers = [(b"authorization", daemon.bearer.encode())]
    connection = await wrap_client_stream(
        nursery, stream, "localhost", "/ws", extra_headers=headers
    )
    assert (await Client(connection).request("term_list"))["type"] == "reply"
    await connection.aclose()


async def test_a_request_is_cancelled_by_its_id(daemon: Any, connect: Open) -> None:
    async with connect() as client:
        await client.send(type="request", id="w", command="inbox_wait")
        await daemon.port.until(lambda: daemon.port.waiting == 1)
        assert (await client.request("term_list", 2))["id"] == 2
        answer = await client.ask(type="cancel", id="w")
        assert (answer["id"], answer["code"]) == ("w", "cancelled")
    assert daemon.port.cancelled == 1


@pytest.mark.parametrize("how", ["in order", "by a cut"])
async def test_a_client_that_goes_cancels_what_it_had_in_flight(
    daemon: Any, connect: Open, how: str
) -> None:
    async with connect() as client:
        await client.send(type="request", id=1, command="inbox_wait")
        await daemon.port.until(lambda: daemon.port.waiting == 1)
        if how == "by a cut":
            client.connection._stream.socket.close()
    await daemon.port.until(lambda: daemon.port.cancelled == 1)
    await daemon.port.until(lambda: daemon.port.gone == daemon.port.here)


async def test_a_malformed_message_is_answered_and_the_next_is_served(connect: Open) -> None:
    async with connect() as client:
        for message in ("", "{", "[]", b'{"type":"cancel","id":1}', b"\x00\xff"):
            await client.connection.send_message(message)
            answer = await client.receive()
            assert (answer["id"], answer["code"]) == (None, "invalid_request")
        assert (await client.request("term_list"))["type"] == "reply"


async def test_repeated_abuse_closes_the_websocket(connect: Open) -> None:
    async with connect() as client:
        for _ in range(MAX_STRIKES):
            assert (await client.ask(type="nonsense"))["id"] is None
        assert await client.closed() == 1008


async def test_a_message_beyond_the_limit_closes_the_websocket(daemon: Any, connect: Open) -> None:
    with capture_logs() as logs:
        async with connect() as client:
            with suppress(ConnectionClosed):
                await client.connection.send_message("x" * (MAX_FRAME_BYTES + 1))
            with pytest.raises(ConnectionClosed):
                await client.receive()
    assert daemon.port.calls == []
    assert [entry for entry in logs if entry["log_level"] == "error"] == []


async def test_stopping_closes_with_going_away(daemon: Any, connect: Open) -> None:
    async with connect() as client:
        await client.request("term_list")
        daemon.stop.set()
        assert await client.closed() == 1001
    await daemon.ended.wait()


async def test_a_client_that_ignores_the_close_is_left(
    daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "CLOSE_LIMIT_S", 0.05)
    monkeypatch.setattr(conversation, "HELLO_LIMIT_S", 0.05)
    stream = await daemon.connect()
    handshake = daemon.http(path="/ws", method="GET", authorization="", **HANDSHAKE)
    await stream.send_all(handshake)
    data = b""
    while more := await stream.receive_some():
        data += more
    assert b"101" in data
