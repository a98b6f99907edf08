"""The title and the bells of a window, its sizes by the offsets of its output, and who types."""

from __future__ import annotations

import pytest

from aegis.terminals.output.window import (
    MAX_SIZES,
    MAX_TITLE_BYTES,
    MAX_TITLE_CHARS,
    TYPING_S,
    Typist,
    Window,
    WindowSizes,
)
from aegis.terminals.parse.control_sequences import SequenceScanner

Size = tuple[int, int, int]


def within(sizes: WindowSizes, begin: int, end: int) -> list[Size]:
    return [(size.cursor, size.cols, size.rows) for size in sizes.within(begin, end)]


@pytest.mark.parametrize(
    ("data", "title", "bells"),
    [
        (b"plain", "", 0),
        (b"a\x07b\x07", "", 2),
        (b"\x1b]2;vim\x07", "vim", 0),
        (b"\x1b]0;one\x1b\\\x1b]2;two\x1b\\", "two", 0),
        (b"\x1b]1;an icon\x07", "", 0),
        (b"\x1b]133;A\x07\x07", "", 1),
        (b"\x1b]2;x\x07\x1bc", "", 0),
        ("\x1b]2;a\u202eb\u200bc\x1b\\".encode(), "abc", 0),
        (b"\x1b]2;" + b"t" * (MAX_TITLE_BYTES + 1) + b"\x07\x07", "", 1),
        (b"\x1b]2;" + b"t" * MAX_TITLE_CHARS + b"more\x07", "t" * MAX_TITLE_CHARS, 0),
    ],
)
def test_titles_and_bells(data: bytes, title: str, bells: int) -> None:
    window = Window(24, 80, 0, look_after=lambda _: None)
    for sequence in SequenceScanner().feed(data, 0):
        window.follow(sequence)
    assert (window.title, window.bells) == (title, bells)


def test_the_size_at_the_beginning_comes_first_and_then_each_change() -> None:
    sizes = WindowSizes(10, 80, 24)
    sizes.resized(20, 100, 30)
    sizes.resized(30, 90, 20)
    assert within(sizes, 12, 19) == [(12, 80, 24)]
    assert within(sizes, 12, 20) == [(12, 80, 24), (20, 100, 30)]
    assert within(sizes, 20, 40) == [(20, 100, 30), (30, 90, 20)]
    assert within(sizes, 35, 35) == [(35, 90, 20)]


def test_output_before_the_first_known_size_has_that_size() -> None:
    sizes = WindowSizes(10, 80, 24)
    sizes.resized(20, 100, 30)
    assert within(sizes, 0, 15) == [(0, 80, 24)]
    assert within(sizes, 0, 25) == [(0, 80, 24), (20, 100, 30)]


def test_the_same_size_again_is_no_change_and_of_two_at_one_offset_the_later_counts() -> None:
    sizes = WindowSizes(0, 80, 24)
    sizes.resized(5, 80, 24)
    sizes.resized(5, 100, 30)
    sizes.resized(5, 90, 20)
    assert within(sizes, 0, 9) == [(0, 80, 24), (5, 90, 20)]


def test_the_number_of_sizes_is_limited() -> None:
    sizes = WindowSizes(0, 80, 24)
    for number in range(3 * MAX_SIZES):
        sizes.resized(number + 1, 10 + number, 24)
    newest = 10 + 3 * MAX_SIZES - 1
    found = within(sizes, 0, 3 * MAX_SIZES)
    assert len(found) == MAX_SIZES
    assert found[-1] == (3 * MAX_SIZES, newest, 24)


def test_a_writer_types_until_a_pause() -> None:
    typist = Typist()
    typist.typed("human", 10.0, "t0")
    typist.typed("human", 11.0, "t1")
    assert typist.typing is not None
    assert typist.typing.since == "t0"
    assert typist.check(12.0) == TYPING_S - 1.0
    assert typist.check(11.0 + TYPING_S) is None
    assert typist.typing is None


def test_another_writer_takes_over_at_once_and_a_pause_begins_anew() -> None:
    typist = Typist()
    typist.typed("human", 10.0, "t0")
    typist.typed("agent:bob", 10.5, "t1")
    assert typist.typing is not None
    assert (typist.typing.writer, typist.typing.since) == ("agent:bob", "t1")
    typist.typed("agent:bob", 10.5 + TYPING_S, "t2")
    assert typist.typing.since == "t2"
