"""Who subscribes, as a value: what is added, taken away, moved on, stored and read back."""

from __future__ import annotations

import pytest

from aegis.errors import Unavailable
from aegis.terminals.output.patterns import Pattern
from aegis.terminals.wakes.subscriptions import (
    EVERYTHING,
    MAX_EARLIER,
    MAX_SUBSCRIBERS,
    Earlier,
    Filter,
    Subscription,
    Subscriptions,
    restored,
    stored_life,
)

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
        ({"handle": "pm", "confirmed": 3, "of": "a later version"}, True),
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


TESTS = Filter(pattern=Pattern("pytest"))
FAILURES = Filter(only_failures=True)
BOTH = Filter(pattern=Pattern("make"), only_failures=True)


def who(subscriptions: Subscriptions) -> Subscription:
    [only] = subscriptions.by_key.values()
    return only


def test_another_filter_counts_for_what_comes_after_it() -> None:
    one = Subscriptions().subscribed("pm", 4, TESTS).subscribed("PM", 9, FAILURES)
    assert who(one).handle == "pm"
    assert [who(one).filter_of(seq) for seq in (5, 9, 10)] == [TESTS, TESTS, FAILURES]
    two = one.subscribed("pm", 12)
    assert [who(two).filter_of(seq) for seq in (9, 10, 12, 13)] == [
        TESTS,
        FAILURES,
        FAILURES,
        EVERYTHING,
    ]


def test_the_same_filter_again_changes_nothing() -> None:
    one = Subscriptions().subscribed("pm", 4, TESTS)
    assert one.subscribed("pm", 9, Filter(pattern=Pattern("pytest"))) == one


def test_a_filter_that_was_there_for_no_record_leaves_no_trace() -> None:
    one = Subscriptions().subscribed("pm", 4, TESTS).subscribed("pm", 9, FAILURES)
    assert who(one.subscribed("pm", 9, BOTH)).earlier == (Earlier(until=9, filter=TESTS),)
    assert who(Subscriptions().subscribed("pm", 4, TESTS).subscribed("pm", 4)).earlier == ()


def test_an_earlier_filter_is_kept_as_long_as_a_record_needs_it() -> None:
    owed = Subscriptions().subscribed("pm", 4, TESTS).subscribed("pm", 9, FAILURES)
    assert who(owed.confirmed({"pm": 8})).filter_of(9) == TESTS
    assert who(owed.confirmed({"pm": 9})).earlier == ()
    assert who(owed.confirmed({"pm": 9})).filter_of(10) == FAILURES


def test_who_is_told_nothing_cannot_change_its_filter_for_ever() -> None:
    now = Subscriptions().subscribed("pm", 0, TESTS)
    for number in range(MAX_EARLIER):
        now = now.subscribed("pm", number + 1, FAILURES if number % 2 == 0 else TESTS)
    with pytest.raises(Unavailable, match=r"filter of 'pm' was changed 3 times .* try again"):
        now.subscribed("pm", 90, BOTH)
    assert who(now.confirmed({"pm": 1}).subscribed("pm", 90, BOTH)).filter == BOTH


@pytest.mark.parametrize("wanted", [EVERYTHING, TESTS, FAILURES, BOTH])
@pytest.mark.parametrize("before", [EVERYTHING, TESTS])
def test_filters_are_stored_and_come_back(wanted: Filter, before: Filter) -> None:
    now = Subscriptions().subscribed("pm", 4, before).subscribed("pm", 9, wanted)
    assert restored(now.stored()) == (now, 0)


def test_what_wants_everything_is_stored_as_before_there_were_filters() -> None:
    assert who(TWO.unsubscribed("bob")).stored() == {"handle": "Pm", "confirmed": 4}


@pytest.mark.parametrize(
    "fields",
    [
        {"pattern": "("},
        {"pattern": 7},
        {"only_failures": "no"},
        {"earlier": 7},
        {"earlier": ["make"]},
        {"earlier": [{"until": "4"}]},
        {"earlier": [{"until": 4, "pattern": "("}]},
    ],
)
def test_a_filter_that_makes_no_sense_lets_everything_pass_and_is_told(
    fields: dict[str, object],
) -> None:
    found, damaged = restored({"subscribers": [{"handle": "pm", "confirmed": 3, **fields}]})
    assert found == Subscriptions().subscribed("pm", 3)
    assert damaged == 1


def test_the_life_of_the_terminal_is_stored_and_kept_by_every_change() -> None:
    before = Subscriptions().in_life("5f3a", -1).subscribed("pm", 3)
    after = before.confirmed({"pm": 5}).subscribed("ann", 5).unsubscribed("ann")
    assert after.stored()["life"] == "5f3a"
    again, damaged = restored(after.stored())
    assert (again, damaged) == (after, 0)


def test_subscribers_of_another_life_are_owed_nothing_of_it_and_of_the_same_all() -> None:
    stored = Subscriptions().in_life("5f3a", -1).subscribed("pm", 3).stored()
    found, _ = restored(stored)
    assert found.in_life("5f3a", 9).by_key["pm"].confirmed == 3
    other = found.in_life("77aa", 9)
    assert (other.life, other.by_key["pm"].confirmed) == ("77aa", 9)


def test_a_note_of_an_earlier_version_is_of_the_present_life() -> None:
    found, damaged = restored({"subscribers": [{"handle": "pm", "confirmed": 3}]})
    assert damaged == 0
    now = found.in_life("5f3a", 9)
    assert (now.life, now.by_key["pm"].confirmed) == ("5f3a", 3)


@pytest.mark.parametrize("life", [7, None, "", "a/b", "x" * 65, ["5f3a"]])
def test_what_is_no_life_is_none(life: object) -> None:
    assert stored_life({"life": life}) is None
