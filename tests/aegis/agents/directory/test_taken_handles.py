"""Handles that stay taken, in little memory."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.directory.taken_handles import TakenHandles

STEMS = st.sampled_from(["build", "Build", "build-1", "x"])
HANDLES = st.one_of(
    st.builds("{}-{}".format, STEMS, st.integers(0, 12)),
    st.builds("{}-0{}".format, STEMS, st.integers(0, 3)),
    STEMS,
)


@given(st.lists(HANDLES, max_size=40), st.lists(HANDLES, max_size=40))
def test_it_has_what_was_added_and_nothing_else(added: list[str], others: list[str]) -> None:
    taken = TakenHandles(added)
    keys = {each.lower() for each in added}
    for each in (*added, *others):
        assert (each in taken) == (each.lower() in keys)


@pytest.mark.parametrize("handle", ["build-1000000000000000", "build-", "-", "a--1", "9-9"])
def test_odd_handles_are_taken_like_others(handle: str) -> None:
    taken = TakenHandles([handle])
    assert handle in taken
    assert f"{handle}0" not in taken


def test_the_workers_of_a_queue_take_up_the_memory_of_one() -> None:
    taken = TakenHandles(f"build-{number}" for number in (*range(2, 50_000), 1))
    [ranges] = taken._ranges.values()
    assert ranges._first == [1]
    assert sys.getsizeof(ranges._last) < 200
    assert "build-49999" in taken
    assert "build-50000" not in taken
