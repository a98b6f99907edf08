from __future__ import annotations

import trio
import trio.testing

from aegis.protocol.streams import CommandHeader, CommandItem
from aegis.servers.streams.happenings import MAX_QUEUED, Happenings


def event(seq: int) -> CommandItem:
    header = CommandHeader(
        name="build", seq=seq, cmd="make", writer="human", exit=None, duration_s=None
    )
    return CommandItem(event="command_started", command=header)


async def test_everybody_hears_everything_from_then_on_in_order() -> None:
    happenings = Happenings()
    happenings.tell(event(0))
    one, two = happenings.listen(), happenings.listen()
    happenings.tell(event(1))
    happenings.tell(event(2))
    for listener in (one, two):
        assert [await listener.next() for _ in range(2)] == [(0, event(1)), (0, event(2))]


async def test_who_waits_is_woken(nursery: trio.Nursery) -> None:
    happenings = Happenings()
    listener = happenings.listen()
    heard: list[object] = []

    async def hear() -> None:
        heard.append(await listener.next())

    nursery.start_soon(hear)
    await trio.testing.wait_all_tasks_blocked()
    assert heard == []
    happenings.tell(event(7))
    await trio.testing.wait_all_tasks_blocked()
    assert heard == [(0, event(7))]


async def test_who_takes_nothing_loses_the_oldest_and_is_told_how_many() -> None:
    happenings = Happenings()
    listener = happenings.listen()
    for seq in range(MAX_QUEUED + 3):
        happenings.tell(event(seq))
    assert await listener.next() == (3, event(3))
    assert await listener.next() == (0, event(4))


async def test_who_closed_hears_no_more() -> None:
    happenings = Happenings()
    one, two = happenings.listen(), happenings.listen()
    one.close()
    one.close()
    happenings.tell(event(1))
    assert await two.next() == (0, event(1))
    with trio.move_on_after(0.01) as waited:
        await one.next()
    assert waited.cancelled_caught
