"""A web page that the user visits: it can reach the port, and gets nothing out of it."""

from __future__ import annotations

import json

import pytest

from tests.attacks.raw import bearer, opened_session, rpc, session_path, tcp
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

SPAWN = rpc("tools/call", {"name": "aegis_term_spawn", "arguments": {"name": "intruder"}})

REBOUND = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1.evil.example:{port}",
    "localhost.evil.example",
    "evil.localhost:{port}",
    "127.0.0.1@evil.example",
    "evil.example#localhost",
    "0.0.0.0:{port}",
    "127.0.0.2:{port}",
    "[::ffff:127.0.0.1]:{port}",
    "2130706433:{port}",
    "localhost:{port}:x",
    "localhost:999999",
    "l\u043ecalhost".encode().decode("latin-1"),
    "localhost\tevil.example",
    "",
]
"""What a browser says as Host after a name of the page's was bound to 127.0.0.1, and worse."""

FOREIGN = [
    "http://evil.example",
    "https://localhost:{port}",
    "http://localhost:1",
    "http://127.0.0.1.evil.example",
    "http://localhost:{port}.evil.example",
    "http://localhost:{port}/",
    "null",
    "file://",
    "chrome-extension://abcdefgh",
    "http://user@localhost:{port}",
]


@pytest.mark.parametrize("host", REBOUND)
def test_a_name_that_was_rebound_to_loopback_gets_nothing(daemon: DaemonProcess, host: str) -> None:
    """Not even with a key, which a page that found one could show."""
    with tcp(daemon) as raw:
        raw.host = host.format(port=raw.host.rpartition(":")[2])
        for path in ("/health", "/mcp", session_path(daemon, "alice")):
            with tcp(daemon) as again:
                again.host = raw.host
                status = again.request("POST", path, SPAWN, **bearer(daemon))[0]
                assert status in (400, 421), path
        assert raw.upgrade(**bearer(daemon)) in (400, 421)
    assert_no_intruder(daemon)


@pytest.mark.parametrize("origin", FOREIGN)
def test_another_site_opens_no_websocket(daemon: DaemonProcess, origin: str) -> None:
    with tcp(daemon) as raw:
        shown = origin.format(port=raw.host.rpartition(":")[2])
        assert raw.upgrade(origin=shown, **bearer(daemon)) == 403
        assert raw.rest() == b""


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""],
)
def test_a_form_of_another_site_posts_in_vain(
    daemon: DaemonProcess, kind: str, origin: str
) -> None:
    """What a page may send without asking first; at worst it knows a session URL."""
    for path in ("/mcp", session_path(daemon, "alice")):
        with tcp(daemon) as raw:
            shown = origin.format(port=raw.host.rpartition(":")[2])
            status, headers, _ = raw.request("POST", path, SPAWN, content_type=kind, origin=shown)
            assert status == 403
            assert "access-control-allow-origin" not in headers
    assert_no_intruder(daemon)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_a_form_without_an_origin_posts_in_vain(daemon: DaemonProcess, kind: str) -> None:
    """An old browser may leave Origin out of a form: what it posts is not JSON by its type."""
    path = session_path(daemon, "alice")
    session = opened_session(daemon, path)
    for headers in ({}, {"mcp_session_id": session, "mcp_protocol_version": "2025-11-25"}):
        with tcp(daemon) as raw:
            status = raw.request("POST", path, SPAWN, content_type=kind, accept="*/*", **headers)[0]
        assert status in (400, 406, 415)
    assert_no_intruder(daemon)


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "PATCH", "TRACE", "CONNECT"])
def test_asking_first_is_answered_with_no_leave(daemon: DaemonProcess, method: str) -> None:
    with tcp(daemon) as raw:
        headers = {"origin": "http://evil.example", "access_control_request_method": "POST"}
        status, told, _ = raw.request(method, "/mcp", **headers)
        assert status == 403
    assert not [name for name in told if name.startswith("access-control")]


def test_a_page_can_send_no_line_of_json_to_the_port(daemon: DaemonProcess) -> None:
    """A form whose body is the line protocol, and a raw line: both are HTTP, or nothing."""
    line = json.dumps({"type": "request", "id": 1, "command": "term_list"}).encode() + b"\n"
    with tcp(daemon) as raw:
        raw.send(line)
        assert raw.answer()[0] == 400
    with tcp(daemon) as raw:
        status, _, body = raw.request("POST", "/", line * 3, content_type="text/plain")
    assert (status, b"reply" in body) == (405, False)


def assert_no_intruder(daemon: DaemonProcess) -> None:
    names = [info["name"] for info in daemon.call("term_list")["result"]]
    assert "intruder" not in names


NAMED = [
    ("desk.example", "", 200),
    ("desk.example:8443", "https://desk.example:8443", 200),
    ("desk.example", "https://desk.example", 200),
    ("desk.example", "http://desk.example", 200),
    ("a.desk.example", "", 421),
    ("desk.example.evil.example", "", 421),
    ("desk.example.", "", 421),
    ("evil.example", "https://desk.example", 421),
    ("desk.example", "https://evil.example", 403),
    ("desk.example", "https://a.desk.example", 403),
    ("desk.example", "https://desk.example:8443", 403),
    ("localhost", "https://localhost", 403),
    ("localhost", "https://desk.example", 403),
]


def test_a_further_name_opens_the_daemon_to_that_name_only(own_daemon: DaemonProcess) -> None:
    """``--name``: what a proxy says about the client (X-Forwarded-…) changes nothing."""
    own_daemon.start("--port", "0", "--name", "desk.example")
    forged = {
        "x_forwarded_host": "desk.example",
        "x_forwarded_proto": "https",
        "forwarded": "host=desk.example;proto=https",
    }
    for host, origin, status in NAMED:
        with tcp(own_daemon) as raw:
            raw.host = host
            assert raw.request("GET", "/health", origin=origin, **forged)[0] == status, host
        with tcp(own_daemon) as raw:
            raw.host = host
            expected = 101 if status == 200 else status
            assert raw.upgrade(origin=origin, **bearer(own_daemon), **forged) == expected, host
        with tcp(own_daemon) as raw:  # a name is no key
            raw.host = host
            assert raw.request("POST", "/mcp", SPAWN, origin=origin, **forged)[0] != 200
