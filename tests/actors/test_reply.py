"""A reply reaches its asker once."""

from __future__ import annotations

import gc
import weakref

import pytest
import trio
import trio.testing

from actors.errors import ActorCrashed, Refusal
from actors.reply import Reply


async def test_a_value_sent_before_the_wait_is_given() -> None:
    reply: Reply[int] = Reply()
    reply.send(3)
    assert await reply.wait() == 3


async def test_a_value_sent_during_the_wait_is_given() -> None:
    reply: Reply[int] = Reply()
    async with trio.open_nursery() as nursery:

        @nursery.start_soon
        async def answer() -> None:
            await trio.testing.wait_all_tasks_blocked()
            reply.send(4)

        assert await reply.wait() == 4


async def test_a_failure_is_raised_at_the_asker() -> None:
    reply: Reply[int] = Reply()
    refusal = Refusal("no")
    reply.fail(refusal)
    with pytest.raises(Refusal) as caught:
        await reply.wait()
    assert caught.value is refusal


async def test_the_first_outcome_wins_and_later_ones_are_counted() -> None:
    reply: Reply[int] = Reply()
    reply.send(1)
    reply.send(2)
    reply.fail(ActorCrashed("late"))
    assert reply.late == 2
    assert reply.is_settled
    assert await reply.wait() == 1


async def test_a_cancelled_wait_abandons_the_reply() -> None:
    reply: Reply[int] = Reply()
    with trio.move_on_after(0):
        await reply.wait()
    assert reply.is_abandoned
    assert reply.is_settled
    reply.send(1)
    assert reply.late == 1


async def test_an_answer_and_a_cancellation_at_one_instant_give_one_outcome() -> None:
    reply: Reply[int] = Reply()
    got: list[int] = []

    async def wait(scope: trio.CancelScope) -> None:
        with scope:
            got.append(await reply.wait())

    scope = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, scope)
        await trio.testing.wait_all_tasks_blocked()
        reply.send(5)
        scope.cancel()
    assert got == [5]
    assert not reply.is_abandoned


async def test_an_asker_that_goes_away_is_noticed_once() -> None:
    reply: Reply[int] = Reply()
    told: list[str] = []
    reply.on_abandon(lambda: told.append("gone"))
    with trio.move_on_after(0):
        await reply.wait()
    assert told == ["gone"]
    reply.send(1)
    assert told == ["gone"]
    reply.on_abandon(lambda: told.append("gone before"))
    assert told == ["gone", "gone before"]


async def test_an_asker_that_got_its_answer_has_not_gone_away() -> None:
    reply: Reply[int] = Reply()
    told: list[str] = []
    reply.on_abandon(lambda: told.append("gone"))
    reply.send(1)
    assert await reply.wait() == 1
    reply.expire(Refusal("late"))
    assert told == []


async def test_what_an_asker_got_is_not_kept_by_who_owed_it() -> None:
    class Large:
        """Something to refer to."""

    reply: Reply[Large] = Reply()
    large = Large()
    kept = weakref.ref(large)
    reply.send(large)
    del large
    assert await reply.wait() is kept()
    assert reply.is_settled
    gc.collect()
    assert kept() is None
