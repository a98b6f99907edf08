"""Handles of sessions that are not kept, in little space."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.codec import structure, unstructure
from aegis.agents.directory.roster import GoneHandles, Roster, gone_place

STEMS = st.sampled_from(["build", "Build", "build-1", "x"])
HANDLES = st.one_of(
    st.builds("{}-{}".format, STEMS, st.integers(0, 12)),
    st.builds("{}-0{}".format, STEMS, st.integers(0, 3)),
    STEMS,
)


def gone(handles: list[str]) -> Roster:
    rows: dict[str, GoneHandles] = {}
    for each in handles:
        id_, number = gone_place(each)
        row = rows.get(id_, GoneHandles(id=id_)).with_number(number)
        rows[id_] = structure(GoneHandles, unstructure(row))
    roster = Roster()
    roster.begin(rows.values())
    return roster


@given(st.lists(HANDLES, max_size=40), st.lists(HANDLES, max_size=40))
def test_it_has_what_was_added_and_nothing_else(added: list[str], others: list[str]) -> None:
    roster = gone(added)
    keys = {each.lower() for each in added}
    for each in (*added, *others):
        assert roster.was_dropped(each) == roster.has_had(each) == (each.lower() in keys)


@pytest.mark.parametrize("handle", ["build-1000000000000000", "build-", "-", "a--1", "9-9"])
def test_odd_handles_are_kept_like_others(handle: str) -> None:
    roster = gone([handle])
    assert roster.was_dropped(handle)
    assert not roster.was_dropped(f"{handle}0")


def test_the_workers_of_a_queue_need_the_space_of_one() -> None:
    row = GoneHandles(id="gone/build")
    for number in (*range(2, 5_000), 1):
        row = row.with_number(number)
    assert row.ranges == ((1, 4_999),)
    assert row.has(4_999)
    assert not row.has(5_000)
    assert not row.has(None)
