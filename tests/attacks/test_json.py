"""JSON made to hurt its reader: each is refused in a sentence, and the others are served."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.attacks.conftest import Watch
from tests.attacks.raw import (
    TEXT,
    bearer,
    frame,
    local,
    mcp,
    opened_session,
    rpc,
    session_path,
    tcp,
)
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

BEGIN = '{"type":"request","id":1,"command":"term_read","arguments":{"name":"a","last_n":'

BOMBS: dict[str, bytes] = {
    "nested lists": b"[" * 2_000_000,
    "nested lists, closed": b"[" * 1_000_000 + b"]" * 1_000_000,
    "nested objects": b'{"a":' * 500_000,
    "nested in an argument": BEGIN.encode() + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "a number of a million digits": BEGIN.encode() + b"9" * 1_000_000 + b"}}",
    "a number beyond all floats": BEGIN.encode() + b"1e999999" + b"}}",
    "a fraction of a million digits": BEGIN.encode() + b"0." + b"1" * 1_000_000 + b"}}",
    "NaN": BEGIN.encode() + b"NaN}}",
    "Infinity": BEGIN.encode() + b"-Infinity}}",
    "a hundred thousand keys": b"{" + b",".join(b'"k%d":0' % n for n in range(100_000)) + b"}",
    "three hundred thousand arguments": (
        b'{"type":"request","id":1,"command":"term_list","arguments":{'
        + b",".join(b'"%d":0' % n for n in range(300_000))
        + b"}}"
    ),
    "the same key again and again": b'{"type":"hello",' + b'"a":1,' * 200_000 + b'"a":1}',
    "two commands in one": (
        b'{"type":"request","id":1,"command":"term_list","command":"nothing","arguments":{}}'
    ),
    "a lone surrogate": b'{"type":"request","id":1,"command":"term_\\ud800"}',
    "surrogates in all keys": b'{"type":"request","id":"\\udfff","command":"x","\\ud800":1}',
    "NUL": b'{"type":"request","id":1,"command":"term_\\u0000list"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": "{}".encode("utf-16"),
    "text of four million characters": b'{"type":"' + b"x" * 4_000_000 + b'"}',
    "escapes alone": b'{"type":"' + b"\\u0041" * 600_000 + b'"}',
    "a number as identity": (
        b'{"type":"request","id":1,"command":"term_list","arguments":{"from_handle":1}}'
    ),
    "an id of thousands of digits": b'{"type":"request","id":' + b"9" * 4000 + b',"command":"x"}',
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_line_made_to_hurt_is_refused_in_a_sentence(
    daemon: DaemonProcess, watched: Watch, bomb: bytes, request: pytest.FixtureRequest
) -> None:
    with watched(daemon, request.node.callspec.id) as other, local(daemon) as raw:
        raw.send(b'{"type":"hello","version":1}\n' + bomb.replace(b"\n", b" ") + b"\n")
        assert raw.line()["type"] == "hello"
        told = raw.line()
        assert told["type"] == "error", told
        assert len(told["message"]) < 2100
    assert other.grown < 128


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_websocket_message_made_to_hurt_is_refused_in_a_sentence(
    daemon: DaemonProcess, bomb: bytes
) -> None:
    with tcp(daemon) as raw:
        assert raw.upgrade(**bearer(daemon)) == 101
        raw.send(frame(bomb))
        if bomb.startswith(b"\xff"):
            assert b'"reply"' not in raw.rest()  # what is no UTF-8 ends the connection
            return
        kind, told = raw.frame()
        assert (kind, json.loads(told)["type"]) == (TEXT, "error")


def as_arguments(bomb: bytes) -> bytes:
    return rpc("tools/call", {"name": "aegis_term_list", "arguments": "@"}).replace(b'"@"', bomb)


def as_it_is(bomb: bytes) -> bytes:
    return bomb


@pytest.mark.parametrize("shape", [as_it_is, as_arguments])
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_body_made_to_hurt_is_refused(
    daemon: DaemonProcess, watched: Watch, bomb: bytes, shape: Callable[[bytes], bytes]
) -> None:
    path = session_path(daemon, "alice")
    session = opened_session(daemon, path)
    headers = {
        "content_type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp_session_id": session,
        "mcp_protocol_version": "2025-11-25",
    }
    with watched(daemon, "a body of JSON") as other, tcp(daemon) as raw:
        status, shown, body = raw.request("POST", path, shape(bomb), **headers)
        if status == 200:
            if "content-length" not in shown:  # the answer took long: it comes on a stream
                body += raw.until(b"\n\r\n")
            assert b'"isError":true' in body or b'"error"' in body, body[:300]
        else:
            assert status in (202, 400, 413), body[:300]
    assert other.grown < 128
    with tcp(daemon) as raw:
        assert mcp(raw, path, "tools/list", {}, **headers)[0] == 200, "the session lives on"
