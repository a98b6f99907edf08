"""Requests that are too large, never end, say two things at once, or unfold into more."""

from __future__ import annotations

import contextlib
import gzip
import json
import struct
import zlib
from collections.abc import Callable

import pytest

from tests.attacks.conftest import Watch
from tests.attacks.figures import MIB
from tests.attacks.raw import (
    BINARY,
    TEXT,
    Raw,
    bearer,
    frame,
    local,
    mcp,
    rpc,
    session_path,
    tcp,
)
from tests.e2e.harness import DaemonProcess

pytestmark = pytest.mark.real

PIECE = b"x" * 65_536
MANY = 16_384


def is_refused(raw: Raw, pieces: int, piece: bytes = PIECE) -> bool:
    """Send so many pieces; whether the daemon hung up before the last of them."""
    return not all(raw.send(piece) for _ in range(pieces))


@pytest.mark.long
@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "a stranger"])
def test_a_body_that_is_too_large_is_not_kept(
    daemon: DaemonProcess, watched: Watch, has_key: bool
) -> None:
    keys = bearer(daemon) if has_key else {}
    with watched(daemon, f"bodies of 1 GiB, {'with a key' if has_key else 'a stranger'}") as other:
        for _ in range(5):
            with tcp(daemon) as raw:
                raw.send(raw.head("POST", "/mcp", content_length=str(MANY * len(PIECE)), **keys))
                assert is_refused(raw, MANY)
                status = raw.answer()[0]
                assert status == (413 if has_key else 401)
    assert other.grown < 64


CHUNK = b"%x\r\n" % len(PIECE) + PIECE + b"\r\n"
WORDY_CHUNK = b"1;" + b"x" * 8000 + b"\r\nx\r\n"


@pytest.mark.parametrize(
    ("piece", "has_key"),
    [(CHUNK, True), (CHUNK, False), (WORDY_CHUNK, False)],
    ids=["with a key", "a stranger", "a stranger, of one byte with a long extension"],
)
def test_chunks_that_never_end_are_not_kept(
    daemon: DaemonProcess, watched: Watch, piece: bytes, has_key: bool
) -> None:
    keys = bearer(daemon) if has_key else {}
    attack = f"endless chunks, {'with a key' if has_key else 'a stranger'}"
    with watched(daemon, attack) as other, tcp(daemon) as raw:
        raw.send(raw.head("POST", "/mcp", transfer_encoding="chunked", **keys))
        assert is_refused(raw, MANY, piece)
        assert raw.answer()[0] == (413 if has_key else 401)
    assert other.grown < 64


