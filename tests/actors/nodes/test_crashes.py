"""Crash after crash: a third killed, a third by an exception, a third done. Nothing is left.

``AEGIS_WORKER_CRASHES`` says how many; 30 in the ordinary run, of which every process takes half a
second to start.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from time import perf_counter

import pytest
import trio

from actors.nodes import EndKind, NodeRuntime, Worker, open_runtime
from tests.actors.nodes.machine import (
    GUARD_S,
    children,
    descriptors,
    resident_kib,
    spec,
    tasks,
    until,
)

pytestmark = [pytest.mark.real, pytest.mark.long]

CRASHES = int(os.environ.get("AEGIS_WORKER_CRASHES", "30"))
AT_ONCE = 3
WARM_UP = 6
GROWTH_KIB_EACH = 4
"""Steady growth for each worker that is more than this is a leak (tractor alone keeps 26)."""


async def one(runtime: NodeRuntime, number: int) -> EndKind:
    """Let a worker end in the way whose turn it is."""
    function = ("echo", "crash", "return_at_once")[number % 3]
    worker = Worker(runtime, spec(function, name=f"worker-{number}", argument=b"x"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(worker.run)
        await worker.wait_up()
        if number % 3 == 0:
            await worker.receive()
            worker.kill()
    assert worker.end is not None
    return worker.end.kind


async def crash(runtime: NodeRuntime, count: int) -> list[EndKind]:
    """Let so many end, a few at a time; return how, in order."""
    ends: dict[int, EndKind] = {}
    numbers = iter(range(count))

    async def in_turn() -> None:
        for number in numbers:
            with trio.fail_after(GUARD_S):
                ends[number] = await one(runtime, number)

    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(in_turn)
    return [ends[number] for number in range(count)]


async def test_crashes_leave_no_process_descriptor_task_or_memory(
    record_property: Callable[[str, object], None],
) -> None:
    async with open_runtime() as runtime:

        def left() -> tuple[object, ...]:
            return (children(), descriptors(), tasks(), runtime.remembered())

        before = left()
        await crash(runtime, WARM_UP)
        # A connection's task goes half a second after its worker.
        await until(lambda: left() == before)
        gc.collect()
        memory, began = resident_kib(), perf_counter()
        ends = await crash(runtime, CRASHES)
        await until(lambda: left() == before)
        gc.collect()
        grown = resident_kib() - memory
        record_property("seconds", round(perf_counter() - began))
        record_property("grown_kib", grown)
        record_property("left", str(before))
        assert grown <= 1024 + GROWTH_KIB_EACH * CRASHES
    kinds = [EndKind.KILLED, EndKind.CRASHED, EndKind.DONE]
    assert ends == [kinds[number % 3] for number in range(CRASHES)]
