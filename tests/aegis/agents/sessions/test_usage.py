"""The accounting of a session is the same after its transcript was read again."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.sessions import steps
from aegis.agents.sessions.metrics import Metrics
from aegis.agents.sessions.past import SessionPast
from aegis.agents.sessions.rules import SessionMachine
from aegis.protocol import agent_events as ev
from tests.aegis.agents.sessions.test_rules import Case
from tests.aegis.agents.sessions.world import World, driver_ended, settings


def read_again(entries: list[dict[str, object]], now: float) -> Metrics:
    past = SessionPast()
    for entry in entries:
        past.take(entry)
    return SessionMachine(settings(), past, now=now).metrics


def spend(process_usd: float) -> ev.Usage:
    return ev.Usage(
        input_tokens=100,
        cached_tokens=80,
        output_tokens=7,
        context_tokens=120,
        context_limit=1000,
        process_cost_usd=process_usd,
    )


def test_costs_and_tokens_survive_the_end_of_a_process_and_of_the_daemon() -> None:
    case = Case().working(1)
    case.give(SessionMachine.heard, spend(0.25), at=4.0).result()
    case.give(SessionMachine.driver_ended, driver_ended(1), at=5.0)
    case.working(2)
    case.ready()
    case.give(SessionMachine.heard, spend(0.10), at=9.0).result()
    found = case.session.metrics
    assert (found.turns, found.input_tokens, found.output_tokens) == (2, 200, 14)
    assert (found.cached_percent, found.context_percent) == (80.0, 12.0)
    assert found.cost_usd == pytest.approx(0.35)
    assert found.turns_s == pytest.approx(8.0)
    assert read_again(case.entries, now=1_000_000.0) == found


def test_the_cost_of_a_turn_that_the_daemon_cut_is_counted_and_its_downtime_is_not() -> None:
    case = Case().working(1).give(SessionMachine.heard, spend(0.25), at=4.0)
    past = SessionPast()
    for entry in case.entries:
        past.take(entry)
    later = SessionMachine(settings(), past, now=50_000.0)
    outputs = later.begin(50_000.0)
    written = [each.entry for each in outputs if isinstance(each, steps.Append)]
    assert (later.metrics.cost_usd, later.metrics.turns_s) == (0.25, 4.0)
    assert read_again([*case.entries, *written], now=60_000.0) == later.metrics


def test_an_event_that_is_no_event_any_more_is_ignored() -> None:
    entry = {"kind": "event", "at": 1.0, "event": {"type": "usage", "input_tokens": "many"}}
    assert read_again([entry], now=2.0) == Metrics()


@given(st.integers(0, 2**32), st.integers(0, 120))
def test_in_any_history_the_transcript_gives_the_same_metrics(seed: int, length: int) -> None:
    world = World(random.Random(seed))
    moves = ("sync", "ready", "arrive", "result", "cancelled", "ring", "die", "fail", "spend")
    for _ in range(length):
        move = world.chance.choice(moves)
        if move == "spend" and world.process == "ready":
            world.give(SessionMachine.heard, spend(world.chance.random()))
        elif move != "spend":
            getattr(world, move)()
    world.sync()
    world.sync()
    world.die()
    world.sync()
    live = world.session.metrics
    found = read_again(world.entries, world.now)
    assert found.turns_s == pytest.approx(live.turns_s, abs=0.001 * (length + 1))
    assert found.cost_usd == pytest.approx(live.cost_usd)
    for name in ("turns", "input_tokens", "cached_tokens", "output_tokens", "context_tokens"):
        assert getattr(found, name) == getattr(live, name)
