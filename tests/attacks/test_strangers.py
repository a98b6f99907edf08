"""Who has no key, or somebody else's, does nothing: whatever the way in."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from typing import Any

import pytest

from tests.attacks.conftest import Watch
from tests.attacks.raw import (
    ACCEPT,
    CLOSE,
    LEGACY,
    MODERN,
    Raw,
    bearer,
    local,
    mcp,
    opened_session,
    session_path,
    tcp,
)
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

SPAWN = {"name": "aegis_term_spawn", "arguments": {"name": "intruder"}}

WRONG_KEYS = {
    "none": "",
    "wrong": f"Bearer {secrets.token_urlsafe(32)}",
    "empty": "Bearer ",
    "of another scheme": "Basic {token}",
    "cut": "Bearer {cut}",
    "with something behind": "Bearer {token}x",
    "twice in one header": "Bearer {token}, Bearer {token}",
    "a session's": "Bearer {secret}",
    "with a NUL": "Bearer {token}\0",
    "much too long": "Bearer " + "x" * 10_000,
}


@pytest.fixture(params=list(WRONG_KEYS.values()), ids=list(WRONG_KEYS))
def wrong_key(request: pytest.FixtureRequest, daemon: DaemonProcess) -> dict[str, str]:
    token = daemon.endpoint.token
    secret = session_path(daemon, "alice").rpartition("/")[2]
    text: str = request.param.format(token=token, cut=token[:-1], secret=secret)
    return {"authorization": text}


def did_nothing(daemon: DaemonProcess) -> bool:
    """Whether no terminal was opened by who may not."""
    names = [info["name"] for info in daemon.call("term_list")["result"]]
    return "intruder" not in names


@pytest.mark.parametrize("version", ["", LEGACY, MODERN])
def test_without_the_token_mcp_does_nothing(
    daemon: DaemonProcess, wrong_key: dict[str, str], version: str
) -> None:
    with tcp(daemon) as raw:
        headers = {"mcp_protocol_version": version, "mcp_method": "tools/call", **wrong_key}
        status, _, body = mcp(raw, "/mcp", "tools/call", SPAWN, **headers)
        assert status in (400, 401)
        assert daemon.endpoint.token.encode() not in body
    assert did_nothing(daemon)


def test_without_the_token_no_websocket_opens(
    daemon: DaemonProcess, wrong_key: dict[str, str]
) -> None:
    with tcp(daemon) as raw:
        if not wrong_key["authorization"]:
            assert raw.upgrade() == 101, "it may say hello yet"
            raw.send_frame({"type": "request", "id": 1, "command": "term_list"})
            assert json.loads(raw.frame()[1])["code"] == "forbidden"
            assert raw.frame()[0] == CLOSE
        else:
            assert raw.upgrade(**wrong_key) in (400, 401)
        assert raw.rest() == b""


@pytest.mark.parametrize(
    "hello",
    [
        {"token": "x"},
        {"session": "x"},
        {"token": "{secret}"},
        {"session": "{token}"},
        {"token": ""},
        {"token": "{token}", "session": "{secret}"},
        {"token": ["{token}"]},
        {},
    ],
)
@pytest.mark.parametrize("way", [tcp, local])
def test_a_hello_with_a_wrong_key_is_sent_away(
    daemon: DaemonProcess, hello: dict[str, Any], way: Callable[[DaemonProcess], Raw]
) -> None:
    token = daemon.endpoint.token
    secret = session_path(daemon, "alice").rpartition("/")[2]
    text = json.dumps(hello).replace("{token}", token).replace("{secret}", secret)
    with way(daemon) as raw:
        if way is local:
            if not hello:
                return  # whoever is let in there needs no key
            raw.send(b'{"type":"hello","version":1,' + text[1:].encode() + b"\n")
            told = raw.line()
        else:
            assert raw.upgrade() == 101
            raw.send_frame({"type": "hello", "version": 1, **json.loads(text)})
            told = json.loads(raw.frame()[1])
        assert (told["type"], told["id"]) == ("error", None)
        assert told["code"] in ("forbidden", "invalid_request")


@pytest.mark.parametrize(
    "path",
    [
        "/mcp/s/",
        "/mcp/s/x",
        "/mcp/s/{token}",
        "/mcp/s/../mcp",
        "/mcp/s/{secret}x",
        "/mcp/s/{cut}",
        "/mcp/s/{upper}",
        "/mcp/s/%00{secret}",
        "/mcp/s/{secret}/x",
        "/mcp/x/{secret}",
        "//mcp/s/{secret}",
        "/mcp/s/./{secret}",
        "/mcp/s/alice",
    ],
)
def test_an_address_that_is_nearly_a_session_is_none(daemon: DaemonProcess, path: str) -> None:
    secret = session_path(daemon, "alice").rpartition("/")[2]
    target = path.format(
        token=daemon.endpoint.token, secret=secret, cut=secret[:-1], upper=secret.swapcase()
    )
    with tcp(daemon) as raw:
        status, _, body = mcp(raw, target, "tools/list", {})
    assert status in (401, 403, 404)
    assert secret.encode() not in body


@pytest.mark.parametrize("name", ["token", "access_token", "key", "secret", "TOKEN", "to%6ben"])
@pytest.mark.parametrize("path", ["/mcp", "/ws"])
def test_a_key_in_the_query_is_refused_even_the_right_one(
    daemon: DaemonProcess, path: str, name: str
) -> None:
    with tcp(daemon) as raw:
        target = f"{path}?{name}={daemon.endpoint.token}"
        assert raw.request("GET", target, **bearer(daemon))[0] == 400


def test_a_session_cannot_be_used_with_another_key(daemon: DaemonProcess) -> None:
    """Neither by the address of another handle, nor by the operator, nor by nobody."""
    alice, bob = session_path(daemon, "alice"), session_path(daemon, "bob")
    session = opened_session(daemon, alice)
    headers = {"mcp_session_id": session, "mcp_protocol_version": LEGACY}
    others = [(bob, headers, 404), ("/mcp", {**headers, **bearer(daemon)}, 404)]
    others += [("/mcp", headers, 401), ("/mcp/s/x", headers, 403)]
    for path, shown, expected in others:
        for method in ("POST", "GET", "DELETE"):
            with tcp(daemon) as raw:
                status = raw.request(method, path, b"", accept=ACCEPT, **shown)[0]
            assert status in (expected, 400), (path, method)
            assert status == expected or method == "POST", "before it, only the body is judged"
    with tcp(daemon) as raw:
        assert mcp(raw, alice, "tools/list", {}, **headers)[0] == 200, "it lives on"


@pytest.mark.parametrize("pretended", ["bob", "human", "substrate", "BOB", "alice ", "\u0430lice"])
def test_nobody_acts_under_the_handle_of_another(daemon: DaemonProcess, pretended: str) -> None:
    secret = session_path(daemon, "alice").rpartition("/")[2]
    daemon.call("session_new", handle="bob")
    with tcp(daemon) as raw:
        assert raw.upgrade() == 101
        raw.send_frame({"type": "hello", "version": 1, "session": secret})
        raw.frame()
        for command, more in (
            ("inbox_read", {}),
            ("handoff", {"target_handle": "alice", "context": "do as I say"}),
            ("term_spawn", {"name": "intruder"}),
        ):
            arguments = {"from_handle": pretended, **more}
            asked = {"type": "request", "id": 1, "command": command, "arguments": arguments}
            raw.send_frame(asked)
            told = json.loads(raw.frame()[1])
            assert told["code"] in ("forbidden", "invalid_request"), told
    assert did_nothing(daemon)


@pytest.mark.long
def test_guessing_keys_gets_nowhere_and_hurts_nobody(daemon: DaemonProcess, watched: Watch) -> None:
    with watched(daemon, "500 guesses of a key"):
        for _ in range(500):
            with tcp(daemon) as raw:
                path = f"/mcp/s/{secrets.token_urlsafe(32)}"
                assert mcp(raw, path, "tools/list", {})[0] == 403
