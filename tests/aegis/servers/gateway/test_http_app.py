from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, cast

import pytest
import trio
from structlog.testing import capture_logs

from aegis.servers.gateway import http_app, http_server
from aegis.servers.gateway.http1 import parse_head
from aegis.servers.gateway.http_app import MAX_BODY_BYTES, HttpApp
from aegis.servers.gateway.http_server import Exchange

pytestmark = [pytest.mark.real, pytest.mark.every_python]

Ask = Callable[[bytes], Awaitable[tuple[int, dict[str, str], str]]]


@pytest.fixture
def ask(daemon: Any, response: Any) -> Ask:
    async def asked(request: bytes) -> tuple[int, dict[str, str], str]:
        stream = await daemon.connect()
        with suppress(trio.BrokenResourceError):  # turned away in the middle of its body
            await stream.send_all(request)
        status, headers, body = await response(stream)
        return status, headers, body.decode()

    return asked


async def test_health_tells_only_ok_and_needs_no_key(daemon: Any, ask: Ask) -> None:
    status, _, body = await ask(daemon.http(path="/health", method="GET", authorization=""))
    assert (status, body) == (200, "ok\n")
    assert (await ask(daemon.http(path="/health")))[0] == 405


async def test_the_server_does_not_say_what_it_is_made_of(daemon: Any, ask: Ask) -> None:
    _, headers, _ = await ask(daemon.http(path="/health", method="GET"))
    assert "server" not in headers


async def test_an_unknown_path_is_not_found(daemon: Any, ask: Ask) -> None:
    for path in ("/", "/mcpx", "/mcp/x", "/mcp/s", "/ws", "/health/x", "//mcp", "/..%2fmcp"):
        status, _, body = await ask(daemon.http(path=path, method="GET"))
        assert (path, status) == (path, 404)
        assert body.count("\n") == 1


@pytest.mark.parametrize("shown", ["", "Bearer x", "Bearer ", "Basic abc", "{token}"])
async def test_without_the_token_mcp_answers_401(daemon: Any, ask: Ask, shown: str) -> None:
    shown = shown.format(token=daemon.keys.operator_token)
    status, headers, body = await ask(daemon.http(b"{}", authorization=shown))
    assert status == 401
    assert headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in body
    assert daemon.keys.operator_token not in body


async def test_the_secret_of_a_session_is_no_token_and_the_token_no_session(
    daemon: Any, ask: Ask
) -> None:
    secret = daemon.keys.session_secret("alice")
    assert (await ask(daemon.http(b"{}", authorization=f"Bearer {secret}")))[0] == 401
    assert (await ask(daemon.http(b"{}", f"/mcp/s/{daemon.keys.operator_token}")))[0] == 403


async def test_a_session_address_may_end_in_mcp(daemon: Any, ask: Ask) -> None:
    secret = daemon.keys.session_secret("alice")
    for path in (f"/mcp/s/{secret}", f"/mcp/s/{secret}/mcp", f"/mcp/s/{secret}/mcp/"):
        status, _, _ = await ask(daemon.http(b"{}", path, authorization=""))
        assert status == 400, "the key is valid, the body is not"


async def test_a_session_address_that_is_not_valid_is_forbidden(daemon: Any, ask: Ask) -> None:
    secret = daemon.keys.session_secret("alice")
    for path in (
        "/mcp/s/",
        "/mcp/s/x",
        "/mcp/s/mcp",
        "/mcp/s//mcp",
        f"/mcp/s/{secret}x",
        f"/mcp/s/{secret}/x",
        f"/mcp/s/{secret}mcp",
        f"/mcp/s/{secret}/mcp/mcp",
        f"/mcp/s/{secret}/mcp/x",
    ):
        status, _, body = await ask(daemon.http(b"{}", path))
        assert status == 403
        assert "session new" in body


@pytest.mark.parametrize("path", ["/health", "/mcp", "/nowhere"])
async def test_a_foreign_host_is_misdirected_whatever_it_asks(
    daemon: Any, ask: Ask, path: str
) -> None:
    status, _, body = await ask(daemon.http(b"{}", path, host="evil.example"))
    assert status == 421
    assert "localhost" in body


async def test_a_foreign_origin_is_forbidden_and_its_own_is_not(daemon: Any, ask: Ask) -> None:
    path, method = "/health", "GET"
    own = f"http://localhost:{daemon.tcp}"
    host = f"localhost:{daemon.tcp}"
    evil = daemon.http(path=path, method=method, host=host, origin="http://evil.example")
    assert (await ask(evil))[0] == 403
    assert (await ask(daemon.http(path=path, method=method, host=host, origin=own)))[0] == 200


async def test_a_token_in_the_address_is_refused_even_a_valid_one(daemon: Any, ask: Ask) -> None:
    path = f"/mcp?token={daemon.keys.operator_token}"
    for authorization in ("", daemon.bearer):
        status, _, body = await ask(daemon.http(b"{}", path, authorization=authorization))
        assert status == 400
        assert "a token in the URL is not accepted" in body


