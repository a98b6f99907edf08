from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.servers.gateway.http1 import (
    RequestHead,
    parse_head,
    plain_answer,
    size_of_head,
    strict_head,
)

WEBSOCKET = (
    b"GET /ws?x=1 HTTP/1.1\r\nHost: localhost:8420\r\nUpgrade: WebSocket\r\n"
    b"Connection: Upgrade\r\nX-Empty:\r\n\r\n"
)


def test_a_head_gives_method_path_query_and_headers() -> None:
    head = parse_head(WEBSOCKET + b"the rest")
    assert head is not None
    assert (head.method, head.path, head.query) == ("GET", "/ws", b"x=1")
    assert head.headers[0] == (b"host", b"localhost:8420")
    assert head.headers[-1] == (b"x-empty", b"")
    assert head.wants_websocket


@pytest.mark.parametrize("cut", range(len(WEBSOCKET)))
def test_no_part_of_a_head_passes_for_a_head(cut: int) -> None:
    assert parse_head(WEBSOCKET[:cut]) is None
    assert size_of_head(WEBSOCKET[:cut]) == 0


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/2.0\r\n\r\n",
        b"get / HTTP/1.1\r\n\r\n",
        b"GET  / HTTP/1.1\r\n\r\n",
        b"GET / x HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nNo colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nUpgrade : websocket\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: 1\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: 1\nB: 2\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: \x00\r\n\r\n",
        b"\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
    ],
)
def test_what_is_not_strictly_a_head_is_left_to_the_real_server(head: bytes) -> None:
    assert parse_head(head) is None


@pytest.mark.parametrize(
    ("method", "header"), [(b"POST", b"Upgrade: websocket"), (b"GET", b"Upgrade: h2c")]
)
def test_only_a_get_with_the_upgrade_asks_for_a_websocket(method: bytes, header: bytes) -> None:
    head = parse_head(method + b" /ws HTTP/1.1\r\n" + header + b"\r\n\r\n")
    assert head is not None
    assert not head.wants_websocket


@given(st.binary(max_size=80))
def test_whatever_is_taken_for_a_head_is_one_to_a_real_parser(data: bytes) -> None:
    text = b"GET / HTTP/1.1\r\nHost: x\r\n" + data + b"\r\n\r\n"
    head = parse_head(text)
    if head is None:
        return
    server = h11.Connection(h11.SERVER)
    server.receive_data(text)
    try:
        event = server.next_event()
    except h11.RemoteProtocolError:
        return  # stricter still: repeated or unusual framing headers
    assert isinstance(event, h11.Request)
    assert list(head.headers) == list(event.headers)


def test_a_plain_answer_is_a_whole_response() -> None:
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    client.receive_data(plain_answer(403, "not you"))
    response, body = client.next_event(), client.next_event()
    assert isinstance(response, h11.Response)
    assert response.status_code == 403
    assert isinstance(body, h11.Data)
    assert bytes(body.data) == b"not you\n"
    assert isinstance(client.next_event(), h11.EndOfMessage)


@given(st.binary(max_size=80))
def test_a_head_that_is_not_refused_is_read_the_same_by_the_server(data: bytes) -> None:
    text = b"GET / HTTP/1.1\r\nHost: x\r\n" + data + b"\r\n\r\n"
    head = strict_head(text)
    if not isinstance(head, RequestHead):
        return
    server = h11.Connection(h11.SERVER)
    server.receive_data(text)
    event = server.next_event()
    assert isinstance(event, h11.Request)
    assert list(head.headers) == list(event.headers)
