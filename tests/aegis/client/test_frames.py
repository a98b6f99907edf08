"""The frames of the WebSocket, as the client writes and reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aegis.client.errors import ProtocolMismatch
from aegis.client.frames import (
    FailureFrame,
    Incoming,
    OpenedFrame,
    ReplyFrame,
    Welcome,
    cancel_frame,
    claim_frame,
    hello_frame,
    parse_incoming,
    release_frame,
    request_frame,
)
from aegis.protocol.streams import (
    Claim,
    Ended,
    Gap,
    Item,
    Release,
)
from aegis.servers import requests
from aegis.servers.calls import Failure as ServerFailure
from aegis.servers.calls import Identity

FRAMES: list[tuple[dict[str, Any], Incoming]] = [
    (
        {"type": "hello", "version": 1, "server": "a/1", "instance": "i", "handle": None},
        Welcome("a/1", "i", None),
    ),
    ({"type": "reply", "id": 7, "result": {"ok": True}}, ReplyFrame(7, {"ok": True})),
    ({"type": "error", "id": 7, "code": "busy", "message": "no"}, FailureFrame(7, "busy", "no")),
    ({"type": "error", "id": None, "code": "x", "message": "y"}, FailureFrame(None, "x", "y")),
    ({"type": "opened", "id": 9, "channel": 1, "cursor": 5}, OpenedFrame(9, 1, {"cursor": 5})),
    ({"type": "opened", "id": 9, "channel": None}, OpenedFrame(9, None, {})),
    ({"type": "item", "id": 9, "item": {"a": 1}}, Item(id=9, item={"a": 1})),
    ({"type": "gap", "id": 9, "dropped": 3, "cursor": 8}, Gap(id=9, dropped=3, cursor=8)),
    (
        {"type": "ended", "id": 9, "code": "closed", "message": None},
        Ended(id=9, code="closed", message=None),
    ),
]


@pytest.mark.parametrize(("document", "frame"), FRAMES, ids=lambda value: type(value).__name__)
def test_a_frame_of_the_daemon_is_read(document: dict[str, Any], frame: Incoming) -> None:
    assert parse_incoming(json.dumps(document)) == frame


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "1",
        "{}",
        '{"type": "progress"}',
        '{"type": "reply", "id": 1}',
        '{"type": "reply", "id": "1", "result": {}}',
        '{"type": "reply", "id": true, "result": {}}',
        '{"type": "reply", "id": 1, "result": 3}',
        '{"type": "error", "id": 1}',
        '{"type": "item", "id": 1}',
        '{"type": "gap", "id": 1, "dropped": "many", "cursor": null}',
        '{"type": "ended", "id": 1}',
        "[" * 100_000,
    ],
)
def test_what_is_no_frame_is_told_in_one_short_sentence(text: str) -> None:
    with pytest.raises(ProtocolMismatch, match="no frame of the protocol") as caught:
        parse_incoming(text)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        (hello_frame(token=None, session=None), requests.Hello(version=1)),
        (hello_frame(token="t", session=None), requests.Hello(version=1, token="t")),
        (hello_frame(token=None, session="s"), requests.Hello(version=1, session="s")),
        (
            request_frame(3, "term_run", {"cmd": "é\0"}),
            requests.CommandRequest(3, "term_run", {"cmd": "é\0"}),
        ),
        (cancel_frame(3), requests.Cancel(3)),
        (claim_frame(3, 80, 24, take=True), Claim(id=3, cols=80, rows=24, take=True)),
        (release_frame(3), Release(id=3)),
    ],
)
def test_the_server_reads_what_the_client_writes(text: str, frame: object) -> None:
    assert requests.parse_frame(text) == frame


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        (
            requests.hello_frame("a/1", "i", Identity(handle="bob", operator=False)),
            Welcome("a/1", "i", "bob"),
        ),
        (requests.reply_frame(3, {"a": "é"}), ReplyFrame(3, {"a": "é"})),
        (requests.error_frame(3, ServerFailure("busy", "no")), FailureFrame(3, "busy", "no")),
        (requests.error_frame(None, ServerFailure("busy", "no")), FailureFrame(None, "busy", "no")),
        *(
            (requests.stream_frame(frame), frame)
            for frame in (
                Item(id=9, item={"a": 1}),
                Gap(id=9, dropped=3, cursor=8),
                Gap(id=9, dropped=3),
                Ended(id=9, code=None, message=None),
            )
        ),
    ],
)
def test_the_client_reads_what_the_server_writes(text: str, frame: Incoming) -> None:
    assert parse_incoming(text) == frame
