"""A bell wakes who waits now, and only those."""

from __future__ import annotations

import trio
import trio.testing

from aegis.terminals.output.bell import Bell


async def test_a_ring_wakes_all_who_wait_and_is_not_remembered(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bell, woken = Bell(), []

    async def listen(name: str) -> None:
        await bell.wait()
        woken.append(name)

    bell.ring()
    async with trio.open_nursery() as nursery:
        for name in ("a", "b"):
            nursery.start_soon(listen, name)
        await trio.testing.wait_all_tasks_blocked()
        assert woken == []
        bell.ring()
        nursery.start_soon(listen, "late")
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(woken) == ["a", "b"]
        bell.ring()
    assert woken[2:] == ["late"]


async def test_one_who_goes_away_takes_nobody_with_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    bell = Bell()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bell.wait)
            with trio.move_on_after(1) as scope:
                await bell.wait()
            assert scope.cancelled_caught
            bell.ring()
