"""Which stand-ins a tractor gets, by what its sources name and what Trio has."""

from __future__ import annotations

import pytest

from actors.nodes.compat.needs import CARRIES_THE_KEY, Trio, missing, names_used, stand_ins

TODAY = Trio(
    has_multi_error=False,
    unwraps_lone_exceptions=False,
    events_have_truth=False,
    processes_can_be_entered=False,
)
LONG_AGO = Trio(
    has_multi_error=True,
    unwraps_lone_exceptions=True,
    events_have_truth=True,
    processes_can_be_entered=True,
)
OLD = frozenset({"MultiError", "open_nursery", "Event", "Process"})


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("import trio", set()),
        ("trio.open_nursery()", {"open_nursery"}),
        ("await trio.lowlevel.open_process(x)", {"lowlevel.open_process"}),
        ("except (A, trio.MultiError):", {"MultiError"}),
        ("from trio import MultiError", {"MultiError"}),
        ("from trio import Event, Process as P", {"Event", "Process"}),
        ("patrio.Event()", set()),
    ],
)
def test_the_names_of_trio_are_found(source: str, names: set[str]) -> None:
    assert names_used([source, ""]) == names


@pytest.mark.parametrize(
    ("used", "trio", "wanted"),
    [
        # Written for the old Trio, run on today's: all of it.
        (OLD | CARRIES_THE_KEY, TODAY, OLD | CARRIES_THE_KEY),
        # Written for today's: nothing but what carries the key.
        ((OLD - {"MultiError"}) | CARRIES_THE_KEY, TODAY, CARRIES_THE_KEY),
        # On a Trio that has it all.
        (OLD | CARRIES_THE_KEY, LONG_AGO, CARRIES_THE_KEY),
        # What it does not name it does not get.
        (frozenset({"MultiError", "Event"}), TODAY, {"MultiError", "Event"}),
    ],
)
def test_only_what_is_lacking_gets_a_stand_in(
    used: frozenset[str], trio: Trio, wanted: frozenset[str]
) -> None:
    assert stand_ins(used, trio) == wanted


@pytest.mark.parametrize("name", sorted(CARRIES_THE_KEY))
def test_a_tractor_that_goes_around_the_authentication_is_seen(name: str) -> None:
    assert missing(CARRIES_THE_KEY) == set()
    assert missing(CARRIES_THE_KEY - {name}) == {name}
