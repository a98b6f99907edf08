from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.servers.wires.unix import LineBuffer, LineTooLong, LineWithoutEnd

LIMIT = 10


def split(pieces: list[bytes]) -> list[bytes]:
    lines = LineBuffer(LIMIT)
    found: list[bytes] = []
    for piece in pieces:
        lines.feed(piece)
        while (line := lines.next_line()) is not None:
            found.append(line)
    return found


LINES = st.lists(st.binary(max_size=LIMIT).map(lambda data: data.replace(b"\n", b" ")), max_size=8)


@given(LINES)
def test_lines_come_out_as_they_went_in(lines: list[bytes]) -> None:
    assert split([b"".join(line + b"\n" for line in lines)]) == lines


@given(LINES)
def test_byte_by_byte_gives_the_same(lines: list[bytes]) -> None:
    text = b"".join(line + b"\n" for line in lines)
    assert split([text[i : i + 1] for i in range(len(text))]) == lines


@given(LINES, st.lists(st.integers(0, 90), max_size=6))
def test_any_cuts_give_the_same(lines: list[bytes], cuts: list[int]) -> None:
    text = b"".join(line + b"\n" for line in lines)
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    pieces = [text[a:b] for a, b in pairwise(edges)]
    assert split(pieces) == lines


def test_an_unfinished_line_is_not_given() -> None:
    assert split([b"one\ntwo"]) == [b"one"]


@pytest.mark.parametrize("text", [b"x" * (LIMIT + 1), b"x" * (LIMIT + 1) + b"\n"])
def test_a_line_beyond_the_limit_is_an_error_with_and_without_its_end(text: bytes) -> None:
    with pytest.raises(LineTooLong):
        split([text])
    assert split([b"x" * LIMIT + b"\n"]) == [b"x" * LIMIT]


@given(LINES, st.integers(LIMIT + 1, 60), st.integers(1, 70))
def test_a_long_line_is_skipped_and_the_others_are_read(
    lines: list[bytes], length: int, cut: int
) -> None:
    """However the bytes are cut, there is one error, and no line is lost."""
    text = b"".join(line + b"\n" for line in lines)
    data = text + b"x" * length + b"\n" + text
    buffer = LineBuffer(LIMIT, skipped=100)
    found: list[bytes] = []
    errors = 0
    for at in range(0, len(data), cut):
        buffer.feed(data[at : at + cut])
        while True:
            try:
                line = buffer.next_line()
            except LineTooLong:
                errors += 1
                continue
            if line is None:
                break
            found.append(line)
    assert (found, errors) == (lines + lines, 1)


def test_a_line_without_an_end_is_not_skipped_for_ever() -> None:
    buffer = LineBuffer(LIMIT, skipped=20)
    buffer.feed(b"x" * (LIMIT + 20))
    with pytest.raises(LineTooLong):
        buffer.next_line()
    assert buffer.next_line() is None
    with pytest.raises(LineWithoutEnd):
        buffer.feed(b"x")
