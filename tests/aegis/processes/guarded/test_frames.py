"""JSON lines: frames from bytes of any kind, and lines from frames."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis.processes.guarded.frames import (
    KEPT_TEXT_BYTES,
    MAX_KEPT_BYTES,
    FrameReader,
    LargeFrame,
    frame_of,
    line_of,
)

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
    reader, received = FrameReader(), list[Any]()
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


def test_a_line_over_the_limit_is_cut_and_the_frames_around_it_are_returned() -> None:
    reader = FrameReader(limit=3_000)
    text = "x" * 10_000
    large = {"id": 7, "method": "m", "params": {"short": "kept", "long": text, "last": True}}
    line = line_of(large)
    [before, cut, after] = reader.feed(line_of({"a": 1}) + line + line_of({"b": 2}))
    assert (before, after) == ({"a": 1}, {"b": 2})
    assert isinstance(cut, LargeFrame)
    assert cut.size == len(line) - 1
    long = cut.frame["params"].pop("long")
    assert long == "x" * KEPT_TEXT_BYTES + "… [cut: 10000 bytes]"
    assert cut.frame == {"id": 7, "method": "m", "params": {"short": "kept", "last": True}}


@settings(max_examples=50)
@given(frames, st.data())
def test_a_large_line_is_cut_alike_however_it_is_split(
    frame: dict[str, Any], data: st.DataObject
) -> None:
    odd = "".join(
        data.draw(st.lists(st.sampled_from(['"', "\\", "\n", "\x00", "é", "\U0001f600"])))
    )
    frame = {**frame, "odd": odd, "long": (odd + "y") * 1_500}
    for ascii_only in (True, False):
        line = json.dumps(frame, ensure_ascii=ascii_only).encode("utf-8", "replace") + b"\n"
        found = []
        for size in (len(line), data.draw(st.integers(1, 70))):
            reader, read = FrameReader(limit=100), list[Any]()
            for start in range(0, len(line), size):
                read += reader.feed(line[start : start + size])
            found.append(read)
        assert found[0] == found[1]
        [cut] = found[0]
        assert isinstance(cut, LargeFrame)
        assert cut.frame["odd"] == odd
        assert (odd + "y").startswith(cut.frame["long"][: len(odd) + 1])


def test_of_a_large_line_without_long_texts_only_the_size_is_kept() -> None:
    reader = FrameReader(limit=1_000)
    line = b'{"numbers": [' + b"1," * MAX_KEPT_BYTES + b"1]}\n"
    [cut, after] = reader.feed(line + b'{"a": 1}\n')
    assert (cut, after) == (LargeFrame({}, len(line) - 1), {"a": 1})


@pytest.mark.parametrize("piece", [b"x" * 65_536, b'"' * 65_536, b"\\n" * 32_768, b"[" * 65_536])
def test_an_endless_line_costs_no_more_than_the_limit(piece: bytes) -> None:
    reader = FrameReader(limit=2**20)
    reader.feed(b'{"a": "')
    tracemalloc.start()
    for _ in range(300):
        reader.feed(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * 2**20
    [after] = reader.feed(b'\n{"a": 1}\n')[-1:]
    assert after == {"a": 1}
