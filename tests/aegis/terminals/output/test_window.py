"""The sizes of a window by the offsets of its output, and the writer who types."""

from __future__ import annotations

from aegis.terminals.output.typist import TYPING_S, Typist
from aegis.terminals.output.window_sizes import MAX_SIZES, WindowSizes

Size = tuple[int, int, int]


def within(sizes: WindowSizes, begin: int, end: int) -> list[Size]:
    return [(size.cursor, size.cols, size.rows) for size in sizes.within(begin, end)]


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
