"""The event loop of a verb that runs on."""

from __future__ import annotations

import pytest
import trio

from aegis.cli.live.event_loop import run


async def raising(error: BaseException) -> None:
    async with trio.open_nursery():
        raise error


def test_an_interrupt_comes_out_as_it_is() -> None:
    with pytest.raises(KeyboardInterrupt):
        run(lambda: raising(KeyboardInterrupt()))


def test_any_other_failure_keeps_its_group() -> None:
    with pytest.raises(ExceptionGroup) as failure:
        run(lambda: raising(ValueError("wrong")))
    assert failure.group_contains(ValueError, match="wrong")


def test_a_result_is_given() -> None:
    async def work() -> int:
        await trio.lowlevel.checkpoint()
        return 3

    assert run(work) == 3
