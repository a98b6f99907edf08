"""JSON lines: frames from bytes of any kind, and lines from frames."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.processes.guarded.frames import FrameReader, frame_of, line_of

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
frames = st.dictionaries(st.text(), values)


@settings(max_examples=30)  # each splits a stream at some hundred places
@given(st.lists(frames), st.data())
def test_every_frame_is_read_in_order_however_the_stream_is_split(
    sent: list[dict[str, Any]], data: st.DataObject
) -> None:
    stream = b"".join(map(line_of, sent))
    reader, received = FrameReader(), list[dict[str, Any]]()
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        received += reader.feed(stream[:size])
        stream = stream[size:]
    assert received == sent
    assert reader.noise == 0


@given(st.binary())
def test_any_bytes_give_frames_or_noise_and_never_an_error(data: bytes) -> None:
    reader = FrameReader()
    for frame in reader.feed(data + b'\n{"a": 1}\n'):
        json.dumps(frame, allow_nan=False, ensure_ascii=False).encode()


NOISE = {
    "a sentence": b"Debugger attached.",
    "a list": b"[1, 2]",
    "a number": b"7",
    "half an object": b'{"a": ',
    "two objects": b'{"a": 1}{"b": 2}',
    "a deep list": b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a list of 300 levels": b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}",
    "a number of 5,000 digits": b'{"a": ' + b"1" * 5000 + b"}",
}


@pytest.mark.parametrize("what", NOISE)
def test_noise_is_skipped_and_counted(what: str) -> None:
    reader = FrameReader()
    assert reader.feed(b'{"a": 1}\n' + NOISE[what] + b'\n\r\n\n{"b": 2}\r\n') == [
        {"a": 1},
        {"b": 2},
    ]
    assert reader.noise == 1


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
        (rb'{"a": "\ud800x"}', {"a": "\ufffdx"}),
        (rb'{"\udc00": ["\ud83d\ude00"]}', {"\ufffd": ["\U0001f600"]}),
        (rb'{"a": "\\ud800"}', {"a": "\\ud800"}),
        (
            b'{"a": NaN, "b": -Infinity, "c": 1e999, "d": 1.5}',
            {"a": None, "b": None, "c": None, "d": 1.5},
        ),
    ],
)
def test_what_could_not_be_written_again_is_replaced(line: bytes, frame: dict[str, Any]) -> None:
    assert frame_of(line) == frame
    json.dumps(frame, ensure_ascii=False, allow_nan=False).encode()


def test_a_line_has_no_character_at_which_a_reader_may_split_it() -> None:
    line = line_of({"a": "x\u2028y\u2029z\n\r\ud800\u00e9"})
    assert line.count(b"\n") == 1
    assert "\u2028" not in line.decode()
    assert json.loads(line) == {"a": "x\u2028y\u2029z\n\r\ufffd\u00e9"}
    with pytest.raises(ValueError, match="float"):
        line_of({"a": float("nan")})


def test_a_line_over_the_limit_ends_the_stream_and_the_frames_before_it_are_returned() -> None:
    reader = FrameReader(limit=10)
    assert reader.feed(b'{"a": 1}\n{"b": "12345"}\n{"c": 1}\n') == [{"a": 1}]
    assert reader.is_over_limit


def test_an_endless_line_costs_no_more_than_the_limit() -> None:
    reader, piece = FrameReader(limit=2**20), b"x" * 65_536
    tracemalloc.start()
    for _ in range(1000):
        reader.feed(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reader.is_over_limit
    assert peak < 2**20
