from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import InvalidRequest
from aegis.protocol.streams import (
    MAX_CREDIT,
    Close,
    Credit,
    Ended,
    Gap,
    Item,
    Open,
    Opened,
)
from aegis.servers.calls import OPERATOR, Failure
from aegis.servers.json_text import UnsendableText
from aegis.servers.requests import (
    Cancel,
    CommandRequest,
    Hello,
    error_frame,
    hello_frame,
    parse_frame,
    pong_frame,
    reply_frame,
    stream_frame,
)


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ('{"type":"hello","version":1}', Hello(version=1)),
        ('{"type":"hello","version":1,"token":"t"}', Hello(version=1, token="t")),
        ('{"type":"hello","version":1,"session":"s"}', Hello(version=1, session="s")),
        ('{"type":"request","id":1,"command":"c"}', CommandRequest(1, "c", {})),
        (
            '{"type":"request","id":"a","command":"c","arguments":{"x":1}}',
            CommandRequest("a", "c", {"x": 1}),
        ),
        ('{"type":"cancel","id":-3}', Cancel(-3)),
        ('{"type":"open","id":1,"stream":"tree"}', Open(id=1, stream="tree")),
        (
            '{"type":"open","id":"a","stream":"s","arguments":{"x":[1]},"credit":5}',
            Open(id="a", stream="s", arguments={"x": [1]}, credit=5),
        ),
        ('{"type":"credit","id":1,"amount":16777216}', Credit(id=1, amount=MAX_CREDIT)),
        ('{"type":"close","id":"a"}', Close(id="a")),
    ],
)
def test_each_frame_is_understood_as_text_and_as_bytes(text: str, frame: object) -> None:
    assert parse_frame(text) == frame
    assert parse_frame(text.encode()) == frame


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "one JSON object"),
        ("{", "one JSON object"),
        ("[]", "one JSON object"),
        ("NaN", "NaN is not JSON"),
        ('{"type":"request","id":1,"command":"c","arguments":{"x":NaN}}', "NaN is not JSON"),
        ("1" * 5000, "one JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ("{}", "'hello', 'request', 'cancel', 'ping', 'open', 'credit', 'close', 'claim' and"),
        ('{"type":["x"]}', "'hello', 'request', 'cancel', 'ping'"),
        ('{"type":"hello"}', "version 1"),
        ('{"type":"hello","version":2}', "version 1"),
        ('{"type":"hello","version":true}', "version 1"),
        ('{"type":"hello","version":1,"token":5}', "must be text"),
        ('{"type":"hello","version":1,"token":"t","session":"s"}', "give one of 'token'"),
        ('{"type":"hello","version":1,"page":"t","session":"s"}', "give one of 'token'"),
        ('{"type":"hello","version":1,"pass":"t"}', "no 'pass'"),
        ('{"type":"request","id":1}', "'command'"),
        ('{"type":"request","command":"c"}', "'id'"),
        ('{"type":"request","id":true,"command":"c"}', "'id'"),
        ('{"type":"request","id":1.5,"command":"c"}', "'id'"),
        ('{"type":"request","id":null,"command":"c"}', "'id'"),
        ('{"type":"request","id":"","command":"c"}', "'id'"),
        ('{"type":"request","id":1,"command":"c","arguments":[]}', "'arguments'"),
        ('{"type":"request","id":1,"command":"c","arguments":null}', "'arguments'"),
        ('{"type":"request","id":1,"command":"c","from":"x"}', "no 'from'"),
        ('{"type":"cancel"}', "'id'"),
        ('{"type":"cancel","id":1,"why":"x"}', "no 'why'"),
        ('{"type":"open","stream":"tree"}', "'id'"),
        ('{"type":"open","id":1}', "open: .*stream"),
        ('{"type":"open","id":1,"stream":5}', "open: .*stream"),
        ('{"type":"open","id":1,"stream":"s","arguments":[]}', "open: .*arguments"),
        ('{"type":"open","id":1,"stream":"s","credit":-1}', "'credit' must be from 0"),
        ('{"type":"open","id":1,"stream":"s","credit":16777217}', "to 16777216 bytes"),
        ('{"type":"open","id":1,"stream":"s","credit":1.5}', "open: .*credit"),
        ('{"type":"open","id":1,"stream":"s","other":1}', "open: .*other"),
        ('{"type":"credit","id":1}', "credit: .*amount"),
        ('{"type":"credit","id":1,"amount":0}', "'amount' must be from 1"),
        ('{"type":"credit","id":1,"amount":true}', "credit: .*amount"),
        ('{"type":"close"}', "'id'"),
        ('{"type":"close","id":null}', "'id'"),
    ],
)
def test_a_malformed_frame_is_told_what_is_allowed(text: str, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason):
        parse_frame(text)


