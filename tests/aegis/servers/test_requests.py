from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.errors import InvalidRequest
from aegis.servers.calls import Failure
from aegis.servers.requests import (
    Cancel,
    Hello,
    Request,
    error_frame,
    hello_frame,
    parse_frame,
    reply_frame,
)


@pytest.mark.parametrize(
    ("text", "frame"),
    [
        ('{"type":"hello","version":1}', Hello(version=1)),
        ('{"type":"hello","version":1,"token":"t"}', Hello(version=1, token="t")),
        ('{"type":"hello","version":1,"session":"s"}', Hello(version=1, session="s")),
        ('{"type":"request","id":1,"command":"c"}', Request(1, "c", {})),
        (
            '{"type":"request","id":"a","command":"c","arguments":{"x":1}}',
            Request("a", "c", {"x": 1}),
        ),
        ('{"type":"cancel","id":-3}', Cancel(-3)),
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
        ("{}", "'hello', 'request' or 'cancel', not null"),
        ('{"type":["x"]}', "'hello', 'request' or 'cancel'"),
        ('{"type":"hello"}', "version 1"),
        ('{"type":"hello","version":2}', "version 1"),
        ('{"type":"hello","version":true}', "version 1"),
        ('{"type":"hello","version":1,"token":5}', "must be text"),
        ('{"type":"hello","version":1,"token":"t","session":"s"}', "not both"),
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


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_what_is_answered_is_one_line_that_reads_back(result: dict[str, Any]) -> None:
    text = reply_frame(7, result)
    assert "\n" not in text
    assert json.loads(text.encode()) == {"type": "reply", "id": 7, "result": result}


@given(st.binary() | st.text())
def test_no_input_fails_otherwise_than_with_a_sentence(data: str | bytes) -> None:
    with pytest.raises(InvalidRequest):
        parse_frame(data)


@given(st.dictionaries(st.sampled_from(["type", "id", "command", "arguments", "version"]), JSON))
def test_no_object_fails_otherwise_than_with_a_sentence(document: dict[str, Any]) -> None:
    try:
        parse_frame(json.dumps(document))
    except InvalidRequest as error:
        str(error).encode()


def test_a_lone_surrogate_is_escaped_rather_than_lost() -> None:
    text = reply_frame(1, {"text": "\ud800é"})
    assert json.loads(text.encode())["result"] == {"text": "\ud800é"}


def test_the_other_answers_have_their_form() -> None:
    assert json.loads(hello_frame("aegis-actors/1", None)) == {
        "type": "hello",
        "version": 1,
        "server": "aegis-actors/1",
        "handle": None,
    }
    assert json.loads(error_frame(None, Failure("busy", "later"))) == {
        "type": "error",
        "id": None,
        "code": "busy",
        "message": "later",
    }
