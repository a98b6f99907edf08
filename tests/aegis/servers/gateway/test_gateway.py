from __future__ import annotations

import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from aegis.servers.gateway import gateway
from aegis.servers.gateway.open_connections import Limits, OpenConnections

pytestmark = [pytest.mark.real, pytest.mark.every_python]

Start = Callable[..., Any]
Response = Callable[[trio.SocketStream], Awaitable[tuple[int, dict[str, str], bytes]]]

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
WEBSOCKET = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


async def until_closed(stream: trio.SocketStream) -> None:
    """Wait until the server closed the connection, in whatever way."""
    try:
        while await stream.receive_some():
            pass
    except trio.BrokenResourceError:
        pass


async def assert_healthy(daemon: Any, response: Response) -> None:
    stream = await daemon.connect()
    await stream.send_all(HEALTH)
    status, _, body = await response(stream)
    assert (status, body) == (200, b"ok\n")


async def test_one_port_serves_http_and_websocket(daemon: Any, response: Response) -> None:
    await assert_healthy(daemon, response)
    stream = await daemon.connect()
    await stream.send_all(WEBSOCKET + b"\r\n")
    assert (await stream.receive_some()).startswith(b"HTTP/1.1 101")


async def test_the_unix_socket_serves_http_websocket_and_lines(
    daemon: Any, response: Response
) -> None:
    http = await daemon.connect_unix()
    await http.send_all(HEALTH)
    assert (await response(http))[0] == 200
    websocket = await daemon.connect_unix()
    await websocket.send_all(WEBSOCKET + b"\r\n")
    assert (await websocket.receive_some()).startswith(b"HTTP/1.1 101")
    lines = await daemon.line_client()
    assert (await lines.request("term_list"))["type"] == "reply"


async def test_lines_are_not_served_over_tcp(daemon: Any, response: Response) -> None:
    stream = await daemon.connect()
    await stream.send_all(b'{"type":"request","id":1,"command":"term_list"}\n')
    assert (await response(stream))[0] == 400
    assert daemon.port.calls == []


@pytest.mark.parametrize("request_head", [HEALTH, WEBSOCKET + b"\r\n"])
async def test_a_head_that_dribbles_byte_by_byte_is_understood(
    daemon: Any, request_head: bytes
) -> None:
    stream = await daemon.connect()
    for byte in request_head:
        await stream.send_all(bytes([byte]))
        await trio.testing.wait_all_tasks_blocked()
    assert (await stream.receive_some())[:11] in (b"HTTP/1.1 20", b"HTTP/1.1 10")


async def test_a_head_that_does_not_come_in_time_ends_the_connection(
    daemon: Any, response: Response, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "HEAD_LIMIT_S", 0.05)
    silent, halfway = await daemon.connect(), await daemon.connect()
    await halfway.send_all(HEALTH[:20])
    await until_closed(silent)
    await until_closed(halfway)
    await assert_healthy(daemon, response)


async def test_waiting_for_a_head_costs_no_turns_of_the_loop(daemon: Any) -> None:
    stream = await daemon.connect()
    await stream.send_all(b"GET /health HTTP/1.1\r\n")
    await trio.testing.wait_all_tasks_blocked(cushion=0.05)


async def test_a_half_open_client_is_let_go(daemon: Any, response: Response) -> None:
    stream = await daemon.connect()
    await stream.send_all(HEALTH[:20])
    await stream.send_eof()
    await until_closed(stream)
    await assert_healthy(daemon, response)


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"\x00" * 100,
        b"\r\n\r\n\r\n\r\n",
        b"GET\r\n\r\n",
        b"HELP\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"x" * 20_000,
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 64,
        WEBSOCKET.replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"?") + b"\r\n\xff\xff\xff\xff",
        WEBSOCKET + b"\r\n" + b"\xff" * 100,
    ],
)
async def test_garbage_ends_its_own_connection_only(
    daemon: Any, response: Response, garbage: bytes
) -> None:
    with capture_logs() as logs:
        stream = await daemon.connect()
        await stream.send_all(garbage)
        await stream.send_eof()
        await until_closed(stream)
        await assert_healthy(daemon, response)
    assert [entry for entry in logs if entry["log_level"] == "error"] == []


async def test_a_connection_reset_in_any_moment_is_contained(
    daemon: Any, response: Response
) -> None:
    websocket = WEBSOCKET + b"\r\n"
    upload = daemon.http(b"x", content_length="100")
    with capture_logs() as logs:
        for sent in (b"", HEALTH[:10], HEALTH, websocket, upload):
            stream = await daemon.connect()
            await stream.send_all(sent)
            await trio.testing.wait_all_tasks_blocked()
            # Closed with SO_LINGER 0 it sends a reset.
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.socket.close()
        await assert_healthy(daemon, response)
        await trio.testing.wait_all_tasks_blocked()
    assert [entry for entry in logs if entry["log_level"] in ("error", "critical")] == []


