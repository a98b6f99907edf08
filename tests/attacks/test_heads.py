"""Heads of HTTP that two programs may read in two ways: each is refused, with all behind it.

The rules hold for every head of a connection, the first and those on a connection that is kept.
"""

from __future__ import annotations

import json
import re

import pytest

from tests.attacks.raw import Raw, bearer, frame, local, tcp
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

HIDDEN = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
"""What would be a second request to whoever sees another end of the first."""

GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

HEADS: dict[str, tuple[bytes, int]] = {
    "two equal lengths": (POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
    "a list of equal lengths": (POST + b"Content-Length: 2, 2\r\n\r\n{}", 400),
    "an empty length": (POST + b"Content-Length:\r\n\r\n", 400),
    "a length with a sign": (POST + b"Content-Length: +2\r\n\r\n{}", 400),
    "a length with a blank inside": (POST + b"Content-Length: 1 0\r\n\r\n{}", 400),
    "a length with an underscore": (POST + b"Content-Length: 1_0\r\n\r\n{}", 400),
    "a length of many digits": (POST + b"Content-Length: 0" + b"0" * 30 + b"2\r\n\r\n{}", 400),
    "a length and chunks": (
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "chunks twice": (
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "another coding": (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "a folded header": (GET + b"X: a\r\n b\r\n\r\n", 400),
    "a folded length": (POST + b"Content-Length:\r\n 2\r\n\r\n{}", 400),
    "a folded first header": (b"GET /health HTTP/1.1\r\n Host: localhost\r\n\r\n", 400),
    "a blank before the colon": (POST + b"Content-Length : 2\r\n\r\n{}", 400),
    "a line without a colon": (GET + b"nothing\r\n\r\n", 400),
    "a name with a blank": (GET + b"Content Length: 2\r\n\r\n", 400),
    "an empty name": (GET + b": x\r\n\r\n", 400),
    "lines that end with LF alone": (GET.replace(b"\r\n", b"\n") + b"\n", 400),
    "one line that ends with LF alone": (GET + b"X: a\nY: b\r\n\r\n", 400),
    "an end of LF alone": (GET + b"\n", 400),
    "a CR inside a line": (GET + b"X: a\rContent-Length: 5\r\n\r\n", 400),
    "a NUL": (GET + b"X: a\0b\r\n\r\n", 400),
    "HTTP/1.0": (b"GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n", 505),
    "HTTP/1.0 that keeps alive": (
        b"GET /health HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n",
        505,
    ),
    "HTTP/0.9": (b"GET /health\r\n\r\n", 400),
    "HTTP/1.2": (b"GET /health HTTP/1.2\r\nHost: localhost\r\n\r\n", 505),
    "http in small letters": (b"GET /health http/1.1\r\nHost: localhost\r\n\r\n", 400),
    "a method in small letters": (b"get /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "a whole address": (b"GET http://localhost/health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "another host's address": (b"GET http://evil/health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "an authority": (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "two blanks in the first line": (b"GET  /health HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    "two hosts": (GET + b"Host: localhost\r\n\r\n", 421),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", 421),
    "two session ids": (POST + b"Mcp-Session-Id: a\r\nmcp-session-id: b\r\n\r\n", 400),
    "two content types": (POST + b"Content-Type: text/plain\r\nContent-Length: 0\r\n\r\n", 400),
    "a WebSocket with a body": (
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Content-Length: %d\r\n\r\n" % len(HIDDEN),
        400,
    ),
    "a WebSocket with chunks": (
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "another upgrade with a body": (GET + b"Upgrade: h2c\r\nContent-Length: 2\r\n\r\n{}", 400),
}


def with_key(head: bytes, daemon: DaemonProcess) -> bytes:
    key = b"Authorization: " + bearer(daemon)["authorization"].encode() + b"\r\n"
    first, end, rest = head.partition(b"Host:")
    return first + key + end + rest if end else head


@pytest.mark.parametrize("kept", [False, True], ids=["first", "on a kept connection"])
@pytest.mark.parametrize(("head", "status"), HEADS.values(), ids=HEADS)
def test_a_head_that_can_be_read_in_two_ways_is_refused(
    daemon: DaemonProcess, head: bytes, status: int, kept: bool
) -> None:
    with tcp(daemon) as raw:
        if kept:
            raw.send(HIDDEN)
            assert raw.answer()[0] == 200
        raw.send(with_key(head, daemon) + HIDDEN)
        told = raw.finish()
    assert told.startswith(b"HTTP/1.1 %d " % status), told[:300]
    assert len(re.findall(rb"HTTP/1\.1 \d", told)) == 1, told
    _, _, body = told.partition(b"\r\n\r\n")
    assert body.endswith(b"\n"), "a sentence"
    assert b"connection: close" in told


def test_a_head_behind_another_in_one_piece_is_held_to_the_same_rules(
    daemon: DaemonProcess,
) -> None:
    with tcp(daemon) as raw:
        raw.send(HIDDEN * 3 + GET + b"X: a\r\n b\r\n\r\n" + HIDDEN)
        told = raw.finish()
    assert told.count(b"HTTP/1.1 200 ") == 3
    assert told.count(b"HTTP/1.1 400 ") == 1
    assert told.rindex(b"HTTP/1.1 ") == told.index(b"HTTP/1.1 400 ")


def test_a_head_behind_a_body_in_one_piece_is_held_to_the_same_rules(
    daemon: DaemonProcess,
) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"method":"x"}'
    first = with_key(POST + b"Content-Length: %d\r\n\r\n" % len(body), daemon) + body
    with tcp(daemon) as raw:
        raw.send(first + GET + b"X: a\r\n b\r\n\r\n" + HIDDEN)
        told = raw.finish()
    assert b"HTTP/1.1 200 " not in told, told


def test_the_same_rules_hold_on_the_unix_socket(daemon: DaemonProcess) -> None:
    for head, status in HEADS.values():
        with local(daemon) as raw:
            raw.send(head + HIDDEN)
            assert raw.finish().startswith(b"HTTP/1.1 %d " % status), head


def test_what_clients_really_send_is_served(daemon: DaemonProcess) -> None:
    for head in (
        GET + b"\r\n",
        GET + b"Content-Length: 0\r\n\r\n",
        GET + b"X:no blank\r\nY: \t tabs and blanks \t\r\nZ:\r\nA: \xe9\r\n\r\n",
        b"GET /health HTTP/1.1\r\nhOsT: localhost\r\naccept: a\r\naccept: b\r\n\r\n",
        GET + b"Transfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
        GET + b"Connection: keep-alive, Upgrade\r\nUpgrade: h2c\r\n\r\n",
    ):
        with tcp(daemon) as raw:
            raw.send(head)
            assert raw.answer()[0] == 200, head
    with tcp(daemon) as raw:
        raw.send(GET + b"Content-Length: 100000\r\nExpect: 100-continue\r\n\r\n")
        assert raw.answer()[0] == 100
    with tcp(daemon) as raw:
        assert raw.upgrade(content_length="0", **bearer(daemon)) == 101


REPEATED = '{"type":"request","id":1,"command":"term_list","arguments":{%s}}'
TWICE = '"from_handle":"a","from_handle":"b"'
ESCAPED = '"from_handle":"a","from_\\u0068andle":"b"'


@pytest.mark.parametrize("keys", [TWICE, ESCAPED], ids=["as they are", "one of them escaped"])
def test_a_key_that_is_there_twice_is_refused_on_every_wire(
    daemon: DaemonProcess, keys: str
) -> None:
    line = (REPEATED % keys).encode()
    call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"aegis_term_list",'
    mcp = f'{call}"arguments":{{{keys}}}}}}}'.encode()
    with local(daemon) as raw:
        raw.send(line + b"\n")
        assert "twice" in raw.line()["message"]
        raw.send((REPEATED % "").encode() + b"\n")
        assert raw.line()["type"] == "reply"
    with local(daemon) as raw:
        raw.send(b'{"type":"mcp","version":1,"handle":"a","handle":"b"}\n')
        assert "twice" in raw.line()["message"]
    with local(daemon) as raw:
        raw.send(b'{"type":"mcp","version":1,"handle":null}\n' + mcp + b"\n")
        raw.line()
        assert "twice" in raw.line()["error"]["message"]
    with tcp(daemon) as raw:
        assert raw.upgrade(**bearer(daemon)) == 101
        raw.send(frame(line))
        assert "twice" in json.loads(raw.frame()[1])["message"]
    for body in (mcp, b"[" + mcp + b"]"):
        with tcp(daemon) as raw:
            assert "twice" in posted(raw, body, daemon)


def posted(raw: Raw, body: bytes, daemon: DaemonProcess) -> str:
    headers = {"content_type": "application/json", "accept": "application/json, text/event-stream"}
    status, _, told = raw.request("POST", "/mcp", body, **headers, **bearer(daemon))
    assert status == 400
    return told.decode()
