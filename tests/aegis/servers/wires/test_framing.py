from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.servers.wires.framing import LineBuffer, LineTooLong

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
