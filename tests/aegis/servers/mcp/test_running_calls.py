"""Calls under way are ended before what carries their answers."""

from __future__ import annotations

import trio
import trio.testing

from aegis.servers.mcp.running_calls import RunningCalls


async def test_a_call_that_ends_by_itself_is_not_ended() -> None:
    running_calls = RunningCalls()
    with running_calls.call():
        await trio.lowlevel.checkpoint()
    await running_calls.end(30)


async def test_a_call_that_is_ended_goes_on_behind_its_block() -> None:
    running_calls, said = RunningCalls(), list[str]()

    async def serve() -> None:
        with running_calls.call():
            await trio.sleep_forever()
        said.append("the daemon is stopping")

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            nursery.start_soon(serve)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.shield = True
            await running_calls.end(30)
    assert len(said) == 2


async def test_one_that_does_not_end_is_waited_for_so_long_and_no_longer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    running_calls = RunningCalls()

    async def serve() -> None:
        with running_calls.call(), trio.CancelScope(shield=True):
            await trio.sleep(1000)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve)
        await trio.testing.wait_all_tasks_blocked()
        await running_calls.end(0.5)
        assert trio.current_time() < 1
