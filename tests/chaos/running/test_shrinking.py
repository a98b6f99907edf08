"""Tests of the shortest failing part: minimal, bounded, and the same each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.running.shrinking import ddmin

MANY = 10_000
Part = tuple[int, ...]


def holding(*needed: int) -> Callable[[Part], bool]:
    return lambda part: set(needed) <= set(part)


CASES: dict[str, tuple[int, Callable[[Part], bool], list[Part]]] = {
    "always fails": (8, lambda part: True, [()]),
    "one item": (8, holding(5), [(5,)]),
    "the first": (8, holding(0), [(0,)]),
    "the last": (9, holding(8), [(8,)]),
    "two far apart": (100, holding(3, 97), [(3, 97)]),
    "neighbours across the middle": (8, holding(3, 4), [(3, 4)]),
    "all of them": (5, holding(*range(5)), [tuple(range(5))]),
    "every second": (16, holding(*range(0, 16, 2)), [tuple(range(0, 16, 2))]),
    "either of two": (10, lambda part: 2 in part or 7 in part, [(2,), (7,)]),
    "enough of them": (10, lambda part: len(part) >= 3, []),
    "an order": (
        10,
        lambda part: any(a + 1 == b for a, b in pairwise(part)),
        [],
    ),
    "a single one": (1, holding(0), [(0,)]),
    "none": (0, lambda part: True, [()]),
}


@pytest.mark.parametrize(("count", "fails", "expected"), CASES.values(), ids=CASES)
def test_what_is_left_is_minimal(
    count: int, fails: Callable[[Part], bool], expected: list[Part]
) -> None:
    found = ddmin(range(count), fails, tries=MANY)
    assert found.is_minimal
    assert fails(found.items)
    assert not expected or found.items in expected
    assert_is_minimal(found.items, fails)


def assert_is_minimal(items: Part, fails: Callable[[Part], bool]) -> None:
    for place in range(len(items)):
        assert not fails(items[:place] + items[place + 1 :])


def test_what_is_left_keeps_its_order_and_repeats() -> None:
    found = ddmin("abcabc", lambda part: part.count("a") == 2, tries=MANY)
    assert found.items == ("a", "a")


@given(st.integers(0, 40), st.sets(st.integers(0, 39)), st.integers(0, 5))
def test_any_needed_items_are_found(count: int, wanted: set[int], extra: int) -> None:
    """The predicate needs some items, and a minimum number of items."""
    needed = {item for item in wanted if item < count}
    least = min(count, len(needed) + extra)

    def fails(part: Sequence[int]) -> bool:
        return needed <= set(part) and len(part) >= least

    found = ddmin(range(count), fails, tries=MANY)
    assert found.is_minimal
    assert len(found.items) == least
    assert needed <= set(found.items)


@pytest.mark.parametrize("tries", [0, 1, 2, 5, 10])
def test_it_tries_no_more_often_than_it_may(tries: int) -> None:
    asked: list[Part] = []
    needed = holding(3, 50, 97)

    def fails(part: Part) -> bool:
        asked.append(part)
        return needed(part)

    found = ddmin(range(100), fails, tries=tries)
    assert len(asked) == found.tries == tries
    assert not found.is_minimal
    assert needed(found.items)


def test_a_few_of_many_are_found_in_a_small_number_of_tries() -> None:
    """With n items, few of them needed, it takes about log n tries for each."""
    assert ddmin(range(1_000), holding(123), tries=MANY).tries < 30
    assert ddmin(range(1_000), holding(123, 777), tries=MANY).tries < 200


def test_no_part_is_tried_twice_and_all_keep_their_order() -> None:
    asked: list[Part] = []

    def fails(part: Part) -> bool:
        asked.append(part)
        return {1, 6, 7}.issubset(part)

    ddmin(range(12), fails, tries=MANY)
    assert len(set(asked)) == len(asked)
    assert all(list(part) == sorted(part) for part in asked)


def test_the_same_question_has_the_same_answer() -> None:
    fails = holding(5, 17, 31)
    assert ddmin(range(64), fails, tries=MANY) == ddmin(range(64), fails, tries=MANY)


def test_what_the_question_raises_is_raised() -> None:
    def fails(part: Part) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ddmin(range(3), fails, tries=MANY)
