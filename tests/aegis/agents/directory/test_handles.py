"""Generated handles, and the check of chosen ones."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.directory.handles import (
    ADJECTIVES,
    SURNAMES,
    TRIES,
    check_handle,
    new_handle,
)
from aegis.errors import AlreadyExists, InvalidRequest
from aegis.protocol.naming import NAME_RULE


class Upper:
    """Handles that were taken in capital letters."""

    def __init__(self, handles: Iterable[str]) -> None:
        self._handles = {each.upper() for each in handles}

    def __contains__(self, handle: object) -> bool:
        return str(handle).upper() in self._handles


PAIRS = [f"{adjective}-{surname}" for adjective in ADJECTIVES for surname in SURNAMES]


def test_there_are_at_least_64_distinct_words_of_each_sort() -> None:
    for words in (ADJECTIVES, SURNAMES):
        assert len(set(words)) == len(words) >= 64
        assert all(word.isascii() and word.isalpha() and word.islower() for word in words)


@given(st.integers())
def test_a_generated_handle_is_accepted_as_a_chosen_one(seed: int) -> None:
    handle = new_handle((), random.Random(seed).randrange)
    assert handle in PAIRS
    assert check_handle("aegis_spawn", handle, ()) == handle


@given(st.sets(st.sampled_from(PAIRS), max_size=50), st.integers())
def test_a_generated_handle_is_none_of_the_taken_ones_in_any_case(
    taken: set[str], seed: int
) -> None:
    assert new_handle(Upper(taken), random.Random(seed).randrange) not in taken


def test_a_thousand_sessions_have_a_thousand_handles() -> None:
    choose = random.Random(1).randrange
    taken: list[str] = []
    for _ in range(1000):
        taken.append(new_handle(taken, choose))
    assert len({each.lower() for each in taken}) == 1000


def test_the_last_free_pair_is_found_even_if_chance_never_names_it() -> None:
    taken = [pair for pair in PAIRS if pair != PAIRS[7]]
    assert new_handle(taken, lambda _: 9) == PAIRS[7]


def test_a_number_is_added_once_every_pair_is_taken() -> None:
    assert new_handle(PAIRS, lambda _: 0) == f"{PAIRS[0]}-2"
    assert new_handle([*PAIRS, f"{PAIRS[0]}-2"], lambda _: 0) == f"{PAIRS[0]}-3"


def test_chance_is_asked_a_bounded_number_of_times() -> None:
    asked: list[int] = []

    def choose(below: int) -> int:
        asked.append(below)
        return 0

    new_handle(PAIRS[:1], choose)
    assert len(asked) <= TRIES + 1


@pytest.mark.parametrize(
    ("handle", "refusal"),
    [
        ("all", "handle 'all' is reserved"),
        ("Human", "handle 'Human' is reserved"),
        ("", f"handle '' is not a name: use {NAME_RULE}"),
        ("a b", f"handle 'a b' is not a name: use {NAME_RULE}"),
        ("../x", "handle '../x' is not a name"),
        ("x" * 65, "is not a name"),
        ("ann\n", r"handle 'ann\n' is not a name"),
        ("bu\u0456lder", "is not a name"),
    ],
)
def test_a_chosen_handle_that_is_no_free_name_is_refused(handle: str, refusal: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(refusal)) as found:
        check_handle("aegis_spawn", handle, Upper([handle]))
    assert str(found.value).startswith("aegis_spawn: handle ")


def test_a_chosen_handle_was_used_by_no_session_in_any_case() -> None:
    assert check_handle("aegis_rename", "builder", Upper(["builder-2"])) == "builder"
    with pytest.raises(AlreadyExists, match="aegis_rename: handle 'Builder' is or was used"):
        check_handle("aegis_rename", "Builder", Upper(["bUILDER"]))