def test_an_id_is_bounded() -> None:
    with pytest.raises(InvalidRequest, match="'id'"):
        parse_frame(json.dumps({"type": "cancel", "id": "x" * 129}))
    with pytest.raises(InvalidRequest, match="'id'"):
        parse_frame(json.dumps({"type": "cancel", "id": 2**60}))


def test_the_keys_of_a_hello_do_not_show() -> None:
    assert "sesame" not in repr(Hello(version=1, token="sesame"))
    assert "sesame" not in repr(Hello(version=1, session="sesame"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.long
@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_what_is_answered_is_one_line_that_reads_back(result: dict[str, Any]) -> None:
    text = reply_frame(7, result)
    assert "\n" not in text
    assert json.loads(text.encode()) == {"type": "reply", "id": 7, "result": result}


@given(st.binary() | st.text())
def test_no_input_fails_otherwise_than_with_a_sentence(data: str | bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse_frame(data)


@pytest.mark.long
@given(st.dictionaries(st.sampled_from(["type", "id", "command", "arguments", "version"]), JSON))
def test_no_object_fails_otherwise_than_with_a_sentence(document: dict[str, Any]) -> None:
    try:
        parse_frame(json.dumps(document))
    except InvalidRequest as error:
        str(error).encode()


def test_a_reply_that_utf8_cannot_carry_is_no_frame_and_the_place_is_named() -> None:
    with pytest.raises(UnsendableText, match=r"in \.result\.list\[1\]\.text \('"):
        reply_frame(1, {"list": [{}, {"text": "\ud800é"}]})
    with pytest.raises(UnsendableText, match=r"in \.result the key '"):
        reply_frame(1, {"\udcff": 1})
    with pytest.raises(ValueError, match="JSON"):
        reply_frame(1, {"number": float("nan")})


def test_an_id_that_utf8_cannot_carry_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="without lone surrogates"):
        parse_frame('{"type":"cancel","id":"\\ud800"}')


def test_the_other_answers_have_their_form() -> None:
    assert json.loads(hello_frame("aegis-actors/1", "f00d", OPERATOR)) == {
        "type": "hello",
        "version": 1,
        "server": "aegis-actors/1",
        "instance": "f00d",
        "handle": None,
    }
    assert json.loads(pong_frame("a")) == {"type": "pong", "id": "a"}
    assert json.loads(error_frame(None, Failure("busy", "later"))) == {
        "type": "error",
        "id": None,
        "code": "busy",
        "message": "later",
    }


@pytest.mark.parametrize(
    ("frame", "beside", "document"),
    [
        (
            Opened(id=1, channel=2),
            {"cursor": 7},
            {"type": "opened", "id": 1, "channel": 2, "cursor": 7},
        ),
        (Opened(id="a", channel=None), None, {"type": "opened", "id": "a", "channel": None}),
        (Item(id=1, item={"x": 1}), None, {"type": "item", "id": 1, "item": {"x": 1}}),
        (Gap(id=1, dropped=3, cursor=None), None, {"type": "gap", "id": 1, "dropped": 3}),
        (
            Gap(id=1, dropped=3, cursor=9),
            None,
            {"type": "gap", "id": 1, "dropped": 3, "cursor": 9},
        ),
        (
            Ended(id=1, code=None, message=None),
            None,
            {"type": "ended", "id": 1, "code": None, "message": None},
        ),
    ],
)
def test_the_frames_of_streams_have_their_form(
    frame: Any, beside: dict[str, object] | None, document: dict[str, object]
) -> None:
    assert json.loads(stream_frame(frame, beside)) == document
