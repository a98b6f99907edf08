"""The time limits of asks."""

from __future__ import annotations

import math

import attrs
import pytest
import trio
import trio.testing

from actors import Actor, AskDeadline, ChildSpec, Reply, Request, SupervisorSpec, open_system
from actors.deadlines import SWEEP_AT, Deadlines


@attrs.frozen
class Echo(Request[int]):
    number: int


@attrs.frozen
class Late(Request[tuple[bool, int]]):
    pass


class Echoer(Actor[Echo | Late]):
    async def setup(self) -> None:
        self._owed: list[Reply[int]] = []

    async def receive(self, message: Echo | Late) -> None:
        match message:
            case Echo(number) if number < 0:
                self._owed.append(self.defer(message))
            case Echo(number):
                self.reply(message, number)
            case Late():
                (reply,) = self._owed
                is_abandoned = reply.is_abandoned
                reply.send(1)
                self.reply(message, (is_abandoned, reply.late))


SPEC = SupervisorSpec(name="root", children=(ChildSpec.of("echo", Echoer),))


async def test_limits_that_differ_are_kept_each_to_its_time(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ended: list[float] = []

    async def ask(timeout: float) -> None:
        with pytest.raises(AskDeadline, match=f"did not answer Echo within {timeout:g} s"):
            await echo.ask(Echo(-1), timeout=timeout)
        assert trio.current_time() == pytest.approx(timeout)
        ended.append(timeout)

    async with open_system(SPEC) as system:
        echo = system.ref("root/echo")
        async with trio.open_nursery() as nursery:
            for timeout in (3.0, 1.0, 2.0, 0.5, 0.25):
                nursery.start_soon(ask, timeout)
                await trio.testing.wait_all_tasks_blocked()
    assert ended == [0.25, 0.5, 1.0, 2.0, 3.0]


async def test_a_reply_after_the_time_is_known_as_abandoned_and_counted_as_late(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with open_system(SPEC) as system:
        echo = system.ref("root/echo")
        with pytest.raises(AskDeadline):
            await echo.ask(Echo(-1), timeout=1.0)
        assert await echo.ask(Late()) == (True, 1)


async def test_a_time_of_zero_is_over_at_once() -> None:
    async with open_system(SPEC) as system:
        with pytest.raises(AskDeadline, match="within 0 s"):
            await system.ref("root/echo").ask(Echo(1), timeout=0)


@pytest.mark.parametrize("timeout", [-1.0, math.nan, -math.inf])
async def test_a_time_that_is_none_is_refused(timeout: float) -> None:
    async with open_system(SPEC) as system:
        with pytest.raises(ValueError, match="is not a time"):
            await system.ref("root/echo").ask(Echo(1), timeout=timeout)


async def test_limits_of_asks_that_ended_do_not_pile_up() -> None:
    async with open_system(SPEC) as system:
        echo = system.ref("root/echo")
        for number in range(5 * SWEEP_AT):
            assert await echo.ask(Echo(number), timeout=3600) == number
        assert len(system.deadlines) <= SWEEP_AT


async def test_limits_of_many_open_asks_are_all_kept(
    autojump_clock: trio.testing.MockClock,
) -> None:
    deadlines = Deadlines()
    replies = [Reply[int]() for _ in range(10 * SWEEP_AT)]
    for index, reply in enumerate(replies):
        deadlines.add(reply, 7, "root/a", Echo(1), left=1 + index % 7)
        if index % 2:
            reply.send(1)
    assert len(deadlines) <= 10 * SWEEP_AT
    async with trio.open_nursery() as nursery:
        nursery.start_soon(deadlines.run)
        await trio.sleep(8)
        nursery.cancel_scope.cancel()
    assert len(deadlines) == 0
    assert [reply.is_abandoned for reply in replies] == [True, False] * (5 * SWEEP_AT)
