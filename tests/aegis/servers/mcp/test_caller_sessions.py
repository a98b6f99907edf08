from __future__ import annotations

from functools import partial

import trio
import trio.testing

from aegis.protocol.tool_sets import Offer
from aegis.servers.calls import Caller, Identity
from aegis.servers.mcp.running_calls import CallerSessions

ALICE = Caller(Identity(handle="alice", operator=False), "mcp", "handle:alice")
BOB = Caller(Identity(handle="bob", operator=False), "mcp", "handle:bob")


class Port:
    def __init__(self) -> None:
        self.news: list[tuple[float, str, str]] = []

    async def call(self, *_: object) -> object:
        raise AssertionError("nobody calls here")

    async def report_progress(self, *_: object) -> None:
        raise AssertionError("nobody asks for progress here")

    def offer(self, identity: Identity) -> Offer:
        return Offer()

    def listed(self, caller: Caller) -> None:
        pass

    def opened(self, caller: Caller) -> None:
        self.news.append((trio.current_time(), "opened", caller.connection))

    def closed(self, caller: Caller) -> None:
        self.news.append((trio.current_time(), "closed", caller.connection))


async def hold(presence: CallerSessions, caller: Caller, seconds: float) -> None:
    with presence.during(caller):
        await trio.sleep(seconds)


async def test_a_caller_leaves_after_being_idle_counted_from_its_last_call(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    port = Port()
    presence = CallerSessions(port, idle_s=100)
    nursery.start_soon(presence.run)
    await trio.sleep(5)
    await hold(presence, ALICE, 0)
    await trio.sleep(60)
    await hold(presence, ALICE, 1)
    await trio.sleep(500)
    assert port.news == [(5, "opened", "handle:alice"), (166, "closed", "handle:alice")]


async def test_a_caller_stays_as_long_as_one_call_is_in_flight(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    port = Port()
    presence = CallerSessions(port, idle_s=10)
    nursery.start_soon(presence.run)
    nursery.start_soon(hold, presence, ALICE, 1000)
    await trio.sleep(1)
    await hold(presence, ALICE, 1)
    await trio.sleep(2000)
    assert port.news == [(0, "opened", "handle:alice"), (1010, "closed", "handle:alice")]


async def test_callers_leave_one_by_one_and_may_come_back(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    port = Port()
    presence = CallerSessions(port, idle_s=10)
    nursery.start_soon(presence.run)
    await hold(presence, ALICE, 0)
    await trio.sleep(4)
    await hold(presence, BOB, 0)
    await trio.sleep(20)
    await hold(presence, ALICE, 0)
    await trio.sleep(20)
    assert port.news == [
        (0, "opened", "handle:alice"),
        (4, "opened", "handle:bob"),
        (10, "closed", "handle:alice"),
        (14, "closed", "handle:bob"),
        (24, "opened", "handle:alice"),
        (34, "closed", "handle:alice"),
    ]


async def test_at_the_end_everybody_leaves_once_even_in_the_middle_of_a_call(
    autojump_clock: trio.testing.MockClock,
) -> None:
    port = Port()
    presence = CallerSessions(port, idle_s=10)
    async with trio.open_nursery() as outer:
        outer.start_soon(presence.run)
        outer.start_soon(partial(hold, presence, ALICE, 1000))
        await hold(presence, BOB, 1)
        outer.cancel_scope.cancel()
    assert sorted(news[1:] for news in port.news) == [
        ("closed", "handle:alice"),
        ("closed", "handle:bob"),
        ("opened", "handle:alice"),
        ("opened", "handle:bob"),
    ]
