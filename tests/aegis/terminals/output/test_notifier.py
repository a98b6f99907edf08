"""A notifier wakes who waits now, and only those."""

from __future__ import annotations

import trio
import trio.testing

from aegis.terminals.output.notifier import Notifier


async def test_a_notification_wakes_all_waiters_and_is_not_stored(
    autojump_clock: trio.testing.MockClock,
) -> None:
    notifier, woken = Notifier(), []

    async def listen(name: str) -> None:
        await notifier.wait()
        woken.append(name)

    notifier.notify()
    async with trio.open_nursery() as nursery:
        for name in ("a", "b"):
            nursery.start_soon(listen, name)
        await trio.testing.wait_all_tasks_blocked()
        assert woken == []
        notifier.notify()
        nursery.start_soon(listen, "late")
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(woken) == ["a", "b"]
        notifier.notify()
    assert woken[2:] == ["late"]


async def test_a_cancelled_waiter_leaves_the_others_waiting(
    autojump_clock: trio.testing.MockClock,
) -> None:
    notifier = Notifier()
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(notifier.wait)
            with trio.move_on_after(1) as scope:
                await notifier.wait()
            assert scope.cancelled_caught
            notifier.notify()
