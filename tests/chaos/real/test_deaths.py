"""Tests of the deaths: at every fault point and every call, few times each or many."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

import pytest

from aegis.faults import parse_plan
from aegis.lifetime import FAULT_TABLES
from tests.chaos.real.agents import kills as agent_kills
from tests.chaos.real.deaths import (
    CALLS,
    FAILING,
    POINTS,
    RANDOM_OF_ROUND,
    AtCall,
    AtPoint,
    Failing,
    Numbers,
    Part,
    UnderLoad,
    WhileStarting,
    WhileStopping,
    deaths,
    endless_deaths,
    random_death,
)
from tests.chaos.real.tracing import BY_KIND

WITH_AGENTS = frozenset(agent_kills.POINTS)
"""Fault points at which daemons with agents are killed: no other load passes them."""

ROTATION = frozenset(
    f"ledger.{step}" for step in ("rotate.before", "rename.before", "rename.after", "rotate.after")
)
"""Fault points at which ``tests/e2e/test_transcript_rotation.py`` kills: it writes enough."""

COMPACTION = frozenset(
    f"ledger.{step}" for step in ("compact.before", "replace.before", "replace.after")
)
"""Fault points at which ``tests/e2e/test_queues.py`` kills: it leaves enough out of date."""

SPLITTING = frozenset(
    f"ledger.{step}" for step in ("split.before", "split.after", "pack.before", "pack.after")
)
"""Fault points at which ``tests/e2e/test_split_ledgers.py`` kills: it records enough."""

PRIMITIVES = frozenset(
    name
    for table in FAULT_TABLES
    for name in table.names
    if name.startswith(
        (
            "queue.",
            "canvas.",
            "exchange.",
            "workflow.",
            "group.",
            "telegram.",
            "worktree.",
            "takeover.",
            "rewind.",
        )
    )
)
"""Fault points of primitives and of the chat, at which tests of their own in ``tests/e2e`` kill."""


def test_a_daemon_is_killed_at_every_fault_point_that_there_is() -> None:
    there = {name for table in FAULT_TABLES for name in table.names}
    killed_at = {name.partition("[")[0] for name in POINTS}
    elsewhere = ROTATION | COMPACTION | SPLITTING | PRIMITIVES
    # With agents the appends to the ledger of requests alone: all loads pass the point itself.
    with_agents = {name.partition("[")[0] for name in WITH_AGENTS}
    assert killed_at | with_agents | elsewhere == there
    assert killed_at.isdisjoint((WITH_AGENTS & there) | elsewhere)


def test_every_call_is_known_to_the_tracer() -> None:
    assert CALLS.keys() == BY_KIND.keys()
    assert {call for call, _ in FAILING} <= CALLS.keys()


@pytest.mark.parametrize("point", POINTS)
def test_what_a_death_arms_is_a_plan_that_kills_at_its_pass(point: str) -> None:
    plan = parse_plan(AtPoint(point, 7).faults)
    assert type(plan.faults[point, 7]).__name__ == "Kill"
    assert len(plan.faults) == (2 if "restart" in point else 1)


def test_the_numbers_are_those_that_were_asked_for() -> None:
    numbers = Numbers(at_points=2, at_random=50, at_calls=3)
    found = deaths(numbers, random.Random(1))
    assert len(found) == numbers.total
    places = Counter(each.place for each in found)
    assert {places[point] for point in POINTS} == {2}
    assert {places[f"{when} {call}"] for call in CALLS for when in ("before", "after")} == {3}
    assert {places[f"under load, {error} of {call}"] for call, error in FAILING} == {3}
    at_random = [e for e in found if isinstance(e, UnderLoad | WhileStarting | WhileStopping)]
    assert {type(each) for each in at_random} == {UnderLoad, WhileStarting, WhileStopping}
    assert len(at_random) == 50


def test_without_a_tracer_no_death_is_at_a_call() -> None:
    chance = random.Random(1)
    found = list(islice(endless_deaths(chance, calls=False), 300))
    assert not any(isinstance(each, AtCall | Failing) for each in found)


def test_a_round_has_each_place_once() -> None:
    length = Numbers(at_points=1, at_random=RANDOM_OF_ROUND, at_calls=1).total
    places = Counter(e.place for e in islice(endless_deaths(random.Random(1), calls=True), length))
    assert {places[point] for point in POINTS} == {1}
    assert {places[f"{when} {call}"] for call in CALLS for when in ("before", "after")} == {1}


def test_the_same_seed_gives_the_same_deaths() -> None:
    numbers = Numbers(at_points=1, at_random=9, at_calls=1)
    assert deaths(numbers, random.Random(5)) == deaths(numbers, random.Random(5))


def test_no_pass_is_beyond_what_a_load_makes_and_early_ones_are_not_rare() -> None:
    numbers = Numbers(at_points=40, at_random=0, at_calls=40)
    found = deaths(numbers, random.Random(2))
    at_points = [each for each in found if isinstance(each, AtPoint)]
    assert all(1 <= each.number <= POINTS[each.point] for each in at_points)
    often = [each.number for each in at_points if POINTS[each.point] >= 30]
    assert sum(number <= 5 for number in often) > len(often) / 5
    assert sum(number >= 20 for number in often) > len(often) / 10
    assert all(1 <= e.number <= CALLS[e.call] for e in found if isinstance(e, AtCall))


def test_parts_share_all_deaths() -> None:
    chance = random.Random(3)
    everything = [random_death(chance) for _ in range(17)]
    parts = [Part(index, 4).of(everything) for index in range(4)]
    assert sorted(map(str, everything)) == sorted(str(each) for part in parts for each in part)
    assert str(Part(1, 4)) == "2 of 4"