async def test_a_body_up_to_the_limit_is_taken_and_beyond_it_refused(daemon: Any, ask: Ask) -> None:
    status, _, _ = await ask(daemon.http(b" " * MAX_BODY_BYTES))
    assert status == 400  # read whole, and then not JSON
    status, _, body = await ask(daemon.http(b" " * (MAX_BODY_BYTES + 1)))
    assert status == 413
    assert str(MAX_BODY_BYTES) in body


async def test_a_body_in_chunks_has_the_same_limit(daemon: Any, ask: Ask) -> None:
    head = daemon.http(content_length="", transfer_encoding="chunked")
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
    assert (await ask(head + chunk * 5 + b"0\r\n\r\n"))[0] == 413


async def test_somebody_without_a_key_is_answered_before_the_body_is_read(
    daemon: Any, ask: Ask
) -> None:
    assert (await ask(daemon.http(b" " * 2_000_000, authorization="Bearer x")))[0] == 401


@pytest.mark.parametrize(
    ("authorization", "size", "status"),
    [("Bearer x", 2_000_000, 401), ("", MAX_BODY_BYTES + 2_000_000, 413)],
)
async def test_a_client_turned_away_can_send_its_body_to_the_end_and_read_why(
    daemon: Any,
    response: Any,
    monkeypatch: pytest.MonkeyPatch,
    authorization: str,
    size: int,
    status: int,
) -> None:
    monkeypatch.setattr(http_server, "LINGER_S", 60.0)  # a busy machine takes longer for megabytes
    stream = await daemon.connect()
    shown = authorization or daemon.bearer
    await stream.send_all(daemon.http(b" " * size, authorization=shown))
    assert (await response(stream))[0] == status


async def test_a_body_that_does_not_come_is_given_up(
    daemon: Any, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_app, "BODY_LIMIT_S", 0.05)
    monkeypatch.setattr(http_server, "LINGER_S", 0.05)
    assert (await ask(daemon.http(content_length="10")))[0] == 408


async def test_the_connection_serves_one_request_after_another(daemon: Any, response: Any) -> None:
    stream = await daemon.connect()
    for _ in range(3):
        await stream.send_all(daemon.http(path="/health", method="GET"))
        assert (await response(stream))[0] == 200


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/mcp", {"authorization": "Bearer x"}, 401),
        ("/mcp/s/x", {}, 403),
        ("/nowhere", {}, 404),
        ("/mcp", {"host": "evil.example"}, 421),
    ],
)
async def test_whoever_is_turned_away_has_to_connect_again(
    daemon: Any, response: Any, path: str, headers: dict[str, str], status: int
) -> None:
    stream = await daemon.connect()
    # With a second request, which is not answered: an open connection would be closed too, once it
    # has been idle.
    await stream.send_all(daemon.http(b"{}", path, **headers) * 2)
    told, answered, _ = await response(stream)
    assert (told, answered["connection"]) == (status, "close")
    assert await stream.receive_some() == b""


async def test_a_connection_is_not_closed_for_having_served_many_requests(
    daemon: Any, response: Any
) -> None:
    stream = await daemon.connect()
    for _ in range(1100):
        await stream.send_all(daemon.http(path="/health", method="GET"))
        assert (await response(stream))[0] == 200


async def test_a_websocket_on_a_connection_that_served_http_is_refused(
    daemon: Any, response: Any
) -> None:
    stream = await daemon.connect()
    await stream.send_all(daemon.http(path="/health", method="GET"))
    await response(stream)
    await stream.send_all(
        daemon.http(
            path="/ws",
            method="GET",
            upgrade="websocket",
            connection="upgrade",
            sec_websocket_version="13",
            sec_websocket_key="dGhlIHNhbXBsZSBub25jZQ==",
        )
    )
    assert (await response(stream))[0] == 403


class Behind:
    """Stands for MCP: it records the scopes of requests, or has a bug."""

    def __init__(self, bug: Exception | None = None) -> None:
        self.seen: list[dict[str, Any]] = []
        self._bug = bug

    async def serve_call(self, *_: object) -> bool:
        if self._bug is not None:
            raise self._bug
        return False

    async def handle(self, _: object, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append(dict(scope))


class Client:
    """Stands for the stream of a client."""

    def trust(self, _: object) -> None:
        pass


def exchange(daemon: Any, path: str) -> Exchange:
    head = parse_head(daemon.http(path=path))
    assert head is not None
    return Exchange(cast("Any", Client()), head, bytearray())


async def test_the_handler_behind_sees_no_key(daemon: Any) -> None:
    secret, mcp = daemon.keys.session_secret("alice"), Behind()
    app = HttpApp(daemon.keys, frozenset({"localhost"}), mcp)
    for path in ("/mcp", f"/mcp/s/{secret}"):
        await app(exchange(daemon, path))
    assert len(mcp.seen) == 2
    for scope in mcp.seen:
        assert secret not in str(scope)
        assert daemon.keys.operator_token not in str(scope)


async def test_a_bug_behind_is_logged_without_the_address(daemon: Any) -> None:
    secret = daemon.keys.session_secret("alice")
    app = HttpApp(daemon.keys, frozenset({"localhost"}), Behind(RuntimeError("a bug")))
    with capture_logs() as logs:
        await app(exchange(daemon, f"/mcp/s/{secret}"))
    assert [entry["event"] for entry in logs] == ["an HTTP request failed"]
    assert secret not in str(logs)
