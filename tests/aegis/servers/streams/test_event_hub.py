from __future__ import annotations

import trio
import trio.testing

from aegis.protocol.streams import CommandItem
from aegis.protocol.terminals import CommandHeader
from aegis.servers.streams.event_hub import MAX_QUEUED, EventHub


def event(seq: int) -> CommandItem:
    header = CommandHeader(
        name="build",
        seq=seq,
        cmd="make",
        writer="human",
        exit=None,
        duration_s=None,
        started_at="2026-11-24T10:00:00.000Z",
        cwd="/srv",
        raw_start=0,
    )
    return CommandItem(event="command_started", command=header)


async def test_everybody_hears_everything_from_then_on_in_order() -> None:
    events = EventHub()
    events.publish(event(0))
    one, two = events.subscribe(), events.subscribe()
    events.publish(event(1))
    events.publish(event(2))
    for listener in (one, two):
        assert [await listener.next() for _ in range(2)] == [(0, event(1)), (0, event(2))]


async def test_who_waits_is_woken(nursery: trio.Nursery) -> None:
    events = EventHub()
    listener = events.subscribe()
    heard: list[object] = []

    async def hear() -> None:
        heard.append(await listener.next())

    nursery.start_soon(hear)
    await trio.testing.wait_all_tasks_blocked()
    assert heard == []
    events.publish(event(7))
    await trio.testing.wait_all_tasks_blocked()
    assert heard == [(0, event(7))]


async def test_who_takes_nothing_loses_the_oldest_and_is_told_how_many() -> None:
    events = EventHub()
    listener = events.subscribe()
    for seq in range(MAX_QUEUED + 3):
        events.publish(event(seq))
    assert await listener.next() == (3, event(3))
    assert await listener.next() == (0, event(4))


async def test_who_closed_hears_no_more() -> None:
    events = EventHub()
    one, two = events.subscribe(), events.subscribe()
    one.close()
    one.close()
    events.publish(event(1))
    assert await two.next() == (0, event(1))
    with trio.move_on_after(0.01) as waited:
        await one.next()
    assert waited.cancelled_caught
