from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.codec import resolved_fields, structure
from actors.errors import CodecError
from aegis.errors import InvalidRequest
from aegis.protocol.derived.schema import input_schema, output_schema
from aegis.protocol.output_streams import StreamOutput
from aegis.protocol.stream_table import BY_STREAM, STREAMS, StreamEntry
from aegis.protocol.streams import (
    CLIENT_FRAMES,
    MAX_CHUNK_BYTES,
    MAX_CREDIT,
    MAX_KEYS_BYTES,
    SERVER_FRAMES,
    OutputBytes,
    chunk_size,
    may_send_text,
    pack_keys,
    pack_output,
    unpack_keys,
    unpack_output,
    with_more,
)


@pytest.mark.parametrize(
    ("credit", "amount", "now"),
    [
        (0, 1, 1),
        (100, 50, 150),
        (-30, 100, 70),
        (MAX_CREDIT - 1, 1, MAX_CREDIT),
        (MAX_CREDIT - 1, 2, MAX_CREDIT),
        (MAX_CREDIT, MAX_CREDIT, MAX_CREDIT),
    ],
)
def test_credit_adds_up_to_the_most_there_may_be(credit: int, amount: int, now: int) -> None:
    assert with_more(credit, amount) == now


@pytest.mark.parametrize(
    ("credit", "size"),
    [
        (-5, 0),
        (0, 0),
        (1, 1),
        (MAX_CHUNK_BYTES - 1, MAX_CHUNK_BYTES - 1),
        (MAX_CHUNK_BYTES, MAX_CHUNK_BYTES),
        (MAX_CREDIT, MAX_CHUNK_BYTES),
    ],
)
def test_bytes_are_cut_to_the_credit(credit: int, size: int) -> None:
    assert chunk_size(credit) == size


@pytest.mark.parametrize(("credit", "may"), [(-1, False), (0, False), (1, True), (5000, True)])
def test_an_item_may_overdraw_but_not_follow_one_that_did(credit: int, may: bool) -> None:
    assert may_send_text(credit) is may


@given(channel=st.integers(0, 2**32 - 1), cursor=st.integers(0, 2**53), data=st.binary())
def test_output_travels_as_it_is(channel: int, cursor: int, data: bytes) -> None:
    output = OutputBytes(channel, cursor, data)
    assert unpack_output(pack_output(output)) == output
    assert len(pack_output(output)) == len(data) + 12


@given(channel=st.integers(0, 2**32 - 1), keys=st.binary())
def test_keys_travel_as_they_are(channel: int, keys: bytes) -> None:
    assert unpack_keys(pack_keys(channel, keys)) == (channel, keys)


def test_a_message_without_its_head_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="channel of 4 bytes"):
        unpack_keys(b"\0\0\0")
    with pytest.raises(InvalidRequest, match="head of 12 bytes"):
        unpack_output(b"\0" * 11)


def test_too_many_keys_for_one_message_are_refused() -> None:
    assert unpack_keys(pack_keys(1, b"x" * MAX_KEYS_BYTES))[1] == b"x" * MAX_KEYS_BYTES
    with pytest.raises(InvalidRequest, match="send at most 65536"):
        unpack_keys(pack_keys(1, b"x" * (MAX_KEYS_BYTES + 1)))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "name"),
        ({"name": "../etc"}, "name must be"),
        ({"name": "a", "cursor": -1}, "cursor must be from 0"),
        ({"name": "a", "cursor": 5, "screen": True}, "give cursor or screen, not both"),
        ({"name": "a", "other": 1}, "other"),
    ],
)
def test_arguments_of_a_stream_are_checked(arguments: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CodecError, match=sentence):
        structure(StreamOutput, arguments)


@pytest.mark.parametrize("entry", STREAMS, ids=lambda entry: entry.name)
def test_every_stream_has_schemas_and_says_what_it_is(entry: StreamEntry) -> None:
    assert BY_STREAM[entry.name] is entry
    form: type = entry.arguments
    assert (form.__doc__ or "").strip()
    assert input_schema(form)["type"] == "object"
    for item in entry.items:
        assert (item.__doc__ or "").strip()
        assert output_schema(item)["additionalProperties"] is False


@pytest.mark.parametrize("form", [*CLIENT_FRAMES, *SERVER_FRAMES], ids=lambda form: form.__name__)
def test_every_frame_has_a_type_and_an_id(form: Any) -> None:
    assert form.tag == form.__name__.lower()
    assert "id" in [field.name for field in resolved_fields(form)]