@pytest.mark.long
def test_chunks_of_one_byte_hold_up_nobody(daemon: DaemonProcess, watched: Watch) -> None:
    with watched(daemon, "100,000 chunks of one byte"), tcp(daemon) as raw:
        path = session_path(daemon, "alice")
        headers = {"content_type": "application/json", "transfer_encoding": "chunked"}
        raw.send(raw.head("POST", path, **headers) + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n")
        # 408: a busy machine takes longer than a request may.
        assert raw.answer()[0] in (400, 406, 408)


def test_a_trailer_and_a_chunk_size_that_never_end_are_cut_off(daemon: DaemonProcess) -> None:
    for endless in (b"0\r\n" + b"x: y\r\n" * 20_000, b"1" * 100_000, b"0000000" * 20_000):
        with tcp(daemon) as raw:
            raw.send(raw.head("POST", "/mcp", transfer_encoding="chunked", **bearer(daemon)))
            raw.send(endless)
            assert b" 431 " in raw.rest()


@pytest.mark.parametrize(
    "head",
    [
        b"GET /" + b"x" * 20_000,
        b"GET /health HTTP/1.1\r\nHost: localhost\r\nx: " + b"y" * 20_000,
        b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"x: y\r\n" * 5000,
        b"G" * 20_000,
        b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nx: " + b"y" * 20_000,
    ],
)
def test_a_head_that_is_too_large_is_refused(daemon: DaemonProcess, head: bytes) -> None:
    with tcp(daemon) as raw:
        raw.send(head)
        told = raw.rest()
    assert told == b"" or b" 400 " in told or b" 431 " in told, told[:200]
    assert daemon.call("status")


def test_two_requests_in_one_smuggle_nothing(daemon: DaemonProcess) -> None:
    """What could be read as two requests by one and as one by another is refused, and closed."""
    hidden = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    token = f"Authorization: Bearer {daemon.endpoint.token}\r\n".encode()
    start = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + token
    shapes = [
        b"Content-Length: 5\r\nContent-Length: 50\r\n\r\n",
        b"Content-Length: 5, 50\r\n\r\n",
        b"Content-Length: +5\r\n\r\n",
        b"Content-Length: 0x5\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
        b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        b"Content-Length: 5\r\n Transfer-Encoding: chunked\r\n\r\n",
        b"Host: localhost\r\nContent-Length: 5\r\n\r\n",
        b"Content-Length: 5\rTransfer-Encoding: chunked\r\n\r\n",
        b"Content-Length: 5\nTransfer-Encoding: chunked\r\n\r\n",
    ]
    with contextlib.ExitStack() as open_until_here:
        # A refused connection is read for a second before it is closed: all at the same time.
        connections = [open_until_here.enter_context(tcp(daemon)) for _ in shapes]
        for raw, shape in zip(connections, shapes, strict=True):
            raw.send(start + shape + hidden)
        for raw, shape in zip(connections, shapes, strict=True):
            told = raw.rest()
            assert told.count(b"HTTP/1.1 ") <= 1, (shape, told)
            assert not told or told.split(b" ")[1] in (b"400", b"421", b"501"), (shape, told)


def test_what_comes_behind_a_refusal_is_not_served(daemon: DaemonProcess) -> None:
    with tcp(daemon) as raw:
        one = raw.head("POST", "/mcp", content_length="0")
        raw.send(one + raw.head("GET", "/health") * 3)
        assert b" 200 " not in raw.rest()


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "identity, gzip", "GZIP", "x-gzip"])
def test_a_compressed_body_is_refused_unread(
    daemon: DaemonProcess, watched: Watch, coding: str
) -> None:
    bomb = gzip.compress(b" " * (1024 * MIB // 16)) if coding == "gzip" else zlib.compress(PIECE)
    with watched(daemon, f"a bomb in {coding}") as other, tcp(daemon) as raw:
        path = session_path(daemon, "alice")
        headers = {"content_type": "application/json", "content_encoding": coding}
        assert raw.request("POST", path, bomb, **headers)[0] == 415
    assert other.grown < 16


def test_an_answer_is_never_compressed(daemon: DaemonProcess) -> None:
    """What is compressed beside a secret tells its length; a key is never worth that."""
    with tcp(daemon) as raw:
        path = session_path(daemon, "alice")
        _, headers, _ = mcp(raw, path, "tools/list", {}, accept_encoding="gzip, deflate, br")
    assert "content-encoding" not in headers


def test_a_compressed_websocket_is_not_agreed_upon(daemon: DaemonProcess, watched: Watch) -> None:
    offer = "permessage-deflate; client_max_window_bits, x-webkit-deflate-frame"
    with watched(daemon, "a bomb in permessage-deflate") as other, tcp(daemon) as raw:
        raw.send(raw.websocket_head(sec_websocket_extensions=offer, **bearer(daemon)))
        status, headers, _ = raw.answer()
        assert (status, "sec-websocket-extensions" in headers) == (101, False)
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        bomb = packer.compress(b" " * (64 * MIB)) + packer.flush(zlib.Z_SYNC_FLUSH)
        raw.send(frame(bomb, first=0xC0))  # RSV1: compressed, which was not agreed upon
        assert b'"type"' not in raw.rest()
    assert other.grown < 16


@pytest.mark.parametrize("asked", ["by its preface", "by an upgrade"])
def test_http2_is_not_spoken(daemon: DaemonProcess, asked: str) -> None:
    """A hundred requests at once on one connection, and heads that unfold: nobody needs that."""
    with tcp(daemon) as raw:
        if asked == "by its preface":
            raw.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0")
        else:
            settings = {"upgrade": "h2c", "connection": "Upgrade, HTTP2-Settings"}
            raw.send(
                raw.head("GET", "/health", http2_settings="AAMAAABkAAQAoAAAAAIAAAAA", **settings)
            )
            assert raw.answer()[0] == 200
            raw.send(raw.head("GET", "/health", **settings))
            assert raw.answer()[0] == 200
            return
        told = raw.rest()
    assert told.startswith(b"HTTP/1.1 505"), told[:100]


def big_message(raw: Raw) -> None:
    raw.send(b"\x81\xff" + struct.pack(">Q", 1024 * MIB) + bytes(4))
    is_refused(raw, MANY)


def endless_fragments(raw: Raw) -> None:
    raw.send(frame(b'{"', TEXT, first=0))
    is_refused(raw, MANY, frame(PIECE, 0, first=0))


def huge_ping(raw: Raw) -> None:
    raw.send(frame(PIECE, 9))


def a_length_beyond_63_bits(raw: Raw) -> None:
    raw.send(b"\x81\xff" + b"\xff" * 8 + bytes(4))


def unmasked(raw: Raw) -> None:
    raw.send(b"\x81\x02{}")


def no_utf8(raw: Raw) -> None:
    raw.send(frame(b"\xff\xfe\xfd"))


@pytest.mark.parametrize(
    "attack",
    [big_message, endless_fragments, huge_ping, a_length_beyond_63_bits, unmasked, no_utf8],
)
@pytest.mark.parametrize("has_key", [True, False], ids=["with a key", "a stranger"])
def test_a_frame_that_is_too_large_or_broken_ends_its_connection(
    daemon: DaemonProcess, watched: Watch, attack: Callable[[Raw], None], has_key: bool
) -> None:
    with watched(daemon, f"WebSocket, {attack.__name__}") as other, tcp(daemon) as raw:
        assert raw.upgrade(**(bearer(daemon) if has_key else {})) == 101
        attack(raw)
        told = raw.rest()
        assert b'"reply"' not in told
    assert other.grown < 64


def test_a_thousand_tiny_fragments_and_pings_cost_nobody_anything(
    daemon: DaemonProcess, watched: Watch
) -> None:
    with watched(daemon, "20,000 empty fragments and pings"), tcp(daemon) as raw:
        assert raw.upgrade(**bearer(daemon)) == 101
        raw.send(frame(b"", TEXT, first=0))
        assert not is_refused(raw, 20, frame(b"", 0, first=0) * 500 + frame(b"", 9) * 500)
        raw.send(frame(json.dumps({"type": "x"}).encode(), 0))
        while (got := raw.frame())[0] != TEXT:
            pass
        assert json.loads(got[1])["code"] == "invalid_request"


def test_a_line_that_never_ends_is_told_and_ends(daemon: DaemonProcess, watched: Watch) -> None:
    with watched(daemon, "a line without an end") as other, local(daemon) as raw:
        raw.send(b'{"')
        assert is_refused(raw, MANY)
        assert json.loads(raw.rest().partition(b"\n")[0])["code"] == "invalid_request"
    assert other.grown < 64


def test_a_binary_message_is_no_request(daemon: DaemonProcess) -> None:
    with tcp(daemon) as raw:
        assert raw.upgrade(**bearer(daemon)) == 101
        raw.send(frame(rpc("tools/list", {}), BINARY))
        assert json.loads(raw.frame()[1])["code"] == "invalid_request"
