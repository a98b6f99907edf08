"""The login of the web page, and its read-only links, attacked over the wire."""

from __future__ import annotations

import http.client
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import attrs
import pytest
import trio
from trio_websocket import (
    ConnectionClosed,
    ConnectionRejected,
    WebSocketConnection,
    wrap_client_stream,
)

from aegis.protocol.stream_table import STREAMS
from aegis.protocol.streams import pack_keys
from aegis.protocol.table import COMMANDS
from tests.e2e.conftest import NewTerminal
from tests.e2e.harness import GUARD_S, DaemonProcess

pytestmark = pytest.mark.real


@attrs.frozen
class Login:
    """What a browser has after a login: the cookie's header, and the page key."""

    cookie: str
    key: str


def origin_of(daemon: DaemonProcess) -> str:
    url: str = daemon.endpoint.url
    return url


def post(
    daemon: DaemonProcess,
    body: object,
    *,
    origin: str | None = "",
    method: str = "POST",
    cookie: str = "",
) -> tuple[int, Any, str]:
    """Post to /login; return status, body and cookie. ``origin`` "" is the daemon's own."""
    address = urlsplit(origin_of(daemon))
    assert address.hostname is not None
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=GUARD_S)
    headers = {"content-type": "application/json", **({"cookie": cookie} if cookie else {})}
    if origin is not None:
        headers["origin"] = origin or origin_of(daemon)
    connection.request(method, "/login", json.dumps(body), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    new = answer.headers.get("set-cookie", "")
    connection.close()
    return answer.status, json.loads(text) if answer.status == 200 else text, new


def code(daemon: DaemonProcess) -> str:
    fragment: str = daemon.call("page_code")["url"].partition("#code=")[2]
    return fragment


def logged_in(daemon: DaemonProcess, **body: str) -> Login:
    status, answer, cookie = post(daemon, body or {"code": code(daemon)})
    assert status == 200, answer
    return Login(cookie.partition(";")[0], answer["key"])


@asynccontextmanager
async def page(
    daemon: DaemonProcess, cookie: str | None, *, origin: str | None = ""
) -> AsyncIterator[WebSocketConnection]:
    headers = [] if cookie is None else [(b"Cookie", cookie.encode())]
    if origin is not None:
        headers.append((b"Origin", (origin or origin_of(daemon)).encode()))
    address = urlsplit(origin_of(daemon))
    assert address.hostname is not None
    assert address.port is not None
    # Not open_websocket_url: it leaves the socket open when the server closes the connection.
    stream = await trio.open_tcp_stream(address.hostname, address.port)
    async with stream, trio.open_nursery() as nursery:
        ws = await wrap_client_stream(nursery, stream, address.netloc, "/ws", extra_headers=headers)
        yield ws
        nursery.cancel_scope.cancel()


async def ask(ws: WebSocketConnection, **frame: object) -> dict[str, Any]:
    await ws.send_message(json.dumps(frame))
    return await heard(ws)


async def heard(ws: WebSocketConnection) -> dict[str, Any]:
    with trio.fail_after(GUARD_S):
        while isinstance(message := await ws.get_message(), bytes):
            pass
        document: dict[str, Any] = json.loads(message)
        return document


async def hello(ws: WebSocketConnection, key: str) -> dict[str, Any]:
    return await ask(ws, type="hello", version=1, page=key)


async def refusal(daemon: DaemonProcess, login: Login, **how: Any) -> tuple[int, str | None]:
    """Say a hello that must be refused; return the close code and the reason."""
    async with page(daemon, login.cookie, **how) as ws:
        assert (await hello(ws, login.key))["code"] == "forbidden"
        with pytest.raises(ConnectionClosed) as closed:
            await heard(ws)
    reason = closed.value.reason
    assert reason is not None
    return reason.code, reason.reason


def test_a_stolen_code_is_worth_nothing_once_used_and_a_guess_voids_it(
    daemon: DaemonProcess,
) -> None:
    used = code(daemon)
    assert post(daemon, {"code": used})[0] == 200
    assert post(daemon, {"code": used})[0] == 403
    guessed = code(daemon)
    assert post(daemon, {"code": "0" * 43})[0] == 403
    assert post(daemon, {"code": guessed})[0] == 403


@pytest.mark.parametrize("origin", [None, "http://evil.example", "http://127.0.0.1:1", "null"])
def test_another_page_cannot_log_in_and_the_code_stays_good(
    daemon: DaemonProcess, origin: str | None
) -> None:
    good = code(daemon)
    status, _, cookie = post(daemon, {"code": good}, origin=origin)
    assert (status, cookie) == (403, "")
    assert post(daemon, {"code": good})[0] == 200


@pytest.mark.parametrize("body", [[], {}, {"code": 1}, {"code": "x" * 9000}, "code", {"link": ""}])
def test_a_login_of_another_shape_is_refused(daemon: DaemonProcess, body: object) -> None:
    assert post(daemon, body)[0] in (400, 403)


def test_the_cookie_is_for_this_port_and_no_script(daemon: DaemonProcess) -> None:
    _, answer, cookie = post(daemon, {"code": code(daemon)})
    port = urlsplit(origin_of(daemon)).port
    assert cookie.startswith(f"aegis-{port}=")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert answer["key"] not in cookie


async def test_a_cookie_that_another_port_received_is_not_enough(daemon: DaemonProcess) -> None:
    login = logged_in(daemon)
    async with page(daemon, login.cookie) as ws:
        assert (await hello(ws, login.key))["handle"] is None
    for key in ("", "0" * 43):
        reason = await refusal(daemon, Login(login.cookie, key))
        assert reason == (4401, "log in again: aegis-actors web")
    async with page(daemon, login.cookie) as ws:  # the cookie alone
        assert (await ask(ws, type="request", id=1, command="status"))["code"] == "forbidden"


async def test_a_page_key_without_its_cookie_or_origin_is_not_enough(
    daemon: DaemonProcess,
) -> None:
    login, other = logged_in(daemon), logged_in(daemon)
    assert (await refusal(daemon, Login(other.cookie, login.key)))[0] == 4401
    assert (await refusal(daemon, login, origin=None))[0] == 4401
    name = login.cookie.partition("=")[0]
    twice = Login(f"{name}=x; {other.cookie}", login.key)
    assert (await refusal(daemon, twice))[0] == 4401


async def test_a_cookie_that_another_port_set_locks_nobody_out(daemon: DaemonProcess) -> None:
    login = logged_in(daemon)
    name = login.cookie.partition("=")[0]
    # That of a longer path is sent first: a page at another port may set many.
    for foreign in (f"{name}=x", "; ".join(f"{name}={each}" for each in range(200))):
        async with page(daemon, f"{foreign}; {login.cookie}") as ws:
            assert (await hello(ws, login.key))["handle"] is None
    bounded = "; ".join([login.cookie, *(f"{name}={each}" for each in range(8))])
    assert (await refusal(daemon, Login(bounded, login.key)))[0] == 4401


async def test_a_login_is_taken_over_only_with_both_its_keys(daemon: DaemonProcess) -> None:
    """A cookie that another port received makes no login of another browser void."""
    login = logged_in(daemon)
    for cookie, key in ((login.cookie, "0" * 43), ("", login.key)):
        body = {"code": code(daemon), "key": key}
        status, answer, new = post(daemon, body, cookie=cookie)
        assert status == 200
        assert new.partition(";")[0] != login.cookie
        async with page(daemon, login.cookie) as ws:
            assert (await hello(ws, login.key))["page"] != answer["id"]


async def test_a_replayed_cookie_of_a_revoked_page_is_refused(daemon: DaemonProcess) -> None:
    login = logged_in(daemon)
    async with page(daemon, login.cookie) as ws:
        page_id = (await hello(ws, login.key))["page"]
        assert daemon.call("page_revoke", id=page_id)["connections"] == 1
        with pytest.raises(ConnectionClosed):
            await heard(ws)
    assert (await refusal(daemon, login))[0] == 4401


async def test_a_new_token_logs_pages_out(own_daemon: DaemonProcess) -> None:
    own_daemon.start()
    login = logged_in(own_daemon)
    own_daemon.call("token_rotate")
    assert (await refusal(own_daemon, login))[0] == 4401


async def test_a_cross_site_websocket_of_a_logged_in_browser_is_refused(
    daemon: DaemonProcess,
) -> None:
    login = logged_in(daemon)
    for origin in ("http://evil.example", "http://127.0.0.1:1", "null"):
        with pytest.RaisesGroup(ConnectionRejected, flatten_subgroups=True):
            async with page(daemon, login.cookie, origin=origin):
                pass


def link(daemon: DaemonProcess, view: str) -> Login:
    url = daemon.call("page_link", view=view)["url"]
    return logged_in(daemon, link=url.partition("#v=")[2])


async def test_a_read_only_link_sees_its_terminal_and_is_refused_everything_else(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    shown, other = new_terminal(), new_terminal()
    login = link(daemon, f"terminal:{shown.name}")
    async with page(daemon, login.cookie) as ws:
        assert (await hello(ws, login.key))["view"] == f"terminal:{shown.name}"
        allowed = {"term_read", "term_screen"}
        for number, entry in enumerate(COMMANDS):
            arguments = {"name": shown.name} if entry.name in allowed else {}
            answer = await ask(
                ws, type="request", id=number, command=entry.name, arguments=arguments
            )
            if entry.name in allowed:
                assert answer["type"] == "reply", answer
            else:
                assert answer["code"] == "forbidden", (entry.name, answer)
        for each in ({"name": other.name}, {"name": shown.name, "from_handle": "pm"}):
            answer = await ask(ws, type="request", id=900, command="term_read", arguments=each)
            assert answer["code"] == "forbidden"
        for stream in STREAMS:
            name = other.name if stream.name == "terminal_output" else None
            given = {} if name is None else {"name": name}
            frame = {"stream": stream.name, "arguments": given, "credit": 1000}
            answer = await ask(ws, type="open", id=901, **frame)
            assert answer["code"] == "forbidden", stream.name


async def test_a_read_only_link_types_and_resizes_nothing(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    terminal = new_terminal()
    login = link(daemon, f"terminal:{terminal.name}")
    async with page(daemon, login.cookie) as ws:
        await hello(ws, login.key)
        frame = {"stream": "terminal_output", "arguments": {"name": terminal.name}}
        opened = await ask(ws, type="open", id=1, credit=1 << 20, **frame)
        await ws.send_message(pack_keys(opened["channel"], b"touch intruder\r"))
        assert (await heard(ws))["item"]["keys_refused"]["code"] == "forbidden"
        await ws.send_message(
            json.dumps({"type": "claim", "id": 1, "cols": 20, "rows": 5, "take": True})
        )
        assert (await heard(ws))["item"]["size_refused"]["code"] == "forbidden"
    assert terminal.records() == []
    assert daemon.call("term_screen", name=terminal.name)["cols"] == 80


async def test_a_links_secret_opens_nothing_but_its_page(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    secret = daemon.call("page_link", view=f"terminal:{new_terminal().name}")["url"].partition(
        "#v="
    )[2]
    async with page(daemon, None) as ws:
        assert (await ask(ws, type="hello", version=1, token=secret))["code"] == "forbidden"
    async with page(daemon, None) as ws:
        assert (await ask(ws, type="hello", version=1, session=secret))["code"] == "forbidden"
    assert post(daemon, {"code": secret})[0] == 403


async def test_a_revoked_link_disconnects_its_pages(
    daemon: DaemonProcess, new_terminal: NewTerminal
) -> None:
    made = daemon.call("page_link", view=f"terminal:{new_terminal().name}")
    login = logged_in(daemon, link=made["url"].partition("#v=")[2])
    async with page(daemon, login.cookie) as ws:
        await hello(ws, login.key)
        assert daemon.call("page_revoke", id=made["id"])["connections"] == 1
        with pytest.raises(ConnectionClosed):
            await heard(ws)
    assert (await refusal(daemon, login))[0] == 4401
    assert post(daemon, {"link": made["url"].partition("#v=")[2]})[0] == 403
