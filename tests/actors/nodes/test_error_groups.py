"""What tractor asks of ``trio.MultiError`` and of nurseries, of their stand-ins."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors.nodes.compat.error_groups import MultiError
from actors.nodes.compat.nursery import LooseNursery


async def fail(error: Exception) -> None:
    raise error


async def cancelled_error() -> BaseException:
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.sleep_forever()
        except trio.Cancelled as error:
            kept = error
            raise
    return kept


def test_a_group_can_be_made_of_a_list_alone() -> None:
    group = MultiError([ValueError("a"), KeyError("b")])
    assert [type(error) for error in group.exceptions] == [ValueError, KeyError]


def test_its_exceptions_are_a_list_that_another_can_be_added_to() -> None:
    group = MultiError([ValueError("a")])
    more = [KeyError("b")]
    assert len(MultiError(group.exceptions + more).exceptions) == 2


def test_one_of_ordinary_exceptions_is_an_exception_and_one_with_an_interrupt_is_not() -> None:
    assert isinstance(MultiError([ValueError()]), Exception)
    assert not isinstance(MultiError([ValueError(), KeyboardInterrupt()]), Exception)


def test_whoever_catches_groups_need_not_know_of_it() -> None:
    parts = MultiError([ValueError("a"), KeyError("b")]).split(ValueError)
    assert [isinstance(part, ExceptionGroup) for part in parts] == [True, True]
    assert [repr(each) for part in parts if part for each in part.exceptions] == [
        "ValueError('a')",
        "KeyError('b')",
    ]


def test_a_part_of_one_is_one() -> None:
    part: Any = MultiError([ValueError(), KeyError()]).subgroup(ValueError)
    assert isinstance(part, MultiError)
    assert len(part.exceptions) == 1


async def test_filter_says_whether_anything_but_cancellations_is_in_it() -> None:
    cancelled = await cancelled_error()

    def not_cancelled(error: BaseException) -> BaseException | None:
        return None if isinstance(error, trio.Cancelled) else error

    assert MultiError.filter(not_cancelled, cancelled) is None
    assert MultiError.filter(not_cancelled, MultiError([cancelled])) is None
    assert MultiError.filter(not_cancelled, BaseExceptionGroup("", [cancelled])) is None
    kept = MultiError.filter(not_cancelled, MultiError([cancelled, MultiError([ValueError()])]))
    assert isinstance(kept, MultiError)
    error = ValueError()
    assert MultiError.filter(not_cancelled, error) is error


async def test_a_lone_exception_leaves_the_nursery_bare() -> None:
    error = ValueError("alone")
    with pytest.raises(ValueError, match="alone") as caught:
        async with LooseNursery() as nursery:
            nursery.start_soon(fail, error)
    assert caught.value is error


async def test_several_leave_it_as_the_group_that_tractor_knows() -> None:
    with pytest.raises(MultiError) as caught:  # noqa: PT012
        async with LooseNursery() as nursery:
            nursery.start_soon(fail, ValueError())
            nursery.start_soon(fail, KeyError())
    assert {type(error) for error in caught.value.exceptions} == {ValueError, KeyError}


async def test_what_its_body_raises_leaves_it_unchanged_with_its_context() -> None:
    error = KeyError("inner")
    with pytest.raises(KeyError) as caught:  # noqa: PT012
        async with LooseNursery():
            try:
                int("no number")
            except ValueError:
                raise error  # noqa: B904
    assert caught.value is error
    assert isinstance(error.__context__, ValueError)


async def test_a_cancellation_is_caught_by_its_scope() -> None:
    with trio.CancelScope() as scope:
        async with LooseNursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            scope.cancel()
    assert scope.cancelled_caught


async def test_a_nursery_that_is_left_in_order_waits_for_its_tasks() -> None:
    done: list[int] = []

    async def work() -> None:
        await trio.lowlevel.checkpoint()
        done.append(1)

    async with LooseNursery() as nursery:
        nursery.start_soon(work)
    assert done == [1]
