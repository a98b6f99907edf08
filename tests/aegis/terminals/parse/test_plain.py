"""Plain text by cursors: a table, and that calls in a row read as one call."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.terminals.parse.plain import MAX_STRING_BYTES, PlainText, take_plain, take_raw

WHOLE = [
    (b"one\r\ntwo\r\n", "one\ntwo\n"),
    (b"a\tb\x07\x00\x7fc", "a\tbc"),
    (b"\x1b[31mred\x1b[0m \x1b(Btext", "red text"),
    (b"\x1b]0;title\x07shown\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "shownlink"),
    (b"\x1bP1$r0m\x07still inside\x1b\\after", "after"),
    (b"\x1b]133;C\x07out\r\n\x1b]133;D;0\x07", "out\n"),
    (b" 10%\r 50%\r100%\r\n", " 10%\n 50%\n100%\n"),
    (b"echo\r\r\nx", "echo\nx"),
    (b"\r\n\x1b[?2004l\rout", "\nout"),
    (b"\x1b[?2004l\r\r\nout", "\nout"),
    (b"\x1b[?1049h\x1b[Hdrawn\x1b[?1049l", "drawn"),
    (b"h\xc3\xa9 \xe2\x82 \xff!", "hé � �!"),
    (b"\xc2\x9bC1", "C1"),
    (b"\xe2\x1b[0m\x82\xac", "���"),
    (b"\x1b[" + b"1" * 200 + b"mx", "1" * 72 + "mx"),
    (b"\x1b]" + b"s" * (MAX_STRING_BYTES + 1) + b"\x07", "s" * (MAX_STRING_BYTES + 1)),
    (b"\x1b]" + b"s" * MAX_STRING_BYTES + b"\x07x", "x"),
    (b"\r" * 70 + b"\nx", "\n\nx"),
    (b"", ""),
]


@pytest.mark.parametrize(("data", "text"), WHOLE)
def test_plain_text_is_what_a_reader_wants(data: bytes, text: str) -> None:
    assert take_plain(data, len(data) + 1, whole=True) == PlainText(text, len(data))


@pytest.mark.parametrize(
    ("data", "text", "size"),
    [
        (b"abc\xe2\x82", "abc", 3),
        (b"abc\r", "abc", 3),
        (b"abc\x1b", "abc", 3),
        (b"abc\x1b[1;3", "abc", 3),
        (b"abc\x1b]0;tit", "abc", 3),
        (b"abc\x1b]0;title\x1b", "abc", 12),
        (b"abc\x1bPq\x07", "abc", 3),
        (b"abc\x1b[?2004l", "abc", 3),
        (b"abc\x1b[?2004l\r", "abc", 3),
        (b"abc\x1b(", "abc", 3),
        (b"abc\x1b[?2004h", "abc", 11),
        (b"abc\n", "abc\n", 4),
    ],
)
def test_what_may_go_on_is_left_for_the_next_call(data: bytes, text: str, size: int) -> None:
    assert take_plain(data, 1000) == PlainText(text, size)


def test_a_sequence_that_begins_before_the_limit_is_taken_to_its_end() -> None:
    assert take_plain(b"abcdef\x1b[31mgh", 8) == PlainText("abcdef", 11)
    assert take_plain("abcé".encode(), 4) == PlainText("abc", 3)


def test_it_stops_after_so_many_characters() -> None:
    data = "ab\x1b[1mcé\x1b[0m\r\nef".encode()
    for chars, size in ((1, 1), (2, 2), (3, 7), (4, 9), (5, 15), (6, 16)):
        taken = take_plain(data, 100, whole=True, max_chars=chars)
        assert (len(taken.text), taken.size) == (chars, size)
    assert take_plain(data, 100, max_chars=0) == PlainText("", 0)


ESCAPES = [
    b"\x1b",
    b"\x1b[",
    b"1;",
    b"m",
    b"\x1b]0;",
    b"\x07",
    b"\x1b\\",
    b"\x1bP",
    b"\x18",
    b"\x1b(",
]
MODES = [b"\x1b[?2004l", b"\x1b[?2004h", b"\r", b"\n", b"\r\n", b"\x00"]
CHARACTERS = [b"text ", "é€😀".encode(), b"\xe2", b"\x82", b"\xff", b"\x9b", b"\xc2", b"B"]
BITS = st.sampled_from([*ESCAPES, *MODES, *CHARACTERS])
STREAMS = st.lists(BITS | st.binary(max_size=4), max_size=40).map(b"".join)


def read_all(data: bytes, arrivals: list[int], limits: list[int]) -> str:
    """What calls in a row give, while ``data`` comes in pieces."""
    texts: list[str] = []
    cursor = 0
    ends = [*sorted(min(end, len(data)) for end in arrivals), len(data)]
    for end in ends:
        while True:
            limit = limits[len(texts) % len(limits)]
            taken = take_plain(data[cursor:end], limit)
            texts.append(taken.text)
            cursor += taken.size
            if not taken.size:
                break
    texts.append(take_plain(data[cursor:], len(data) + 1, whole=True).text)
    return "".join(texts)


@given(
    data=STREAMS,
    arrivals=st.lists(st.integers(0, 120), max_size=8),
    limits=st.lists(st.integers(4, 30), min_size=1, max_size=5),
)
def test_the_texts_of_calls_in_a_row_are_the_text_of_one(
    data: bytes, arrivals: list[int], limits: list[int]
) -> None:
    assert read_all(data, arrivals, limits) == take_plain(data, len(data) + 1, whole=True).text


@given(data=st.binary(max_size=60), limits=st.lists(st.integers(4, 9), min_size=1))
def test_raw_texts_of_calls_in_a_row_are_the_text_of_one(data: bytes, limits: list[int]) -> None:
    texts: list[str] = []
    cursor = 0
    while (taken := take_raw(data[cursor:], limits[len(texts) % len(limits)])).size:
        texts.append(taken.text)
        cursor += taken.size
    texts.append(take_raw(data[cursor:], len(data) + 1, whole=True).text)
    assert "".join(texts) == data.decode(errors="replace")


@given(data=STREAMS, chars=st.integers(0, 40))
def test_so_many_characters_are_the_beginning_of_the_text(data: bytes, chars: int) -> None:
    whole = take_plain(data, len(data) + 1, whole=True).text
    taken = take_plain(data, len(data) + 1, whole=True, max_chars=chars)
    assert whole.startswith(taken.text)
    assert len(taken.text) >= min(chars, len(whole))


@given(data=STREAMS)
def test_no_control_character_is_left(data: bytes) -> None:
    text = take_plain(data, len(data) + 1, whole=True).text
    assert not {each for each in text if each < " " or "\x7f" <= each <= "\x9f"} - {"\n", "\t"}


@pytest.mark.parametrize("bit", [b"\x1b", b"\r", b"\x1b]", b"\x1b[", b"\xe2", b"\x1bP", b"\n\r"])
def test_a_flood_of_one_thing_reads_in_time_that_grows_with_its_length(bit: bytes) -> None:
    data, cursor = bit * 40_000, 0
    while (taken := take_plain(data[cursor:], 16_384)).size:
        cursor += taken.size
    assert len(data) - cursor <= MAX_STRING_BYTES


def test_pieces_in_a_row_hold_the_same_cursors_whatever_came_behind() -> None:
    data = b"".join(case for case, _ in WHOLE[:12]) * 20
    cursors = [0]
    while (taken := take_plain(data[cursors[-1] :], 64)).size:
        cursors.append(cursors[-1] + taken.size)
    for start, end in pairwise(cursors[:-1]):
        assert take_plain(data[start : end + 64], 64).size == end - start
