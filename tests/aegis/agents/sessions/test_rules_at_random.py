"""The machine of a session in a world of chance, over kills of everything."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from aegis.agents.sessions.rules import SessionMachine
from aegis.agents.sessions.steps import SessionPhase
from tests.aegis.agents.sessions.world import World

EVENTS = (
    *("sync", "ready") * 12,
    *("arrive", "result", "talk", "ask", "answer", "withdraw") * 3,
    *("ring", "limit", "notify", "set_back") * 2,
    *("refuse", "fail", "die", "restart", "cancelled"),
)
ORDERS = (
    (SessionMachine.end_turn, "pm"),
    (SessionMachine.restart, "human"),
    (SessionMachine.resume,),
)


def live(world: World, length: int) -> None:
    for _ in range(length):
        if world.chance.random() < 0.05:
            world.give(*world.chance.choice(ORDERS))
        getattr(world, world.chance.choice(EVENTS))()


@given(st.integers(0, 2**32), st.integers(0, 120))
def test_every_message_gets_one_turn_and_every_sent_turn_one_outcome(
    seed: int, length: int
) -> None:
    world = World(random.Random(seed))
    live(world, length)
    world.settle()
    world.arrive()  # wakes a session in error
    world.settle()
    assert world.is_at_rest, world.session.phase
    opened = [each for each in world.entries if each["kind"] == "turn_opened"]
    ended = [each for each in world.entries if each["kind"] == "turn_ended"]
    assert [each["turn"] for each in opened] == sorted({each["turn"] for each in opened})
    assert [each["turn"] for each in opened] == [each["turn"] for each in ended]
    taken = [message["id"] for each in opened for message in each["messages"]]
    assert taken == [each.id for each in world.inbox]
    assert world.acknowledged == len(world.inbox)


@given(st.integers(0, 2**32), st.integers(0, 80))
def test_a_loss_is_reported_to_each_sender_and_success_to_the_person(
    seed: int, length: int
) -> None:
    world = World(random.Random(seed))
    live(world, length)
    world.settle()
    world.arrive()
    world.settle()
    opened = {each["turn"]: each for each in world.entries if each["kind"] == "turn_opened"}
    for entry in world.entries:
        if entry["kind"] == "turn_ended" and entry["outcome"] != "cancelled":
            senders = {each["sender"] for each in opened[entry["turn"]]["messages"]}
            is_lost = entry["outcome"] in ("interrupted", "failed", "limited")
            hear = {"agent:pm", "human", "agent:builder"} if is_lost else {"human"}
            for sender in senders & hear:
                handle = sender.removeprefix("agent:")
                assert f"session:s1/turn:{entry['turn']}/{handle}" in world.notified


@given(st.integers(0, 2**32), st.integers(0, 60), st.booleans())
def test_a_closed_session_ends_and_stays_closed(seed: int, length: int, killed: bool) -> None:
    world = World(random.Random(seed))
    live(world, length)
    world.give(SessionMachine.close, "human")
    world.settle()
    assert world.finished
    assert world.session.phase is SessionPhase.CLOSED
    assert "open" not in world.shown.values()
    if killed:
        world.restart()
        assert world.session.phase is SessionPhase.CLOSED
        assert world.process == "none"


def test_the_world_lets_everything_happen() -> None:
    """Without this the tests above could hold because nothing happens."""
    worlds = [World(random.Random(seed)) for seed in range(20)]
    for world in worlds:
        live(world, 2000)
    entries = [entry for world in worlds for entry in world.entries]
    assert {each["kind"] for each in entries} >= {
        *("turn_opened", "turn_ended", "notified", "started", "ready", "ended", "event"),
        *("interrupt", "rewinding", "rewound"),
    }
    outcomes = {each["outcome"] for each in entries if each["kind"] == "turn_ended"}
    assert outcomes == {"completed", "failed", "cancelled", "interrupted", "limited"}
    assert {each["rung"] for each in entries if each["kind"] == "started"} >= {1, 2, 3}
    shown = {state for world in worlds for state in world.shown.values()}
    assert shown >= {"applied", "withdrawn"}