async def test_a_bug_in_a_server_costs_one_connection(
    daemon: Any, response: Response, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    with monkeypatch.context() as patched, capture_logs() as logs:
        patched.setattr(gateway, "serve_http", broken)
        stream = await daemon.connect()
        await stream.send_all(HEALTH)
        await until_closed(stream)
    assert [entry["event"] for entry in logs] == ["a connection failed"]
    await assert_healthy(daemon, response)


async def test_beyond_the_limit_the_stranger_that_is_here_the_longest_makes_room(
    start: Start, response: Response
) -> None:
    open_connections = OpenConnections(Limits(connections=10, unauthenticated=3))
    async with start(open_connections=open_connections) as daemon:
        held = [await daemon.connect() for _ in range(3)]
        for stream in held:
            await stream.send_all(HEALTH)
            assert (await response(stream))[0] == 200
        with capture_logs() as logs:
            for _ in range(2):
                await assert_healthy(daemon, response)
        assert [entry["event"] for entry in logs] == ["refusing connections"]
        await until_closed(held[0])
        await until_closed(held[1])
        await held[2].send_all(HEALTH)
        assert (await response(held[2]))[0] == 200
        await daemon.line_client()


async def test_who_has_shown_a_key_is_not_dropped_for_strangers(
    start: Start, response: Response
) -> None:
    async with start(
        open_connections=OpenConnections(Limits(connections=4, unauthenticated=2))
    ) as daemon:
        known = await daemon.connect()
        await known.send_all(daemon.modern_call("aegis_term_list", {}))
        assert (await response(known))[0] == 200
        strangers = [await daemon.connect() for _ in range(6)]
        for stream in strangers[:4]:
            await until_closed(stream)
        await known.send_all(daemon.modern_call("aegis_term_list", {}))
        assert (await response(known))[0] == 200


async def test_where_all_are_known_the_newest_is_refused_but_for_the_unix_socket(
    start: Start, response: Response
) -> None:
    async with start(
        open_connections=OpenConnections(Limits(connections=2, unauthenticated=2))
    ) as daemon:
        known = [await daemon.connect() for _ in range(2)]
        for stream in known:
            await stream.send_all(daemon.modern_call("aegis_term_list", {}))
            assert (await response(stream))[0] == 200
        await until_closed(await daemon.connect())
        local = [await daemon.line_client() for _ in range(2)]
        for client in local:
            assert (await client.request("term_list"))["type"] == "reply"
        await until_closed(await daemon.connect_unix())
        await known[0].aclose()
        await trio.testing.wait_all_tasks_blocked()
        await assert_healthy(daemon, response)


async def test_two_hundred_idle_connections_disturb_nobody(daemon: Any, response: Response) -> None:
    for _ in range(200):
        await daemon.connect()
    await assert_healthy(daemon, response)
    client = await daemon.line_client()
    assert (await client.request("term_list"))["type"] == "reply"


async def test_processes_of_another_user_are_refused(
    daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway, "may_connect", lambda peer, own: peer != own)
    with capture_logs() as logs:
        stream = await daemon.connect_unix()
        await until_closed(stream)
    assert [entry["event"] for entry in logs] == ["refused a process of another user"]
    assert daemon.port.here == []


async def test_stopping_with_nobody_there_ends_and_removes_the_socket(daemon: Any) -> None:
    daemon.stop.set()
    await daemon.ended.wait()
    assert not daemon.socket.exists()
    with pytest.raises(OSError, match="connect"):
        await daemon.connect()


async def test_stopping_ends_whatever_clients_do(daemon: Any) -> None:
    await daemon.connect()
    half_open = await daemon.connect()
    await half_open.send_all(HEALTH[:20])
    await half_open.send_eof()
    deaf = await daemon.connect()
    await deaf.send_all(WEBSOCKET + b"\r\n")
    await deaf.receive_some()
    idle = await daemon.line_client()
    await idle.request("term_list")
    waiting = await daemon.line_client()
    await waiting.send({"type": "request", "id": 1, "command": "inbox_wait"})
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    daemon.stop.set()
    await daemon.ended.wait()
    assert daemon.port.cancelled == 1
    assert sorted(daemon.port.gone, key=str) == sorted(daemon.port.here, key=str)


@pytest.mark.parametrize("how", ["in order", "cancelled"])
async def test_stopping_ends_though_clients_never_read(start: Start, how: str) -> None:
    async with start(send_limit_s=1000) as daemon:
        await let_three_clients_wait_in_sends(daemon)
        if how == "in order":
            daemon.stop.set()
        else:
            daemon.scope.cancel()
        await daemon.ended.wait()


async def test_a_client_that_never_reads_is_cut_off(start: Start, response: Response) -> None:
    async with start(send_limit_s=0.1) as daemon:
        await let_three_clients_wait_in_sends(daemon)
        await daemon.port.until(lambda: len(daemon.port.gone) == 1)
        await assert_healthy(daemon, response)


async def let_three_clients_wait_in_sends(daemon: Any) -> None:
    """A client of lines, one without and one with an MCP session: none reads its large answer."""
    arguments = {"name": "t", "cmd": "x" * 900_000}
    request = {"type": "request", "id": 1, "command": "term_run", "arguments": arguments}
    lines = await daemon.line_client()
    await lines.send(request)
    http = await daemon.connect_unix()
    await http.send_all(daemon.modern_call("aegis_term_run", arguments))
    legacy = await daemon.connect_unix()
    session = await daemon.open_session()
    await legacy.send_all(daemon.legacy_call(session, "aegis_term_run", arguments))
    await daemon.port.until(lambda: len(daemon.port.calls) == 3)
    await trio.testing.wait_all_tasks_blocked()


async def test_a_request_in_hand_is_still_answered_when_stopping(daemon: Any) -> None:
    client = await daemon.line_client()
    arguments = {"name": "t", "cmd": "hold"}
    await client.send({"type": "request", "id": 1, "command": "term_run", "arguments": arguments})
    await daemon.port.until(lambda: daemon.port.waiting == 1)
    daemon.stop.set()
    await trio.testing.wait_all_tasks_blocked()
    daemon.port.release.set()
    assert (await client.receive())["type"] == "reply"
    await daemon.ended.wait()
    assert daemon.port.cancelled == 0
