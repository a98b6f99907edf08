"""Who subscribes, as a value: what is added, taken away, moved on, stored and read back."""

from __future__ import annotations

import pytest

from aegis.errors import Unavailable
from aegis.terminals.subscriptions import MAX_SUBSCRIBERS, Subscription, Subscriptions, restored

TWO = Subscriptions().subscribed("Pm", 4).subscribed("bob", 7)


def test_handles_differ_only_by_more_than_case() -> None:
    assert TWO.handles == ["bob", "Pm"]
    assert TWO.subscribed("PM", 9) == TWO
    assert "pM" in TWO
    assert TWO.unsubscribed("pm").handles == ["bob"]
    assert TWO.unsubscribed("nobody") == TWO


def test_nothing_is_changed_in_place() -> None:
    before = TWO.stored()
    TWO.subscribed("eve", 1), TWO.unsubscribed("pm"), TWO.confirmed({"pm": 9})
    assert TWO.stored() == before


def test_what_was_told_never_goes_back() -> None:
    now = TWO.confirmed({"pm": 9, "bob": 3, "nobody": 50})
    assert {each.handle: each.confirmed for each in now.by_key.values()} == {"Pm": 9, "bob": 7}
    assert now.highest == 9
    assert Subscriptions().highest == -1


def test_there_is_room_for_so_many_and_the_next_is_told_what_to_do() -> None:
    full = Subscriptions()
    for number in range(MAX_SUBSCRIBERS):
        full = full.subscribed(f"a{number}", 0)
    assert full.subscribed("A0", 5) == full
    with pytest.raises(Unavailable, match=r"256 handles subscribe .* aegis_term_unsubscribe"):
        full.subscribed("one-more", 0)
    assert "one-more" in full.unsubscribed("a7").subscribed("one-more", 0)


def test_what_is_stored_comes_back() -> None:
    assert restored(TWO.stored()) == (TWO, 0)
    assert restored(None) == (Subscriptions(), 0)


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        ({"handle": "pm", "confirmed": 3}, True),
        ({"handle": "pm", "confirmed": 3, "pattern": "pytest", "only_failures": True}, True),
        ({"handle": "../pm", "confirmed": 3}, False),
        ({"handle": "pm", "confirmed": "3"}, False),
        ({"handle": "pm"}, False),
        ({"confirmed": 3}, False),
        ("pm", False),
        (None, False),
    ],
)
def test_an_entry_that_makes_no_sense_costs_only_itself(entry: object, known: bool) -> None:
    fields = {"subscribers": [entry, {"handle": "bob", "confirmed": 7}]}
    found, damaged = restored(fields)
    expected = [Subscription(handle="pm", confirmed=3)] if known else []
    assert list(found.by_key.values()) == [*expected, Subscription(handle="bob", confirmed=7)]
    assert damaged == (0 if known else 1)


@pytest.mark.parametrize("fields", [{}, {"subscribers": None}, {"subscribers": {"pm": 3}}])
def test_a_note_without_a_list_is_damaged(fields: dict[str, object]) -> None:
    assert restored(fields) == (Subscriptions(), 1)
