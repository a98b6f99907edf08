"""Limits of sessions: counted for each tree, refused with the time to try again."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.profiles import limits
from aegis.agents.profiles.limits import Counters
from aegis.configuration.limits import LimitsSection

NOW = 1_800_000_000.0


def counters(**values: int | float) -> Counters:
    return Counters(LimitsSection(**values))  # type: ignore[arg-type]


def test_a_session_more_than_the_limit_is_refused() -> None:
    counted = counters(sessions=2)
    assert counted.refuse_session(1) is None
    assert counted.refuse_session(2) == (
        "2 sessions are open, the limit of limits.sessions: close one with aegis_close, then try "
        "again"
    )
    assert counted.refuse_spawn("r", 1, 2, NOW) == counted.refuse_session(2)


@pytest.mark.parametrize(("depth", "is_refused"), [(1, False), (3, False), (4, True)])
def test_a_session_below_the_depth_is_refused(depth: int, is_refused: bool) -> None:
    refusal = counters().refuse_spawn("r", depth, 1, NOW)
    assert (refusal is not None) is is_refused
    assert refusal is None or refusal.startswith(
        "a session at depth 4 cannot be spawned: limits.spawn_depth is 3; "
    )


def test_spawns_are_counted_for_an_hour_and_for_each_tree() -> None:
    counted = counters(spawns_per_hour=2)
    counted.note_spawn("r", NOW)
    assert counted.refuse_spawn("r", 1, 1, NOW + 600) is None
    counted.note_spawn("r", NOW + 600)
    assert counted.refuse_spawn("r", 1, 1, NOW + 600) == (
        "the limit of 2 spawns in an hour (limits.spawns_per_hour) is reached: try again in 50 "
        "minutes"
    )
    assert counted.refuse_spawn("other", 1, 1, NOW + 600) is None
    assert counted.refuse_spawn("r", 1, 1, NOW + 3599) is not None
    assert counted.refuse_spawn("r", 1, 1, NOW + 3600) is None


def test_messages_are_counted_for_an_hour_and_for_each_tree() -> None:
    counted = counters(messages_per_hour=1)
    counted.note_message("r", NOW)
    assert counted.refuse_message("r", NOW + 3590) == (
        "the limit of 1 messages in an hour (limits.messages_per_hour) is reached: try again in 10 "
        "seconds"
    )
    assert counted.refuse_message("other", NOW) is None
    assert counted.refuse_message("r", NOW + 3600) is None


def test_a_limit_of_none_allows_none() -> None:
    counted = counters(spawns_per_hour=0, messages_per_hour=0)
    for refusal in (counted.refuse_spawn("r", 1, 1, NOW), counted.refuse_message("r", NOW)):
        assert refusal is not None
        assert refusal.endswith("is reached: the limit allows none")


def test_the_cost_of_children_counts_to_their_root() -> None:
    counted = counters(usd_per_day=10.0)
    counted.note_cost("r", 6.0, NOW)
    counted.note_cost("r", 5.0, NOW + 3600)
    refusal = (
        "the sessions of this tree cost 11.00 USD within 24 hours, and limits.usd_per_day is 10.00:"
        " try again in 23 hours"
    )
    assert counted.refuse_work("r", NOW + 3600) == refusal
    assert counted.refuse_spawn("r", 1, 1, NOW + 3600) == refusal
    assert counted.refuse_work("other", NOW) is None
    assert counted.refuse_work("r", NOW + 86_400) is None


def test_without_a_limit_any_cost_is_allowed() -> None:
    counted = counters()
    counted.note_cost("r", 1e9, NOW)
    assert counted.refuse_work("r", NOW) is None


@pytest.mark.parametrize("usd", [math.nan, math.inf, -math.inf, -5.0, 0.0])
def test_a_cost_that_is_none_is_not_counted(usd: float) -> None:
    counted = counters(usd_per_day=1.0)
    counted.note_cost("r", usd, NOW)
    counted.note_cost("r", 0.5, NOW)
    assert counted.refuse_work("r", NOW) is None


def test_a_clock_that_is_set_back_does_not_lengthen_the_wait() -> None:
    counted = counters(spawns_per_hour=1)
    counted.note_spawn("r", NOW)
    earlier = NOW - 1_000_000
    refusal = counted.refuse_spawn("r", 1, 1, earlier)
    assert refusal is not None
    assert refusal.endswith("try again in 60 minutes")
    assert counted.refuse_spawn("r", 1, 1, earlier + 3600) is None


def test_a_day_of_costs_has_a_bounded_number_of_entries() -> None:
    window = limits._Window(limits.DAY_S)
    for second in range(100_000):
        window.add(NOW + second, 0.01, limits.STEP_S)
    assert window.total(NOW + 99_999) == pytest.approx(864, rel=0.01)
    assert len(window._entries) <= limits.DAY_S / limits.STEP_S + 1


def test_the_number_of_trees_is_bounded_and_busy_ones_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "MAX_TREES", 3)
    counted = counters(messages_per_hour=1)
    counted.note_message("busy", NOW)
    for number in range(10):
        counted.note_message(f"t{number}", NOW)
        assert counted.refuse_message("busy", NOW) is not None
    assert counted.refuse_message("t9", NOW) is not None
    assert counted.refuse_message("t0", NOW) is None


@given(st.lists(st.integers(0, 20_000), max_size=60), st.integers(1, 5))
def test_no_hour_has_more_messages_than_the_limit_and_the_stated_wait_is_enough(
    times: list[int], most: int
) -> None:
    counted = counters(messages_per_hour=most)
    sent: list[int] = []
    for now in sorted(times):
        refusal = counted.refuse_message("r", now)
        if refusal is None:
            counted.note_message("r", now)
            sent.append(now)
            assert sum(now - 3600 < at for at in sent) <= most
        else:
            amount, unit = refusal.rpartition("in ")[2].split()
            wait_s = int(amount) * {"seconds": 1, "minutes": 60, "hours": 3600}[unit]
            assert sum(now + wait_s - 3600 < at for at in sent) < most
